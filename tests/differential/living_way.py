"""Runs a workload on Spark whose queries come and go while its files arrive, as a user would change it.

A round is a file of each stream. After each, when all of it is read, queries are dropped and added, in one
change each, and merged; now and then the run is stopped and started again. In the end all streams are
drained.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession
from tests.differential.arrivals import Row
from tests.differential.changing_way import Added
from tests.differential.queries import RandomQuery
from tests.differential.result_rows import outlet_rows
from tests.differential.workloads import RandomWorkload
from tests.patience import wait_until

import plait
from plait.api import Running
from plait.benchmarks.dropped import Standing, standings
from plait.runtime.outlets import recorded

RESTARTED = 0.25
MERGED = 0.5


@dataclass
class Living:
    workload: RandomWorkload
    folder: Path
    spark: SparkSession
    rng: random.Random
    engines: str = "any"
    live: list[Added] = field(default_factory=list)
    dropped: dict[Added, Standing] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    _sql: Path = field(default_factory=Path)

    def run(self) -> None:
        queries = self.workload.queries
        first = self.rng.sample(queries, max(1, len(queries) // 2))
        self.live = [Added(query.name, query.name, None) for query in first]
        self._sql = self.folder / "workload.sql"
        staged = self.folder / "staged"
        replace(self.workload, queries=tuple(first)).write(staged)
        self._sql.write_text((staged / "workload.sql").read_text())
        for table in self.workload.tables:
            self._arrive(staged, table.relation.name)
        for stream in self.workload.streams:
            (self.folder / "data" / stream.relation.name).mkdir(parents=True)
        rounds = max(len(stream.cuts) for stream in self.workload.streams)
        done = 0
        while done < rounds:
            with self._running() as running:
                self.merged |= {query.name for query in running.merged_at_start.queries}
                while done < rounds:
                    self._next_round(staged, done, running)
                    done += 1
                    self._change(running)
                    if self.rng.random() < RESTARTED:
                        break
        with self._session() as session:
            session.run(
                engines=self.engines,
                available_now=True,
                drain=True,
                state=self.folder / "state",
                results=self.folder / "results",
            ).wait()

    def rows(self, lived: Added) -> list[Row]:
        return outlet_rows(recorded(self.folder / "state")[lived.name.lower()])

    def _change(self, running: Running) -> None:
        leaving = [each for each in self.live if self.rng.random() < 0.3]
        if leaving:
            standing = standings(running)
            running.drop(*(each.name for each in leaving), sure=True)
            self.live = [each for each in self.live if each not in leaving]
            self.dropped |= {each: standing[each.name.lower()] for each in leaving}
        there = {each.query for each in self.live}
        coming = [q for q in self.workload.queries if q.name not in there and self.rng.random() < 0.4]
        if coming:
            self._add(running, coming)
        if self.rng.random() < MERGED:
            self.merged |= {query.name for query in running.merge().queries}

    def _add(self, running: Running, coming: Sequence[RandomQuery]) -> None:
        changed = running.add_text("\n".join(query.sql for query in coming))
        by_name = {name.split("#")[0].lower(): (name, us) for name, us in changed.added.items()}
        self.live += [Added(by_name[q.name][0], q.name, by_name[q.name][1]) for q in coming]

    def _next_round(self, staged: Path, number: int, running: Running) -> None:
        expected = {}
        for stream in self.workload.streams:
            name = stream.relation.name
            if number < len(stream.cuts):
                self._arrive(staged, name, f"{number:03}.")
            expected[name] = sum(map(len, stream.cuts[: number + 1]))
        self._await(running, expected)

    def _arrive(self, staged: Path, relation: str, prefix: str = "") -> None:
        target = self.folder / "data" / relation
        target.mkdir(parents=True, exist_ok=True)
        for file in (staged / "data" / relation).glob(f"{prefix}*"):
            file.rename(target / file.name)

    def _await(self, running: Running, expected: Mapping[str, int]) -> None:
        """Until every stream that is read has brought its rows."""

        def is_read() -> bool:
            if running.error is not None:
                raise running.error
            read = {stream.name: stream.rows + stream.bad_records for stream in running.progress().streams}
            return all(rows >= expected[name] for name, rows in read.items())

        wait_until(is_read)

    def _session(self) -> plait.Session:
        return plait.open(self._sql, spark=self.spark)

    @contextmanager
    def _running(self) -> Iterator[Running]:
        with (
            self._session() as session,
            session.run(
                engines=self.engines,
                trigger_seconds=0.1,
                state=self.folder / "state",
                results=self.folder / "results",
            ) as running,
        ):
            yield running
