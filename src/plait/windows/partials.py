"""What of an aggregate is kept for a piece of time, so that pieces can be put together.

| aggregate | kept | put together by |
|---|---|---|
| `count` | the count | adding |
| `sum`, `avg` of exact numbers | exact sum, count | adding; also by subtracting (prefix sums) |
| `sum`, `avg` of doubles | sum, count | adding only: subtracting loses digits, and NaN stays |
| `min`, `max` | the same | the least, the greatest |
| `count(DISTINCT …)`, `stddev`, `variance` | | not from partials |
| sums of DECIMALs with more than 28 digits | | not from partials: they may not fit on the way |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Expression
from plait.expressions.printing import SAFE_SUM_DIGITS
from plait.expressions.types import Kind


class PartialKind(StrEnum):
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Partial:
    """One column of the partials; without an argument, a count of rows."""

    kind: PartialKind
    argument: Expression | None = None
    filter: Expression | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it can be taken away again: prefix sums are right."""
        if self.kind is PartialKind.COUNT:
            return True
        return (
            self.kind is PartialKind.SUM
            and self.argument is not None
            and self.argument.type.kind is not Kind.DOUBLE
        )


ROWS = Partial(PartialKind.COUNT)


def has_partials(call: AggregateCall) -> bool:
    match call.function:
        case "count" | "min" | "max":
            return True
        case "sum" | "avg":
            type_ = call.arguments[0].type
            return type_.kind is not Kind.DECIMAL or type_.precision <= SAFE_SUM_DIGITS
        case _:
            return False


def partials_of(call: AggregateCall) -> tuple[Partial, ...]:
    """What an aggregate is computed from."""
    argument = call.arguments[0] if call.arguments else None
    counted = Partial(PartialKind.COUNT, argument, call.filter)
    match call.function:
        case "count":
            return (counted,)
        case "sum" | "avg":
            return Partial(PartialKind.SUM, argument, call.filter), counted
        case "min" | "max":
            return (Partial(PartialKind(call.function), argument, call.filter),)
        case _:
            raise ValueError(f"{call.function} is not computed from partials")
