"""Between which numbers the values of an expression are, if those of its columns are between known ones: so
that nothing has to be computed to see that nothing fails.

Arithmetic is bounded that is of whole numbers; of others it is known whether they can be 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from plait.expressions.nodes import Call, Column, Expression, Literal
from plait.expressions.types import DOUBLE, integer_range


@dataclass(frozen=True)
class Bounds:
    """Both are among the numbers that are possible."""

    low: float
    high: float

    def within(self, other: Bounds) -> bool:
        return other.low <= self.low and self.high <= other.high

    def with_(self, other: Bounds) -> Bounds:
        """The least bounds of both."""
        return Bounds(min(self.low, other.low), max(self.high, other.high))

    @property
    def has_zero(self) -> bool:
        return self.low <= 0 <= self.high


def cannot_fail(call: Call, columns: Mapping[int, Bounds]) -> bool:
    """Whether it is certain that a call has a value, over columns of these bounds.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> one_more = build("add", Column(0, INT), number_literal("1"))
    >>> cannot_fail(one_more, {0: Bounds(0, 1000)}), cannot_fail(one_more, {0: Bounds(0, 2**31 - 1)})
    (True, False)
    """
    match call.function:
        case "divide" | "modulo":
            divisor = bounds_of(call.arguments[1], columns)
            return divisor is not None and not divisor.has_zero
        case "int_divide":
            divisor = bounds_of(call.arguments[1], columns)
            return divisor is not None and (divisor.low > 0 or divisor.high < -1)
        case _:
            result = _unlimited(call, columns)
            return call.type.is_integer and result is not None and result.within(_range(call))


def bounds_of(expression: Expression, columns: Mapping[int, Bounds]) -> Bounds | None:
    """Of the values that are not NULL."""
    match expression:
        case Column(index):
            return columns.get(index)
        case Literal(value):
            return Bounds(value, value) if isinstance(value, int | float) else None
        case Call("cast", (argument,)) if expression.type == DOUBLE and argument.type.is_numeric:
            return bounds_of(argument, columns)  # only 0 becomes 0
        case Call():
            result = _unlimited(expression, columns)
            if result is None or not expression.type.is_integer:
                return None
            whole = _range(expression)
            return Bounds(max(result.low, whole.low), min(result.high, whole.high))
        case _:
            return None


def _unlimited(call: Call, columns: Mapping[int, Bounds]) -> Bounds | None:
    """The result before it has to fit its type."""
    arguments = [bounds_of(argument, columns) for argument in call.arguments]
    match call.function, arguments:
        case "add", [Bounds(a, b), Bounds(c, d)]:
            return Bounds(a + c, b + d)
        case "subtract", [Bounds(a, b), Bounds(c, d)]:
            return Bounds(a - d, b - c)
        case "multiply", [Bounds(a, b), Bounds(c, d)]:
            corners = [x * y for x, y in product((a, b), (c, d))]
            return Bounds(min(corners), max(corners))
        case "negate", [Bounds(a, b)]:
            return Bounds(-b, -a)
        case "abs", [Bounds(a, b)]:
            return Bounds(0 if a <= 0 <= b else min(abs(a), abs(b)), max(abs(a), abs(b)))
        case "cast", [Bounds() as given] if call.arguments[0].type.is_integer:
            return given
        case _:
            return None


def _range(call: Call) -> Bounds:
    return Bounds(*integer_range(call.type))
