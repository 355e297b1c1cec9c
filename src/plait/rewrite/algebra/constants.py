"""Constants computed ahead, only where the result is exact and certain.

Integer arithmetic that stays in range, comparisons of literals, and casts that lose nothing are certain. Text
that is parsed, arithmetic on doubles and anything that would be NULL by overflow is left to the engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from math import isnan

from plait.expressions.functions import FUNCTIONS
from plait.expressions.nodes import Call, Expression, Literal
from plait.expressions.types import BOOLEAN, Kind, Type, integer_range

NULL_BOOLEAN = Literal(None, BOOLEAN)

_EPOCH = date(1970, 1, 1)
_DAY_US = 86_400_000_000
_EXACT_DOUBLE = 1 << 53

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda sign: sign == 0,
    "ne": lambda sign: sign != 0,
    "lt": lambda sign: sign < 0,
    "le": lambda sign: sign <= 0,
    "gt": lambda sign: sign > 0,
    "ge": lambda sign: sign >= 0,
}


def compare_literals(left: Literal, right: Literal) -> int | None:
    """-1, 0 or 1; None where it is not certain (NULL, NaN, unequal types)."""
    if left.type != right.type or left.value is None or right.value is None:
        return None
    a, b = left.value, right.value
    if isinstance(a, float) and isinstance(b, float) and (isnan(a) or isnan(b)):
        return None
    # Both have one type, so Python compares like with like; text compares by code point, as UTF-8 bytes do.
    return (a > b) - (a < b)  # type: ignore[operator]


def is_true_of(function: str, left: Literal, right: Literal) -> bool | None:
    """The truth of a comparison of two literals; None where it is not certain.

    >>> from plait.expressions.types import INT
    >>> is_true_of("lt", Literal(1, INT), Literal(2, INT))
    True
    """
    sign = compare_literals(left, right)
    return None if sign is None else _COMPARISONS[function](sign)


def fold(call: Call) -> Expression:
    """The call's value if that is certain, else the call."""
    literals = [a for a in call.arguments if isinstance(a, Literal)]
    if any(literal.value is None for literal in literals) and FUNCTIONS[call.function].strict:
        return Literal(None, call.type)
    if len(literals) < len(call.arguments):
        return call
    match call.function, literals:
        case ("add" | "subtract" | "multiply") as function, [Literal(int(a)), Literal(int(b))]:
            return _fold_integers(call, _ARITHMETIC[function](a, b))
        case "negate", [Literal(int(a))]:
            return _fold_integers(call, -a)
        case "is_null", [Literal(value)]:
            return Literal(value is None, BOOLEAN)
        case _:
            return call


def _fold_integers(call: Call, result: int) -> Expression:
    if not all(argument.type.is_integer for argument in call.arguments) or not call.type.is_integer:
        return call
    low, high = integer_range(call.type)
    return Literal(result, call.type) if low <= result <= high else call


def cast_literal(literal: Literal, to: Type) -> Literal | None:
    """The literal as another type if that is certain, else None.

    >>> from plait.expressions.types import BIGINT, INT, TINYINT
    >>> cast_literal(Literal(17, INT), BIGINT).value, cast_literal(Literal(1700, INT), TINYINT)
    (17, None)
    """
    value = literal.value
    if value is None or literal.type == to:
        return Literal(value, to)
    if isinstance(value, int) and literal.type.is_integer:
        if to.is_integer:
            low, high = integer_range(to)
            return Literal(value, to) if low <= value <= high else None
        if to.kind is Kind.DOUBLE:
            return Literal(float(value), to) if abs(value) <= _EXACT_DOUBLE else None
        if to.kind is Kind.DECIMAL and abs(value) < 10 ** (to.precision - to.scale):
            return Literal(_rescaled(Decimal(value), to.scale), to)
    if isinstance(value, Decimal) and to.kind is Kind.DECIMAL and to.scale >= literal.type.scale:
        return (
            Literal(_rescaled(value, to.scale), to) if abs(value) < 10 ** (to.precision - to.scale) else None
        )
    if isinstance(value, date) and to.kind is Kind.TIMESTAMP:
        return Literal((value - _EPOCH).days * _DAY_US, to)
    return None


def _rescaled(value: Decimal, scale: int) -> Decimal:
    """The same number with `scale` digits after the point, without the rounding of decimal contexts."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return Decimal((sign, digits + (0,) * (scale + exponent), -scale))
