"""Hands a query's rows over in micro-batches, as they could arrive, and says what should come of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.workloads.event_times import with_event_times

from plait.batches import Batch, BatchRows
from plait.catalog import Catalog
from plait.engines.incremental import IncrementalQuery
from plait.engines.incremental.bands import held_back_us
from plait.evaluator import StoredData, evaluate
from plait.evaluator.horizon import Horizon
from plait.evaluator.relations import Definition
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import Node, RowTicking, StreamScan, Ticking, sources_of, walk_plan
from plait.runtime.beats import END_OF_TIME_US
from plait.workload import Query


@dataclass
class Results:
    """What was published, table by table."""

    schema: pa.Schema
    tables: list[pa.Table] = field(default_factory=list)

    def __call__(self, results: Sequence[BatchRows]) -> None:
        (result,) = results
        assert result.queries == ("q",)
        assert result.rows.schema == self.schema
        self.tables.append(result.rows)

    @property
    def rows(self) -> list[tuple[object, ...]]:
        return [row for table in self.tables for row in python_rows(table)]


def python_rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Timestamps as naive `datetime`s, those that Python cannot hold as the evaluator shows them."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            columns.append([_time(us) for us in column.cast(pa.int64()).to_pylist()])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _time(us: int | None) -> datetime | str | None:
    if us is None:
        return None
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=us)
    except OverflowError:
        assert us == 253_402_300_800_000_000  # the one moment beyond 9999
        return "10000-01-01 00:00:00"


@dataclass
class Feed:
    """A query and the rows of its streams in the order of their arrival."""

    plan: Node
    catalog: Catalog
    data: StoredData
    folder: Path
    inputs: Sequence[Node]

    @classmethod
    def of(cls, plan: Node, data: StoredData, folder: Path, inputs: Sequence[Node] | None = None) -> Feed:
        scans = [node for node in walk_plan(plan) if isinstance(node, StreamScan)]
        return cls(plan, data.catalog, data, folder, scans if inputs is None else inputs)

    @property
    def columns(self) -> list[str]:
        return [f"column {k}" for k in range(len(self.plan.types))]

    def results(self) -> Results:
        return Results(arrow_schema(self.columns, self.plan.types))

    def open(self) -> IncrementalQuery:
        streams = {node: self.catalog.stream(_stream(node)) for node in self.inputs}
        path = self.folder / "state.duckdb"
        return IncrementalQuery("q", self.plan, self.inputs, streams, self.columns, path)

    def tables(self) -> dict[str, Path]:
        """The stored tables, written as files."""
        paths = {}
        for name in sorted(sources_of(self.plan)[1]):
            source = self.data.table(name)
            items = ", ".join(f'c{k} AS "{column.name}"' for k, column in enumerate(source.relation.columns))
            path = self.folder / f"{name.lower()}.parquet"
            pq.write_table(self.data.database.fetch_arrow(f"SELECT {items} FROM {source.name}"), path)
            paths[name.lower()] = path
        return paths

    def rows(self) -> dict[Node, pa.Table]:
        """All rows of every input."""
        return {
            node: self.data.database.fetch_arrow(
                Definition(node, self.data, Horizon()).statement(node, "SELECT *")
            )
            for node in self.inputs
        }

    def batches(self, rng: random.Random, most: int = 6) -> list[dict[Node, pa.Table]]:
        """The rows out of order, but not late, cut anywhere into batches."""
        rows = self.rows()
        arrivals: list[tuple[int, Node, int]] = []
        for node, table in rows.items():
            delay_us = self.catalog.stream(_stream(node)).delay_us
            for position, us in enumerate(table["t"].to_pylist()):
                arrivals.append((us + rng.randint(0, delay_us), node, position))
        arrivals.sort(key=lambda arrival: arrival[0])
        moments = sorted({arrival[0] for arrival in arrivals})
        cuts = sorted(rng.sample(moments, min(len(moments), rng.randint(0, most - 1))))
        batches = []
        for first, last in zip([0, *cuts], [*cuts, END_OF_TIME_US], strict=True):
            positions: dict[Node, list[int]] = {}
            for us, node, position in arrivals:
                if first <= us < last:
                    positions.setdefault(node, []).append(position)
            batches.append({node: rows[node].take(taken) for node, taken in positions.items()})
        return batches

    def drain(self) -> dict[str, int]:
        return {stream.lower(): END_OF_TIME_US for stream in sources_of(self.plan)[0]}

    def all_rows(self) -> Sequence[tuple[object, ...]]:
        """What a drained run gives."""
        return self._evaluated(self.plan)

    def settled_rows(self) -> Sequence[tuple[object, ...]]:
        """What a run gives that ends with its rows."""
        streams, _ = sources_of(self.plan)
        if any(self.data.stream(stream).last_us is None for stream in streams):
            return ()
        if isinstance(self.plan.timing, Ticking | RowTicking):
            return self._evaluated(self.plan, closed_only=True)
        until_us = self.data.watermark_us(streams) - held_back_us(self.plan)
        until = datetime(1970, 1, 1) + timedelta(microseconds=until_us)
        timed = self._evaluated(with_event_times(self.plan))
        # The last column is the event time + 1 µs.
        return [row[:-1] for row in timed if isinstance(row[-1], datetime) and row[-1] <= until]

    def _evaluated(self, plan: Node, *, closed_only: bool = False) -> Sequence[tuple[object, ...]]:
        columns = tuple(f"column {k}" for k in range(len(plan.types)))
        return evaluate(Query("q", plan, columns), self.data, closed_only=closed_only).rows


@dataclass(frozen=True)
class Given:
    """The rows that were given by the time the rows of the streams had come, and after a drain."""

    settled: list[tuple[object, ...]]
    all: list[tuple[object, ...]]


def run(feed: Feed, batches: Sequence[Mapping[Node, pa.Table]]) -> Given:
    """All batches, one after the other, and at the end a beat that closes everything."""
    results = feed.results()
    tables = feed.tables()
    query = feed.open()
    try:
        for number, rows in enumerate(batches):
            outcome = query.apply(Batch(number, tables=tables), rows, {}, results)
            assert not outcome.late_rows
        settled = results.rows
        query.apply(Batch(len(batches), tables=tables), {}, feed.drain(), results)
    finally:
        query.close()
    return Given(settled, results.rows)


def _stream(node: Node) -> str:
    (stream,) = sources_of(node)[0]
    return stream
