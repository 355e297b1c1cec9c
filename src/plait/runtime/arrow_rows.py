"""Rows of Arrow tables as Python values, the same that the evaluator gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias, overload

import pyarrow as pa

from plait.expressions.types import TIMESTAMP_RANGE_US
from plait.table_text import json_value

Row: TypeAlias = tuple[Any, ...]

CHUNK_ROWS = 10_000
_SHOWN_ROWS = 5


class ArrowRows(Sequence[Row]):
    """The rows of a table, turned into Python values when they are asked for.

    TIMESTAMP values are naive `datetime`s in UTC; those that Python cannot hold (after 9999) are text.

    >>> ArrowRows(pa.table({"plug": [1, 2], "room": ["hall", None]}))[1]
    (2, None)
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return ArrowRows(self.table.slice(start, max(0, stop - start)))
            return [self[position] for position in range(start, stop, step)]
        position = range(len(self))[index]
        return next(iter(ArrowRows(self.table.slice(position, 1))))

    def __iter__(self) -> Iterator[Row]:
        batches = self.table.to_batches(max_chunksize=CHUNK_ROWS)
        return chain.from_iterable(zip(*map(_values, batch.columns), strict=True) for batch in batches)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        """
        >>> ArrowRows(pa.table({"plug": range(100)}))[:2], ArrowRows(pa.table({"plug": range(100)}))
        ([(0,), (1,)], [(0,), (1,), (2,), (3,), (4,), … 100 rows])
        """
        first = ", ".join(map(repr, islice(self, _SHOWN_ROWS)))
        return f"[{first}, … {len(self):,} rows]" if len(self) > _SHOWN_ROWS else f"[{first}]"

    __hash__ = None  # type: ignore[assignment]  # as lists have none


def json_lines(table: pa.Table) -> Iterator[str]:
    """One object a row, with the line's end.

    >>> print(*json_lines(pa.table({"plug": [1], "room": ["hall"]})), sep="", end="")
    {"plug": 1, "room": "hall"}
    """
    for row in ArrowRows(table):
        line = dict(zip(table.column_names, map(json_value, row), strict=True))
        yield json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"


def _values(column: pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    naive = column.cast(pa.timestamp("us"))
    try:
        return list(naive.to_pylist())
    except OverflowError:
        return [
            value.as_py() if us is None or us <= TIMESTAMP_RANGE_US[1] else _text(value)
            for value, us in zip(naive, naive.cast(pa.int64()).to_pylist(), strict=True)
        ]


def _text(value: pa.Scalar) -> str:
    """As DuckDB writes it: no fraction where there is none."""
    return str(value.cast(pa.string()).as_py()).removesuffix(".000000")
