"""Rows that arrive in Parquet files, read by DuckDB: the rows and the counts that Spark would make of them
(`spark.records`), in a tenth of the time. Bad records are the same, but for how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import Arrived
from plait.catalog import Stream
from plait.engines.data_errors import unreadable
from plait.engines.duckdb import Database, text_literal
from plait.engines.event_times import good_times, reason_why_bad, start_us
from plait.engines.stored_files import parquet_sources, position
from plait.errors import ExternalError
from plait.expressions.arrow import arrow_schema
from plait.expressions.duckdb import to_duckdb
from plait.expressions.nodes import TRUE, Expression
from plait.expressions.types import Kind
from plait.plan.nodes import StreamScan


class ArrivingFiles:
    """The columns of a scan as `c0`, `c1`, …, of the rows that are `wanted`: a predicate over them."""

    def __init__(self, database: Database, stream: Stream, scan: StreamScan, wanted: Expression) -> None:
        self._database = database
        self._stream = stream
        self._time = f"c{position(stream, stream.event_time)}"
        columns = [f"c{position(stream, field.name)}" for field in scan.columns]
        self._items = [f"{column} AS c{k}" for k, column in enumerate(columns)]
        # -0.0 + 0.0 is 0.0
        doubles = [k for k, column in enumerate(stream.columns) if column.type.kind is Kind.DOUBLE]
        normalised = ", ".join(f"c{k} + 0.0::DOUBLE AS c{k}" for k in doubles)
        self._all = f"* REPLACE ({normalised})" if doubles else "*"
        names = [f"c{k}" for k in range(len(columns))]
        self._wanted = None if wanted == TRUE else to_duckdb(wanted, names)
        self._schema = arrow_schema(names, scan.types).append(pa.field("t", pa.int64()))

    def read(self, files: Sequence[Path], now_us: int) -> tuple[pa.Table, Arrived]:
        """The wanted rows with their event time `t`, in microseconds, and what the files brought in all.

        `now_us` is the clock of the batch, which `max_future` goes by.
        """
        files = [file for file in files if file.stat().st_size > 0]  # an empty one has no rows
        if not files:
            return self._schema.empty_table(), Arrived(0)
        try:
            return self._read(files, now_us)
        except ExternalError:
            for file in files:  # which one is it?
                self._check(file, now_us)
            raise

    def _read(self, files: Sequence[Path], now_us: int) -> tuple[pa.Table, Arrived]:
        sources = " UNION ALL ".join(parquet_sources(self._database, self._stream, files))
        records = f"(SELECT {self._all}, epoch_us({self._time}) AS t FROM ({sources}))"
        is_good = good_times(self._stream, now_us)
        items = ", ".join([*self._items, "t", f"({is_good}) IS TRUE AS good"])
        found = self._database.fetch_arrow(
            f"SELECT {items} FROM {records} WHERE ({is_good}) IS NOT TRUE OR t >= {start_us(self._stream)}"
        )
        good = found.filter(found["good"])
        bad: Sequence[dict[str, str]] = ()
        if good.num_rows < found.num_rows:
            bad = self._bad(f"{records} WHERE ({is_good}) IS NOT TRUE", now_us)
        arrived = Arrived(good.num_rows, pc.max(good["t"]).as_py(), bad)
        return self._only_wanted(good.drop_columns("good").cast(self._schema)), arrived

    def _only_wanted(self, rows: pa.Table) -> pa.Table:
        """By a statement of its own: over a file, DuckDB decides comparisons by the statistics in it, which
        leave out NaN."""
        if self._wanted is None:
            return rows
        with self._database.given(rows) as given:
            return self._database.fetch_arrow(
                f"SELECT * FROM {given} WHERE coalesce({self._wanted}, false)"
            ).cast(self._schema)

    def _bad(self, records: str, now_us: int) -> list[dict[str, str]]:
        """Why they are bad, and what they are as JSON, without members that are NULL."""
        members = ", ".join(
            f"{text_literal(column.name)}, {_written(f'c{k}', column.type.kind)}"
            for k, column in enumerate(self._stream.columns)
        )
        text = f"json_merge_patch('{{}}', json_object({members}))::VARCHAR"
        reason = reason_why_bad(self._stream, self._time, now_us)
        found = self._database.fetch(f"SELECT {reason}, {text} FROM {records}")
        return [{"reason": reason, "record": record} for reason, record in found]

    def _check(self, file: Path, now_us: int) -> None:
        try:
            self._read([file], now_us)
        except ExternalError as error:
            raise unreadable(self._stream, file, error) from None


def _written(value: str, kind: Kind) -> str:
    """A value as a member of a JSON object."""
    match kind:
        case Kind.TIMESTAMP:
            return f"replace({value}::VARCHAR, ' ', 'T') || 'Z'"
        case Kind.DOUBLE:
            return f"CASE WHEN isfinite({value}) THEN to_json({value}) ELSE to_json({value}::VARCHAR) END"
        case Kind.DECIMAL:
            return f"{value}::VARCHAR"  # a number of JSON would be rounded
        case _:
            return value
