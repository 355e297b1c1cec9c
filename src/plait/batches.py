"""A micro-batch, as whoever computes it sees it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa

Publish: TypeAlias = Callable[[pa.Table], None]


@dataclass(frozen=True)
class Batch:
    """`id` is Spark's. A batch that is computed again after a crash has the same id, rows and tables.

    `late_before_us`: rows that are not later than this are left out by Spark's stateful operators (its
    watermark of the batch before); None before the first batch is done. `tables` are Parquet files, by the
    table's key in the catalog: the stored tables as of this batch.
    """

    id: int
    late_before_us: int | None = None
    tables: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Outcome:
    """What a batch gave: rows published, the late rows left out of some result, by stream, and the watermark
    that the query goes by after it, if it keeps one itself. `rows_read` are those of streams whose watermark
    matters to the query."""

    rows: int
    late_rows: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    watermark_us: int | None = None
    rows_read: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
