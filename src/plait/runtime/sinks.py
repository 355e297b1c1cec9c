"""Where the rows of a query go, a micro-batch at a time.

A batch has a number that no other batch of the query has (`plait.runtime.results_folder`). It may be
published again after a crash, with the same rows. Files are named by the number and replaced, so each row is
there once; what is printed is printed again; what goes through Spark depends on the format
(`plait.runtime.outlets.guarantee`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from plait.catalog import Sink as Declared
from plait.catalog import SinkKind
from plait.errors import InternalError
from plait.quantity_text import counted
from plait.runtime import results_folder
from plait.runtime.arrow_rows import ArrowRows, json_lines
from plait.runtime.outlets import Outlet
from plait.runtime.state_key import StateKey
from plait.table_text import table_text, value_text


class Sink(Protocol):
    def publish(self, batch_id: int, rows: pa.Table) -> None:
        """Hand over the rows of a batch, all of them or, by an error, none."""


# Writes rows of a batch through Spark (`plait.spark.sink`). The text names whoever writes: some formats drop
# what the same one wrote under the same batch id before.
WriteFrame: TypeAlias = Callable[[Declared, pa.Table, int, str], None]


class _RowSink:
    """What all sinks have in common: columns are given the names and types that were promised, by their
    order; no rows are nothing to publish. (Had a batch given rows before a crash, it would give them
    again.)"""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def publish(self, batch_id: int, rows: pa.Table) -> None:
        if rows.num_columns != len(self._schema):
            raise InternalError("result-columns", f"{rows.column_names} instead of {self._schema.names}")
        if rows.num_rows:
            self._take(batch_id, rows.rename_columns(self._schema.names).cast(self._schema))

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        raise NotImplementedError


class FileSink(_RowSink):
    """One file a batch, in a folder that no other query writes to."""

    def __init__(self, schema: pa.Schema, folder: Path, kind: SinkKind) -> None:
        super().__init__(schema)
        self.folder = folder
        self._ending, self._write = _FILES[kind]
        self._merged = results_folder.Merged(folder)

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        if not self._merged.has(batch_id):
            name = results_folder.file_name(batch_id, batch_id, self._ending)
            results_folder.publish(self.folder, name, lambda file: self._write(rows, file))


def _write_parquet(rows: pa.Table, file: IO[bytes]) -> None:
    pq.write_table(rows, file)


def _write_json_lines(rows: pa.Table, file: IO[bytes]) -> None:
    file.writelines(line.encode() for line in json_lines(rows))


_FILES: dict[SinkKind, tuple[str, Callable[[pa.Table, IO[bytes]], None]]] = {
    SinkKind.PARQUET: ("parquet", _write_parquet),
    SinkKind.JSON: ("jsonl", _write_json_lines),
}


class _OnceSink(_RowSink):
    """What is handed over cannot be replaced. A batch that is done again because the place of another query
    failed is not handed over once more."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._taken: dict[int, int] = {}  # the last batch of each series

    def publish(self, batch_id: int, rows: pa.Table) -> None:
        series = results_folder.series_of(batch_id)
        if self._taken.get(series) != batch_id:
            super().publish(batch_id, rows)
            self._taken[series] = batch_id


class ConsoleSink(_OnceSink):
    """Prints each batch as a table."""

    def __init__(self, schema: pa.Schema, query: str) -> None:
        super().__init__(schema)
        self._query = query

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        cells = [[value_text(value) for value in row] for row in ArrowRows(rows)]
        numeric = {k for k, field in enumerate(self._schema) if _is_number(field.type)}
        head = f"{self._query}, batch {batch_id % results_folder.SERIES}: {counted(rows.num_rows, 'row')}"
        # Looked up each time: a live display takes the place of standard output while it is on.
        sys.stdout.write(f"{head}\n{table_text(rows.column_names, cells, numeric=numeric)}\n\n")
        sys.stdout.flush()


def _is_number(type_: pa.DataType) -> bool:
    return any(kind(type_) for kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


class MemorySink(_RowSink):
    """Keeps the rows in this process, for Python."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._batches: dict[int, pa.Table] = {}

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        self._batches[batch_id] = rows

    def table(self) -> pa.Table:
        """All rows so far, batch by batch."""
        batches = [rows for _, rows in sorted(self._batches.copy().items())]
        return pa.concat_tables([self._schema.empty_table(), *batches])


class SparkSink(_OnceSink):
    """Hands the rows to a format of Spark's. Each series of batches is written by another."""

    def __init__(self, schema: pa.Schema, declared: Declared, write: WriteFrame, writer: str) -> None:
        super().__init__(schema)
        self._declared = declared
        self._frame_writer = write
        self._writer = writer

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        series = results_folder.series_of(batch_id)
        writer = f"{self._writer}/{series}" if series else self._writer
        self._frame_writer(self._declared, rows, batch_id, writer)


def sink_for(declared: Declared, outlet: Outlet, state: StateKey, write_frame: WriteFrame) -> Sink:
    """The sink of a single query. A folder of results is claimed for this query of this state."""
    schema = outlet.schema
    match declared.kind:
        case SinkKind.PARQUET | SinkKind.JSON:
            assert outlet.folder is not None, outlet.query
            results_folder.claim(outlet.folder, state, outlet.owner)
            return FileSink(schema, outlet.folder, declared.kind)
        case SinkKind.CONSOLE:
            return ConsoleSink(schema, outlet.query)
        case SinkKind.MEMORY:
            return MemorySink(schema)
        case SinkKind.SPARK:
            return SparkSink(schema, declared, write_frame, f"{state.id}/{outlet.query.lower()}")
        case _:
            assert_never(declared.kind)
