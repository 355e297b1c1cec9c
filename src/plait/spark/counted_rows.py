"""Counts the records of streams as they are read, and exactly those rows that come too late: Spark's own
counter is not exact.

Of each row that an operator could find too late it is known until which watermark (µs) it is in time. The
action that computes a batch observes the records on their way: how many there are, how many bad ones, and the
first watermark that is too late for one of them. Late rows and bad records are rare. Only if a batch has some
are its records read again, for them.

If Spark loses a machine and computes a part of a batch again, it counts the records of that part twice; late
rows and bad records it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived, Batch
from plait.errors import UnsupportedError
from plait.spark.executed_batch import ExecutedBatch, keeps_state

_GOOD = "(reason IS NULL)"


@dataclass(frozen=True)
class _Counts:
    """Of good records, the greatest event time, the last watermark for which all of them are in time, and how
    many there are on which an expression fails."""

    records: int
    bad: int
    last_us: int | None
    in_time_until: int | None
    failing: int = 0


class CountedRows:
    """The records of a stream, known by its key, bad ones among them: these have a `reason`."""

    def __init__(self, stream: str, records: DataFrame) -> None:
        if keeps_state(records):
            raise UnsupportedError(
                "stream-state",
                f"the DataFrame given for stream `{stream}` keeps state: late rows and bad records of it "
                "cannot be looked at again",
                hint="let queries over it be computed outside Spark, too (without --engines spark), "
                "or write its rows to a stream of their own first",
            )
        self.stream = stream
        self._records = records
        self._in_time_until: list[str] = []
        self._failing: list[str] = []

    def watch(self, in_time_until: str) -> None:
        """A way on which rows can be too late. A row that goes several ways is late if it is so on one. To be
        said before the rows are read."""
        self._in_time_until.append(in_time_until)

    def watch_failing(self, fails: str) -> None:
        """What is true of rows on which an expression fails. To be said before the rows are read."""
        self._failing.append(fails)

    @property
    def observed(self) -> DataFrame:
        """The records, observed as they are read."""
        return self._records.observe(
            self._name,
            F.count(F.lit(1)).alias("records"),
            F.count("reason").alias("bad"),
            F.max(F.when(F.expr(_GOOD), F.expr("unix_micros(t)"))).alias("last_us"),
            F.min(self._until).alias("in_time_until"),
            *([F.count_if(F.expr(self._fails)).alias("failing")] if self._failing else []),
        )

    def counts(self, batch: ExecutedBatch) -> _Counts:
        return _Counts(*batch.observed(self._name))

    def bad_records(self, batch: ExecutedBatch) -> list[dict[str, str]]:
        bad = batch.rows(self._name).where(f"NOT {_GOOD}").select("reason", "record")
        found: list[dict[str, str]] = bad.toArrow().to_pylist()
        return found

    def late_rows(self, batch: ExecutedBatch, late_before_us: int) -> DataFrame:
        return batch.rows(self._name).where(self._until <= F.lit(late_before_us))

    def failing_rows(self, batch: ExecutedBatch) -> DataFrame:
        return batch.rows(self._name).where(self._fails)

    @property
    def _fails(self) -> str:
        return f"{_GOOD} AND ({' OR '.join(self._failing)})"

    @property
    def _name(self) -> str:
        """Of what is observed."""
        return f"rows of {self.stream}"

    @property
    def _until(self) -> Column:
        """Until when a good record is in time, NULL if no operator cares."""
        never = F.lit(None).cast("BIGINT")
        # The least that is not NULL; it wants at least two to choose from.
        return F.when(F.expr(_GOOD), F.least(never, never, *map(F.expr, self._in_time_until)))


class Counting:
    """A batch, which is counted when its frame has been computed."""

    def __init__(self, frame: DataFrame, batch: Batch, counted: Iterable[CountedRows]) -> None:
        self._executed = ExecutedBatch(frame)
        self._batch = batch
        self._counted = {each.stream: each for each in counted}
        self._counts: dict[str, _Counts] = {}

    @property
    def executed_plan(self) -> JavaObject:
        """How Spark has computed the batch (`plait.spark.executed_plan`)."""
        return self._executed.plan

    @property
    def arrived(self) -> Mapping[str, Arrived]:
        return {stream: self._arrived(stream) for stream in self._counted}

    def _arrived(self, stream: str) -> Arrived:
        counts = self._counts_of(stream)
        is_wanted = counts.bad and stream in self._batch.bad_records_of
        bad = self._counted[stream].bad_records(self._executed) if is_wanted else ()
        return Arrived(counts.records - counts.bad, counts.last_us, bad)

    @property
    def late(self) -> Mapping[str, DataFrame]:
        """The rows that came too late, by stream, if there are any."""
        before_us = self._batch.late_before_us
        if before_us is None:
            return {}
        return {
            stream: counted.late_rows(self._executed, before_us)
            for stream, counted in self._counted.items()
            if (until := self._counts_of(stream).in_time_until) is not None and until <= before_us
        }

    @property
    def failing(self) -> Mapping[str, DataFrame]:
        """The rows on which expressions fail, by stream, if there are any."""
        return {
            stream: counted.failing_rows(self._executed)
            for stream, counted in self._counted.items()
            if self._counts_of(stream).failing
        }

    def _counts_of(self, stream: str) -> _Counts:
        if stream not in self._counts:
            self._counts[stream] = self._counted[stream].counts(self._executed)
        return self._counts[stream]
