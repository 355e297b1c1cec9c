"""What several plans over one set of streams give when their watermark moves: each its band of event times.

The plans share what they have in common: rows that are handed over are stored once, and so is what a window
above reads. Plans that are equal are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import END_US, Band, held_back_us
from plait.engines.incremental.layout import Layout, Numbered, Stage, Store
from plait.engines.incremental.numbering import delete_old_numbers, number_rows
from plait.engines.incremental.slices import slices
from plait.engines.incremental.statements import StageStatement
from plait.expressions.duckdb import type_to_duckdb
from plait.plan.nodes import Node


class Increments:
    """Plans whose streams are handed over as the rows of `inputs`, sub-plans of them. `prefix` begins the
    names of the tables."""

    def __init__(self, plans: Sequence[Node], inputs: Sequence[Node], prefix: str) -> None:
        self._layout = Layout(plans, inputs, prefix)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(self._layout.given)

    def tables(self) -> Iterator[str]:
        """The statements that make the tables."""
        for store in self._layout.stores:
            columns = [f"c{k} {type_to_duckdb(type_)}" for k, type_ in enumerate(store.node.types)]
            numbers = ["number BIGINT"] if isinstance(store, Numbered) else []
            yield f"CREATE TABLE {store.table} ({', '.join([*columns, 't BIGINT', *numbers])})"

    def take(self, database: Database, node: Node, rows: str) -> None:
        """Store rows of an input that are not late: a relation with `c0`, `c1`, … and `t`."""
        items = [f"c{k}::{type_to_duckdb(type_)}" for k, type_ in enumerate(node.types)]
        database.execute(
            f"INSERT INTO {self._layout.given[node].table} SELECT {', '.join([*items, 't'])} FROM {rows}"
        )

    def hold(self, database: Database, node: Node, rows: str) -> None:
        """Have rows of an input for this batch alone."""
        items = [f"c{k}::{type_to_duckdb(type_)} AS c{k}" for k, type_ in enumerate(node.types)]
        table = self._layout.given[node].table
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join([*items, 't'])} FROM {rows}"
        )

    def results(
        self, database: Database, tables: Mapping[str, Path], before_us: int, now_us: int
    ) -> Iterator[tuple[Node, pa.Table]]:
        """What each plan gives of the time that has become final, in pieces."""
        for stage in self._layout.stages:
            held_back = held_back_us(stage.plan)
            band = Band(before_us - held_back, now_us - held_back)
            for part in slices(database, self._layout, stage, band):
                statement = StageStatement(self._layout, stage, part, tables)
                match stage.target:
                    case None:
                        yield stage.plan, self._fetched(database, stage, statement)
                    case Numbered() as store:
                        number_rows(database, store, str(statement))
                    case store:
                        database.execute(f"INSERT INTO {store.table} {statement}")

    def forget(self, database: Database, watermark_us: int) -> None:
        """Delete what no later band needs.

        Only before a batch has stored anything: DuckDB 2.0 damages a file if rows are deleted in the
        transaction that inserted them (docs/decisions/0014).
        """
        needed_from_us: dict[Store, int] = {}
        for stage in self._layout.stages:
            later = Band(watermark_us - held_back_us(stage.plan), END_US + 1)
            for store, band in self._layout.store_bands(self._layout.bands(stage, later)).items():
                needed_from_us[store] = min(band.from_us, needed_from_us.get(store, band.from_us))
        for store, from_us in needed_from_us.items():
            if isinstance(store, Numbered):
                delete_old_numbers(database, store, from_us)
            else:
                database.execute(f"DELETE FROM {store.table} WHERE t < {from_us}")

    @staticmethod
    def _fetched(database: Database, stage: Stage, statement: StageStatement) -> pa.Table:
        items = [f"c{k}::{type_to_duckdb(type_)} AS c{k}" for k, type_ in enumerate(stage.plan.types)]
        return database.fetch_arrow(f"SELECT {', '.join(items)} FROM ({statement})")
