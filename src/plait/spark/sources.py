"""Where the rows of streams come from: files, anything that Spark's `readStream` reads, generators, and
streaming frames that somebody has in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.catalog import Catalog, Stream
from plait.engines.data_errors import option
from plait.engines.stored_files import position
from plait.errors import UserError
from plait.expressions.spark import quoted, type_to_spark
from plait.spark.batch_files import FileLog, FilesRead
from plait.spark.beats import read_beats
from plait.spark.failures import REPLACE
from plait.spark.generator_source import generator_frame
from plait.spark.records import judged, of_values
from plait.spark.source_files import FileChecks, list_files, read_files
from plait.spark.source_streams import read_from_spark, read_given


class Sources:
    """The streams of a catalog, in a session. `frames` are streaming frames, by the stream's name; `tickets`
    says where a generated stream, by its key, keeps what it needs to be run on.

    To ask for a stream that cannot be read is a UserError.
    """

    def __init__(
        self,
        session: SparkSession,
        catalog: Catalog,
        frames: Mapping[str, DataFrame] | None = None,
        tickets: Callable[[str], Path] | None = None,
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._frames = {name.lower(): frame for name, frame in (frames or {}).items()}
        self._tickets = tickets
        self._checks = FileChecks()
        self._logs: dict[Path, FileLog] = {}

    def know(self, catalog: Catalog) -> None:
        """Read streams of that catalog, too: it has all that were there before."""
        self._catalog = catalog

    def check_batch(self, streams: Iterable[str], checkpoint: Path) -> None:
        """An error if a file that the batch of a query, known by its checkpoint, reads lacks a declared
        column: Spark would fill it with NULLs."""
        watched = [self._catalog.stream(name) for name in streams if self.has_parquet_files(name)]
        files = self._logs.setdefault(checkpoint, FileLog(checkpoint)).news() if watched else []
        for stream in watched:
            path = Path(option(stream, "path")).absolute()
            try:
                # An empty file has no rows, and so none that lack anything.
                self._checks.check_columns(
                    stream,
                    [f for f in files if path in (f, f.parent) and f.exists() and f.stat().st_size > 0],
                )
            except FileNotFoundError:
                continue  # it was taken away just now: Spark will say so
            except UserError as error:
                del self._logs[checkpoint]  # the batch will run again, and has to be held against it again
                raise UserError(error.code, error.message, detail=error.detail, hint=REPLACE) from None

    def files_read(self, stream: str, checkpoint: Path) -> FilesRead | None:
        """The files of a stream that a query, known by its checkpoint, reads; None if the stream has none."""
        definition = self._catalog.stream(stream)
        if definition.connector != "files" or stream.lower() in self._frames:
            return None
        return FilesRead(checkpoint, Path(option(definition, "path")).absolute())

    def has_parquet_files(self, stream: str) -> bool:
        definition = self._catalog.stream(stream)
        is_given = stream.lower() in self._frames
        return not is_given and definition.connector == "files" and option(definition, "format") == "parquet"

    def files(self, stream: str) -> DataFrame:
        """The files of a stream, to be told which are new rather than to be read: a streaming frame."""
        definition = self._catalog.stream(stream)
        self._checks.check_stream(definition)
        return list_files(self._session, definition)

    def beats(self, folder: Path) -> DataFrame:
        """The beats of all streams: a streaming frame."""
        return read_beats(self._session, folder)

    def records(self, stream: str, columns: Sequence[str] = ()) -> DataFrame:
        """Everything that comes by the stream, in a streaming frame: the columns asked for, by name, as `c0`,
        `c1`, …, the event time `t`, and `beat`, which is false. Bad records have a `reason`, and the `record`
        as text."""
        definition = self._catalog.stream(stream)
        return self._judged(definition).select(
            *(F.col(f"c{position(definition, name)}").alias(f"c{k}") for k, name in enumerate(columns)),
            "t",
            F.lit(False).alias("beat"),
            "reason",
            F.when(F.col("reason").isNotNull(), F.col("record")).alias("record"),
        )

    def beats_like(self, stream: str, columns: Sequence[str], beats: Path) -> DataFrame:
        """The beats for the stream, in a streaming frame of the same columns: all that beats have is a
        time."""
        definition = self._catalog.stream(stream)
        asked = [definition.columns[position(definition, name)] for name in columns]
        beating = self.beats(beats).where(F.col("stream") == stream.lower())
        return beating.select(
            *(F.lit(None).cast(type_to_spark(c.type)).alias(f"c{k}") for k, c in enumerate(asked)),
            "t",
            F.lit(True).alias("beat"),
            F.lit(None).cast("string").alias("reason"),
            F.lit(None).cast("string").alias("record"),
        )

    def _judged(self, stream: Stream) -> DataFrame:
        return judged(self._records(stream), stream)

    def _records(self, stream: Stream) -> DataFrame:
        given = self._frames.get(stream.name.lower())
        if given is not None:
            return read_given(self._session, stream, given)
        match stream.connector:
            case "files":
                self._checks.check_stream(stream)
                return read_files(self._session, stream)
            case "spark":
                return read_from_spark(self._session, stream)
            case "generator":
                folder = self._tickets(stream.name.lower()) if self._tickets else None
                frame = generator_frame(self._session, stream, folder)
                return of_values(frame, stream, [F.col(quoted(c.name)) for c in stream.columns])
            case _:
                raise UserError(
                    "no-connector",
                    f"stream `{stream.name}` has no connector, and no DataFrame was given",
                    hint="declare it WITH (connector = 'files', …), or give a streaming DataFrame for it",
                )
