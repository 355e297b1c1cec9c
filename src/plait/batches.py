"""A micro-batch, as whoever computes it sees it, and what came of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Batch:
    """`id` is Spark's. A batch that is computed again after a crash has the same id, rows and tables.

    `late_before_us`: rows that are not later than this are left out by Spark's stateful operators (its
    watermark of the batch before); None before the first batch is done. `tables` are Parquet files, by the
    table's key in the catalog: the stored tables as of this batch. `bad_records_of` are the streams, by key,
    whose bad records somebody wants to have.
    """

    id: int
    late_before_us: int | None = None
    tables: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    bad_records_of: Collection[str] = ()


@dataclass(frozen=True)
class BatchRows:
    """Rows of queries whose columns have the same types; names are the queries' own.

    `whose` says of each row which of the queries it is of, by its place among them; a single query needs
    none.
    """

    queries: tuple[str, ...]
    rows: pa.Table
    whose: pa.ChunkedArray | None = None

    def by_group(self, group_of: Mapping[str, int]) -> Iterator[tuple[int, BatchRows]]:
        """The rows of each group of queries that has some, in the order that they have here. However many
        groups there are, rows are sorted once."""
        members: dict[int, list[str]] = {}
        places = []  # of each query within its group
        for query in self.queries:
            group = members.setdefault(group_of[query], [])
            places.append(len(group))
            group.append(query)
        if not self.rows.num_rows:
            return
        if self.whose is None or len(members) == 1:
            yield group_of[self.queries[0]], self
            return
        whose = self.whose.to_numpy()
        groups = np.array([group_of[query] for query in self.queries])[whose]
        order = order_by(groups)
        rows = self.rows.take(order)
        places_of_rows = pa.array(np.array(places, whose.dtype)[whose[order]])
        found, begins = np.unique(groups[order], return_index=True)
        for number, begin, end in zip(found.tolist(), begins, [*begins[1:], len(order)], strict=True):
            within = pa.chunked_array([places_of_rows[begin:end]])
            yield number, BatchRows(tuple(members[number]), rows.slice(begin, end - begin), within)


def order_by(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What sorts rows by their places, and leaves those of a place in their order. Places are few, which
    numpy sorts in no time if their type says so."""
    few = places.astype(np.int16) if places.max() <= np.iinfo(np.int16).max else places
    return np.argsort(few, kind="stable")


def row_counts(results: Iterable[BatchRows]) -> dict[str, int]:
    """How many rows each query has been given."""
    counts: Counter[str] = Counter()
    for result in results:
        if result.whose is None:
            (name,) = result.queries
            counts[name] += result.rows.num_rows
        else:
            for name, count in zip(
                result.queries, np.bincount(result.whose.to_numpy()).tolist(), strict=False
            ):
                counts[name] += count
    return counts


# All rows of a batch, at once.
Publish: TypeAlias = Callable[[Sequence[BatchRows]], None]


@dataclass(frozen=True)
class Failed:
    """The rows of a batch on which an expression of a query failed: how many, and the first by event time, as
    JSON; empty if an earlier batch had some."""

    rows: int
    at_us: int
    sample: str


@dataclass(frozen=True)
class Outcome:
    """What a batch gave for a query: rows published, the late rows left out of some result, by stream, the
    watermark that the query goes by after it, if that is not Spark's, and the rows on which expressions
    failed, by their places among the checks of its plan."""

    rows: int
    late_rows: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    watermark_us: int | None = None
    failed: Mapping[int, Failed] = field(default_factory=lambda: MappingProxyType({}))


def sample_text(row: Mapping[str, Any]) -> str:
    """A row as JSON, each value as a user would write it.

    >>> sample_text({"v": 0, "at": datetime(2026, 1, 1, 12)})
    '{"v": 0, "at": "2026-01-01 12:00:00"}'
    """
    return json.dumps({name: _written(value) for name, value in row.items()}, ensure_ascii=False)


def _written(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    return value if isinstance(value, bool | int | float | str | None) else str(value)


@dataclass(frozen=True)
class Arrived:
    """What a batch brought of a stream: how many rows, their greatest event time, and the bad records. It is
    not complete if a batch runs again that is done, and some of what it read then is gone."""

    rows: int
    last_us: int | None = None
    bad: Sequence[Mapping[str, str]] = ()
    is_complete: bool = True


@dataclass(frozen=True)
class Processed:
    """What a batch gave, by query, and what it read of streams, by their keys."""

    outcomes: Mapping[str, Outcome]
    arrived: Mapping[str, Arrived]
