"""The rows that a query is evaluated over: what is stored, less the bad records.

A stream becomes a DuckDB table with its columns as `c0`, `c1`, … and its event time as `t`, in microseconds.
Set aside and counted are rows whose event time is NULL, at or before 1970-01-01 00:00:00, after the year 9999
(no two engines agree on such times) or further in the future than the stream's `max_future`. Negative zeros
become positive ones here, because `min` and `max` of ±0.0 differ between engines.

A stream that starts at a time consists of the rows from then on. `latest` changes nothing here: what is
stored is what there is.

Sources are read when a query first needs them, so that a missing file of one stream does not stop the queries
that do not read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

from plait.catalog import Catalog, Relation, Stream
from plait.engines import stored_files
from plait.engines.duckdb import Database
from plait.errors import InternalError
from plait.expressions.duckdb import type_to_duckdb
from plait.expressions.types import Kind

LAST_EVENT_TIME_US = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999

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
        for index, definition in enumerate(self.relation.columns):
            if definition.name.lower() == column.lower():
                return index
        raise InternalError("unknown-column", f"`{self.relation.name}` has no column `{column}`")


class StoredData:
    """The stored rows of a catalog's streams and tables, in one DuckDB that many queries share.

    `now` is the clock that `max_future` goes by: the machine's unless given.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        rows: Mapping[str, Rows] | None = None,
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
        unknown = [n for n in rows if n.lower() not in catalog.streams and n.lower() not in catalog.tables]
        if unknown:
            raise ValueError(f"no such stream or table: {', '.join(unknown)}")
        return cls(catalog, rows=rows, database=database, now=now)

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
        raw = self.database.unused_name("stored")
        if self._rows is None:
            stored_files.load(self.database, relation, raw)
        else:
            self._load_rows(relation, self._rows.get(relation.name.lower(), ()), raw)
        items = [
            # -0.0 + 0.0 is 0.0
            f"c{index} + 0.0::DOUBLE AS c{index}" if column.type.kind is Kind.DOUBLE else f"c{index}"
            for index, column in enumerate(relation.columns)
        ]
        name = self.database.unused_name(relation.name)
        if isinstance(relation, Stream):
            source = self._load_stream(relation, raw, name, items)
        else:
            self.database.execute(f"CREATE TABLE {name} AS SELECT {', '.join(items)} FROM {raw}")
            source = SourceTable(name, relation)
        self.database.execute(f"DROP TABLE {raw}")
        return source

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

    def _load_stream(self, stream: Stream, raw: str, name: str, items: Sequence[str]) -> SourceTable:
        """Set bad records aside, and leave out what comes before the stream's start."""
        event_time = next(
            i for i, c in enumerate(stream.columns) if c.name.lower() == stream.event_time.lower()
        )
        last_allowed_us = LAST_EVENT_TIME_US
        if stream.max_future_us is not None:
            now = self._now or datetime.now(UTC)
            last_allowed_us = min(last_allowed_us, microseconds(now) + stream.max_future_us)
        start_us = (
            0
            if stream.start in ("earliest", "latest")
            else microseconds(datetime.fromisoformat(stream.start))
        )
        is_good = f"t > 0 AND t <= {last_allowed_us}"
        timed = f"(SELECT {', '.join(items)}, epoch_us(c{event_time}) AS t FROM {raw})"
        self.database.execute(
            f"CREATE TABLE {name} AS SELECT * FROM {timed} WHERE {is_good} AND t >= {start_us}"
        )
        ((bad_records, last_us),) = self.database.fetch(
            f"SELECT (SELECT count(*) FROM {timed} WHERE ({is_good}) IS NOT TRUE), max(t) FROM {name}"
        )
        return SourceTable(name, stream, bad_records=bad_records, last_us=last_us)


def microseconds(time: datetime) -> int:
    """Microseconds since the epoch of a time that is aware or in UTC.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5))
    1000005
    """
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _in_utc(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
