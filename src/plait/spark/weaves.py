"""The shared operator of a family of queries: which plan is run, and how its rows find the queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from plait.catalog import Catalog
from plait.expressions.nodes import conjunction
from plait.plan.nodes import Filter, Join, Node, RangeWindow, StreamScan, TickWindow, Window
from plait.sharing.joins import WovenJoin, shifted
from plait.sharing.patterns import Pattern, Selection, relaxed
from plait.sharing.selects import WovenSelect
from plait.spark.routes import Routes
from plait.spark.subscriptions import Statement, Subscription, Subscriptions


class Weave(Protocol):
    """`scans` are the streams that are read, with the pattern of each and each query's selection of it.

    `plan` is what Spark's operators compute first; `streamed` is what is done with its rows before they are
    handed over, a batch at a time, and `shared_rows` makes of these what `subscriptions` go by. A row of the
    plan is in time until the watermark that `in_time_until` says, if it is not the plan's operators that
    would find it late. `windows` are the queries', where rows may be in none.
    """

    @property
    def scans(self) -> Sequence[StreamScan]: ...
    @property
    def patterns(self) -> Sequence[Pattern]: ...
    @property
    def selections(self) -> Sequence[tuple[Selection, ...]]: ...
    @property
    def plan(self) -> Node: ...
    @property
    def subscriptions(self) -> Subscriptions: ...
    @property
    def in_time_until(self) -> str | None: ...
    @property
    def windows(self) -> Sequence[TickWindow | None]: ...
    def streamed(self, rows: DataFrame, session: SparkSession) -> DataFrame: ...
    def shared_rows(self, rows: DataFrame) -> DataFrame: ...


class SelectWeave:
    """Rows that any of the queries wants. The scan has the stream's event time as a column."""

    in_time_until = None  # nothing is kept, so nothing is late

    def __init__(self, members: Sequence[WovenSelect], catalog: Catalog) -> None:
        scan, pattern = members[0].key.scan, members[0].key.pattern
        self.scans, self.patterns = [scan], [pattern]
        self.selections = [(member.selection,) for member in members]
        self.windows = [None] * len(members)
        self.plan = wanted_rows(scan, [member.selection for member in members])
        self._names = [f"c{k}" for k in range(len(scan.columns))]
        self._time = f"unix_micros(c{_place(scan, catalog.stream(scan.stream).event_time)})"
        self._routes = Routes(self.patterns, self.selections)
        self.subscriptions = Subscriptions(
            [
                Subscription(m.query, Statement(m.shaped.shape, tuple(self._names)), m.shaped.constants)
                for m in members
            ],
            self._routes,
        )

    def streamed(self, rows: DataFrame, session: SparkSession) -> DataFrame:
        del session
        return rows.select(*self._names)

    def shared_rows(self, rows: DataFrame) -> DataFrame:
        at_us = f"{self._time} AS at_us"
        return rows.selectExpr(*self._names, at_us, *self._routes.items(self._names))


class JoinWeave:
    """Combinations of rows within the greatest ranges. The scans have the streams' event times as columns."""

    in_time_until = None  # the join's operators tell

    def __init__(self, members: Sequence[WovenJoin], catalog: Catalog) -> None:
        key = members[0].key
        self.scans, self.patterns = key.scans, key.patterns
        self.selections = [member.selections for member in members]
        self.windows = [None] * len(members)
        inputs = []
        for k, scan in enumerate(key.scans):
            range_us = max(member.ranges_us[k] for member in members)
            rows = wanted_rows(scan, [member.selections[k] for member in members])
            inputs.append(Window(rows, RangeWindow(range_us)))
        self.plan = Join(tuple(inputs), key.predicate)
        self._names = [f"c{k}" for k in range(len(self.plan.types))]
        self._times = [
            f"unix_micros(c{start + _place(scan, catalog.stream(scan.stream).event_time)})"
            for start, scan in zip(key.starts, key.scans, strict=True)
        ]
        self._routes = Routes([*map(shifted, key.patterns, key.starts)], self.selections)
        self.subscriptions = Subscriptions(
            [
                Subscription(
                    m.query, Statement(m.shaped.shape, tuple(self._names)), m.shaped.constants, m.ranges_us
                )
                for m in members
            ],
            self._routes,
        )

    def streamed(self, rows: DataFrame, session: SparkSession) -> DataFrame:
        del session
        return rows.select(*self._names)

    def shared_rows(self, rows: DataFrame) -> DataFrame:
        times = [f"{time} AS t{k}" for k, time in enumerate(self._times)]
        times.append(f"greatest({', '.join(self._times)}) AS at_us")
        return rows.selectExpr(*self._names, *times, *self._routes.items(self._names))


def wanted_rows(scan: StreamScan, selections: Sequence[Selection]) -> Node:
    """The rows of a stream that any of the selections wants."""
    terms = relaxed(selections)
    return Filter(scan, conjunction(list(terms))) if terms else scan


def _place(scan: StreamScan, column: str) -> int:
    return next(k for k, field in enumerate(scan.columns) if field.name.lower() == column.lower())
