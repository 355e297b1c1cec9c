"""Streams declared by hand, read once by Spark and once by what computes definitions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.catalog import Catalog, ColumnDefinition, OptionValue, Stream
from plait.engines import stored_files
from plait.engines.duckdb import Database
from plait.engines.event_times import set_bad_records_aside
from plait.expressions.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type, decimal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "number": INT,
    "price": decimal(6, 2),
    "ratio": DOUBLE,
    "sure": BOOLEAN,
    "word": STRING,
    "day": DATE,
    "at": TIMESTAMP,
}
HEADER = ",".join(COLUMNS)
NOON = datetime(2026, 1, 1, 12)

_numbers = itertools.count()


def files(path: Path, file_format: str, columns: Mapping[str, Type] = COLUMNS, **more: Any) -> Stream:
    """A stream `s` of stored files; what is no field of a stream is one of its options."""
    fields = {key: more.pop(key) for key in list(more) if key in Stream.__dataclass_fields__}
    options: dict[str, OptionValue] = {"path": str(path), "format": file_format, **more}
    return declared("files", columns, options, **fields)


def declared(
    connector: str, columns: Mapping[str, Type], options: Mapping[str, OptionValue], **fields: Any
) -> Stream:
    definitions = tuple(ColumnDefinition(name, type_) for name, type_ in columns.items())
    return Stream("s", definitions, connector=connector, options=options, **{"event_time": "at", **fields})


@dataclass(frozen=True)
class Reading:
    """The good rows, sorted, and the reasons why the others are bad, by record."""

    rows: list[tuple[Any, ...]]
    bad: dict[str, str]


def read(spark: SparkSession, stream: Stream, folder: Path) -> Reading:
    """All that Spark reads from the stream by now, without the beats."""
    from plait.spark.sources import Sources

    sources = Sources(spark, Catalog(streams={"s": stream}))
    records = sources.records("s", [column.name for column in stream.columns])
    rows = collected(records.where("reason IS NULL"), folder)
    width = len(stream.columns)
    bad = collected(records.where("reason IS NOT NULL").select("reason", "record"), folder)
    assert len({record for _, record in bad}) == len(bad), "records of a test differ"
    return Reading(
        rows=ordered([row[:width] for row in rows]),
        bad={record: reason for reason, record in bad},
    )


def collected(frame: DataFrame, folder: Path, checkpoint: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a streaming frame that are there by now; raises what a batch of it raises."""
    rows: list[tuple[Any, ...]] = []
    raised: list[Exception] = []

    def collect(batch: DataFrame, _: int) -> None:
        names = batch.columns
        try:
            rows.extend(tuple(row[name] for name in names) for row in batch.toArrow().to_pylist())
        except Exception as error:
            raised.append(error)

    place = folder / (checkpoint or f"checkpoint{next(_numbers)}")
    query = (
        frame.writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(place))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    if raised:
        raise raised[0]
    return [tuple(_plain(value) for value in row) for row in rows]


def evaluated(stream: Stream, now: datetime | None = None) -> tuple[list[tuple[Any, ...]], int]:
    """The good rows and the number of bad ones, as the evaluator reads them."""
    loaded, counted = database().unused_name("loaded"), database().unused_name("counted")
    stored_files.load(database(), stream, loaded)
    bad = set_bad_records_aside(database(), stream, loaded, counted, now)
    return ordered([row[:-1] for row in database().fetch(f"SELECT * FROM {counted}")]), bad


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sorted, with NaN as text, since it does not equal itself."""
    shown = [tuple("NaN" if value != value else value for value in row) for row in rows]
    return sorted(shown, key=repr)


@cache
def database() -> Database:
    """One for all tests: to start one takes longer than a test."""
    return Database(threads=1)


def _plain(value: Any) -> Any:
    """Times without a zone, as DuckDB gives them."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
