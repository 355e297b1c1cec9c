"""Rows of result files as any reader of Parquet sees them, in the evaluator's values."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.differential.arrivals import Row


def rows_of(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(map(_value, row)) for row in zip(*columns, strict=True)]


def stored_rows(folder: Path) -> list[Row]:
    """What is in a results folder now. Names with a leading `_` or `.` are nobody's business."""
    files = sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "_.")
    return [row for path in files for row in rows_of(pq.read_table(path))]


def _value(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
