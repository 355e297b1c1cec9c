"""The arguments on which every function is compared: columns of a type, or constants where a function wants
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TypeAlias

from tests.spark.edge_values import FINE, FRACTION, LONG, MONEY, RATE, RATIO, WIDE

from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
)

Argument: TypeAlias = Type | int | str
Case: TypeAlias = tuple[Argument, ...]

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
DECIMALS = (MONEY, RATIO, FRACTION, LONG, WIDE, FINE)
NUMBERS = (*INTEGERS, *DECIMALS, DOUBLE)
ALL = (BOOLEAN, *NUMBERS, STRING, DATE, TIMESTAMP, INTERVAL)
SUMMABLE_DECIMALS = (
    (MONEY, MONEY),
    (RATIO, RATIO),
    (MONEY, RATIO),
    (RATIO, FRACTION),
    (LONG, MONEY),
    (INT, MONEY),
    (MONEY, RATE),
    (RATE, MONEY),
)
UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")

_PAIRS: tuple[Case, ...] = tuple((type_, type_) for type_ in ALL)
_UNARY_DOUBLE: tuple[Case, ...] = ((DOUBLE,), (INT,), (MONEY,))
_UNARY_TEXT: tuple[Case, ...] = ((STRING,),)
_BINARY_TEXT: tuple[Case, ...] = ((STRING, STRING),)
_PARTS: tuple[Case, ...] = ((DATE,), (TIMESTAMP,))
_LIKE_PATTERNS = (
    *("", "%", "_", "a%", "%b", "%b%", "a_c", "__", "a\\%b", "a\\_b", "\\\\", "%\\\\%", "100\\%"),
    *("ß%", "😀", "_😀%", "%\n%", "${env:HOME}", "it's", "A%", "{0}"),
)
_REGULAR_EXPRESSIONS = (
    *("a", "^a", "b$", "^$", "a.b", "^.$", "^..$", "[a-c]+", "[^a-z]", "\\d+", "\\w", "^\\w+$"),
    *("\\s", "^\\S+$", "[\\s-]", "\\.", "\\$", "x|y|b", "(a|ab)(c|bc)", "(?:ab)+", "a{2}"),
    *("a{1,3}b?", "😀", "[😀ß]", "\\\\", "\\[a\\]", "it's", "[\\^a]", "a+?b", "\\D", "\\W$"),
    *("\\{0\\}",),
)

FUNCTION_CASES: Mapping[str, tuple[Case, ...]] = {
    "and": ((BOOLEAN, BOOLEAN), (BOOLEAN, BOOLEAN, BOOLEAN)),
    "or": ((BOOLEAN, BOOLEAN), (BOOLEAN, BOOLEAN, BOOLEAN)),
    "not": ((BOOLEAN,),),
    **dict.fromkeys(("eq", "lt", "null_safe_eq", "nullif"), _PAIRS),
    **{name: tuple((t, t) for t in (INT, DOUBLE, STRING, TIMESTAMP)) for name in ("ne", "le", "gt", "ge")},
    "is_null": tuple((type_,) for type_ in ALL),
    "in": (*_PAIRS, (INT, INT, INT), (STRING, STRING, STRING), (STRING, "a", "b")),
    "case": ((BOOLEAN, INT, INT), (BOOLEAN, STRING, STRING), (BOOLEAN, MONEY, 0), (BOOLEAN, DATE, TIMESTAMP)),
    "coalesce": (*_PAIRS, (INT, INT, INT), (MONEY, INT)),
    "greatest": (*_PAIRS, (DOUBLE, DOUBLE, DOUBLE)),
    "least": (*_PAIRS, (DOUBLE, DOUBLE, DOUBLE)),
    "add": (
        *((type_, type_) for type_ in (*INTEGERS, DOUBLE, INTERVAL)),
        *SUMMABLE_DECIMALS,
        *(
            (TIMESTAMP, INTERVAL),
            (INTERVAL, TIMESTAMP),
            (DATE, INTERVAL),
            (DATE, "1 day"),
            (INT, BIGINT),
            (MONEY, 1),
        ),
    ),
    "subtract": (
        *((type_, type_) for type_ in (*INTEGERS, DOUBLE, INTERVAL)),
        *SUMMABLE_DECIMALS,
        *((TIMESTAMP, INTERVAL), (DATE, INTERVAL), (TIMESTAMP, TIMESTAMP), (DATE, DATE), (TIMESTAMP, DATE)),
    ),
    "multiply": (
        *((type_, type_) for type_ in (*INTEGERS, DOUBLE)),
        *(
            (MONEY, MONEY),
            (MONEY, RATIO),
            (RATIO, FRACTION),
            (MONEY, RATE),
            (RATE, MONEY),
            (MONEY, DOUBLE),
            (INTERVAL, BIGINT),
            (INT, INTERVAL),
        ),
    ),
    "divide": tuple((type_, type_) for type_ in NUMBERS),
    "int_divide": tuple((type_, type_) for type_ in INTEGERS),
    "modulo": tuple((type_, type_) for type_ in NUMBERS),
    "negate": tuple((type_,) for type_ in (*NUMBERS, INTERVAL)),
    "abs": tuple((type_,) for type_ in (*NUMBERS, INTERVAL)),
    "sign": _UNARY_DOUBLE,
    "round": (
        *((type_,) for type_ in DECIMALS),
        (MONEY, 1),
        (MONEY, 5),
        (RATIO, 3),
        (FINE, 19),
        (INT,),
        (BIGINT, 2),
    ),
    "floor": tuple((type_,) for type_ in NUMBERS),
    "ceil": tuple((type_,) for type_ in NUMBERS),
    **dict.fromkeys(("sqrt", "cbrt", "exp", "ln", "log10", "log2", "asin", "acos", "atan"), _UNARY_DOUBLE),
    **dict.fromkeys(("degrees", "radians", "isnan"), _UNARY_DOUBLE),
    **dict.fromkeys(("sin", "cos", "tan"), _UNARY_DOUBLE),
    "pow": ((DOUBLE, DOUBLE), (INT, INT)),
    "atan2": ((DOUBLE, DOUBLE),),
    "nanvl": ((DOUBLE, DOUBLE),),
    "pi": ((),),
    "concat": ((STRING, STRING), (STRING, STRING, STRING)),
    "concat_ws": ((STRING, STRING), (STRING, STRING, STRING), (",", STRING, STRING)),
    **dict.fromkeys(("length", "octet_length", "upper", "lower", "trim", "ltrim", "rtrim"), _UNARY_TEXT),
    "substring": ((STRING, INT), (STRING, INT, INT), (STRING, 2, 3), (STRING, -2), (STRING, 0, 1)),
    "left": ((STRING, INT),),
    "right": ((STRING, INT),),
    "replace": ((STRING, STRING, STRING),),
    "translate": ((STRING, STRING, STRING),),
    **{
        name: tuple((STRING, *rest) for rest in ((0,), (3,), (7, "😀"), (8, "ab"), (5, "'")))
        for name in ("lpad", "rpad")
    },
    **dict.fromkeys(("instr", "startswith", "endswith", "contains"), _BINARY_TEXT),
    "split_part": tuple((STRING, *rest) for rest in product((",", "b", "😀", "ab"), (1, 2, 3, -1, -2, -9))),
    "like": tuple((STRING, pattern) for pattern in _LIKE_PATTERNS),
    "rlike": tuple((STRING, pattern) for pattern in _REGULAR_EXPRESSIONS),
    "regexp_extract": (
        *((STRING, pattern, 0) for pattern in _REGULAR_EXPRESSIONS),
        *((STRING, "(a)(b)?", group) for group in (0, 1, 2)),
        *((STRING, "gate (\\d+)"), (STRING, "(x)|(y)|(b)", 3), (STRING, "([a-z]+?)b")),
    ),
    "regexp_replace": (
        *(
            (STRING, pattern, with_)
            for pattern in ("a", "[a-c]", "(\\d)", "\\s+", "😀")
            for with_ in ("", "<$0>", "\\$\\\\'")
        ),
        (STRING, "(a)(b)?", "$2$1"),
    ),
    **dict.fromkeys(
        ("year", "quarter", "month", "weekofyear", "day", "dayofyear", "dayofweek", "weekday"), _PARTS
    ),
    **dict.fromkeys(("hour", "minute", "second", "second_with_fraction"), _PARTS),
    "date_trunc": (*((unit, TIMESTAMP) for unit in UNITS), ("month", DATE)),
    "timestampdiff": (*((unit, TIMESTAMP, TIMESTAMP) for unit in UNITS), ("days", DATE, DATE)),
    "datediff": ((DATE, DATE), (TIMESTAMP, TIMESTAMP)),
    "date_add": ((DATE, INT), (TIMESTAMP, 3)),
    "add_months": ((DATE, INT),),
    "last_day": ((DATE,),),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), ((TIMESTAMP,), (DATE,))),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis", "timestamp_micros"), ((BIGINT,), (INT,))),
}

_TO_NUMBERS = (*INTEGERS, *DECIMALS, DOUBLE)
CAST_CASES: tuple[tuple[Type, Type], ...] = (
    *product((BOOLEAN, *INTEGERS, *DECIMALS), (BOOLEAN, *_TO_NUMBERS, STRING)),
    *product((DOUBLE,), (BOOLEAN, *INTEGERS, MONEY, RATIO, FRACTION, LONG, WIDE, DOUBLE)),
    *product((STRING,), (BOOLEAN, *_TO_NUMBERS, STRING, DATE, TIMESTAMP)),
    *product((DATE, TIMESTAMP), (STRING, DATE, TIMESTAMP)),
    (INTERVAL, INTERVAL),
)

AGGREGATE_CASES: Mapping[str, tuple[tuple[Type, ...], ...]] = {
    "count": ((), *((type_,) for type_ in ALL)),
    "count_distinct": (
        *((type_,) for type_ in (BOOLEAN, INT, MONEY, DOUBLE, STRING, TIMESTAMP)),
        *((INT, STRING), (BOOLEAN, DOUBLE, DATE)),
    ),
    "sum": tuple((type_,) for type_ in NUMBERS),
    "avg": tuple((type_,) for type_ in NUMBERS),
    "min": tuple((type_,) for type_ in ALL if type_ != INTERVAL),
    "max": tuple((type_,) for type_ in ALL if type_ != INTERVAL),
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), ((SMALLINT,), (MONEY,), (DOUBLE,))),
}
