"""Which queries that could share a join do: those for which one join costs less than several.

What one join does for several queries, `plait.sharing.demands` says: it also takes in and keeps rows for
longer than some want, and makes combinations that nobody wants. Against that stands what each join takes by
itself: its statements in every micro-batch, and a look at every row that arrives. `JoinUnitCost` says what
each of these costs.

Parts are found greedily. Queries, those that are cheap by themselves first, go to the part where they add
least; at first only if that is less than a query costs there on average, so that parts do not outgrow the
size at which they are best: the last of many queries still adds less than a join for it alone. Then what is
left, queries and parts, goes where it adds least if that is less than it costs, until nothing does. Looked at
are the latest parts that want some of the same rows, and the cheapest of all; so this takes time in
proportion to the queries. It is never worse than one join for all, or one for each; of seven queries it is
the best of all partitions nine times in ten, and hardly ever a tenth worse.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from plait.cost.model import CostModel
from plait.cost.sharing import MICROSECONDS, JoinWork, join_cores, reading_cores
from plait.cost.units import DUCKDB, SPARK, UnitCosts
from plait.sharing.demands import Demand, JoinStreams, OneJoin, demands
from plait.sharing.families import NO_PARTS
from plait.sharing.joins import WovenJoin

# Of the parts that want the same rows of an input, so many are looked at.
_LOOKED_AT = 8


def busy_s(streams: JoinStreams, work: JoinWork, engine: str, unit_costs: UnitCosts) -> float:
    """How long a join keeps a core busy each second, at a micro-batch a second: all but what depends on the
    rows that queries get, which are the same whatever they share. On Spark it reads its streams itself."""
    arriving = sum(streams.rates_rows_per_s)
    cores = join_cores(work, arriving, 0.0, unit_costs)[engine]
    reading = reading_cores(arriving, unit_costs) if engine == SPARK else 0.0
    return unit_costs.joins[engine].batch_us / MICROSECONDS + cores + reading


def parted(
    members: Sequence[WovenJoin],
    cost: CostModel,
    engine: str = DUCKDB,
    given: Mapping[str, str] = NO_PARTS,
) -> dict[str, list[WovenJoin]]:
    """Queries of one key in parts that are a join each on an engine, by the parts' names. Those that are
    given parts stay there, whoever else comes."""
    wanted = demands(members, cost)
    part_of = partial(_Part, wanted[0].streams, engine, cost.unit_costs)
    there: dict[str, _Part] = {}
    for demand in wanted:
        if demand.query in given:
            there.setdefault(given[demand.query], part_of()).add([demand])
    parts = [part_of([demand]) for demand in wanted if demand.query not in given]
    parts = _gone_together(parts, there.values(), on_average=True)
    while len(left := _gone_together(parts, there.values())) < len(parts):
        parts = left
    everything = part_of(wanted)
    if not there and everything.price < sum(part.price for part in parts):
        parts = [everything]
    names = {demand.query: name for name, part in there.items() for demand in part.demands}
    names |= {demand.query: part_name(part.demands) for part in parts for demand in part.demands}
    found: dict[str, list[WovenJoin]] = {}
    for member in members:
        found.setdefault(names[member.query], []).append(member)
    return found


class _Named(Protocol):
    @property
    def query(self) -> str: ...


def part_name(queries: Iterable[_Named]) -> str:
    """What a new part of these queries is called."""
    return min(each.query for each in queries)


class _Part:
    """Queries that are to share a join, and what that costs."""

    def __init__(
        self, streams: JoinStreams, engine: str, unit_costs: UnitCosts, queries: Sequence[Demand] = ()
    ) -> None:
        self._streams = streams
        self._engine = engine
        self._unit_costs = unit_costs
        self._join = OneJoin(streams)
        self.demands: list[Demand] = []
        self.price = 0.0
        self.add(queries)

    @property
    def wanted_rows(self) -> Iterator[tuple[int, int]]:
        """Inputs, and the numbers of selections of their rows."""
        return (each for demand in self.demands for each in enumerate(demand.selections))

    def add(self, queries: Sequence[Demand]) -> None:
        for demand in queries:
            self._join.add(demand)
        self.demands += queries
        self.price = self._price(self._join)

    def added_by(self, other: _Part) -> float:
        """What the queries of another part would add to the price."""
        trial = OneJoin(self._streams, over=self._join)
        for demand in other.demands:
            trial.add(demand)
        return self._price(trial) - self.price

    def _price(self, join: OneJoin) -> float:
        return busy_s(self._streams, join.work, self._engine, self._unit_costs)


def _gone_together(
    coming: Iterable[_Part], there: Iterable[_Part], *, on_average: bool = False
) -> list[_Part]:
    """Parts, the cheapest first, go where they add least, if that is less than they cost by themselves; or
    `on_average`, if it is less than a query costs there. Those that are left, some with others in them."""
    parts, left = [*there], list[_Part]()
    wanting = defaultdict[tuple[int, int], deque[_Part]](lambda: deque(maxlen=_LOOKED_AT))
    for part in parts:
        _note(part, part, wanting)
    for part in sorted(coming, key=lambda each: (each.price, part_name(each.demands))):
        looked_at = {other: None for rows in part.wanted_rows for other in wanting[rows]}
        if parts:
            looked_at[min(parts, key=lambda each: each.price)] = None
        added, taker = part.price, part
        for other in looked_at:
            more = other.added_by(part)
            if more < added and not (on_average and more > other.price / len(other.demands)):
                added, taker = more, other
        if taker is part:
            parts.append(part)
            left.append(part)
        else:
            taker.add(part.demands)
        _note(part, taker, wanting)
    return left


def _note(part: _Part, taker: _Part, wanting: Mapping[tuple[int, int], deque[_Part]]) -> None:
    """Who wants the rows of a part now."""
    for rows in part.wanted_rows:
        if taker not in wanting[rows]:
            wanting[rows].append(taker)
