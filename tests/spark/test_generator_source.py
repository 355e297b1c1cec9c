"""Generated streams on Spark: the rows of the generator, once each, however batches are cut and replayed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from plait.catalog import ColumnDefinition, Stream
from plait.generators import GENERATORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SECOND = 1_000_000
START = 1_772_409_600 * SECOND
START_TEXT, END_TEXT = "2026-03-02 00:00:00", "2026-03-02 00:01:00"


def declared(name: str, rate: float = 100.0) -> Stream:
    """A minute of a generator."""
    generator = GENERATORS[name]
    return Stream(
        name=name.split(".")[1],
        columns=tuple(ColumnDefinition(column.name, column.type) for column in generator.columns),
        connector="generator",
        options={"generator": name, "seed": 7},
        event_time=generator.event_time,
        rate_rows_per_s=rate,
        start=START_TEXT,
        end=END_TEXT,
    )


class Batches:
    """What a query was given, batch by batch; may refuse one, as a crash would."""

    def __init__(self, refuse: int | None = None) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.refuse = refuse

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.tables[number] = frame.toArrow()
        if number == self.refuse:
            raise RuntimeError("refused")

    @property
    def all(self) -> pa.Table:
        return pa.concat_tables(self.tables[number] for number in sorted(self.tables))


def read_all(frame: DataFrame, batches: Batches, checkpoint: Path) -> None:
    query = (
        frame.writeStream.foreachBatch(batches)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def same(actual: pa.Table, expected: pa.Table) -> bool:
    return bool(actual.cast(expected.schema).combine_chunks().equals(expected.combine_chunks()))


# Between them they have all types.
@pytest.mark.parametrize("name", ["airline.baggage", "auctions.auctions"])
def test_the_rows_are_the_generators(name: str, spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    batches = Batches()
    read_all(generator_frame(spark, declared(name)), batches, tmp_path)
    assert same(batches.all, GENERATORS[name].rows(7, 100, START, START + 60 * SECOND))


def test_columns_are_those_declared_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    stream = declared("airline.baggage")
    by_name = {column.name: column for column in stream.columns}
    chosen = (by_name["at"], replace(by_name["flight"], name="Flight"))
    batches = Batches()
    read_all(generator_frame(spark, replace(stream, columns=chosen)), batches, tmp_path)
    expected = GENERATORS["airline.baggage"].rows(7, 100, START, START + 60 * SECOND)
    assert batches.all.column_names == ["at", "Flight"]
    assert batches.all.column("Flight").to_pylist() == expected.column("flight").to_pylist()


def test_large_batches_are_made_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    batches = Batches()
    read_all(generator_frame(spark, declared("airline.checkins", 10_000.0)), batches, tmp_path)
    (table,) = batches.tables.values()
    assert table.num_rows == 600_000
    assert same(table, GENERATORS["airline.checkins"].rows(7, 10_000, START, START + 60 * SECOND))


def test_batches_are_bounded_and_replayed_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    from plait.spark.generator_source import generator_frame

    stream = declared("auctions.bids")
    first = Batches(refuse=1)
    with pytest.raises(StreamingQueryException):
        read_all(generator_frame(spark, stream, rows_per_batch=2500), first, tmp_path)
    assert [table.num_rows for table in first.tables.values()] == [2500, 2500]
    again = Batches()
    # Another bound: the batch that was begun keeps the one it was begun with.
    read_all(generator_frame(spark, stream, rows_per_batch=1000), again, tmp_path)
    assert again.tables[1].equals(first.tables[1])
    read = Batches()
    read.tables = {0: first.tables[0], **again.tables}
    assert same(read.all, GENERATORS["auctions.bids"].rows(7, 100, START, START + 60 * SECOND))


def test_rows_come_as_the_clock_reaches_them(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    stream = replace(declared("auctions.bids", 1000.0), start="earliest", end=None)
    now_us = time.time_ns() // 1000
    began_us = now_us - 5 * SECOND
    batches = Batches()
    read_all(generator_frame(spark, stream, now_us=began_us), batches, tmp_path)
    reached_us = last_offset(tmp_path)
    assert now_us <= reached_us <= time.time_ns() // 1000
    # A second run goes on where the first one ended, whatever its own start is.
    read_all(generator_frame(spark, stream, now_us=0), batches, tmp_path)
    assert last_offset(tmp_path) > reached_us
    assert same(batches.all, GENERATORS["auctions.bids"].rows(7, 1000, began_us, last_offset(tmp_path)))


def test_a_stream_that_has_not_begun_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    stream = replace(declared("auctions.bids"), start="2999-01-01 00:00:00", end=None)
    batches = Batches()
    read_all(generator_frame(spark, stream), batches, tmp_path)
    assert not batches.tables or batches.all.num_rows == 0


def last_offset(checkpoint: Path) -> int:
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return int(json.loads(newest.read_text().splitlines()[-1])["us"])
