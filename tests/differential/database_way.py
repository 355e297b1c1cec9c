"""Runs queries by the database way without Spark: hands over the rows of each micro-batch, as Spark would.

What Spark does for that way (read, filter, project the inputs) is done here by the evaluator, so that
hundreds of queries can be checked in the time that a JVM takes to start. Batches can be disturbed:
interrupted after their results are published and before they are committed, and given again after they were
committed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.differential.arrivals import Row
from tests.differential.result_rows import rows_of
from tests.differential.workloads import RandomWorkload, arrow_table
from tests.workloads.event_times import timed_rows

from plait.batches import Batch, BatchRows, Outcome
from plait.deployment import lowering
from plait.deployment.fragments import Fragment, Result, Way
from plait.engines.duckdb import Database
from plait.engines.incremental import IncrementalQuery
from plait.evaluator import StoredData
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import Node
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.workload import Query, Workload

EPOCH = datetime(1970, 1, 1)
DISTURBED = 0.3  # chance that a batch is cut off, and that it is given again


@dataclass
class Ran:
    """What a run gave: the rows of each batch by its id, and the late rows by stream."""

    published: dict[int, pa.Table] = field(default_factory=dict)
    late_rows: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> list[Row]:
        return [row for table in self.published.values() for row in rows_of(table)]


class PowerCutError(Exception):
    """The process ends here, as far as the batch can tell."""


class HandedOver:
    """A workload's rows as the database way gets them, batch by batch; kept for all its queries."""

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

    def prepare(self) -> None:
        """Compute the rows that the queries will be given."""
        for query in self.workload.queries:
            for each in lowered(self.loaded.queries[query.name]).inputs:
                for batch in range(self.batches + 1):
                    self.rows(each.stream, each.plan, batch)

    def rows(self, stream: str, plan: Node, batch: int) -> pa.Table:
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


def lowered(query: Query) -> Fragment:
    return lowering.fragment(Result(query.name, query.columns, canonicalise(query.plan)), way=Way.DATABASE)


def run(query: Query, given: HandedOver, folder: Path, *, disturb: random.Random | None = None) -> Ran:
    """All batches of a query and a last one that says that the streams have ended."""
    fragment = lowered(query)
    path = folder / f"{query.name}.duckdb"
    path.unlink(missing_ok=True)
    ran = Ran()
    state = _open(fragment, given, path)
    for number in range(given.batches + 1):
        if disturb is not None and disturb.random() < DISTURBED:
            _cut_power(state, fragment, given, number, ran, published=disturb.random() < 0.5)
            state = _open(fragment, given, path)
        outcome = _apply(state, fragment, given, number, ran.published)
        ran.late_rows.update(outcome.late_rows)
        if disturb is not None and disturb.random() < DISTURBED:
            state.close()
            state = _open(fragment, given, path)
            _apply(state, fragment, given, number, {})
    state.close()
    return ran


def _open(fragment: Fragment, given: HandedOver, path: Path) -> IncrementalQuery:
    catalog = given.loaded.catalog
    inputs = {each.plan: catalog.stream(each.stream) for each in fragment.inputs}
    query = fragment.only
    return IncrementalQuery(query.query, query.plan, [*inputs], inputs, query.columns, path)


def _apply(
    state: IncrementalQuery,
    fragment: Fragment,
    given: HandedOver,
    number: int,
    published: dict[int, pa.Table],
    then: Callable[[], None] = lambda: None,
) -> Outcome:
    def publish(results: Sequence[BatchRows]) -> None:
        (result,) = results
        published[number] = result.rows
        then()

    ended = number == given.batches
    rows = {each.plan: given.rows(each.stream, each.plan, number) for each in fragment.inputs}
    beats = {each.stream.lower(): END_OF_TIME_US for each in fragment.inputs} if ended else {}
    return state.apply(Batch(number, tables=given.tables), rows, beats, publish)


def _cut_power(
    state: IncrementalQuery, fragment: Fragment, given: HandedOver, number: int, ran: Ran, *, published: bool
) -> None:
    """End before the batch is committed; its results may have been published, or not."""

    def end() -> None:
        raise PowerCutError

    with suppress(PowerCutError):
        _apply(state, fragment, given, number, ran.published if published else {}, end)
    state.close()
