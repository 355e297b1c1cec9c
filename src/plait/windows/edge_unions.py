"""Edge rates of unions, for a search that asks for very many of them.

`EdgeUnions` knows a fixed list of edge sets, those of the windows of one planning problem. A **union** of
some of them is a number, the same for the same members, so nothing is computed twice and unions can be
compared, kept and passed on freely; a union never changes. Asked for are

- the rate of one union;
- of one union together with each of the edge sets, all at once: what weaving a query into a tree makes of it;
- of one union together with each of many others, all at once: what weaving two trees makes of them;
- of one union without each of some of its edge sets, all at once: what taking queries out of a tree leaves.

Rates are floats, right to about 1e-14. They come from `windows.edge_classes`; where slides are so entangled
that these would be too many, from `windows.edge_rate`, one by one.

Members are the bits of an integer: bit i is edge set i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from plait.windows.edge_classes import EdgeClasses, Integers, Numbers, Words, edge_classes
from plait.windows.edge_rate import progression_rate_per_s
from plait.windows.edges import Progression

# So many words of a batch stay in a processor's cache.
_BATCH_WORDS = 30_000


class EdgeUnions:
    """Unions are numbered as they are first asked for; the first are the edge sets themselves, in their
    order."""

    def __init__(self, edge_sets: Sequence[tuple[Progression, ...]]) -> None:
        progressions = {edge: None for edges in edge_sets for edge in edges}
        numbers = {progression: number for number, progression in enumerate(progressions)}
        members = [[numbers[edge] for edge in edges] for edges in edge_sets]
        classes = edge_classes(list(progressions)) if progressions else None
        self._rates: _Rates = (
            _RatesOfSets(edge_sets) if classes is None else _RatesByClasses(classes, members)
        )
        self._numbers: dict[int, int] = {}
        self._members: list[int] = []
        self._rate_per_s: list[float] = []
        self._with_each: dict[int, Numbers] = {}
        for number, rate_per_s in enumerate(self._rates.of_each_edge_set()):
            self._keep(1 << number, rate_per_s)

    def of(self, members: int) -> int:
        """The union of the edge sets whose bits are set; of none, there are no edges."""
        known = self._numbers.get(members)
        if known is not None:
            return known
        return self._keep(members, self._rates.make(_bits(members)))

    def added(self, union: int, edge_set: int) -> int:
        """The union and one edge set more."""
        members = self._members[union] | 1 << edge_set
        known = self._numbers.get(members)
        if known is not None:
            return known
        return self._keep(members, self._rates.join(union, edge_set))

    def joined(self, one: int, other: int) -> int:
        members = self._members[one] | self._members[other]
        known = self._numbers.get(members)
        if known is not None:
            return known
        return self._keep(members, self._rates.join(one, other))

    def members(self, union: int) -> int:
        return self._members[union]

    def rate_per_s(self, union: int) -> float:
        return self._rate_per_s[union]

    def rates_with_each_edge_set(self, union: int) -> Numbers:
        """For each edge set, in their order: the rate of the union and it. Not to be written to."""
        rates = self._with_each.get(union)
        if rates is None:
            rates = self._rates.with_each_edge_set(union, self._rate_per_s[union])
            self._with_each[union] = rates
        return rates

    def rates_with(self, union: int, others: Integers) -> Numbers:
        """For each of the other unions: the rate of the union and it."""
        return self._rates.with_unions(union, others)

    def rates_without(self, union: int, edge_sets: Integers) -> Numbers:
        """For each of the edge sets: the rate of the union's other members."""
        return self._rates.without_edge_sets(np.array(list(_bits(self._members[union]))), edge_sets)

    @property
    def are_quick(self) -> bool:
        """Whether a rate takes microseconds. Where slides are too entangled for that, it takes up to a
        thousand times as long."""
        return isinstance(self._rates, _RatesByClasses)

    def _keep(self, members: int, rate_per_s: float) -> int:
        number = len(self._members)
        self._numbers[members] = number
        self._members.append(members)
        self._rate_per_s.append(rate_per_s)
        return number


class _Rates(Protocol):
    """Computes rates. The edge sets are the first unions; `make` and `join` say the rate of the next one."""

    def of_each_edge_set(self) -> Sequence[float]: ...

    def make(self, edge_sets: Iterator[int]) -> float: ...

    def join(self, one: int, other: int) -> float: ...

    def with_each_edge_set(self, union: int, rate_per_s: float) -> Numbers: ...

    def with_unions(self, union: int, others: Integers) -> Numbers: ...

    def without_edge_sets(self, members: Integers, edge_sets: Integers) -> Numbers: ...


class _RatesByClasses:
    def __init__(self, classes: EdgeClasses, members: Sequence[Sequence[int]]) -> None:
        self._classes = classes
        self._members = members
        # An edge set has one or two progressions, without a time in common.
        self._one = np.array([own[0] for own in members])
        self._two = np.array([place for place, own in enumerate(members) if len(own) > 1], dtype=np.int64)
        self._second = np.array([own[1] for own in members if len(own) > 1], dtype=np.int64)
        self._rows = classes.no_edges(2 * len(members))
        self._made = len(members)

    def of_each_edge_set(self) -> Sequence[float]:
        for row, own in zip(self._rows, self._members, strict=False):
            for progression in own:
                self._classes.cover(row, progression)
        (nothing,) = self._classes.no_edges(1)
        rates: list[float] = self._rates_per_s(np.arange(len(self._members)), nothing).tolist()
        return rates

    def make(self, edge_sets: Iterator[int]) -> float:
        (row,) = self._classes.no_edges(1)
        for edge_set in edge_sets:
            row |= self._rows[edge_set]
        return self._add(row)

    def join(self, one: int, other: int) -> float:
        return self._add(self._rows[one] | self._rows[other])

    def with_each_edge_set(self, union: int, rate_per_s: float) -> Numbers:
        added = self._classes.added_per_s(self._rows[union])
        rates: Numbers = added[self._one]
        rates[self._two] += added[self._second]
        rates += rate_per_s
        return rates

    def with_unions(self, union: int, others: Integers) -> Numbers:
        return self._rates_per_s(others, self._rows[union])

    def without_edge_sets(self, members: Integers, edge_sets: Integers) -> Numbers:
        # What is before a member, and what is after it, and so all others.
        rows = self._rows[members]
        before, after = np.zeros_like(rows), np.zeros_like(rows)
        np.bitwise_or.accumulate(rows[:-1], axis=0, out=before[1:])
        after[:-1] = np.bitwise_or.accumulate(rows[:0:-1], axis=0)[::-1]
        others = (before | after)[np.searchsorted(members, edge_sets)]
        rates: Numbers = self._classes.rates_per_s(others)
        return rates

    def _rates_per_s(self, unions: Integers, more: Words) -> Numbers:
        step = max(1, _BATCH_WORDS // self._classes.words)
        parts = [
            self._classes.rates_per_s(self._rows[unions[start : start + step]] | more)
            for start in range(0, len(unions), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _add(self, row: Words) -> float:
        if self._made == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._made] = row
        self._made += 1
        return float(self._classes.rates_per_s(row))


class _RatesOfSets:
    def __init__(self, edge_sets: Sequence[tuple[Progression, ...]]) -> None:
        self._edge_sets = edge_sets
        self._unions: list[frozenset[Progression]] = []
        self._known: dict[frozenset[Progression], float] = {}

    def of_each_edge_set(self) -> Sequence[float]:
        return [self._add(frozenset(edges)) for edges in self._edge_sets]

    def make(self, edge_sets: Iterator[int]) -> float:
        return self._add(frozenset(edge for own in edge_sets for edge in self._edge_sets[own]))

    def join(self, one: int, other: int) -> float:
        return self._add(self._unions[one] | self._unions[other])

    def with_each_edge_set(self, union: int, rate_per_s: float) -> Numbers:
        del rate_per_s
        own = self._unions[union]
        return np.array([self._rate_per_s(own.union(edges)) for edges in self._edge_sets])

    def with_unions(self, union: int, others: Integers) -> Numbers:
        own = self._unions[union]
        return np.array([self._rate_per_s(own | self._unions[other]) for other in others], dtype=np.float64)

    def without_edge_sets(self, members: Integers, edge_sets: Integers) -> Numbers:
        times = Counter(edge for member in members for edge in self._edge_sets[member])
        rates = []
        for edge_set in edge_sets:
            left = times - Counter(self._edge_sets[edge_set])
            rates.append(self._rate_per_s(frozenset(left)))
        return np.array(rates, dtype=np.float64)

    def _add(self, union: frozenset[Progression]) -> float:
        self._unions.append(union)
        return self._rate_per_s(union)

    def _rate_per_s(self, union: frozenset[Progression]) -> float:
        if union not in self._known:
            self._known[union] = float(progression_rate_per_s(union))
        return self._known[union]


def _bits(number: int) -> Iterator[int]:
    while number:
        least = number & -number
        yield least.bit_length() - 1
        number ^= least
