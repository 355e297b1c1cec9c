"""Which share of the rows a predicate keeps (f of the federation paper's Eq. 1 and 2).

| predicate | share |
|---|---|
| `a = constant`, `a = b` | 1 / distinct values (the greater number, for two columns) |
| `a IN (k constants)` | k / distinct values |
| `<`, `<=`, `>`, `>=` | 1/3 |
| `IS NULL`, `LIKE`, `RLIKE` | 1/10 |
| `p AND q`, `p OR q`, `NOT p` | as if independent |

Columns that a conjunction makes equal form a class, however many equations say so: n columns without a
constant keep 1 / (all their distinct numbers but the smallest), so that a canonical form which spells out
what follows from `a = b AND b = c` costs the same as one that does not. This also makes the size of a
join independent of the order in which it is computed, as the paper's principle of optimality needs.

The paper takes selectivities as given; the shares above are the textbook ones (System R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from plait.cost.bounds import product
from plait.expressions.nodes import Call, Column, Expression, Literal, WindowEdge, columns_of, conjuncts
from plait.expressions.types import BOOLEAN
from plait.rewrite.algebra.equalities import equality_classes
from plait.statistics import Assumption, Basis, Estimate

RANGE_SHARE = 1 / 3
PATTERN_SHARE = 1 / 10
NULL_SHARE = 1 / 10

COMPARISONS = frozenset({"lt", "le", "gt", "ge"})
EQUALITIES = frozenset({"eq", "null_safe_eq"})


@dataclass(frozen=True)
class ColumnEstimate:
    """A column of a derived stream: distinct values, bytes of a value, and what the first rests on."""

    distinct: float
    bytes: float
    basis: Basis
    assumptions: frozenset[Assumption] = frozenset()


@dataclass
class Evidence:
    """Collects what an estimate rests on while it is made."""

    basis: Basis = Basis.OBSERVED
    assumptions: set[Assumption] = field(default_factory=set)

    def use(self, number: Estimate | Assumption | ColumnEstimate) -> float:
        """The number's value, its basis noted."""
        match number:
            case Estimate(value, basis):
                self.basis = min(self.basis, basis)
                return value
            case Assumption():
                self.basis = Basis.ASSUMED
                self.assumptions.add(number)
                return number.value
            case ColumnEstimate(distinct, _, basis, assumptions):
                self.basis = min(self.basis, basis)
                self.assumptions |= assumptions
                return distinct


def selectivity(predicate: Expression, columns: Sequence[ColumnEstimate], evidence: Evidence) -> float:
    """The share of rows for which the predicate is true."""
    match predicate:
        case Literal(value):
            return 1.0 if value is True else 0.0
        case Column() | WindowEdge():
            return 0.5
        case Call("and"):
            return _conjunction(conjuncts(predicate), columns, evidence)
        case Call("or", arguments):
            return 1.0 - product(1.0 - selectivity(term, columns, evidence) for term in arguments)
        case Call("not", (argument,)):
            return 1.0 - selectivity(argument, columns, evidence)
        case Call("eq" | "null_safe_eq", (left, right)):
            return 1.0 / max(distinct_values(side, columns, evidence) for side in (left, right))
        case Call("ne", (left, right)):
            return 1.0 - 1.0 / max(distinct_values(side, columns, evidence) for side in (left, right))
        case Call("in", (tested, *options)):
            return min(1.0, len(options) / distinct_values(tested, columns, evidence))
        case Call("is_null"):
            return NULL_SHARE
        case Call("like" | "rlike"):
            return PATTERN_SHARE
        case Call():
            return RANGE_SHARE


def distinct_values(
    expression: Expression, columns: Sequence[ColumnEstimate], evidence: Evidence | None = None
) -> float:
    """How many values an expression has at most: as many as its columns have combinations."""
    if expression.type == BOOLEAN and isinstance(expression, Call):
        return 2.0
    used = (columns[index] for index in columns_of(expression))
    return product(max(1.0, (evidence or Evidence()).use(column)) for column in used)


def narrowed(predicate: Expression, columns: Sequence[ColumnEstimate]) -> tuple[ColumnEstimate, ...]:
    """The columns of the rows that a predicate keeps: fewer distinct values where it says so."""
    result = list(columns)

    def limit(expression: Expression, distinct: float) -> None:
        column = _column_of(expression)
        if column is not None:
            kept = result[column.index]
            result[column.index] = replace(kept, distinct=max(1.0, min(kept.distinct, distinct)))

    terms = conjuncts(predicate)
    for members in _equal_classes(terms):
        least = min(distinct_values(member, columns) for member in members)
        for member in members:
            limit(member, least)
    for term in terms:
        match term:
            case Call("in", (tested, *options)):
                limit(tested, len(options))
            case Call(function, (left, right)) if function in COMPARISONS:
                for side in (left, right):
                    limit(side, distinct_values(side, columns) * RANGE_SHARE)
    return tuple(result)


def _conjunction(
    terms: tuple[Expression, ...], columns: Sequence[ColumnEstimate], evidence: Evidence
) -> float:
    share = product(selectivity(term, columns, evidence) for term in terms if not _is_equality(term))
    for members in _equal_classes(terms):
        values = sorted(distinct_values(member, columns, evidence) for member in members)
        share /= product(values[1:])  # a constant has one value, so it is the smallest
    return share


def _equal_classes(terms: tuple[Expression, ...]) -> list[list[Expression]]:
    """The expressions that a conjunction makes equal to each other, class by class."""
    equations = [Call("eq", term.arguments) for term in terms if _is_equality(term)]
    return equality_classes(equations)[0]


def _is_equality(term: Expression) -> TypeGuard[Call]:
    return isinstance(term, Call) and term.function in EQUALITIES


def _column_of(expression: Expression) -> Column | None:
    while isinstance(expression, Call) and expression.function == "cast":
        expression = expression.arguments[0]
    return expression if isinstance(expression, Column) else None
