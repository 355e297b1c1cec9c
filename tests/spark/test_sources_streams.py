"""Streams that Spark reads by itself, that are given as frames, and the beats that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.stream_reading import NOON, collected, declared, files, read

from plait.catalog import Catalog, OptionValue, Stream
from plait.errors import PlaitError, UserError
from plait.expressions.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Type, decimal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.spark.sources import Sources

pytestmark = pytest.mark.spark

RATE: Mapping[str, OptionValue] = {
    "format": "rate-micro-batch",
    "option.rowsPerBatch": 3,
    "option.numPartitions": 1,
    "option.startTimestamp": 1_767_268_800_000,
    "option.advanceMillisPerBatch": 1000,
}
RATE_COLUMNS = {"value": BIGINT, "Timestamp": TIMESTAMP}


def sources(spark: SparkSession, stream: Stream, frames: Mapping[str, DataFrame] | None = None) -> Sources:
    from plait.spark.sources import Sources

    return Sources(spark, Catalog(streams={"s": stream}), frames)


def from_spark(columns: Mapping[str, Type], options: Mapping[str, OptionValue], **fields: Any) -> Stream:
    return declared("spark", columns, options, **fields)


def refusal(spark: SparkSession, stream: Stream, frames: Mapping[str, Any] | None = None) -> PlaitError:
    with pytest.raises(PlaitError) as raised:
        sources(spark, stream, frames).records("s")
    return raised.value


def test_whatever_spark_reads_is_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    reading = read(spark, from_spark(RATE_COLUMNS, RATE, event_time="timestamp"), tmp_path)
    assert reading.rows == [(0, NOON), (1, NOON), (2, NOON)]


def test_spark_is_told_the_columns_of_formats_that_do_not_know_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(
        pa.table({"n": pa.array([1]), "at": pa.array([NOON], pa.timestamp("us", "UTC"))}), data / "a"
    )
    stream = from_spark({"n": BIGINT, "at": TIMESTAMP}, {"format": "parquet", "path": str(data)})
    assert read(spark, stream, tmp_path).rows == [(1, NOON)]


def test_objects_in_the_column_value(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_text('{"n": 1, "at": "2026-01-01 12:00:00"}\n{"n": 1.5, "at": "2026-01-01"}\nno\n')
    options = {"format": "text", "path": str(data), "value_format": "json"}
    reading = read(spark, from_spark({"n": INT, "at": TIMESTAMP}, options), tmp_path)
    assert reading.rows == [(1, NOON)]
    assert sorted(reading.bad.values()) == [
        "column `n` holds '1.5', which is no INT",
        "the line is no JSON object",
    ]


@pytest.mark.parametrize(
    ("columns", "options", "code", "message"),
    [
        (
            {"value": INT, "timestamp": TIMESTAMP},
            RATE,
            "source-type",
            "is declared INT, but its source gives BIGINT",
        ),
        ({"value": STRING, "timestamp": TIMESTAMP}, RATE, "source-type", "gives BIGINT"),
        ({"value": decimal(10, 0), "timestamp": TIMESTAMP}, RATE, "source-type", "gives BIGINT"),
        ({"value": DOUBLE, "timestamp": TIMESTAMP}, RATE, "source-type", "gives BIGINT"),
        (
            {"valeu": BIGINT, "timestamp": TIMESTAMP},
            RATE,
            "source-columns",
            "`valeu` of stream `s` is not in its",
        ),
        (RATE_COLUMNS, {**RATE, "value_format": "json"}, "source-columns", "gives no text `value`"),
        (RATE_COLUMNS, {"format": "kafka9"}, "no-such-source", "`kafka9`, which this Spark does not have"),
        (RATE_COLUMNS, {**RATE, "option.rowsPerBatch": -1}, "spark", "failed in Spark"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    spark: SparkSession,
    columns: Mapping[str, Type],
    options: Mapping[str, OptionValue],
    code: str,
    message: str,
) -> None:
    error = refusal(spark, from_spark(columns, options, event_time="timestamp"))
    assert error.code == code
    assert message in error.message


def test_given_frames_run_in_our_session(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.session import adopted

    users = spark.newSession()
    users.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = users.readStream.format("rate-micro-batch").options(
        **{
            key.removeprefix("option."): str(value)
            for key, value in RATE.items()
            if key.startswith("option.")
        }
    )
    given = frame.load().selectExpr("CAST(value AS SMALLINT) AS N", "timestamp AS at")
    stream = declared("", {"n": INT, "at": TIMESTAMP}, {})
    rows = collected(sources(adopted(users), stream, {"S": given}).records("s", ["n", "at"]), tmp_path)
    assert sorted(row[:2] for row in rows) == [(0, NOON), (1, NOON), (2, NOON)]
    assert users.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


def test_frames_that_cannot_be_streams_are_refused(spark: SparkSession) -> None:
    stream = declared("", {"value": BIGINT, "at": TIMESTAMP}, {})
    assert refusal(spark, stream).message == "stream `s` has no connector, and no DataFrame was given"
    assert refusal(spark, stream, {"s": "a table"}).code == "no-frame"
    stored = spark.range(1).selectExpr("id AS value", "current_timestamp() AS at")
    assert refusal(spark, stream, {"s": stored}).code == "not-streaming"
    rate = spark.readStream.format("rate").load()
    assert refusal(spark, stream, {"s": rate}).code == "source-columns"
    timed = rate.withColumnRenamed("timestamp", "at")
    assert (
        refusal(spark, stream, {"s": timed.selectExpr("at", "double(value) AS value")}).code == "source-type"
    )
    assert refusal(spark, stream, {"s": timed.withWatermark("at", "1 second")}).code == "watermark-twice"
    sources(spark, stream, {"s": timed}).records("s")


def test_beats_come_with_the_rows_of_their_stream(spark: SparkSession, tmp_path: Path) -> None:
    data, beats = tmp_path / "data", tmp_path / "beats"
    for folder in (data, beats):
        folder.mkdir()
    (data / "a.csv").write_text("n,word,at\n1,a,2026-01-01 12:00:00\n")
    (beats / "000000000.csv").write_text("s,1767268801000000\nother,1767268802000000\n")
    stream = files(data, "csv", {"n": INT, "word": STRING, "at": TIMESTAMP})
    columns = ["word", "n"]

    def arriving() -> list[tuple[Any, ...]]:
        read = sources(spark, stream)
        both = read.records("s", columns).union(read.beats_like("s", columns, beats))
        return collected(both.drop("reason", "record"), tmp_path, "checkpoint")

    second = datetime(2026, 1, 1, 12, 0, 1)
    assert sorted(arriving(), key=repr) == [("a", 1, NOON, False), (None, None, second, True)]
    # Files that batches are done with may go: what comes next is still found, and nothing twice.
    (beats / "000000000.csv").unlink()
    (beats / "000000001.csv").write_text("s,1767268802000000\n")
    assert arriving() == [(None, None, datetime(2026, 1, 1, 12, 0, 2), True)]
    # The last batch was not committed: it is read again from the files that it read before.
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        if file.name.removeprefix(".").startswith("1"):
            file.unlink()
    assert arriving() == [(None, None, datetime(2026, 1, 1, 12, 0, 2), True)]


def test_files_that_come_later_are_checked_too(spark: SparkSession, tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    data.mkdir()
    times = pa.array([NOON], pa.timestamp("us", "UTC"))

    def put(name: str, **columns: Any) -> None:
        pq.write_table(pa.table({"at": times, **columns}), data / name)

    stream = files(data, "parquet", {"n": BIGINT, "at": TIMESTAMP})
    reading = sources(spark, stream)
    frame = reading.records("s")
    put("a.parquet", n=pa.array([1]))
    collected(frame, tmp_path, "checkpoint")
    reading.check_batch(["s"], checkpoint)
    put("b.parquet", m=pa.array([2]))
    (data / "empty.parquet").write_bytes(b"")
    collected(frame, tmp_path, "checkpoint")
    for _ in range(2):  # a batch that runs again is checked again
        with pytest.raises(UserError, match="column `n` of stream `s` is not in its data") as raised:
            reading.check_batch(["s"], checkpoint)
        assert str(data / "b.parquet") in raised.value.detail


def test_failures_name_the_file_and_a_way_out(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.failures import SPARK_ERRORS, explained

    columns = {"n": INT, "at": TIMESTAMP}
    good = "n,at\n1,2026-01-01\n"

    def failure(file_format: str, put: Any) -> PlaitError:
        data = tmp_path / f"{file_format}{len(list(tmp_path.iterdir()))}"
        data.mkdir()
        frame = sources(spark, files(data, file_format, columns)).records("s")
        put(data)
        with pytest.raises(SPARK_ERRORS) as raised:
            collected(frame, tmp_path)
        error = explained(raised.value, "query `q`")
        assert str(data) in error.render()
        assert error.hint
        assert "Exception" not in error.render()
        return error

    error = failure("parquet", lambda data: (data / "a b").write_text("this is no Parquet"))
    assert error.code == "unreadable-data"
    assert "is not a Parquet file" in error.detail
    long = pa.table({"n": pa.array([1]), "at": pa.array([NOON], pa.timestamp("us", "UTC"))})
    error = failure("parquet", lambda data: pq.write_table(long, data / "a"))
    assert error.message == "query `q` reads the column `n` as INT, but it is stored as INT64"
    error = failure("csv", lambda data: (data / "a").write_text("at,n\n2026-01-01,1\n"))
    assert error.code == "stored-columns"
    assert error.detail.endswith(": at, n\nin the others: n, at")
    error = failure("csv", lambda data: (data / "a.gz").write_text(good))
    assert error.code == "unreadable-data"
