"""Rows as they reach a running system: in cuts, out of order, on the edges of windows, with NULLs.

A row in time is never older than the greatest event time that came before it less the stream's delay, so that
no run may lose it, however its rows are cut into micro-batches. A late row is older than that; how many of
the late rows a run with its micro-batches leaves out is for `lateness` to say.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from plait.benchmarks.planning.data import START, random_value
from plait.benchmarks.planning.model import Relation

Row: TypeAlias = tuple[object, ...]
Cuts: TypeAlias = tuple[tuple[Row, ...], ...]

SECOND_US = 1_000_000
# None; odd microseconds, which Spark's milliseconds cannot say; whole milliseconds; seconds.
DELAYS_US = (0, 250, 1_000, 1_500_001, 5 * SECOND_US)
STEPS_US = (0, 0, 1, 400_000, SECOND_US, SECOND_US, 2 * SECOND_US)
GAP_US = 25 * SECOND_US
NULL_TIME = 0.02  # chance of a bad record
EDGE = 0.7  # chance that a time is a whole second, or a microsecond off one


@dataclass(frozen=True)
class StoredStream:
    """A stream as declared and stored: one file a cut."""

    relation: Relation
    delay_us: int
    format: str
    cuts: Cuts

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for cut in self.cuts for row in cut)

    def time_of(self, row: Row) -> datetime | None:
        names = [name for name, _ in self.relation.columns]
        time = row[names.index(self.relation.event_time or "")]
        assert time is None or isinstance(time, datetime)
        return time


@dataclass(frozen=True)
class StoredTable:
    relation: Relation
    format: str
    rows: tuple[Row, ...]


def arriving(
    relation: Relation, delay_us: int, file_format: str, rng: random.Random, *, rows: int, cuts: int
) -> StoredStream:
    """A stream whose rows all come in time."""
    made: list[Row] = []
    frontier = rng.choice((0, 0, SECOND_US, 3 * SECOND_US))
    for _ in range(rows):
        if made and rng.random() < 0.12:
            made.append(rng.choice(made[-3:]))  # the same row again, unless time has moved on
            if _offset_us(relation, made[-1], frontier) < frontier - delay_us:
                made.pop()
            continue
        offset = _next_offset(frontier, delay_us, rng)
        frontier = max(frontier, offset)
        made.append(_row(relation, None if rng.random() < NULL_TIME else offset, file_format, rng))
    return StoredStream(relation, delay_us, file_format, _cut(made, cuts, rng))


def _next_offset(frontier: int, delay_us: int, rng: random.Random) -> int:
    """Microseconds after `START`; back at most by the delay, on a second's edge more often than not."""
    if rng.random() < 0.35:
        least = max(0, frontier - delay_us)
        wished = frontier - rng.randint(0, delay_us)
        if rng.random() < 0.3:
            return least  # as late as a row may be
    else:
        least = frontier
        wished = frontier + (GAP_US if rng.random() < 0.02 else rng.choice(STEPS_US))
    if rng.random() < EDGE:
        edge = round(wished / SECOND_US) * SECOND_US + rng.choice((0, 0, 0, -1, 1))
        if edge >= least:
            return edge
    return max(least, wished)


def _row(relation: Relation, offset_us: int | None, file_format: str, rng: random.Random) -> Row:
    time: datetime | None = None
    if offset_us is not None:
        time = START + timedelta(microseconds=offset_us)
    elif rng.random() < 0.5:
        time = datetime(1970, 1, 1)
    return tuple(
        time if name == relation.event_time else stored_value(type_, file_format, rng)
        for name, type_ in relation.columns
    )


def stored_value(type_: str, file_format: str, rng: random.Random) -> object:
    """A value that the format can hold: what is no number is for Parquet."""
    if type_ == "DOUBLE" and file_format != "parquet":
        return rng.choice((None, 0.0, 0.1, 0.5, 2.25, -2.25, 1e12))
    return random_value(type_, rng)


def _offset_us(relation: Relation, row: Row, frontier: int) -> int:
    time = row[[name for name, _ in relation.columns].index(relation.event_time or "")]
    if not isinstance(time, datetime) or time < START:
        return frontier
    return (time - START) // timedelta(microseconds=1)


def _cut(rows: Sequence[Row], cuts: int, rng: random.Random) -> Cuts:
    """Cuts anywhere: one of them may be empty."""
    places = sorted(rng.randint(0, len(rows)) for _ in range(cuts - 1))
    return tuple(
        tuple(rows[begin:end]) for begin, end in zip((0, *places), (*places, len(rows)), strict=True)
    )


def with_late_rows(stream: StoredStream, rng: random.Random, count: int) -> StoredStream:
    """The same rows, and `count` more in the last cuts that are older than the delay allows."""
    cuts = [list(cut) for cut in stream.cuts]
    for _ in range(count):
        position = rng.randrange(1, len(cuts))
        before = [time for cut in cuts[:position] for row in cut if (time := stream.time_of(row)) is not None]
        greatest = max((time for time in before if time >= START), default=START)
        oldest_in_time = (greatest - START) // timedelta(microseconds=1) - stream.delay_us
        if oldest_in_time <= 0:
            continue
        offset = rng.randint(max(0, oldest_in_time - 10 * SECOND_US), oldest_in_time - 1)
        cuts[position].insert(
            rng.randint(0, len(cuts[position])), _row(stream.relation, offset, stream.format, rng)
        )
    return StoredStream(stream.relation, stream.delay_us, stream.format, tuple(map(tuple, cuts)))
