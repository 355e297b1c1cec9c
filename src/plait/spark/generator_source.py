"""`connector = 'generator'`: rows made from seed and time, as a stream of Spark's.

What Spark streams are **intervals of time**; tasks make the rows of an interval, as Arrow batches. Since rows
are a pure function of seed and time, a replayed batch gives the same rows. Intervals come from two sources:

- *what lies in the past when the stream is first run*: from `start` to `end` or to that moment, as tickets:
  small files of one interval each, in `folder`, of which Spark reads so many a batch that it makes a million
  rows at most. They are written once; a run that goes on finds them there.
- *what comes with the clock*: Spark's rate source, one row a second, which stands for that second once it is
  over. Spark keeps the moment at which it began. After a stop, the seconds that went by are one batch.

So nothing runs beside Spark, and a micro-batch costs what the sources do (15 ms for tickets, nothing for the
clock) and a Python worker, which Spark keeps. Spark's Python data source was built and measured first: it
starts a process for each stream of each query (0.8 s of a core, 100 MB) and gives up if one has not answered
in ten seconds, a limit that cannot be changed: ten queries that start together on two cores come close to it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.catalog import Stream
from plait.durable_files import flush_folder
from plait.errors import UserError
from plait.expressions.spark import quoted, type_to_spark
from plait.generators import Feed, feed
from plait.generators.slots import SECOND_US, exact_rate, first_at, slot_us
from plait.spark.file_paths import literal_path

ROWS_PER_TICKET = 250_000
_TICKETS_PER_BATCH = 4
_MAX_TICKETS = 100_000

_INTERVAL = "from_us BIGINT, to_us BIGINT"


def generator_frame(
    session: SparkSession,
    stream: Stream,
    folder: Path | None = None,
    *,
    rows_per_ticket: int = ROWS_PER_TICKET,
) -> DataFrame:
    """The stream's rows, with the columns that it declares.

    `folder` is the stream's own, and the same whenever it is run on; without one, it cannot be run on.
    """
    source = feed(stream)
    intervals = []
    reached_us = None
    if source.start_us is not None:
        tickets = folder or Path(tempfile.mkdtemp(prefix="plait-generator-")) / stream.name.lower()
        if not tickets.exists():
            _write_tickets(tickets, _past(stream, source, rows_per_ticket))
        reached_us = _last_moment(tickets, source.start_us)
        intervals.append(_ticketed(session, tickets))
    if source.end_us is None or reached_us is None or reached_us < source.end_us:
        intervals.append(_clocked(session, reached_us))
    united = intervals[0] if len(intervals) == 1 else intervals[0].union(intervals[1])
    columns = ", ".join(f"{quoted(column.name)} {type_to_spark(column.type)}" for column in stream.columns)
    return united.mapInArrow(_Rows(source, tuple(c.name for c in stream.columns)), columns)


@dataclass(frozen=True)
class _Rows:
    """What a task does: the rows of intervals."""

    source: Feed
    columns: tuple[str, ...]

    def __call__(self, intervals: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in intervals:
            for interval in batch.to_pylist():
                for rows in self.source.parts(interval["from_us"], interval["to_us"]):
                    chosen = [rows.column(name.lower()) for name in self.columns]
                    yield pa.RecordBatch.from_arrays(chosen, names=self.columns)


def _clocked(session: SparkSession, reached_us: int | None) -> DataFrame:
    """Each second that is over. The first one begins where the tickets end, if there are any."""
    begin = F.unix_micros("timestamp")
    first = begin if reached_us is None else F.when(F.col("value") == 0, F.lit(reached_us)).otherwise(begin)
    return (
        session.readStream.format("rate")
        .options(rowsPerSecond="1", numPartitions="1")
        .load()
        .select(first.alias("from_us"), (begin + SECOND_US).alias("to_us"))
    )


def _ticketed(session: SparkSession, folder: Path) -> DataFrame:
    return (
        session.readStream.format("csv")
        .schema(_INTERVAL)
        .options(mode="FAILFAST", maxFilesPerTrigger=str(_TICKETS_PER_BATCH))
        .load(literal_path(folder))
    )


def _past(stream: Stream, source: Feed, rows_per_ticket: int) -> list[tuple[int, int]]:
    """What is there now, cut into intervals of so many rows."""
    assert source.start_us is not None
    now_us = time.time_ns() // 1000
    end_us = now_us if source.end_us is None else min(source.end_us, now_us)
    rate = exact_rate(source.rate_rows_per_s)
    rows = first_at(rate, end_us) - first_at(rate, source.start_us)
    if rows > _MAX_TICKETS * rows_per_ticket:
        raise UserError(
            "generated-rows",
            f"stream `{stream.name}` would begin with {rows:,} rows",
            hint="give it a later `start`, or a lower `rate`",
        )
    edges = [source.start_us]
    while edges[-1] < end_us:
        edges.append(min(end_us, slot_us(rate, first_at(rate, edges[-1]) + rows_per_ticket)))
    return list(pairwise(edges))


def _write_tickets(folder: Path, intervals: list[tuple[int, int]]) -> None:
    """All of them or, after a crash, none."""
    draft = folder.with_name(f"_draft.{folder.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    for number, (from_us, to_us) in enumerate(intervals, start=1):
        ticket = draft / f"{number:06d}.csv"
        with ticket.open("w") as file:
            file.write(f"{from_us},{to_us}\n")
            file.flush()
            os.fsync(file.fileno())
        # Spark reads files in the order of these times.
        os.utime(ticket, (number, number))
    flush_folder(draft)
    draft.rename(folder)
    flush_folder(folder.parent)


def _last_moment(folder: Path, start_us: int) -> int:
    """Where the tickets end."""
    newest = max(folder.glob("*.csv"), default=None)
    return start_us if newest is None else int(newest.read_text().split(",")[1])
