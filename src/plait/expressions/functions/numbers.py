"""Arithmetic and functions of numbers.

Results that do not exist are NULL: overflow, division by zero, logarithms of what is not positive. Division
always gives a DOUBLE. Rounding exists for exact numbers only, since engines disagree on the last bit of a
binary fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from plait.expressions.functions.definition import (
    Arguments,
    Category,
    Example,
    Function,
    Resolved,
    Shape,
    Staged,
    Template,
)
from plait.expressions.functions.moments import (
    MICROSECONDS_TO_TIMESTAMP_DUCKDB,
    MICROSECONDS_TO_TIMESTAMP_SPARK,
)
from plait.expressions.functions.rules import (
    addition,
    alike,
    is_number_or_interval,
    multiplication,
    subtraction,
    takes,
)
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)

_NAN_DUCKDB = "CAST('NaN' AS DOUBLE)"
# Spark rounds the opposite of a longer decimal to this many digits: there the sign is changed in the text.
_JAVA_DIGITS = 34
_UNSIGNED_SPARK = "CAST(substring(CAST({0} AS STRING), 2) AS {type})"
# DuckDB computes with decimals up to this long in 64 bits, and raises an error when the result does not fit.
_DUCKDB_64_BIT_DIGITS = 18
# The first double above every BIGINT; -2^63 itself is one.
_TWO_TO_63 = "9223372036854775808"


def _is_number(type_: Type) -> bool:
    return type_.is_numeric


def _arithmetic_spark(operation: str, operator: str) -> Callable[[Shape], str | Staged]:
    def template(shape: Shape) -> str | Staged:
        operands = [
            f"unix_micros({{{i}}})" if t == TIMESTAMP else f"{{{i}}}" for i, t in enumerate(shape.types)
        ]
        if shape.result.kind is Kind.DECIMAL or shape.result == DOUBLE:
            return f"({operands[0]} {operator} {operands[1]})"  # cannot overflow: its type has the digits
        total = f"{operation}({operands[0]}, {operands[1]})"
        return Staged(total, MICROSECONDS_TO_TIMESTAMP_SPARK) if shape.result == TIMESTAMP else total

    return template


def _arithmetic_duckdb(operator: str) -> Callable[[Shape], str | Staged]:
    def template(shape: Shape) -> str | Staged:
        operands = [f"epoch_us({{{i}}})" if t == TIMESTAMP else f"{{{i}}}" for i, t in enumerate(shape.types)]
        if max(t.precision for t in shape.types) <= _DUCKDB_64_BIT_DIGITS < shape.result.precision:
            operands[0] = f"CAST({{0}} AS {decimal(_DUCKDB_64_BIT_DIGITS + 1, shape.types[0].scale)})"
        total = f"({operands[0]} {operator} {operands[1]})"
        if shape.result.kind is Kind.DECIMAL:
            return f"CAST({total} AS {{type}})"
        if shape.result == DOUBLE:
            return total
        total = f"TRY{total}"
        return Staged(total, MICROSECONDS_TO_TIMESTAMP_DUCKDB) if shape.result == TIMESTAMP else total

    return template


def _modulo_duckdb(shape: Shape) -> str:
    if shape.result == DOUBLE:
        return "CASE WHEN {1} <> 0 THEN {0} % {1} END"
    if shape.result.is_integer:
        # The least integer modulo -1 is 0, but DuckDB raises an overflow.
        return "CASE WHEN {1} = -1 THEN {0} - {0} ELSE TRY({0} % {1}) END"
    return "TRY({0} % {1})"


def _negate_spark(shape: Shape) -> str:
    if _wraps(shape.result):
        return "try_subtract(CAST(0 AS {type}), {0})"
    if shape.result.precision > _JAVA_DIGITS:
        return "CASE WHEN {0} < 0 THEN " + _UNSIGNED_SPARK + " ELSE CAST(concat('-', {0}) AS {type}) END"
    return "(- {0})"


def _negate_duckdb(shape: Shape) -> str:
    return "TRY(CAST(0 AS {type}) - {0})" if _wraps(shape.result) else "(- {0})"


def _absolute_spark(shape: Shape) -> str:
    if _wraps(shape.result):
        return "CASE WHEN {0} < 0 THEN try_subtract(CAST(0 AS {type}), {0}) ELSE {0} END"
    if shape.result.precision > _JAVA_DIGITS:
        return "CASE WHEN {0} < 0 THEN " + _UNSIGNED_SPARK + " ELSE {0} END"
    return "abs({0})"


def _absolute_duckdb(shape: Shape) -> str:
    return "TRY(abs({0}))" if _wraps(shape.result) else "abs({0})"


def _overflows(shape: Shape) -> bool:
    """Decimals have the digits that a result needs, and any two moments an interval between them."""
    return shape.result == TIMESTAMP or (_wraps(shape.result) and TIMESTAMP not in shape.types)


def _has_no_opposite(shape: Shape) -> bool:
    return _wraps(shape.result)


def _divides_by_zero(shape: Shape) -> bool:
    divisor = shape.constants[1]
    return not isinstance(divisor, int | float | Decimal) or divisor == 0


def _has_no_quotient(shape: Shape) -> bool:
    return _divides_by_zero(shape) or shape.constants[1] == -1


def _has_no_digit_more(shape: Shape) -> bool:
    """Whether rounding up may need a digit that is not there."""
    given, result = shape.types[0], shape.result
    if given.is_integer or given.scale == result.scale:
        return False
    return given.precision - given.scale >= result.precision - result.scale


def _is_of_double(shape: Shape) -> bool:
    return shape.types[0] == DOUBLE


def _wraps(type_: Type) -> bool:
    """Whether the least value has no opposite."""
    return type_.is_integer or type_ == INTERVAL


def _rounding(arguments: Arguments) -> Resolved:
    """`round(x[, digits])` with Spark's result: one more whole digit, no more decimals than asked for."""
    if len(arguments.types) not in (1, 2):
        raise arguments.refused("it takes 1 to 2 arguments")
    type_ = arguments.types[0] or INT
    if not type_.is_exact:
        raise arguments.refused(
            "only exact numbers can be rounded",
            "CAST the DOUBLE to a DECIMAL with the digits you want: that rounds half up",
        )
    digits: object = 0
    if len(arguments.types) == 2:
        digits = arguments.constants[1]
        if not isinstance(digits, int) or not 0 <= digits <= MAX_DECIMAL_PRECISION:
            raise arguments.invalid(f"the digits must be a constant from 0 to {MAX_DECIMAL_PRECISION}")
    assert isinstance(digits, int)
    parameters = (type_, INT)[: len(arguments.types)]
    if type_.is_integer:
        return Resolved(parameters, type_)
    scale = min(type_.scale, digits)
    precision = min(type_.precision - type_.scale + scale + 1, MAX_DECIMAL_PRECISION)
    return Resolved(parameters, decimal(precision, scale))


def _round_template(cast: str) -> Callable[[Shape], str]:
    def template(shape: Shape) -> str:
        if shape.result.is_integer:
            return "{0}"
        return f"{cast}(round({{0}}, {shape.result.scale}) AS {{type}})"

    return template


def _whole(arguments: Arguments) -> Resolved:
    """`floor` and `ceil`: BIGINT, or a DECIMAL without fraction."""
    if len(arguments.types) != 1:
        raise arguments.refused("it takes 1 argument")
    type_ = arguments.types[0] or INT
    if not type_.is_numeric:
        raise arguments.refused("it takes numbers")
    if type_.kind is Kind.DECIMAL:
        digits = min(type_.precision - type_.scale + 1, MAX_DECIMAL_PRECISION)
        return Resolved((type_,), decimal(digits, 0))
    return Resolved((DOUBLE if type_ == DOUBLE else BIGINT,), BIGINT)


def _whole_spark(function: str) -> Callable[[Shape], str]:
    def template(shape: Shape) -> str:
        if shape.types[0] == DOUBLE:
            # Spark clips what no BIGINT can hold. NaN is the greatest number, so it is left out too.
            inside = f"{{0}} >= -{_TWO_TO_63}D AND {{0}} < {_TWO_TO_63}D"
            return f"CASE WHEN {inside} THEN {function}({{0}}) END"
        return f"CAST({function}({{0}}) AS {{type}})"

    return template


def _whole_duckdb(function: str) -> Callable[[Shape], str]:
    return lambda shape: "{0}" if shape.types[0] == BIGINT else f"TRY_CAST({function}({{0}}) AS {{type}})"


def _double(
    name: str,
    meaning: str,
    example: Example,
    *,
    spark: str = "",
    duckdb: str = "",
    spellings: tuple[str, ...] = (),
) -> Function:
    """A function from DOUBLE to DOUBLE."""
    return Function(
        name,
        Category.NUMBER,
        f"{name}(x)",
        meaning,
        takes(DOUBLE, DOUBLE),
        spark=spark or f"{name}({{0}})",
        duckdb=duckdb or f"{name}({{0}})",
        example=example,
        spellings=(name, *spellings),
    )


def _logarithm(name: str, meaning: str, example: Example, spellings: tuple[str, ...] = ()) -> Function:
    positive = f"CASE WHEN {{0}} > 0 THEN {name}({{0}}) END"
    return _double(name, meaning, example, duckdb=positive, spellings=spellings)


def _binary_operator(
    name: str,
    operator: str,
    meaning: str,
    rule: Callable[[Arguments], Resolved],
    spark: Template,
    duckdb: Template,
    example: Example,
    *,
    fails: Callable[[Shape], bool],
    spellings: tuple[str, ...] = (),
    commutative: bool = False,
) -> Function:
    return Function(
        name,
        Category.ARITHMETIC,
        f"a {operator} b",
        meaning,
        rule,
        spark=spark,
        duckdb=duckdb,
        example=example,
        spellings=spellings,
        written=f"{{0}} {operator} {{1}}",
        commutative=commutative,
        fails=fails,
    )


ARITHMETIC: tuple[Function, ...] = (
    _binary_operator(
        "add",
        "+",
        "Sum; also of a TIMESTAMP or DATE and an INTERVAL.",
        addition,
        _arithmetic_spark("try_add", "+"),
        _arithmetic_duckdb("+"),
        Example((1, 2), 3),
        fails=_overflows,
        commutative=True,
    ),
    _binary_operator(
        "subtract",
        "-",
        "Difference; of two moments it is an INTERVAL.",
        subtraction,
        _arithmetic_spark("try_subtract", "-"),
        _arithmetic_duckdb("-"),
        Example((1, 2), -1),
        fails=_overflows,
    ),
    _binary_operator(
        "multiply",
        "*",
        "Product; also of an INTERVAL and an integer.",
        multiplication,
        _arithmetic_spark("try_multiply", "*"),
        _arithmetic_duckdb("*"),
        Example((2, 3), 6),
        fails=_overflows,
        commutative=True,
    ),
    _binary_operator(
        "divide",
        "/",
        "Quotient, always a DOUBLE; NULL if the divisor is 0.",
        takes(DOUBLE, DOUBLE, DOUBLE),
        "try_divide({0}, {1})",
        "CASE WHEN {1} <> 0 THEN {0} / {1} END",
        Example((1, 4), 0.25),
        fails=_divides_by_zero,
    ),
    _binary_operator(
        "int_divide",
        "DIV",
        "Quotient of integers without its fraction, a BIGINT.",
        takes(BIGINT, BIGINT, BIGINT),
        # Of all quotients only that of the least BIGINT and -1 overflows.
        "CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) WHEN {1} <> 0 THEN {0} div {1} END",
        "TRY({0} // {1})",
        Example((-7, 2), -3),
        fails=_has_no_quotient,
        spellings=("div",),
    ),
    _binary_operator(
        "modulo",
        "%",
        "Remainder of the division, with the sign of the dividend.",
        alike(when=_is_number, wanted="numbers"),
        "try_mod({0}, {1})",
        _modulo_duckdb,
        Example((-7, 2), -1),
        fails=_divides_by_zero,
        spellings=("mod",),
    ),
    Function(
        "negate",
        Category.ARITHMETIC,
        "-a",
        "The opposite number or interval.",
        alike(least=1, most=1, when=is_number_or_interval, wanted="numbers and intervals"),
        spark=_negate_spark,
        duckdb=_negate_duckdb,
        example=Example((5,), -5),
        spellings=("negative",),
        written="-{0}",
        fails=_has_no_opposite,
    ),
)

NUMBERS: tuple[Function, ...] = (
    Function(
        "abs",
        Category.NUMBER,
        "abs(x)",
        "The number without its sign.",
        alike(least=1, most=1, when=is_number_or_interval, wanted="numbers and intervals"),
        spark=_absolute_spark,
        duckdb=_absolute_duckdb,
        example=Example((-5,), 5),
        spellings=("abs",),
        fails=_has_no_opposite,
    ),
    _double(
        "sign",
        "-1, 0 or 1, as a DOUBLE.",
        Example((-5,), -1.0),
        duckdb="CASE WHEN isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END",
        spellings=("signum",),
    ),
    Function(
        "round",
        Category.NUMBER,
        "round(x[, digits])",
        "An exact number to that many decimals (a constant, 0 if absent), half away from zero.",
        _rounding,
        spark=_round_template("CAST"),
        duckdb=_round_template("TRY_CAST"),
        example=Example((Decimal("1.25"), 1), Decimal("1.3")),
        spellings=("round",),
        literals=frozenset({1}),
        fails=_has_no_digit_more,
    ),
    Function(
        "floor",
        Category.NUMBER,
        "floor(x)",
        "The greatest whole number not above x: a BIGINT, for DECIMAL a DECIMAL.",
        _whole,
        spark=_whole_spark("floor"),
        duckdb=_whole_duckdb("floor"),
        example=Example((-1.5,), -2),
        spellings=("floor",),
        fails=_is_of_double,
    ),
    Function(
        "ceil",
        Category.NUMBER,
        "ceil(x)",
        "The least whole number not below x: a BIGINT, for DECIMAL a DECIMAL.",
        _whole,
        spark=_whole_spark("ceil"),
        duckdb=_whole_duckdb("ceil"),
        example=Example((-1.5,), -1),
        spellings=("ceil", "ceiling"),
        fails=_is_of_double,
    ),
    _double("sqrt", "Square root; NaN of a negative number.", Example((9,), 3.0)),
    _double("cbrt", "Cube root.", Example((27,), 3.0)),
    _double("exp", "e to the power of x.", Example((0,), 1.0)),
    _logarithm("ln", "Natural logarithm; NULL unless x is positive.", Example((1,), 0.0), ("log",)),
    _logarithm("log10", "Logarithm to base 10; NULL unless x is positive.", Example((1000,), 3.0)),
    _logarithm("log2", "Logarithm to base 2; NULL unless x is positive.", Example((8,), 3.0)),
    Function(
        "pow",
        Category.NUMBER,
        "pow(x, y)",
        "x to the power of y.",
        takes(DOUBLE, DOUBLE, DOUBLE),
        # Adding 0 removes the sign of a negative zero, which its reciprocal would show.
        spark="pow({0} + 0D, {1})",
        # C says 1 where Java, and so Spark, says NaN.
        duckdb="CASE WHEN isnan({1}) OR (isinf({1}) AND abs({0}) = 1) THEN {0} * "
        + _NAN_DUCKDB
        + " ELSE pow({0} + 0e0, {1}) END",
        example=Example((2, 10), 1024.0),
        spellings=("pow", "power"),
    ),
    _double("sin", "Sine of an angle in radians.", Example((0,), 0.0)),
    _double("cos", "Cosine of an angle in radians.", Example((0,), 1.0)),
    _double("tan", "Tangent of an angle in radians.", Example((0,), 0.0)),
    _double("asin", "The angle with this sine; NaN outside -1 to 1.", Example((0,), 0.0)),
    _double("acos", "The angle with this cosine; NaN outside -1 to 1.", Example((1,), 0.0)),
    _double("atan", "The angle with this tangent.", Example((0,), 0.0)),
    Function(
        "atan2",
        Category.NUMBER,
        "atan2(y, x)",
        "The angle of the point (x, y), in radians.",
        takes(DOUBLE, DOUBLE, DOUBLE),
        spark="atan2({0} + 0D, {1} + 0D)",
        duckdb="atan2({0} + 0e0, {1} + 0e0)",
        example=Example((0, 1), 0.0),
        spellings=("atan2",),
    ),
    _double("degrees", "Radians as degrees.", Example((0,), 0.0)),
    _double("radians", "Degrees as radians.", Example((0,), 0.0)),
    Function(
        "pi",
        Category.NUMBER,
        "pi()",
        "The number π.",
        takes(DOUBLE),
        spark="pi()",
        duckdb="pi()",
        example=Example((), 3.141592653589793),
        spellings=("pi",),
    ),
    Function(
        "isnan",
        Category.NUMBER,
        "isnan(x)",
        "Whether x is NaN; false for NULL.",
        takes(BOOLEAN, DOUBLE),
        spark="isnan({0})",
        duckdb="coalesce(isnan({0}), FALSE)",
        example=Example((1.5,), False),
        spellings=("isnan",),
        strict=False,
    ),
    Function(
        "nanvl",
        Category.NUMBER,
        "nanvl(x, y)",
        "x unless it is NaN, then y.",
        takes(DOUBLE, DOUBLE, DOUBLE),
        spark="nanvl({0}, {1})",
        duckdb="CASE WHEN isnan({0}) THEN {1} ELSE {0} END",
        example=Example((1.5, 0.0), 1.5),
        spellings=("nanvl",),
        strict=False,
    ),
)
