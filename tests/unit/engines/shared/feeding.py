"""Hands the rows of a query over in micro-batches, as they could arrive, and says what should come of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.workloads.event_times import with_event_times
from tests.workloads.trunks import compute_by_plans, scans_of, trunk_of

from plait.batches import Batch, BatchRows
from plait.deployment.fragments import Fragment, Result
from plait.deployment.lowering import shared_fragment
from plait.engines.incremental.bands import held_back_us
from plait.engines.shared.trunk import Trunk
from plait.evaluator import StoredData, evaluate
from plait.evaluator.horizon import Horizon
from plait.evaluator.relations import Definition
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import Node, RowTicking, StreamScan, Ticking, sources_of
from plait.runtime.beats import END_OF_TIME_US
from plait.sharing.chains import comes_at_once
from plait.sharing.joins import woven_join
from plait.workload import Query


@dataclass
class Results:
    """What was published of a query `q`, a table for each batch, with the types that sinks give it."""

    plan: Node
    tables: list[pa.Table] = field(default_factory=list)

    def __call__(self, results: Sequence[BatchRows]) -> None:
        schema = arrow_schema([f"c{k}" for k in range(len(self.plan.types))], self.plan.types)
        assert all(result.queries == ("q",) for result in results)
        tables = [result.rows.cast(schema) for result in results]
        self.tables.append(pa.concat_tables([schema.empty_table(), *tables]))

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
    """A query and the rows of its streams in the order of their arrival. `by_plans`: not as a family."""

    plan: Node
    data: StoredData
    folder: Path
    by_plans: bool

    @cached_property
    def fragment(self) -> Fragment:
        result = Result("q", columns_of(self.plan), self.plan)
        return shared_fragment("shared-0", [result], self.data.catalog)

    @property
    def scans(self) -> dict[str, StreamScan]:
        return scans_of(self.fragment)

    def open(self) -> Trunk:
        with pytest.MonkeyPatch.context() as patch:
            if self.by_plans:
                compute_by_plans(patch)
            return trunk_of(self.fragment, self.data.catalog, self.folder / "state.duckdb")

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

    def rows(self) -> dict[str, pa.Table]:
        """All rows of every stream."""
        return {
            key: self.data.database.fetch_arrow(
                Definition(scan, self.data, Horizon()).statement(scan, "SELECT *")
            )
            for key, scan in self.scans.items()
        }

    def batches(self, rng: random.Random, most: int = 6) -> list[dict[str, pa.Table]]:
        """The rows out of order, but not late, cut anywhere into batches; and a last one without rows."""
        rows = self.rows()
        arrivals: list[tuple[int, str, int]] = []
        for key, table in rows.items():
            delay_us = self.data.catalog.stream(key).delay_us
            for position, us in enumerate(table["t"].to_pylist()):
                arrivals.append((us + rng.randint(0, delay_us), key, position))
        arrivals.sort(key=lambda arrival: arrival[0])
        moments = sorted({arrival[0] for arrival in arrivals})
        cuts = sorted(rng.sample(moments, min(len(moments), rng.randint(0, most - 1))))
        batches = []
        for first, last in zip([0, *cuts], [*cuts, END_OF_TIME_US], strict=True):
            positions: dict[str, list[int]] = {key: [] for key in rows}
            for us, key, position in arrivals:
                if first <= us < last:
                    positions[key].append(position)
            batches.append(
                {key: rows[key].take(pa.array(taken, pa.int64())) for key, taken in positions.items()}
            )
        return [*batches, {key: table.slice(0, 0) for key, table in rows.items()}]

    def all_rows(self) -> Sequence[tuple[object, ...]]:
        """What a drained run gives."""
        return self._evaluated(self.plan)

    def settled_rows(self) -> Sequence[tuple[object, ...]]:
        """What a run gives that ends with its rows."""
        streams, _ = sources_of(self.plan)
        if comes_at_once(self.plan) or (not self.by_plans and woven_join("q", self.plan, self.scans)):
            return self.all_rows()
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
        return evaluate(Query("q", plan, columns_of(plan)), self.data, closed_only=closed_only).rows


def columns_of(plan: Node) -> tuple[str, ...]:
    return tuple(f"column {k}" for k in range(len(plan.types)))


@dataclass(frozen=True)
class Given:
    """The rows that were given by the time the rows of the streams had come, and after a drain."""

    settled: list[tuple[object, ...]]
    all: list[tuple[object, ...]]


def run(feed: Feed, batches: Sequence[Mapping[str, pa.Table]]) -> Given:
    """All batches, one after the other; with the last a beat that closes everything."""
    results = Results(feed.plan)
    tables = feed.tables()
    *before, last = batches
    with closing(feed.open()) as trunk:
        for number, rows in enumerate(before):
            assert not trunk.apply(Batch(number, tables=tables), rows, {}, results)["q"].late_rows
        settled = results.rows
        trunk.apply(Batch(len(before), tables=tables), last, dict.fromkeys(last, END_OF_TIME_US), results)
    return Given(settled, results.rows)
