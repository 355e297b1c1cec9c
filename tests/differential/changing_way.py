"""Queries of a workload that come and go while others are computed, in the database, without Spark.

Before each micro-batch some queries are dropped and others, also ones that were there before, are added. What
is written down of a change, and what the database has of it, come apart at random, as if the process had been
killed in between: the next time the state is opened as the last change that was written down says.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.differential.arrivals import Row
from tests.differential.result_rows import published_rows
from tests.differential.shared_way import EPOCH, HandedOver, PowerCutError
from tests.workloads.trunks import scans_of

from plait.batches import Batch, BatchRows, Outcome, Publish
from plait.benchmarks.dropped import Standing
from plait.deployment.fragments import Fragment
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.plan.nodes import StreamScan, sources_of

CHANGED = 0.6  # chance that the set changes before a batch
KILLED = 0.3  # chance that a change or a batch is cut off
PARTS = ("one", "other", "one")


@dataclass(frozen=True)
class Added:
    """A query of the workload under a name that no other has had, the moment after which it sees rows, and
    the part of a join that it is given."""

    name: str
    query: str
    after_us: int | None
    part: str = ""

    @property
    def start(self) -> datetime | None:
        return None if self.after_us is None else EPOCH + timedelta(microseconds=self.after_us)


@dataclass
class Changing:
    """`ever` are all queries that were there, `live` those that are."""

    given: HandedOver
    path: Path
    rng: random.Random
    ever: list[Added] = field(default_factory=list)
    live: list[Added] = field(default_factory=list)
    published: dict[int, Sequence[BatchRows]] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Outcome]] = field(default_factory=dict)

    def run(self) -> None:
        self.live = self._added({}, least=1)
        trunk = self._opened(self.live)
        for number in range(self.given.batches + 1):
            if number and self.rng.random() < CHANGED:
                trunk = self._changed(trunk)
            if self.rng.random() < KILLED:
                trunk = self._cut_off(trunk, number)
            self.outcomes[number] = self._apply(trunk, number)
        trunk.close()

    def rows(self, name: str) -> list[Row]:
        return [row for results in self.published.values() for row in published_rows(results, name)]

    def standing(self, name: str) -> Standing:
        """How far a query was after its last batch."""
        outcomes = [each[name] for each in self.outcomes.values() if name in each]
        return Standing(sum(each.rows for each in outcomes), outcomes[-1].watermark_us if outcomes else None)

    def _changed(self, trunk: Trunk) -> Trunk:
        wanted = [each for each in self.live if self.rng.random() < 0.7]
        wanted += self._added(trunk.seen_us, least=0 if wanted else 1)
        if self.rng.random() < KILLED:  # before it is written down
            trunk.become(self._queries(wanted), self._scans(wanted))
            trunk.close()
            trunk = self._opened(self.live)
        self.live = wanted
        if self.rng.random() < KILLED:  # after it
            trunk.close()
            return self._opened(self.live)
        trunk.become(self._queries(wanted), self._scans(wanted))
        trunk.let_go()
        return trunk

    def _added(self, seen_us: Mapping[str, int], least: int) -> list[Added]:
        names = [query.name for query in self.given.workload.queries]
        count = self.rng.randint(least, max(least, len(names) // 3))
        added: list[Added] = []
        for query in self.rng.sample(names, count):
            read = {stream.lower() for stream in sources_of(self.given.loaded.query(query).plan)[0]}
            after_us = max((seen_us[key] for key in read if key in seen_us), default=None)
            number = len(self.ever) + len(added)
            added.append(Added(f"{query}#{number}", query, after_us, PARTS[number % len(PARTS)]))
        self.ever += added
        return added

    def _cut_off(self, trunk: Trunk, number: int) -> Trunk:
        def publish(_results: Sequence[BatchRows]) -> None:
            raise PowerCutError

        try:
            self._apply(trunk, number, publish)
        except PowerCutError:
            trunk.close()
        return self._opened(self.live)

    def _opened(self, live: Sequence[Added]) -> Trunk:
        return Trunk(self._queries(live), self.given.loaded.catalog.streams, self._scans(live), self.path)

    def _apply(self, trunk: Trunk, number: int, publish: Publish | None = None) -> Mapping[str, Outcome]:
        def kept(results: Sequence[BatchRows]) -> None:
            self.published[number] = results

        fragment = self._fragment(self.live)
        batch = Batch(number, tables=self.given.tables)
        reached = self.given.reached(self.given.fragment(self.given.loaded.queries), number)
        return trunk.apply(batch, self.given.rows(fragment, number), reached, publish or kept)

    def _fragment(self, live: Sequence[Added]) -> Fragment:
        return self.given.fragment({each.query for each in live})

    def _scans(self, live: Sequence[Added]) -> dict[str, StreamScan]:
        return scans_of(self._fragment(live))

    def _queries(self, live: Sequence[Added]) -> list[SharedQuery]:
        plans = {result.query: result.plan for result in self._fragment(live).results}
        return [SharedQuery(each.name, plans[each.query], each.after_us, each.part) for each in live]


def run(given: HandedOver, folder: Path, rng: random.Random) -> Changing:
    changing = Changing(given, folder / "trunk.duckdb", rng)
    changing.run()
    return changing
