"""Queries that are handed over from one database to another while both go on, without Spark.

Both read the same streams, each in batches of its own: a new place from their beginning, one that was there
before from where it is. The old place lets a query go as soon as it may. Now and then a database is opened
anew, as after a kill.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
from tests.differential.arrivals import Row
from tests.differential.result_rows import published_rows
from tests.differential.shared_way import EPOCH, HandedOver
from tests.workloads.trunks import scans_of

from plait.batches import Batch, BatchRows, Outcome
from plait.deployment.describe import failing_text
from plait.engines.incremental.bands import held_back_us
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.plan.nodes import RowWindow, Window, sources_of, walk_plan
from plait.sharing.failing import checks
from plait.windows.beginnings import Beginning
from plait.windows.stretches import Stretch

REOPENED = 0.2


@dataclass
class Place:
    """A database, and how far it has read what is `given`. It reads all streams of all queries."""

    given: HandedOver
    path: Path
    rng: random.Random
    queries: list[SharedQuery] = field(default_factory=list)
    done: int = 0  # of the given batches
    batch: int = 0  # its own
    published: list[Sequence[BatchRows]] = field(default_factory=list)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)  # of the last batch
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)  # rows, by query and expression

    def __post_init__(self) -> None:
        self._fragment = self.given.fragment(self.given.loaded.queries)
        self.trunk = self._opened()

    @property
    def has_ended(self) -> bool:
        return self.done > self.given.batches

    def become(self, queries: list[SharedQuery]) -> None:
        self.trunk.become(queries, scans_of(self._fragment))
        self.trunk.let_go()
        self.queries = queries

    def go_on(self, batches: int) -> None:
        """Read so many of the given batches as one."""
        if self.rng.random() < REOPENED:
            self.trunk.close()
            self.trunk = self._opened()
        last = min(self.done + batches, self.given.batches + 1)
        parts = [self.given.rows(self._fragment, number) for number in range(self.done, last)]
        reached: dict[str, int] = {}
        for number in range(self.done, last):
            for key, us in self.given.reached(self._fragment, number).items():
                reached[key] = max(us, reached.get(key, us))
        rows = {key: pa.concat_tables([part[key] for part in parts]) for key in parts[0]}
        batch = Batch(self.batch, tables=self.given.tables)
        self.outcomes = self.trunk.apply(batch, rows, reached, self.published.append)
        self.done, self.batch = last, self.batch + 1
        plans = {query.name: query.plan for query in self.queries}
        for name, outcome in self.outcomes.items():
            texts = [failing_text(check) for check in checks(plans[name])]
            self.failed.update({(name, texts[place]): each.rows for place, each in outcome.failed.items()})

    def rows(self, query: str) -> list[Row]:
        return [row for results in self.published for row in published_rows(results, query)]

    def has_given_all(self, query: SharedQuery) -> bool:
        reached_us = self.outcomes[query.name].watermark_us if query.name in self.outcomes else None
        return reached_us is not None and reached_us >= query.gives.until_us + held_back_us(query.plan)

    def _opened(self) -> Trunk:
        streams = self.given.loaded.catalog.streams
        return Trunk(self.queries, streams, scans_of(self._fragment), self.path)


@dataclass
class Handing:
    """`starts_us` are the moments after which queries see rows; `moved` are those that were handed over."""

    given: HandedOver
    folder: Path
    rng: random.Random
    starts_us: dict[str, int | None] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.old = Place(self.given, self.folder / "old.duckdb", self.rng)
        self.new = Place(self.given, self.folder / "new.duckdb", self.rng)
        every = [SharedQuery(r.query, r.plan) for r in self.given.fragment(self.given.loaded.queries).results]
        self.rng.shuffle(every)
        third = max(1, len(every) // 3)
        first, later, there = every[:third], every[third : 2 * third], every[2 * third :]
        self._begin(self.old, first)
        is_there = self.rng.random() < 0.5  # whether the new place is one that computes others already
        if is_there:
            self._begin(self.new, there)
        last = self.given.batches
        self._go_on_to(self.rng.randint(0, last // 3), is_there)
        self.old.become([*self.old.queries, *(self._added(query) for query in later)])
        self._go_on_to(self.rng.randint(last // 3, last - 1), is_there)
        self._hand_over()
        while not (self.old.has_ended and self.new.has_ended):
            place = self.rng.choice([each for each in (self.old, self.new) if not each.has_ended])
            place.go_on(self.rng.randint(1, 3))
            left = [query for query in self.old.queries if not self._is_done(query)]
            if len(left) < len(self.old.queries):
                self.old.become(left)
        for each in (self.old, self.new):
            each.trunk.close()

    def rows(self, query: str) -> list[Row]:
        return [*self.old.rows(query), *self.new.rows(query)]

    @property
    def failed(self) -> Counter[tuple[str, str]]:
        """On how many rows expressions of queries failed."""
        return self.old.failed + self.new.failed

    def start(self, query: str) -> datetime | None:
        after_us = self.starts_us[query]
        return None if after_us is None else EPOCH + timedelta(microseconds=after_us)

    def _begin(self, place: Place, queries: Sequence[SharedQuery]) -> None:
        self.starts_us |= {query.name: None for query in queries}
        place.become([*queries])

    def _added(self, query: SharedQuery) -> SharedQuery:
        after_us = self._read_us(query, self.old)
        self.starts_us[query.name] = after_us
        return replace(query, after_us=after_us)

    def _read_us(self, query: SharedQuery, *places: Place) -> int | None:
        read = {stream.lower() for stream in sources_of(query.plan)[0]}
        seen = [us for place in places for key, us in place.trunk.seen_us.items() if key in read]
        return max(seen, default=None)

    def _go_on_to(self, batch: int, both: bool) -> None:
        for place in [self.old, *([self.new] if both else [])]:
            while place.done < batch and not (place is self.new and self.rng.random() < 0.2):
                place.go_on(1)

    def _hand_over(self) -> None:
        staying, leaving, coming = [], [], []
        for query in self.old.queries:
            if any(isinstance(n, Window) and isinstance(n.window, RowWindow) for n in walk_plan(query.plan)):
                staying.append(query)
                continue
            moment_us = self._read_us(query, self.old, self.new) or 0
            turn_us = Beginning(moment_us).complete_from_us(query.plan)
            gives = Stretch(until_us=turn_us)
            leaving.append(replace(query, until_us=moment_us, gives=gives))
            coming.append(replace(query, after_us=moment_us, gives=Stretch(from_us=turn_us)))
            self.moved.append(query.name)
        self.old.become([*staying, *leaving])
        self.new.become([*self.new.queries, *coming])

    def _is_done(self, query: SharedQuery) -> bool:
        return query.gives.has_end and self.old.has_given_all(query)


def run(given: HandedOver, folder: Path, rng: random.Random) -> Handing:
    handing = Handing(given, folder, rng)
    handing.run()
    return handing
