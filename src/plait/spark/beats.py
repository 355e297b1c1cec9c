"""Beats as a source of Spark's: times that streams are known to have reached, where no rows say so.

A beat file is CSV without a header, `stream key,microseconds`. Files that all batches are done with may be
removed: Spark remembers which it has read by their names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.spark.file_paths import literal_path


def read_beats(session: SparkSession, folder: Path) -> DataFrame:
    """The beats of all streams: a streaming frame of a stream's key `stream` and `t` TIMESTAMP."""
    return (
        session.readStream.format("csv")
        .schema("stream STRING, microseconds BIGINT")
        .options(mode="FAILFAST", escape='"')
        .load(literal_path(folder))
        .select("stream", F.timestamp_micros("microseconds").alias("t"))
    )


def beats_in(files: Iterable[Path]) -> dict[str, int]:
    """How far streams, by their keys, have come by the beats in these files, in microseconds."""
    reached: dict[str, int] = {}
    for file in files:
        with file.open(encoding="utf-8", newline="") as lines:
            for stream, us in csv.reader(lines):
                reached[stream] = max(int(us), reached.get(stream, int(us)))
    return reached
