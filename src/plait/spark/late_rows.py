"""Counts the rows of streams that come too late, exactly: Spark's own counter does not.

Beside the rows of the result, the streaming frame has one row for each row of a stream that an operator could
find too late, with the last watermark (µs) before which it is in time. The action that computes a batch
counts those whose time is over; Spark's watermark of the batch before decides.

If the rows have bad records among them, these are counted too, and taken by a second look at the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived, Batch

# The columns of such a row: which stream, and the last watermark for which the row is in time.
_STREAM = "late_stream"
_IN_TIME_UNTIL = "in_time_until"
_A_BEAT = -1  # instead of a stream
# Further columns where bad records are among the rows.
_REASON, _RECORD, _TIME_US = "late_reason", "late_record", "late_us"


@dataclass
class _Watched:
    rows: DataFrame
    until: list[str] = field(default_factory=list)
    items: Sequence[str] = ()


class LateRows:
    """The ways on which rows can be too late. Streams are known by their keys."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}

    def watch(self, stream: str, rows: DataFrame, in_time_until: str, items: Sequence[str] = ()) -> None:
        """Count rows of a stream: those of `rows`, beats among them, whose time is over.

        A row that goes several ways is late if it is on one of them. `items` are columns to be kept, for a
        second look at late rows.
        """
        watched = self._watched.setdefault(stream, _Watched(rows))
        watched.until.append(in_time_until)
        watched.items = items or watched.items

    @property
    def _with_bad(self) -> set[str]:
        """Streams whose rows have bad records among them."""
        return {key for key, watched in self._watched.items() if "reason" in watched.rows.columns}

    @property
    def _streams(self) -> list[str]:
        return sorted(self._watched)

    def beside(self, results: DataFrame) -> DataFrame:
        """The rows of the result, and all rows that may be late.

        Nothing is filtered here: Spark would move the filter to the beats, find that it is always false, and
        fail to read their files.
        """
        united = results.selectExpr(
            "*", f"CAST(NULL AS INT) AS {_STREAM}", f"CAST(NULL AS BIGINT) AS {_IN_TIME_UNTIL}"
        )
        for number, stream in enumerate(self._streams):
            watched = self._watched[stream]
            until = watched.until[0] if len(watched.until) == 1 else f"least({', '.join(watched.until)})"
            good, kept = "NOT beat", list(watched.items)
            if stream in self._with_bad:
                good = "NOT beat AND reason IS NULL"
                kept += [f"reason AS {_REASON}", f"record AS {_RECORD}"]
                kept.append(f"CASE WHEN {good} THEN unix_micros(t) END AS {_TIME_US}")
            rows = watched.rows.selectExpr(
                f"CASE WHEN {good} THEN {until} END AS {_IN_TIME_UNTIL}",
                f"CASE WHEN beat THEN {_A_BEAT} ELSE {number} END AS {_STREAM}",
                *kept,
            )
            united = united.unionByName(rows, allowMissingColumns=True)
        return united

    def counting(self, frame: DataFrame, batch: Batch) -> Counting:
        return Counting(frame, batch, self._streams, self._with_bad)


class Counting:
    """A batch. `results` are the rows of the result; what is counted is known when these were computed."""

    def __init__(
        self, frame: DataFrame, batch: Batch, streams: Sequence[str], with_bad: Collection[str]
    ) -> None:
        self._frame = frame
        self._streams = streams
        self._with_bad = with_bad
        self._observation = Observation()
        self._is_late = F.lit(False)
        if batch.late_before_us is not None:
            self._is_late = F.col(_IN_TIME_UNTIL) <= F.lit(batch.late_before_us)
        counts: list[Column] = []
        for number, stream in enumerate(streams):
            is_its = F.col(_STREAM) == number
            counts.append(F.count_if(is_its).alias(f"read_{number}"))
            counts.append(F.count_if(is_its & self._is_late).alias(f"late_{number}"))
            if stream in with_bad:
                counts.append(F.count(F.when(is_its, F.col(_REASON))).alias(f"bad_{number}"))
                counts.append(F.max(F.when(is_its, F.col(_TIME_US))).alias(f"last_{number}"))
        observed = frame.observe(self._observation, *counts) if counts else frame
        self.results = observed.where(F.col(_STREAM).isNull())

    @property
    def arrived(self) -> Mapping[str, Arrived]:
        return {stream: self._arrived(stream, count) for stream, count in self._counts("read").items()}

    def _arrived(self, stream: str, records: int) -> Arrived:
        if stream not in self._with_bad:
            return Arrived(records)
        number, counted = self._streams.index(stream), self._observation.get
        bad_records, last_us = counted[f"bad_{number}"], counted[f"last_{number}"]
        bad = self._bad_records(number) if bad_records else []
        return Arrived(records - bad_records, last_us, bad)

    def _bad_records(self, number: int) -> list[dict[str, str]]:
        bad = self._frame.where((F.col(_STREAM) == number) & F.col(_REASON).isNotNull())
        found: list[dict[str, str]] = (
            bad.selectExpr(f"{_REASON} AS reason", f"{_RECORD} AS record").toArrow().to_pylist()
        )
        return found

    @property
    def late(self) -> Mapping[str, int]:
        return {stream: count for stream, count in self._counts("late").items() if count}

    def late_rows(self, stream: str) -> DataFrame:
        """The late rows of a stream themselves, with the columns that were kept."""
        return self._frame.where((F.col(_STREAM) == self._streams.index(stream)) & self._is_late)

    def _counts(self, kind: str) -> dict[str, int]:
        if not self._streams:
            return {}
        counted = self._observation.get
        return {stream: counted[f"{kind}_{number}"] for number, stream in enumerate(self._streams)}
