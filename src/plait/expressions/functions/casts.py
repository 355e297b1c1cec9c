"""CAST between types: what does not fit, or is no such value, is NULL.

Numbers lose their fraction toward zero on the way to an integer and round half up to a DECIMAL. Text is
read strictly: an integer is digits with a sign, a DATE is `yyyy-mm-dd` (a time may follow), a TIMESTAMP is
`yyyy-mm-dd[ hh:mm[:ss[.ffffff][Z|±hh:mm]]]` with a blank or a T, in UTC unless it says otherwise; white
space around is ignored. This is what Spark's `try_cast` does, less the spellings in which it accepts half a
date.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.expressions.calendar import BLANKS, DATE_PATTERN, TIMESTAMP_PATTERN
from plait.expressions.functions.definition import (
    Arguments,
    Category,
    Example,
    Function,
    Resolved,
    Shape,
    Staged,
    verbatim,
)
from plait.expressions.functions.text import duckdb_text, spark_text
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    integer_range,
)

# Spark trims fewer characters around fractions than around other values.
_BLANKS_AROUND_FRACTIONS = r"[\x00-\x20]*"
_INTEGER_TEXT = rf"^{BLANKS}([+-]?[0-9]+){BLANKS}\z"
_DECIMAL_TEXT = rf"^{_BLANKS_AROUND_FRACTIONS}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)){_BLANKS_AROUND_FRACTIONS}\z"

# Java also reads the suffix of a Java literal. It reads hexadecimal fractions too; those we refuse.
_DOUBLE_SUFFIX = r"([0-9.])[dDfF]([\x00-\x20]*)\z"
_DOUBLE_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DOUBLE_WORD = r"[+-]?(?i:inf(?:inity)?)|(?i:nan)|[+-]NaN"
_DOUBLE_TEXT = rf"^{_BLANKS_AROUND_FRACTIONS}({_DOUBLE_NUMBER}|{_DOUBLE_WORD}){_BLANKS_AROUND_FRACTIONS}\z"
_TRUE_WORDS = "('t', 'true', 'y', 'yes', '1')"
_FALSE_WORDS = "('f', 'false', 'n', 'no', '0')"
_BOOLEAN_TEXT = rf"^{BLANKS}([a-zA-Z01]+){BLANKS}\z"

_EXACT_IN_DOUBLE_DIGITS = 15
# Beyond, DuckDB cannot read the decimals of a double.
_DOUBLE_DECIMALS = 18


def _cast_rule(arguments: Arguments) -> Resolved:
    to = arguments.to
    if to is None or len(arguments.types) != 1:
        raise arguments.refused("a cast takes one value and a type")
    given = arguments.types[0] or to
    refusal = _refusal(given, to)
    if refusal is not None:
        reason, hint = refusal
        raise arguments.refused(f"{given} cannot become {to}{reason}", hint)
    return Resolved((given,), to)


def _refusal(given: Type, to: Type) -> tuple[str, str] | None:
    """Why a cast is not allowed, and what to write instead; None if it is."""
    if given == to:
        return None
    if INTERVAL in (given, to):
        return "", "use timestampdiff(unit, from, to) for a number; write INTERVAL literals"
    if given == DOUBLE and to == STRING:
        return ": engines write fractions differently", "CAST it to a DECIMAL first"
    if given == DOUBLE and to.kind is Kind.DECIMAL and to.scale > _DOUBLE_DECIMALS:
        return "", f"a DOUBLE has about 16 digits: take a scale of {_DOUBLE_DECIMALS} at most"
    moments = (DATE, TIMESTAMP)
    if given in moments and to not in (*moments, STRING):
        return "", "use unix_seconds(t), unix_millis(t), unix_micros(t) or datediff(to, from)"
    if to in moments and given not in (*moments, STRING):
        return "", "use timestamp_seconds(n), timestamp_millis(n) or timestamp_micros(n)"
    return None


def _timestamp_or_null(cast: str) -> Staged:
    inside = "{value} BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
    return Staged(cast, f"CASE WHEN {inside} THEN {{value}} END")


def _matched(pattern: str, quoted: Callable[[str], str]) -> str:
    """The part of the text a pattern takes; the empty text, which no cast accepts, if there is no match."""
    return f"regexp_extract({{0}}, {verbatim(quoted(pattern))}, 1)"


def _cast_spark(shape: Shape) -> str | Staged:
    given, to = shape.types[0], shape.result
    if given == to:
        return "{0}"
    if given == DOUBLE and to == BIGINT:
        # Spark takes 2^63 for the greatest BIGINT.
        return "try_cast(CASE WHEN {0} < 9223372036854775808D THEN {0} END AS BIGINT)"
    if given == STRING:
        if to == DOUBLE:
            return "try_cast(translate({0}, 'pP', '??') AS DOUBLE)"  # no hexadecimal fractions
        if to.kind is Kind.DECIMAL:
            return f"try_cast({_matched(_DECIMAL_TEXT, spark_text)} AS {{type}})"
        if to == DATE:
            return f"try_cast({_matched(DATE_PATTERN, spark_text)} AS DATE)"
        if to == TIMESTAMP:
            return _timestamp_or_null(f"try_cast({_matched(TIMESTAMP_PATTERN, spark_text)} AS TIMESTAMP)")
    return "try_cast({0} AS {type})"


def _cast_duckdb(shape: Shape) -> str | Staged:
    given, to = shape.types[0], shape.result
    if given == to:
        return "{0}"
    if given == STRING:
        return _text_to_duckdb(to)
    if to == BOOLEAN:
        return "({0} <> 0)"
    if given == BOOLEAN and to.is_numeric:
        return "TRY_CAST(CAST({0} AS INTEGER) AS {type})"
    if to.is_integer and not given.is_integer:
        return "TRY_CAST(trunc({0}) AS {type})"
    if given == DOUBLE:
        # Rounds the shortest decimal that is this double; read with more digits, which its exponent may need.
        return f"TRY_CAST(TRY_CAST(CAST({{0}} AS VARCHAR) AS DECIMAL(38,{to.scale})) AS {{type}})"
    if to == DOUBLE and given.kind is Kind.DECIMAL and given.precision > _EXACT_IN_DOUBLE_DIGITS:
        return (
            "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"  # the nearest double, where a division would round twice
        )
    if to == STRING and given.kind is Kind.DECIMAL and given.precision == given.scale:
        return r"regexp_replace(CAST({0} AS VARCHAR), '^(-?)\.', '\10.')"  # DuckDB leaves out the zero
    return "TRY_CAST({0} AS {type})"


def _text_to_duckdb(to: Type) -> str | Staged:
    if to.is_integer:
        return f"TRY_CAST({_matched(_INTEGER_TEXT, duckdb_text)} AS {{type}})"
    if to.kind is Kind.DECIMAL:
        return f"TRY_CAST({_matched(_DECIMAL_TEXT, duckdb_text)} AS {{type}})"
    if to == DOUBLE:
        suffixless = f"regexp_replace({{0}}, {verbatim(duckdb_text(_DOUBLE_SUFFIX))}, '\\1\\2')"
        return f"TRY_CAST(regexp_extract({suffixless}, {verbatim(duckdb_text(_DOUBLE_TEXT))}, 1) AS DOUBLE)"
    if to == BOOLEAN:
        words = f"lower({_matched(_BOOLEAN_TEXT, duckdb_text)})"
        chosen = (
            f"CASE WHEN {{value}} IN {_TRUE_WORDS} THEN TRUE WHEN {{value}} IN {_FALSE_WORDS} THEN FALSE END"
        )
        return Staged(words, chosen)
    if to == DATE:
        return f"TRY_CAST({_matched(DATE_PATTERN, duckdb_text)} AS DATE)"
    assert to == TIMESTAMP
    zoned = f"TRY_CAST({_matched(TIMESTAMP_PATTERN, duckdb_text)} AS TIMESTAMPTZ)"
    return _timestamp_or_null(f"({zoned} AT TIME ZONE 'UTC')")


def _may_not_fit(shape: Shape) -> bool:
    given, to = shape.types[0], shape.result
    if given == to or to in (STRING, BOOLEAN, DOUBLE, DATE, TIMESTAMP):
        return given == STRING != to
    if given in (STRING, DOUBLE):
        return True
    rounds = to.kind is Kind.DECIMAL and given.scale > to.scale  # perhaps up
    return _beyond(given) + rounds > _beyond(to)


def _beyond(type_: Type) -> int:
    """The least whole number above all values of an exact type, and of 0 and 1 as booleans become them."""
    if type_.kind is Kind.DECIMAL:
        return int(10 ** (type_.precision - type_.scale))
    return 2 if type_ == BOOLEAN else integer_range(type_)[1] + 1


CASTS: tuple[Function, ...] = (
    Function(
        "cast",
        Category.CAST,
        "CAST(x AS type)",
        "The value as another type, NULL if it is none of that type; also `TRY_CAST` and `x::type`.",
        _cast_rule,
        spark=_cast_spark,
        duckdb=_cast_duckdb,
        example=Example(("17",), 17, to=INT),
        written="CAST({0} AS {to})",
        fails=_may_not_fit,
    ),
)
