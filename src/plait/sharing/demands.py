"""What one join does for several queries: the rows that it takes in and keeps, and the combinations it makes.

Filters below a shared join are relaxed to what any of its queries wants, and it has the greatest ranges. So
rows meet that nobody wants together: if one query wants `a.x = 1` and `b.y = 2` and another `a.x = 3` and
`b.y = 4`, the join combines 1 with 4 as well; and rows that are wanted for a minute are kept and combined for
a day, if another query wants its own rows for that long.

With λ, what a second brings of the rows that a query wants of an input, one join for several queries has

    taken in      Λ_j = Σ λ over the different selections of input j, at most the rate of the stream
    kept          Σ_j Λ_j · greatest range of input j
    combinations  Σ_v c_v · Π_j Λ_jv · Σ_k Π_{j≠k} greatest range of input j

which is Eq. 2 of the federation paper with relaxed inputs. Columns that the join makes equal are chosen once:
with `a.k = b.k`, rows of `k = 1` meet no others, whoever wants those. So combinations are summed over v, the
constants that queries have for such columns, and Λ_jv is what they want with v; of other inputs all rows meet
all of them. c_v is the share of combinations that the join's predicate keeps, as the queries of v have it on
average. There are never more combinations than without filters. λ, and what a query gets by itself, are the
cost model's: made of what is declared, or observed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from plait.cost.bounds import bounded, product
from plait.cost.model import CostModel
from plait.cost.sharing import MICROSECONDS, JoinWork
from plait.expressions.nodes import Call, Column, Expression, conjuncts
from plait.plan.nodes import Join, RangeWindow, Window
from plait.sharing.joins import JoinKey, WovenJoin
from plait.sharing.numbered import numbered


@dataclass(frozen=True)
class JoinStreams:
    """What is joined, without filters: the rates of the inputs, and the `density` of combinations; these are
    that times `meeting_s` each second. `is_told_apart` says of which inputs rows are chosen by columns that
    are equal in others."""

    rates_rows_per_s: tuple[float, ...]
    density: float
    is_told_apart: tuple[bool, ...]


@dataclass(frozen=True)
class Demand:
    """What a query wants of a join. Of each input: the number of its selection, rows a second, and how long
    they are kept; `meeting` is the number of its constants for equal columns, `density` that of its
    combinations."""

    query: str
    streams: JoinStreams
    selections: tuple[int, ...]
    meeting: int
    rates_rows_per_s: tuple[float, ...]
    ranges_s: tuple[float, ...]
    density: float


def demands(members: Sequence[WovenJoin], cost: CostModel) -> list[Demand]:
    """What queries of one key want. Numbers are those among them."""
    key = members[0].key
    shared = _shared_columns(key)
    numbers = [numbered(member.selections[k] for member in members) for k in range(len(key.scans))]
    meetings = numbered(_meeting(member, shared) for member in members)
    streams = JoinStreams(
        tuple(cost.size(scan).rate_rows_per_s for scan in key.scans),
        max(
            _density(_unfiltered(members[0]), members[0].ranges_us, cost),
            *(_density(member.join, member.ranges_us, cost) for member in members),
        ),
        tuple(any(k == own for own, _ in shared) for k in range(len(key.scans))),
    )
    return [
        Demand(
            member.query,
            streams,
            tuple(numbers[k][each] for k, each in enumerate(member.selections)),
            meetings[_meeting(member, shared)],
            tuple(cost.size(each).rate_rows_per_s for each in member.join.inputs),
            tuple(each / MICROSECONDS for each in member.ranges_us),
            _density(member.join, member.ranges_us, cost),
        )
        for member in members
    ]


class OneJoin:
    """A join for all queries whose demands were added to it."""

    def __init__(self, streams: JoinStreams, over: OneJoin | None = None) -> None:
        """With what another has, which stays as it is."""
        self._streams = streams
        inputs = len(streams.rates_rows_per_s)
        self._seen: MutableMapping[Hashable, None] = ChainMap({}, over._seen) if over else {}
        self._rates: MutableMapping[tuple[int, int], float] = ChainMap({}, over._rates) if over else {}
        self._pairs: MutableMapping[int, tuple[float, float]] = ChainMap({}, over._pairs) if over else {}
        self._taken: list[float] = [*over._taken] if over else [0.0] * inputs
        self._ranges_s: list[float] = [*over._ranges_s] if over else [0.0] * inputs
        self._matching: float = over._matching if over else 0.0

    def add(self, demand: Demand) -> None:
        before = self._matching_of(demand.meeting)
        for k, (selection, rate) in enumerate(zip(demand.selections, demand.rates_rows_per_s, strict=True)):
            place = (k, self._meeting(k, demand.meeting))
            if self._is_new((*place, selection)):
                self._rates[place] = self._rates.get(place, 0.0) + rate
                self._taken[k] += rate
        if self._is_new((demand.meeting, demand.selections)):
            density, pairs = self._pairs.get(demand.meeting, (0.0, 0.0))
            pairs += product(demand.rates_rows_per_s)
            self._pairs[demand.meeting] = density + demand.density, pairs
        self._matching += self._matching_of(demand.meeting) - before
        self._ranges_s = [*map(max, self._ranges_s, demand.ranges_s)]

    @property
    def work(self) -> JoinWork:
        streams = self._streams
        taken = [*map(min, self._taken, streams.rates_rows_per_s)]
        others = (rate for rate, apart in zip(taken, streams.is_told_apart, strict=True) if not apart)
        density = min(streams.density, self._matching * product(others))
        return JoinWork(
            bounded(sum(taken)),
            bounded(sum(rate * range_s for rate, range_s in zip(taken, self._ranges_s, strict=True))),
            bounded(density * _meeting_s(self._ranges_s)),
        )

    def _is_new(self, thing: Hashable) -> bool:
        is_new = thing not in self._seen
        self._seen[thing] = None
        return is_new

    def _meeting(self, number: int, meeting: int) -> int:
        """Rows of inputs that are not told apart meet all others."""
        return meeting if self._streams.is_told_apart[number] else -1

    def _matching_of(self, meeting: int) -> float:
        """The density of combinations with these constants, of the inputs that are told apart by them."""
        density, pairs = self._pairs.get(meeting, (0.0, 0.0))
        if not pairs:
            return 0.0
        rates = (
            min(most, self._rates[k, meeting])
            for k, most in enumerate(self._streams.rates_rows_per_s)
            if self._streams.is_told_apart[k]
        )
        return density / pairs * product(rates)


def work_of(queries: Sequence[Demand]) -> JoinWork:
    """What one join for these queries does."""
    join = OneJoin(queries[0].streams)
    for demand in queries:
        join.add(demand)
    return join.work


# What queries choose


def _shared_columns(key: JoinKey) -> dict[tuple[int, int], int]:
    """Columns that rows are chosen by and that the join makes equal to such columns of other inputs: by input
    and place among those that it chooses by, the first of the equal ones."""
    same = _equal_columns(key.predicate)
    found: dict[tuple[int, int], int] = {}
    for k, (pattern, start) in enumerate(zip(key.patterns, key.starts, strict=True)):
        columns = pattern.looked_up if pattern.bounded is None else (pattern.bounded,)
        for place, column in enumerate(columns):
            found[k, place] = same.get(column.index + start, column.index + start)
    return {
        at: first
        for at, first in found.items()
        if any(other == first and k != at[0] for (k, _), other in found.items())
    }


def _meeting(member: WovenJoin, shared: Mapping[tuple[int, int], int]) -> Hashable:
    """The constants that a query has for columns that are equal."""
    chosen = {}
    for (k, place), first in shared.items():
        selection = member.selections[k]
        chosen[first] = selection.bounds or selection.constants[place]
    return tuple(chosen.values())


def _equal_columns(predicate: Expression) -> dict[int, int]:
    """For columns that a predicate makes equal to others, the first of those."""
    same: dict[int, int] = {}
    for term in conjuncts(predicate):
        match term:
            case Call("eq", (Column(left), Column(right))):
                first, other = sorted((same.get(left, left), same.get(right, right)))
                same |= {column: first for column, known in same.items() if known == other}
                same[other] = first
            case _:
                pass
    return same


# Densities


def _unfiltered(member: WovenJoin) -> Join:
    key = member.key
    inputs = zip(key.scans, member.ranges_us, strict=True)
    return Join(tuple(Window(scan, RangeWindow(range_us)) for scan, range_us in inputs), key.predicate)


def _density(join: Join, ranges_us: Sequence[int], cost: CostModel) -> float:
    """Combinations a second, by how long rows wait for each other."""
    return cost.size(join).rate_rows_per_s / _meeting_s([each / MICROSECONDS for each in ranges_us])


def _meeting_s(ranges_s: Sequence[float]) -> float:
    """Eq. 2: rows of each input meet those that the others have kept."""
    return sum(
        product(range_s for k, range_s in enumerate(ranges_s) if k != own) for own in range(len(ranges_s))
    )
