"""Runs queries of a workload in the database, together or one by itself, without Spark: hands over the rows
of each micro-batch that any of them wants.

What Spark does for that way (read and filter streams) is done here by the evaluator, so that hundreds of
queries can be checked in the time that a JVM takes to start. Batches can be disturbed: interrupted before
they are committed, with their results published or not; and given again after they were committed. The state
is opened anew for each.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.differential.arrivals import Row
from tests.differential.result_rows import published_rows
from tests.differential.workloads import RandomWorkload, arrow_table
from tests.workloads.event_times import timed_rows
from tests.workloads.trunks import scans_of, trunk_of

from plait.batches import Batch, BatchRows, Outcome
from plait.deployment import lowering
from plait.deployment.fragments import Fragment, Result
from plait.engines.duckdb import Database
from plait.evaluator import StoredData
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import Node
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.space import stream_of
from plait.workload import Workload

EPOCH = datetime(1970, 1, 1)
DISTURBED = 0.3  # chance that a batch is cut off, and that it is given again


@dataclass
class Ran:
    """What a run gave: the results of each batch by its id, and what was said of each query. `handed_over` is
    how many rows of the `streams` it was given."""

    streams: tuple[str, ...]
    handed_over: int = 0
    published: dict[int, Sequence[BatchRows]] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Outcome]] = field(default_factory=dict)

    def rows(self, query: str) -> list[Row]:
        return [row for results in self.published.values() for row in published_rows(results, query)]

    def late_rows(self, query: str) -> Counter[str]:
        late: Counter[str] = Counter()
        for outcomes in self.outcomes.values():
            late.update(outcomes[query].late_rows)
        return late

    def failed(self, query: str) -> Counter[int]:
        """On how many rows the checks of a query failed, by their places."""
        failed: Counter[int] = Counter()
        for outcomes in self.outcomes.values():
            failed.update({place: each.rows for place, each in outcomes[query].failed.items()})
        return failed


class PowerCutError(Exception):
    """The process ends here, as far as the batch can tell."""


class HandedOver:
    """A workload's rows as they are handed over, batch by batch; kept for all runs of its queries."""

    def __init__(self, workload: RandomWorkload, folder: Path) -> None:
        self.workload = workload
        self.loaded: Workload = workload.load()
        self._database = Database(threads=1)
        self._rows: dict[tuple[Node, int], pa.Table] = {}
        self._cuts = {stream.relation.name.lower(): stream.cuts for stream in workload.streams}
        self.tables: dict[str, Path] = {}
        for table in workload.tables:
            path = folder / f"{table.relation.name}.parquet"
            pq.write_table(arrow_table(table.relation, table.rows), path)
            self.tables[table.relation.name.lower()] = path

    @property
    def batches(self) -> int:
        return max(map(len, self._cuts.values()))

    def fragment(self, names: Iterable[str]) -> Fragment:
        """The queries of these names, in the database."""
        queries = {name: self.loaded.queries[name] for name in names}
        results = [Result(name, q.columns, stream_of(canonicalise(q.plan))) for name, q in queries.items()]
        return lowering.shared_fragment("shared-0", results, self.loaded.catalog)

    def prepare(self) -> None:
        """Compute the rows that each query by itself will be given."""
        for query in self.workload.queries:
            fragment = self.fragment([query.name])
            for batch in range(self.batches + 1):
                self.rows(fragment, batch)
                self.reached(fragment, batch)

    def rows(self, fragment: Fragment, batch: int) -> dict[str, pa.Table]:
        """What is handed over of each stream, by its key."""
        return {each.stream.lower(): self._rows_of(each.plan, each.stream, batch) for each in fragment.inputs}

    def reached(self, fragment: Fragment, batch: int) -> dict[str, int]:
        """The last event time of each stream in a batch, also of rows that no query wants."""
        scans = scans_of(fragment)
        if batch == self.batches:
            return dict.fromkeys(scans, END_OF_TIME_US)
        times = {key: self._rows_of(scan, key, batch)["t"] for key, scan in scans.items()}
        return {key: pc.max(each).as_py() for key, each in times.items() if len(each)}

    def _rows_of(self, plan: Node, stream: str, batch: int) -> pa.Table:
        if (plan, batch) not in self._rows:
            cuts = self._cuts[stream.lower()]
            given = {stream: cuts[batch] if batch < len(cuts) else ()}
            with StoredData.from_rows(self.loaded.catalog, given, database=self._database) as data:
                self._rows[plan, batch] = _handed(plan, timed_rows(plan, data))
        return self._rows[plan, batch]

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> HandedOver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _handed(plan: Node, timed: tuple[Row, ...]) -> pa.Table:
    schema = arrow_schema([f"c{k}" for k in range(len(plan.types))], plan.types)
    columns = [pa.array([row[k] for row in timed], type_) for k, type_ in enumerate(schema.types)]
    times = [(_moment(row[-1]) - EPOCH) // timedelta(microseconds=1) - 1 for row in timed]
    return pa.Table.from_arrays(
        [*columns, pa.array(times, pa.int64())], schema=schema.append(pa.field("t", pa.int64()))
    )


def _moment(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value


def run(
    given: HandedOver, folder: Path, query: str | None = None, *, disturb: random.Random | None = None
) -> Ran:
    """All queries of the workload together, or one by itself, to the end of the streams."""
    names = [each.name for each in given.workload.queries] if query is None else [query]
    fragment = given.fragment(names)
    ran = Ran(tuple(each.stream for each in fragment.inputs))
    with tempfile.TemporaryDirectory(dir=folder) as own:
        for number in range(given.batches + 1):
            if disturb is not None and disturb.random() < DISTURBED:
                kept = ran.published if disturb.random() < 0.5 else {}
                with suppress(PowerCutError):
                    _apply(fragment, given, Path(own), number, kept, _cut_power)
            ran.handed_over += sum(table.num_rows for table in given.rows(fragment, number).values())
            ran.outcomes[number] = _apply(fragment, given, Path(own), number, ran.published)
            if disturb is not None and disturb.random() < DISTURBED:
                assert _apply(fragment, given, Path(own), number, {}) == ran.outcomes[number]
    return ran


def _apply(
    fragment: Fragment,
    given: HandedOver,
    folder: Path,
    number: int,
    published: dict[int, Sequence[BatchRows]],
    then: Callable[[], None] = lambda: None,
) -> Mapping[str, Outcome]:
    def publish(results: Sequence[BatchRows]) -> None:
        published[number] = results
        then()

    batch = Batch(number, tables=given.tables)
    with closing(trunk_of(fragment, given.loaded.catalog, folder / "trunk.duckdb")) as trunk:
        return trunk.apply(batch, given.rows(fragment, number), given.reached(fragment, number), publish)


def _cut_power() -> None:
    raise PowerCutError
