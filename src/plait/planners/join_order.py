"""In which order a join of several inputs is computed.

Greedy, and left-deep: first the pair with the smallest result, then whatever keeps the result smallest,
and a cross product only where nothing else is left. The size of a sub-join does not depend on the order
it was computed in (`cost/sizes.py`), so sizes can be compared before anything is decided.

A candidate is judged by what it adds to the join so far (Eq. 2 for one more input), not by the sub-join as a
plan of its own: that takes time in proportion to the predicates about the candidate alone, so that a join of
a hundred inputs is ordered in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from plait.cost.bounds import bounded
from plait.cost.model import CostModel
from plait.cost.selectivity import Evidence, distinct_values, selectivity
from plait.expressions.nodes import Expression, columns_of, conjuncts
from plait.plan.nodes import Join, RowTicking, Static, Ticking
from plait.rewrite.algebra.equalities import equality_classes

Order: TypeAlias = tuple[int, ...]


def smallest_first(join: Join, cost: CostModel, start: Order = ()) -> Order:
    """The greedy order, after `start` if that is given."""
    if len(join.inputs) == 2:
        return (0, 1)
    inputs = _Inputs(join, cost)
    so_far = _NOTHING
    for member in start:
        so_far = inputs.joined(so_far, member)
    if not start:
        singles = [inputs.joined(so_far, member) for member in range(len(join.inputs))]
        so_far = min(
            (
                inputs.joined(singles[pair[0]], pair[1])
                for pair in combinations(range(len(join.inputs)), 2)
                if _has_stream(join, pair)
            ),
            key=inputs.badness,
        )
    while len(so_far.order) < len(join.inputs):
        rest = (index for index in range(len(join.inputs)) if index not in so_far.members)
        so_far = min((inputs.joined(so_far, index) for index in rest), key=inputs.badness)
    return so_far.order


@dataclass(frozen=True)
class _SubJoin:
    """What some inputs give together. `classes` has, for each class of equal expressions that is begun, the
    least number of distinct values among its members."""

    order: Order
    members: frozenset[int]
    rate_rows_per_s: float
    rows: float
    is_cross: bool  # nothing ties the last input to those before
    classes: Mapping[int, float]


_NOTHING = _SubJoin((), frozenset(), 0.0, 1.0, False, {})


@dataclass(frozen=True)
class _Part:
    """A term, or a member of a class of equals: whose columns it needs, and the share or distinct values."""

    owners: frozenset[int]
    value: float


class _Inputs:
    """The inputs of a join in numbers, and what the predicate says about each."""

    def __init__(self, join: Join, cost: CostModel) -> None:
        self._sizes = [cost.size(each) for each in join.inputs]
        self._ticks = isinstance(join.timing, Ticking | RowTicking)
        self._moves = [not isinstance(each.timing, Static) for each in join.inputs]
        columns = [column for size in self._sizes for column in size.columns]
        owner = [index for index, each in enumerate(join.inputs) for _ in each.types]

        def part(expression: Expression, value: float) -> _Part:
            return _Part(frozenset(owner[column] for column in columns_of(expression)), value)

        self._terms: list[list[_Part]] = [[] for _ in join.inputs]
        self._equals: list[list[tuple[int, _Part]]] = [[] for _ in join.inputs]
        classes, others = equality_classes(conjuncts(join.predicate))
        for term in others:
            share = part(term, selectivity(term, columns, Evidence()))
            for index in share.owners:
                self._terms[index].append(share)
        for number, members in enumerate(classes):
            for member in members:
                equal = part(member, distinct_values(member, columns))
                for index in equal.owners:
                    self._equals[index].append((number, equal))

    def badness(self, candidate: _SubJoin) -> tuple[bool, float, Order]:
        """Cross products, then many rows: what ticks gives its whole relation each time."""
        given = candidate.rows if self._ticks else candidate.rate_rows_per_s
        return candidate.is_cross, given, candidate.order

    def joined(self, before: _SubJoin, index: int) -> _SubJoin:
        """A sub-join with one more input."""
        members = before.members | {index}
        share, is_tied = 1.0, not before.members
        for term in self._terms[index]:
            if term.owners <= members:
                share *= term.value
                is_tied = is_tied or len(term.owners) > 1
        classes = dict(before.classes)
        for number, equal in self._equals[index]:
            if not equal.owners <= members:
                continue
            is_tied = is_tied or len(equal.owners) > 1 or number in before.classes
            if number in classes:
                share /= max(classes[number], equal.value)  # all but the least count (`cost/selectivity.py`)
            classes[number] = min(classes.get(number, equal.value), equal.value)
        size = self._sizes[index]
        own_rate = size.rate_rows_per_s if self._moves[index] else 0.0
        return _SubJoin(
            (*before.order, index),
            members,
            bounded(share * (before.rate_rows_per_s * size.relation_rows + own_rate * before.rows)),
            bounded(share * before.rows * size.relation_rows),
            not is_tied,
            classes,
        )


def longest_existing(join: Join, exists: Callable[[Order], bool]) -> Order:
    """The largest sub-join that exists and can be reached by adding one input after the other; () if none."""

    def found(members: Order) -> bool:
        return _has_stream(join, members) and exists(tuple(sorted(members)))

    longest: Order = ()
    for pair in combinations(range(len(join.inputs)), 2):
        if set(pair) <= set(longest) or not found(pair):
            continue
        order: Order | None = pair
        while order is not None:
            longest = max(longest, order, key=len)
            longer = ((*order, index) for index in range(len(join.inputs)) if index not in order)
            order = next(filter(found, longer), None)
    return longest


def _has_stream(join: Join, members: Order) -> bool:
    return any(not isinstance(join.inputs[member].timing, Static) for member in members)
