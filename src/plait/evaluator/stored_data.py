"""The rows that a query is evaluated over: what is stored, less the bad records.

A stream becomes a DuckDB table with its columns as `c0`, `c1`, … and its event time as `t`, in microseconds.
Which rows count is decided in `engines.event_times`. Negative zeros become positive ones here, because `min`
and `max` of ±0.0 differ between engines.

Sources are read when a query first needs them, so that a missing file of one stream does not stop the queries
that do not read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

import pyarrow as pa

from plait.catalog import Catalog, Relation, Stream
from plait.engines import stored_files, stored_relations
from plait.engines.duckdb import Database
from plait.engines.event_times import set_bad_records_aside
from plait.expressions.duckdb import type_to_duckdb
from plait.expressions.types import Kind

Rows = Sequence[Sequence[object]]


@dataclass(frozen=True)
class SourceTable:
    """A stream or table in DuckDB. `last_us` is the greatest event time, None without rows or for a table."""

    name: str
    relation: Relation
    bad_records: int = 0
    last_us: int | None = None

    def position(self, column: str) -> int:
        """Where the column of that name is, whatever its case."""
        return stored_files.position(self.relation, column)


class StoredData:
    """The stored rows of a catalog's streams and tables, in one DuckDB that many queries share.

    `now` is the clock that `max_future` goes by: the machine's unless given.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        rows: Mapping[str, Rows | pa.Table] | None = None,
        database: Database | None = None,
        now: datetime | None = None,
    ) -> None:
        self.catalog = catalog
        self.database = database or Database()
        self._owns_database = database is None
        self._rows = None if rows is None else {name.lower(): given for name, given in rows.items()}
        self._now = now
        self._loaded: dict[str, SourceTable] = {}

    @classmethod
    def from_catalog(cls, catalog: Catalog, *, now: datetime | None = None) -> StoredData:
        """What the catalog's connectors hold."""
        return cls(catalog, now=now)

    @classmethod
    def from_rows(
        cls,
        catalog: Catalog,
        rows: Mapping[str, Rows],
        *,
        database: Database | None = None,
        now: datetime | None = None,
    ) -> StoredData:
        """Rows given in Python, as tuples in the order of the columns; a source that is not named is empty.

        Times are naive `datetime`s in UTC, or aware ones. Give a `database` to share it with other data.
        """
        _check_names(catalog, rows)
        return cls(catalog, rows=rows, database=database, now=now)

    @classmethod
    def from_tables(
        cls,
        catalog: Catalog,
        tables: Mapping[str, pa.Table],
        *,
        database: Database | None = None,
        now: datetime | None = None,
    ) -> StoredData:
        """Rows as Arrow tables, their columns found by name; a source that is not named is empty."""
        _check_names(catalog, tables)
        return cls(catalog, rows=tables, database=database, now=now)

    def stream(self, name: str) -> SourceTable:
        return self._source(self.catalog.stream(name))

    def table(self, name: str) -> SourceTable:
        return self._source(self.catalog.table(name))

    def watermark_us(self, streams: Iterable[str]) -> int:
        """The least of the streams' greatest event times less their delays; the epoch if one has no rows."""
        watermarks = []
        for name in streams:
            last_us = self.stream(name).last_us
            watermarks.append(0 if last_us is None else last_us - self.catalog.stream(name).delay_us)
        return min(watermarks)

    def close(self) -> None:
        if self._owns_database:
            self.database.close()
        else:
            for source in self._loaded.values():
                self.database.execute(f"DROP TABLE {source.name}")
        self._loaded.clear()

    def __enter__(self) -> StoredData:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _source(self, relation: Relation) -> SourceTable:
        key = relation.name.lower()
        if key not in self._loaded:
            self._loaded[key] = self._load(relation)
        return self._loaded[key]

    def _load(self, relation: Relation) -> SourceTable:
        name = self.database.unused_name(relation.name)
        with self.database.temporary("stored") as raw:
            self._load_raw(relation, raw)
            items = [
                # -0.0 + 0.0 is 0.0
                f"c{index} + 0.0::DOUBLE AS c{index}" if column.type.kind is Kind.DOUBLE else f"c{index}"
                for index, column in enumerate(relation.columns)
            ]
            rows = f"SELECT {', '.join(items)} FROM {raw}"
            if not isinstance(relation, Stream):
                self.database.execute(f"CREATE TABLE {name} AS {rows}")
                return SourceTable(name, relation)
            bad_records = set_bad_records_aside(self.database, relation, f"({rows})", name, self._now)
        ((last_us,),) = self.database.fetch(f"SELECT max(t) FROM {name}")
        return SourceTable(name, relation, bad_records=bad_records, last_us=last_us)

    def _load_raw(self, relation: Relation, table: str) -> None:
        if self._rows is None:
            stored_relations.load(self.database, relation, table)
            return
        given = self._rows.get(relation.name.lower(), ())
        if isinstance(given, pa.Table):
            stored_relations.load_given(self.database, relation, given, table)
        else:
            self._load_rows(relation, given, table)

    def _load_rows(self, relation: Relation, rows: Rows, table: str) -> None:
        for row in rows:
            if len(row) != len(relation.columns):
                raise ValueError(
                    f"`{relation.name}` has {len(relation.columns)} columns, not {len(row)}: {row}"
                )
        items, values = [], []
        for index, column in enumerate(relation.columns):
            type_ = type_to_duckdb(column.type)
            items.append(f"unnest(${index + 1}::{column.storage or type_}[])::{type_} AS c{index}")
            values.append([_in_utc(row[index]) for row in rows])
        self.database.execute(f"CREATE TABLE {table} AS SELECT {', '.join(items)}", values)


def _check_names(catalog: Catalog, rows: Mapping[str, object]) -> None:
    unknown = [n for n in rows if n.lower() not in catalog.streams and n.lower() not in catalog.tables]
    if unknown:
        raise ValueError(f"no such stream or table: {', '.join(unknown)}")


def _in_utc(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
