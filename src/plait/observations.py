"""What operators do in micro-batches, as far as the engine that computes them can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from types import MappingProxyType


class OperatorForm(StrEnum):
    """What is computed once, for one query or for many; a value is how it is called."""

    PASS = "pass over rows"
    TREE = "tree of windows"
    JOIN = "join of rows"
    ROWS = "rows for plans"
    PLAN = "plan"
    # Spark's own operators, one after the other
    READ = "reading"
    FILTER = "filter"
    UNION = "union"
    DISTINCT = "different values"
    AGGREGATE = "aggregation"
    TICK_JOIN = "join at ticks"
    PARTIALS = "partial aggregation"
    FINALS = "final aggregation"
    HAND_OUT = "handing out"


@dataclass(frozen=True)
class OperatorWork:
    """Rows that came in, that were made of them on the way (partials of a tree, combinations of a join, rows
    that are kept), and that were given; the time that all of it took; and bytes that went from task to task
    for it."""

    rows_in: int = 0
    rows_made: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    bytes_moved: int = 0


class Meter:
    """Counts what an operator does. Its `id` stays the same whoever else is there.

    Of its time each query has the same part, unless `weights` are given; or, if it is handing out, the part
    that it has of the rows. Of an aggregation that closes so many `windows_per_s`, groups are known by rows.
    """

    def __init__(
        self,
        id_: str,
        form: OperatorForm,
        queries: Sequence[str],
        streams: Sequence[str] = (),
        *,
        weights: Mapping[str, float] | None = None,
        windows_per_s: float | None = None,
    ) -> None:
        self.id = id_
        self.form = form
        self.queries = tuple(queries)
        self.streams = tuple(streams)
        self.weights = weights
        self.windows_per_s = windows_per_s
        self._counted = OperatorWork()

    @contextmanager
    def timed(self) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self.count(seconds=perf_counter() - began)

    def count(
        self, *, rows_in: int = 0, made: int = 0, out: int = 0, seconds: float = 0.0, bytes_moved: int = 0
    ) -> None:
        so_far = self._counted
        self._counted = OperatorWork(
            so_far.rows_in + rows_in,
            so_far.rows_made + made,
            so_far.rows_out + out,
            so_far.seconds + seconds,
            so_far.bytes_moved + bytes_moved,
        )

    def taken(self) -> OperatorWork:
        """What was counted since the last time."""
        counted, self._counted = self._counted, OperatorWork()
        return counted


@dataclass(frozen=True)
class Selected:
    """What a query's window aggregate is made of: rows a second of its stream's time, and groups."""

    rows_per_s: float | None
    groups: int


@dataclass(frozen=True)
class Kept:
    """What an operator remembers at one moment: rows, and groups where it has such; by query, where queries
    differ in it; and bytes, if these are known."""

    rows: int
    groups: int | None = None
    selected: Mapping[str, Selected] = field(default_factory=lambda: MappingProxyType({}))
    bytes: int | None = None


@dataclass(frozen=True)
class ColumnValues:
    """Of a column of a stream: different values seen so far, and bytes of one of them if these vary."""

    distinct: float
    bytes: float | None = None


@dataclass(frozen=True)
class HandedOver:
    """Rows of a stream that came to the database, and their bytes."""

    rows: int
    bytes: int


@dataclass(frozen=True)
class Observed:
    """What a micro-batch has shown. `work` and `kept` are by operator, `handed_over` and `columns` by stream;
    what takes time to look at is looked at now and then. `clocks` are the streams, or queries, by whose time
    the rows come that operators give: from these they have a rate."""

    handed_over: Mapping[str, HandedOver] = field(default_factory=lambda: MappingProxyType({}))
    work: Mapping[str, OperatorWork] = field(default_factory=lambda: MappingProxyType({}))
    kept: Mapping[str, Kept] = field(default_factory=lambda: MappingProxyType({}))
    columns: Mapping[str, Mapping[str, ColumnValues]] = field(default_factory=lambda: MappingProxyType({}))
    clocks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


NOTHING = Observed()
