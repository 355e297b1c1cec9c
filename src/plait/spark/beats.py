"""Beats as a source of Spark's: times that streams are known to have reached, where no rows say so.

A beat file is CSV without a header, `stream key,microseconds`. Files that all batches are done with may be
removed: Spark remembers which it has read by their names.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.spark.file_paths import literal_path


def read_beats(session: SparkSession, folder: Path, stream: str) -> DataFrame:
    """The beats of a stream (by its key): a streaming frame of `t` TIMESTAMP."""
    return (
        session.readStream.format("csv")
        .schema("stream STRING, microseconds BIGINT")
        .options(mode="FAILFAST", escape='"')
        .load(literal_path(folder))
        .where(F.col("stream") == stream)
        .select(F.timestamp_micros("microseconds").alias("t"))
    )
