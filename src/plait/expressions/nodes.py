"""Immutable typed expressions over the columns of a plan node.

Columns are positions, not names: aliases cannot matter to a plan, and two plans that mean the same compare
equal. Every operator, CASE and CAST is a `Call` of a function in `functions.FUNCTIONS`, which alone knows its
types; a `Call` that does not type cannot be built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from plait.expressions.functions import result_type
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    INTEGER_BITS,
    TIMESTAMP,
    TIMESTAMP_RANGE_US,
    Kind,
    Type,
    Value,
    integer_range,
)


@dataclass(frozen=True)
class Column:
    """The column at `index` of the node's input (of all inputs, one after the other, in a join)."""

    index: int
    type: Type

    def __post_init__(self) -> None:
        if self.index < 0:
            raise ValueError("a column's index is not negative")


@dataclass(frozen=True)
class Literal:
    value: Value
    type: Type

    def __post_init__(self) -> None:
        if self.value is not None and not _fits(self.value, self.type):
            raise ValueError(f"{self.value!r} is not a {self.type}")

    def __eq__(self, other: object) -> bool:
        # 1 == True == 1.0 in Python, and NaN is not itself: compare the written value.
        return isinstance(other, Literal) and self.type == other.type and self._written == other._written

    def __hash__(self) -> int:
        return hash((self.type, self._written))

    @cached_property
    def _written(self) -> str:
        return repr(self.value)


class Edge(Enum):
    START = "window_start"
    END = "window_end"


@dataclass(frozen=True)
class WindowEdge:
    """An edge of the window being evaluated. START is for row windows: elsewhere it is END − range."""

    edge: Edge

    @property
    def type(self) -> Type:
        return TIMESTAMP


@dataclass(frozen=True)
class Call:
    """A function applied. `to` is the target of a `cast`; every other type follows from the arguments."""

    function: str
    arguments: tuple[Expression, ...]
    to: Type | None = None

    def __post_init__(self) -> None:
        _ = self.type  # raises when the call does not type

    @cached_property
    def type(self) -> Type:
        constants = tuple(a.value if isinstance(a, Literal) else None for a in self.arguments)
        return result_type(self.function, tuple(a.type for a in self.arguments), self.to, constants)

    @cached_property
    def columns(self) -> frozenset[int]:
        return frozenset[int]().union(*map(columns_of, self.arguments))

    @cached_property
    def _hash(self) -> int:
        return hash((self.function, self.arguments, self.to))

    def __hash__(self) -> int:
        return self._hash


Expression: TypeAlias = Column | Literal | WindowEdge | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Call):
            stack.extend(reversed(node.arguments))


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of the columns that an expression uses."""
    if isinstance(expression, Column):
        return frozenset((expression.index,))
    if not isinstance(expression, Call):
        return frozenset()
    return expression.columns


def transform(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Rebuild bottom-up, applying `change` to every node once its arguments are done."""
    if isinstance(expression, Call):
        arguments = tuple(transform(argument, change) for argument in expression.arguments)
        if any(new is not old for new, old in zip(arguments, expression.arguments, strict=True)):
            expression = Call(expression.function, arguments, expression.to)
    return change(expression)


def substitute(expression: Expression, replacements: Callable[[int], Expression]) -> Expression:
    """Replace every column by what `replacements` gives for its index."""
    return transform(expression, lambda e: replacements(e.index) if isinstance(e, Column) else e)


def shift(expression: Expression, by: int) -> Expression:
    """Move all column indexes, as when an input takes another place in a join."""
    return substitute_columns(expression, lambda index: index + by) if by else expression


def substitute_columns(expression: Expression, index_of: Callable[[int], int]) -> Expression:
    """Renumber columns."""
    return transform(expression, lambda e: Column(index_of(e.index), e.type) if isinstance(e, Column) else e)


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """The terms of a conjunction; none for TRUE."""
    if predicate == TRUE:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(term for argument in predicate.arguments for term in conjuncts(argument))
    return (predicate,)


def conjunction(terms: tuple[Expression, ...] | list[Expression]) -> Expression:
    """The inverse of `conjuncts`: TRUE for none, the term itself for one, else one flat `and`."""
    if not terms:
        return TRUE
    return terms[0] if len(terms) == 1 else Call("and", tuple(terms))


def _fits(value: Value, type_: Type) -> bool:
    kind = type_.kind
    if kind is Kind.BOOLEAN:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind in INTEGER_BITS:
        low, high = integer_range(type_)
        return isinstance(value, int) and low <= value <= high
    if kind is Kind.DECIMAL:
        if not isinstance(value, Decimal) or not value.is_finite():
            return False
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        return -exponent == type_.scale and value.copy_abs() < Decimal(10) ** (type_.precision - type_.scale)
    if kind is Kind.DOUBLE:
        return isinstance(value, float)
    if kind is Kind.STRING:
        return isinstance(value, str)
    if kind is Kind.DATE:
        return isinstance(value, date)
    if kind is Kind.TIMESTAMP:
        first, last = TIMESTAMP_RANGE_US
        return isinstance(value, int) and first <= value <= last
    low, high = integer_range(BIGINT)
    return isinstance(value, int) and low <= value <= high  # INTERVAL


TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
