"""Rows of result files as any reader of Parquet sees them, in the evaluator's values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.differential.arrivals import Row

from plait.batches import BatchRows
from plait.runtime.outlets import Outlet


def rows_of(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(map(_value, row)) for row in zip(*columns, strict=True)]


def published_rows(results: Iterable[BatchRows], query: str) -> list[Row]:
    """The rows of a query among those of a batch."""
    return [
        row
        for result in results
        for is_wanted, part in result.by_group({name: name == query for name in result.queries})
        if is_wanted
        for row in rows_of(part.rows)
    ]


def stored_rows(folder: Path) -> list[Row]:
    """What is in a results folder now. Names with a leading `_` or `.` are nobody's business."""
    files = sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "_.")
    return [row for path in files for row in rows_of(pq.read_table(path))]


def outlet_rows(outlet: Outlet) -> list[Row]:
    """The rows of a query, in a folder of its own or in one that it shares, read as anybody would."""
    assert outlet.folder is not None
    if not outlet.is_shared:
        return stored_rows(outlet.folder)
    tables = [pq.read_table(file) for file in sorted(outlet.folder.glob("[0-9]*.parquet"))]
    own = [table.filter(pc.field("query") == outlet.query).drop_columns("query") for table in tables]
    return [row for table in own for row in rows_of(table)]


def _value(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
