"""Looks now and then at what is remembered, and at the values of columns: what no statement tells by the way.

One thing is looked at after a micro-batch, in turn, and only if all looks so far took less than a hundredth
of the time that has passed.

How many different values a column has is estimated from the least hashes of them that were ever seen (k
minimum values): of K hashes that are spread evenly, the greatest says how dense they are. Fewer than K are
counted exactly; beyond that the error is about 1 / √K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.shared.group import Look
from plait.errors import PlaitError
from plait.expressions.types import Kind
from plait.observations import ColumnValues, Kept
from plait.plan.nodes import StreamScan

SHARE = 0.01
HASHES = 1024
# Of a batch, so many rows are looked at.
LOOKED_ROWS = 10_000
_HASH_SPACE = float(2**64)


class Looks:
    """`clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._next_at = clock()
        self._turn = 0
        self._hashes: dict[tuple[str, str], list[int]] = {}

    def taken(
        self,
        database: Database,
        operators: Mapping[str, Look],
        scans: Mapping[str, StreamScan],
        rows: Mapping[str, pa.Table],
    ) -> tuple[dict[str, Kept], dict[str, dict[str, ColumnValues]]]:
        """What is seen after a batch of these rows: what an operator keeps, or a stream's columns; of most
        batches nothing."""
        kept: dict[str, Kept] = {}
        columns: dict[str, dict[str, ColumnValues]] = {}
        began = self._clock()
        if began < self._next_at:
            return kept, columns
        things = [*operators, *(key for key in scans if key in rows and rows[key].num_rows)]
        if things:
            self._turn = (self._turn + 1) % len(things)
            chosen = things[self._turn]
            # The batch is done, and is none the worse for what cannot be looked at.
            with suppress(PlaitError):
                if chosen in operators:
                    kept[chosen] = operators[chosen](database)
                else:
                    columns[chosen] = self._columns(database, chosen, scans[chosen], rows[chosen])
        ended = self._clock()
        self._next_at = ended + (ended - began) / SHARE
        return kept, columns

    def _columns(
        self, database: Database, stream: str, scan: StreamScan, rows: pa.Table
    ) -> dict[str, ColumnValues]:
        found = {}
        with database.given(rows.slice(0, LOOKED_ROWS)) as relation:
            for number, column in enumerate(scan.columns):
                name = f"c{number}"
                least = database.fetch(
                    f"SELECT DISTINCT hash({name}) AS h FROM {relation} WHERE {name} IS NOT NULL "
                    f"ORDER BY h LIMIT {HASHES}"
                )
                before = self._hashes.get((stream, column.name), [])
                known = sorted({*before, *(value for (value,) in least)})[:HASHES]
                self._hashes[stream, column.name] = known
                bytes_ = None
                if column.type.kind is Kind.STRING:
                    ((bytes_,),) = database.fetch(f"SELECT avg(strlen({name})) FROM {relation}")
                found[column.name.lower()] = ColumnValues(distinct_values(known), bytes_)
        return found


def distinct_values(least_hashes: Iterable[int]) -> float:
    """How many values there are of which these are the least hashes, in order.

    >>> distinct_values([5, 10, 15])
    3.0
    """
    hashes = [*least_hashes]
    if len(hashes) < HASHES:
        return float(len(hashes))
    return (HASHES - 1) / ((hashes[-1] + 1) / _HASH_SPACE)
