"""What several plans over one set of streams give when their watermark moves: each its band of event times.

The plans share what they have in common: rows that are handed over are stored once, and so is what a window
above reads. What several plans compute, whole or in part, is computed once a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import END_US, Band, held_back_us
from plait.engines.incremental.layout import Held, Layout, Numbered, Stage, Store
from plait.engines.incremental.numbering import delete_old_numbers, number_rows
from plait.engines.incremental.slices import slices
from plait.engines.incremental.state import StateTable
from plait.engines.incremental.statements import StageStatement, times_of
from plait.expressions.duckdb import type_to_duckdb
from plait.plan.nodes import Node
from plait.windows.beginnings import Beginning


class Increments:
    """Plans whose streams are handed over as the rows of `inputs`, sub-plans of them. `prefix` begins the
    names of the tables. A `beginning` says that rows are seen after a moment only."""

    def __init__(
        self, plans: Sequence[Node], inputs: Sequence[Node], prefix: str, beginning: Beginning | None = None
    ) -> None:
        self._layout = Layout(plans, inputs, prefix)
        self._beginning = beginning

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(self._layout.given)

    def tables(self) -> Iterator[StateTable]:
        """The tables of the stores."""
        for store in self._layout.stores:
            columns = {f"c{k}": type_to_duckdb(type_) for k, type_ in enumerate(store.node.types)}
            numbers = {"number": "BIGINT"} if isinstance(store, Numbered) else {}
            yield StateTable(store.table, {**columns, "t": "BIGINT", **numbers})

    def take(self, database: Database, node: Node, rows: str) -> int:
        """Store rows of an input that are not late: a relation with `c0`, `c1`, … and `t`; how many."""
        items = [f"c{k}::{type_to_duckdb(type_)}" for k, type_ in enumerate(node.types)]
        return database.change(
            f"INSERT INTO {self._layout.given[node].table} SELECT {', '.join([*items, 't'])} FROM {rows}"
        )

    def hold(self, database: Database, node: Node, rows: str) -> int:
        """Have rows of an input for this batch alone; how many."""
        items = [f"c{k}::{type_to_duckdb(type_)} AS c{k}" for k, type_ in enumerate(node.types)]
        table = self._layout.given[node].table
        return database.change(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join([*items, 't'])} FROM {rows}"
        )

    def results(
        self, database: Database, tables: Mapping[str, str], before_us: int, now_us: int
    ) -> Iterator[tuple[Node, pa.Table, pa.ChunkedArray]]:
        """What each plan gives of the time that has become final, in pieces: rows, and their event times."""
        layout = self._layout
        layout.held.clear()  # of a batch that failed
        final = {stage: self._final(stage, before_us, now_us) for stage in layout.stages}
        now = {stage: band for stage, band in final.items() if not band.is_empty}
        common = self._common_bands(now)
        for stage, band in now.items():
            for node in layout.shared[stage]:
                if node in common and node not in layout.held:
                    self._hold(database, tables, node, common[node])
            for part in slices(database, layout, stage, band):
                statement = StageStatement(layout, stage, part, tables)
                match stage.target:
                    case None:
                        yield stage.plan, *self._fetched(database, stage, statement)
                    case Numbered() as store:
                        number_rows(database, store, str(statement))
                    case store:
                        database.execute(f"INSERT INTO {store.table} {statement}")
        for held in layout.held.values():
            database.execute(f"DROP TABLE {held.table}")
        layout.held.clear()

    def _common_bands(self, now: Mapping[Stage, Band]) -> dict[Node, Band]:
        """The bands of nodes that several stages compute, of all of which the same is needed."""
        needed: dict[Node, list[Band]] = {}
        for stage, band in now.items():
            if self._layout.shared[stage]:
                bands = self._layout.bands(stage, band)
                for node in self._layout.shared[stage]:
                    needed.setdefault(node, []).append(bands[node])
        return {node: bands[0] for node, bands in needed.items() if len(bands) > 1 and len({*bands}) == 1}

    def _hold(self, database: Database, tables: Mapping[str, str], node: Node, band: Band) -> None:
        """Compute what several stages need, for this batch."""
        stage = self._layout.holding(node)
        assert isinstance(stage.target, Held)
        columns = [f"c{k} {type_to_duckdb(type_)}" for k, type_ in enumerate(node.types)]
        columns += [f"{time} BIGINT" for time in times_of(node.timing)]
        database.execute(f"CREATE OR REPLACE TEMP TABLE {stage.target.table} ({', '.join(columns)})")
        for part in slices(database, self._layout, stage, band):
            statement = StageStatement(self._layout, stage, part, tables)
            database.execute(f"INSERT INTO {stage.target.table} {statement}")
        self._layout.held[node] = stage.target

    def forget(self, database: Database, watermark_us: int) -> None:
        """Delete what no later band needs.

        Only before a batch has stored anything: DuckDB 2.0 damages a file if rows are deleted in the
        transaction that inserted them (docs/decisions/0014).
        """
        needed_from_us: dict[Store, int] = {}
        for stage in self._layout.stages:
            later = Band(watermark_us - held_back_us(stage.plan), END_US + 1)
            for store, band in self._layout.store_bands(stage, self._layout.bands(stage, later)).items():
                needed_from_us[store] = min(band.from_us, needed_from_us.get(store, band.from_us))
        for store, from_us in needed_from_us.items():
            if isinstance(store, Numbered):
                delete_old_numbers(database, store, from_us)
            else:
                database.execute(f"DELETE FROM {store.table} WHERE t < {from_us}")

    def _final(self, stage: Stage, before_us: int, now_us: int) -> Band:
        """What of a stage has become final. Rows are numbered from where on all of them are there."""
        held_back = held_back_us(stage.plan)
        band = Band(before_us - held_back, now_us - held_back)
        if self._beginning is not None and isinstance(stage.target, Numbered):
            return Band(max(band.from_us, self._beginning.complete_from_us(stage.plan)), band.until_us)
        return band

    @staticmethod
    def _fetched(
        database: Database, stage: Stage, statement: StageStatement
    ) -> tuple[pa.Table, pa.ChunkedArray]:
        items = [f"c{k}::{type_to_duckdb(type_)} AS c{k}" for k, type_ in enumerate(stage.plan.types)]
        found = database.fetch_arrow(f"SELECT {', '.join([*items, 't'])} FROM ({statement})")
        return found.drop_columns("t"), found["t"]
