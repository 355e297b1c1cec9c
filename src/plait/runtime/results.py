"""Reads published results, of a running system too: complete files only, nothing locked, nothing written.

Files may be merged while they are read. Then the folder is listed again, and reading goes on with the batches
that have not been read yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import ExternalError, UserError
from plait.runtime.merging import rows_through
from plait.runtime.outlets import Outlet
from plait.runtime.results_folder import NOTHING_READ, BatchFile, batch_files
from plait.runtime.shared_results import read_all_shared, read_shared

_Read = TypeVar("_Read")


def batches(
    outlet: Outlet, after: Mapping[int, int] = NOTHING_READ
) -> Iterator[tuple[Mapping[int, int], pa.Table]]:
    """The rows of the published batches after those, by series, file by file; each with what was read by
    then."""
    check_readable(outlet)
    return _each_file(outlet, after, lambda file, done: _read(file, outlet, done))


def check_readable(outlet: Outlet) -> None:
    """Refuse results that are no files, or are not there."""
    if outlet.folder is None:
        raise UserError(
            "results-elsewhere",
            f"the rows of `{outlet.query}` go to {outlet.destination}",
            hint="Plait reads results that are files: sink = 'parquet', which is the default, or 'json'",
        )
    _existing(outlet)


def _each_file(
    outlet: Outlet, after: Mapping[int, int], read: Callable[[BatchFile, int], _Read]
) -> Iterator[tuple[Mapping[int, int], _Read]]:
    """What `read` makes of each file, given the last batch of its series that was read before."""
    done, missing = after, None
    while True:
        for file in batch_files(_existing(outlet), done):
            try:
                with _readable(file.path):
                    rows = read(file, done.get(file.series, -1))
            except FileNotFoundError:
                if file.path == missing:  # it is not merged: something is wrong with it
                    raise ExternalError("results", f"cannot read {file.path}") from None
                missing = file.path
                break
            done = {**done, file.series: file.last}
            yield done, rows
        else:
            return


def shared_batches(outlets: Sequence[Outlet]) -> Iterator[tuple[Outlet, pa.Table]]:
    """The same for several queries that share a folder; each file is read once."""
    first = outlets[0]
    assert first.folder is not None, first.query
    by_name = {outlet.query: outlet for outlet in outlets}

    def read(file: BatchFile, done: int) -> list[tuple[str, pa.Table]]:
        found = read_all_shared(file.path, first.schema)
        return [(query, _unread(rows, file, query, done)) for query, rows in found]

    for _, found in _each_file(first, NOTHING_READ, read):
        for query, rows in found:
            if query in by_name:
                yield by_name[query], rows


def table(outlet: Outlet) -> pa.Table:
    """All rows so far, batch by batch."""
    return pa.concat_tables([outlet.schema.empty_table(), *(rows for _, rows in batches(outlet))])


def follow(outlet: Outlet, wait: Callable[[], object]) -> Iterator[pa.Table]:
    """The rows of each batch, once, now and when they come; `wait` is called when there are none.

    Batches of a series are published one after the other, so none appears before one that was seen.
    """
    read = NOTHING_READ
    while True:
        for now_read, rows in batches(outlet, after=read):
            read = now_read
            if rows.num_rows:  # a shared file may have none of this query
                yield rows
        wait()


def _existing(outlet: Outlet) -> Path:
    assert outlet.folder is not None, outlet.query
    if not outlet.folder.is_dir():
        raise UserError(
            "results-gone",
            f"the results of `{outlet.query}` are not in {outlet.folder}",
            hint="if they were moved, say where to with --results DIR",
        )
    return outlet.folder


def _read(file: BatchFile, outlet: Outlet, done: int) -> pa.Table:
    return _unread(_rows(file.path, outlet), file, outlet.query, done)


def _unread(rows: pa.Table, file: BatchFile, query: str, done: int) -> pa.Table:
    """The rows of a query in a file that are of batches after that one."""
    return rows if file.first > done else rows.slice(rows_through(file, query, done))


def _rows(path: Path, outlet: Outlet) -> pa.Table:
    schema = outlet.schema
    if outlet.is_shared:
        return read_shared(path, outlet.query, schema)
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            return file.read().cast(schema)
    return _parsed(path.read_text(encoding="utf-8"), schema)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
        return
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
    except (pa.ArrowException, ValueError, LookupError, TypeError, ArithmeticError) as error:
        reason = str(error)
    raise ExternalError(
        "results", f"cannot read {path}", detail=reason, hint="was it changed by something else?"
    )


def _parsed(lines: str, schema: pa.Schema) -> pa.Table:
    objects = [json.loads(line) for line in lines.split("\n") if line]
    columns = [_column([each[field.name] for each in objects], field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values as JSON has them (`plait.table_text.json_value`), as Arrow's again."""
    if pa.types.is_decimal(type_):
        return pa.array([None if value is None else Decimal(value) for value in values], type_)
    if pa.types.is_date(type_):
        return pa.array([None if value is None else date.fromisoformat(value) for value in values], type_)
    if pa.types.is_floating(type_):
        return pa.array([None if value is None else float(value) for value in values], type_)
    if pa.types.is_timestamp(type_):
        # Numpy also reads the year 10000, in which windows may end.
        return pa.array(np.array(values, dtype="datetime64[us]"), type_)
    return pa.array(values, type_)
