"""Where the rows of streams come from: files, anything that Spark's `readStream` reads, generators, and
streaming frames that somebody has in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.catalog import Catalog, Stream
from plait.engines.stored_files import position
from plait.errors import UserError
from plait.expressions.spark import type_to_spark
from plait.spark import records
from plait.spark.beats import read_beats
from plait.spark.generator_source import generator_frame
from plait.spark.source_files import check_files, read_files


class Sources:
    """The streams of a catalog, in a session. `frames` are streaming frames, by the stream's name."""

    def __init__(
        self, session: SparkSession, catalog: Catalog, frames: Mapping[str, DataFrame] | None = None
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._frames = {name.lower(): frame for name, frame in (frames or {}).items()}

    def check(self, streams: Iterable[str]) -> None:
        """An error for the first of the streams that cannot be read."""
        for name in streams:
            stream = self._catalog.stream(name)
            if stream.connector == "files" and name.lower() not in self._frames:
                check_files(stream)
            else:
                self._records(stream)

    def rows(self, stream: str, columns: Sequence[str], beats: Path) -> DataFrame:
        """The stream's good rows, and the beats for it: a streaming frame.

        Its columns are `c0`, `c1`, … (the columns asked for, by name), the event time `t`, and `beat`, which
        is true for beats: all they have is a time.
        """
        definition = self._catalog.stream(stream)
        asked = [definition.columns[position(definition, name)] for name in columns]
        rows = records.good(records.judged(self._records(definition), definition), definition).select(
            *(F.col(f"c{position(definition, name)}").alias(f"c{k}") for k, name in enumerate(columns)),
            "t",
            F.lit(False).alias("beat"),
        )
        beating = read_beats(self._session, beats, stream.lower()).select(
            *(F.lit(None).cast(type_to_spark(c.type)).alias(f"c{k}") for k, c in enumerate(asked)),
            "t",
            F.lit(True).alias("beat"),
        )
        return rows.union(beating)

    def records(self, stream: str) -> DataFrame:
        """Everything that comes by the stream, good or bad: a streaming frame with `t`, `reason` (NULL for a
        good record) and `record`."""
        definition = self._catalog.stream(stream)
        return records.judged(self._records(definition), definition).select("t", "reason", "record")

    def bad_records(self, stream: str) -> DataFrame:
        """What `rows` leaves out: a streaming frame of `reason` and `record`, both texts."""
        definition = self._catalog.stream(stream)
        return records.bad(records.judged(self._records(definition), definition))

    def _records(self, stream: Stream) -> DataFrame:
        match stream.connector:
            case "files":
                return read_files(self._session, stream)
            case "generator":
                frame = generator_frame(self._session, stream)
                return records.of_values(frame, stream, [F.col(f"`{c.name}`") for c in stream.columns])
            case _:
                raise UserError(
                    "no-connector", f"stream `{stream.name}` has no connector, and no DataFrame was given"
                )
