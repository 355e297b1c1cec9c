"""Aggregates: their types, calls of them, and why partial results of them can be put together.

Sums of exact numbers are exact, whatever the order: a BIGINT sum that does not fit is NULL, a DECIMAL sum
has ten digits more. Averages are DOUBLE: the exact sum divided by the count. `count_distinct` skips rows
with a NULL in any argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from plait.expressions.coercion import coerce
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import Expression
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function. `rule` gives the result's type or None if it does not take such arguments."""

    name: str
    usage: str
    documentation: str
    rule: Callable[[tuple[Type, ...]], Type | None]
    spellings: tuple[str, ...]


def _count(types: tuple[Type, ...]) -> Type | None:
    return BIGINT if len(types) <= 1 else None


def _count_distinct(types: tuple[Type, ...]) -> Type | None:
    return BIGINT if types else None


def _sum(types: tuple[Type, ...]) -> Type | None:
    if len(types) != 1 or not types[0].is_numeric:
        return None
    type_ = types[0]
    if type_.is_integer:
        return BIGINT
    if type_.kind is Kind.DECIMAL:
        return decimal(min(type_.precision + 10, MAX_DECIMAL_PRECISION), type_.scale)
    return DOUBLE


def _average(types: tuple[Type, ...]) -> Type | None:
    return DOUBLE if len(types) == 1 and types[0].is_numeric else None


def _moment(types: tuple[Type, ...]) -> Type | None:
    return DOUBLE if types == (DOUBLE,) else None


def _extreme(types: tuple[Type, ...]) -> Type | None:
    return types[0] if len(types) == 1 and types[0] != INTERVAL else None


AGGREGATES: Mapping[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate("count", "count(*), count(x)", "Rows, or rows where x is not NULL.", _count, ("count",)),
        Aggregate(
            "count_distinct",
            "count(DISTINCT x, …)",
            "Different values; rows with a NULL among them are skipped.",
            _count_distinct,
            ("count_distinct",),
        ),
        Aggregate(
            "sum", "sum(x)", "BIGINT for integers, DECIMAL with ten more digits, or DOUBLE.", _sum, ("sum",)
        ),
        Aggregate("avg", "avg(x)", "Mean, always a DOUBLE.", _average, ("avg", "mean")),
        Aggregate("min", "min(x)", "Least value of any type.", _extreme, ("min",)),
        Aggregate(
            "max", "max(x)", "Greatest value of any type; NaN is the greatest number.", _extreme, ("max",)
        ),
        Aggregate(
            "stddev_samp",
            "stddev(x)",
            "Sample standard deviation; NULL for a single row.",
            _moment,
            ("stddev", "stddev_samp", "std"),
        ),
        Aggregate(
            "stddev_pop", "stddev_pop(x)", "Standard deviation of the population.", _moment, ("stddev_pop",)
        ),
        Aggregate(
            "var_samp",
            "variance(x)",
            "Sample variance; NULL for a single row.",
            _moment,
            ("variance", "var_samp"),
        ),
        Aggregate("var_pop", "var_pop(x)", "Variance of the population.", _moment, ("var_pop",)),
    )
}

# How SQL spells an aggregate (lower case) → its name here. count(DISTINCT …) is `count_distinct`.
SQL_AGGREGATES: Mapping[str, str] = {
    spelling: aggregate.name for aggregate in AGGREGATES.values() for spelling in aggregate.spellings
}

_OVER_DOUBLE = frozenset({"stddev_samp", "stddev_pop", "var_samp", "var_pop"})


def aggregate_type(name: str, types: tuple[Type, ...]) -> Type:
    """The type of an aggregate whose arguments have been coerced, or a FunctionTypeError.

    >>> from plait.expressions.types import INT
    >>> str(aggregate_type("sum", (INT,)))
    'BIGINT'
    """
    aggregate = AGGREGATES.get(name)
    if aggregate is None:
        raise FunctionTypeError(f"there is no aggregate `{name}`")
    result = aggregate.rule(types)
    if result is None:
        given = ", ".join(map(str, types))
        raise FunctionTypeError(f"`{aggregate.usage}` cannot take ({given})", _hint(name, types))
    return result


def _hint(name: str, types: tuple[Type, ...]) -> str:
    if len(types) != 1:
        different = "; count(DISTINCT a, b) counts different pairs" if name == "count" else ""
        return f"give it one argument{different}"
    if types[0] == INTERVAL:
        return "aggregate a number: timestampdiff(unit, from, to)"
    if types[0] in (DATE, TIMESTAMP):
        return "aggregate a number: unix_seconds(t) gives one"
    return f"write CAST(… AS {'INT' if types[0] == BOOLEAN else 'DOUBLE'}) around the {types[0]}"


def coerce_arguments(name: str, arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments with the implicit casts an aggregate wants, or a FunctionTypeError."""
    coerced = tuple(arguments)
    if name in _OVER_DOUBLE and len(coerced) == 1 and coerced[0].type.is_numeric:
        coerced = (coerce(coerced[0], DOUBLE),)
    aggregate_type(name, tuple(argument.type for argument in coerced))
    return coerced


@dataclass(frozen=True)
class AggregateCall:
    """`function(arguments) FILTER (WHERE filter)`; no arguments is `count(*)`."""

    function: str
    arguments: tuple[Expression, ...] = ()
    filter: Expression | None = None

    def __post_init__(self) -> None:
        _ = self.type
        if self.filter is not None and self.filter.type != BOOLEAN:
            raise FunctionTypeError("a FILTER is boolean")

    @cached_property
    def type(self) -> Type:
        return aggregate_type(self.function, tuple(argument.type for argument in self.arguments))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.arguments if self.filter is None else (*self.arguments, self.filter)
