"""Counts the rows of streams as they are read, and exactly those that come too late: Spark's own counter is
not exact.

Of each row that an operator could find too late it is known until which watermark (µs) it is in time. The
action that computes a batch observes the rows on their way: how many there are, how many bad records, and the
first watermark that is too late for one of them. Late rows and bad records are rare. Only if a batch has some
is it read again, for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived, Batch
from plait.spark.executed_batch import ExecutedBatch


class WatchedRows:
    """The rows of a stream, known by its key, with bad records and beats among them."""

    def __init__(self, stream: str, rows: DataFrame) -> None:
        self.stream = stream
        self._rows = rows
        self._in_time_until: list[str] = []

    def watch(self, in_time_until: str) -> None:
        """A way on which rows can be too late. A row that goes several ways is late if it is so on one."""
        self._in_time_until.append(in_time_until)

    @property
    def name(self) -> str:
        """Of what is observed."""
        return f"rows of {self.stream}"

    @property
    def observed(self) -> DataFrame:
        """The rows, observed as they are read."""
        good = F.expr("NOT beat AND reason IS NULL")
        return self._rows.observe(
            self.name,
            F.count_if(F.expr("NOT beat")).alias("records"),
            F.count("reason").alias("bad"),
            F.max(F.when(good, F.expr("unix_micros(t)"))).alias("last_us"),
            F.min(F.when(good, self.in_time_until)).alias("in_time_until"),
        )

    @property
    def in_time_until(self) -> Column:
        never = F.lit(None).cast("BIGINT")
        return F.least(never, never, *map(F.expr, self._in_time_until))


class Counting:
    """A batch, which is counted when its frame has been computed."""

    def __init__(self, frame: DataFrame, batch: Batch, watched: Sequence[WatchedRows]) -> None:
        self._executed = ExecutedBatch(frame)
        self._late_before_us = batch.late_before_us
        self._watched = {each.stream: each for each in watched}

    @property
    def arrived(self) -> Mapping[str, Arrived]:
        return {stream: self._arrived(stream) for stream in self._watched}

    def _arrived(self, stream: str) -> Arrived:
        records, bad, last_us, _ = self._counts(stream)
        return Arrived(records - bad, last_us, self._bad_records(stream) if bad else [])

    def _bad_records(self, stream: str) -> list[dict[str, str]]:
        bad = self._rows(stream).where("reason IS NOT NULL").select("reason", "record")
        found: list[dict[str, str]] = bad.toArrow().to_pylist()
        return found

    @property
    def late(self) -> list[str]:
        """The streams of which rows came too late."""
        if self._late_before_us is None:
            return []
        first = {stream: self._counts(stream)[-1] for stream in self._watched}
        return [
            stream for stream, until in first.items() if until is not None and until <= self._late_before_us
        ]

    def late_rows(self, stream: str) -> DataFrame:
        """These rows themselves."""
        is_late = self._watched[stream].in_time_until <= F.lit(self._late_before_us)
        return self._rows(stream).where("NOT beat AND reason IS NULL").where(is_late)

    def _rows(self, stream: str) -> DataFrame:
        return self._executed.rows(self._watched[stream].name)

    def _counts(self, stream: str) -> Sequence[int]:
        return self._executed.observed(self._watched[stream].name)
