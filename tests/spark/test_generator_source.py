"""Generated streams on Spark: the rows of the generator, once each, however batches are cut and replayed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from plait.catalog import ColumnDefinition, Stream
from plait.errors import UserError
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
    read_all(generator_frame(spark, declared(name), tmp_path / "tickets"), batches, tmp_path / "checkpoint")
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


def test_batches_are_bounded_and_replayed_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    from plait.spark.generator_source import generator_frame

    def frame(rows_per_ticket: int) -> DataFrame:
        stream = declared("auctions.bids")
        return generator_frame(spark, stream, tmp_path / "tickets", rows_per_ticket=rows_per_ticket)

    first = Batches(refuse=1)
    with pytest.raises(StreamingQueryException):
        read_all(frame(500), first, tmp_path / "checkpoint")
    assert [table.num_rows for table in first.tables.values()] == [2000, 2000]
    again = Batches()
    # The tickets that were written at first are those that count.
    read_all(frame(700), again, tmp_path / "checkpoint")
    assert again.tables[1].equals(first.tables[1])
    read = Batches()
    read.tables = {0: first.tables[0], **again.tables}
    assert [table.num_rows for table in read.tables.values()] == [2000, 2000, 2000]
    assert same(read.all, GENERATORS["auctions.bids"].rows(7, 100, START, START + 60 * SECOND))


@pytest.mark.parametrize("has_start", [True, False])
def test_rows_come_as_the_clock_reaches_them(has_start: bool, spark: SparkSession, tmp_path: Path) -> None:
    """With a start: first what lies in the past, then the rest, with no gap between them."""
    from plait.spark.generator_source import generator_frame

    began = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=90)
    start = began.isoformat(sep=" ") if has_start else "earliest"
    stream = replace(declared("auctions.bids", 50.0), start=start, end=None)
    batches = Batches()
    # Run on again and again: each time, what has come since the last.
    while last_second(tmp_path / "checkpoint") < 3:
        read_all(generator_frame(spark, stream, tmp_path / "tickets"), batches, tmp_path / "checkpoint")
    clock_began_us = clock_began_ms(tmp_path / "checkpoint") * 1000
    first_us = int(began.replace(tzinfo=UTC).timestamp() * SECOND) if has_start else clock_began_us
    last_us = clock_began_us + last_second(tmp_path / "checkpoint") * SECOND
    expected = GENERATORS["auctions.bids"].rows(7, 50, first_us, last_us)
    actual = batches.all.cast(expected.schema)
    order = [(name, "ascending") for name in expected.column_names]
    assert actual.num_rows == expected.num_rows >= 150
    assert same(actual.sort_by(order), expected.sort_by(order))


def test_a_stream_that_has_not_begun_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.generator_source import generator_frame

    stream = replace(declared("auctions.bids"), start="2999-01-01 00:00:00", end=None)
    batches = Batches()
    read_all(generator_frame(spark, stream), batches, tmp_path)
    assert not batches.tables or batches.all.num_rows == 0


def test_too_long_a_past_is_refused(spark: SparkSession) -> None:
    from plait.spark.generator_source import generator_frame

    stream = replace(declared("auctions.bids", 1e6), start="1970-01-02 00:00:00")
    with pytest.raises(UserError) as error:
        generator_frame(spark, stream)
    assert error.value.code == "generated-rows"


def clock_began_ms(checkpoint: Path) -> int:
    """What Spark's rate source has written down, as the last of the query's sources."""
    folder = max((checkpoint / "sources").iterdir(), key=lambda path: int(path.name))
    return int((folder / "0").read_text().split("\n")[1])


def last_second(checkpoint: Path) -> int:
    """How many seconds the rate source has given; 0 before its first batch."""
    offsets = list((checkpoint / "offsets").glob("[0-9]*"))
    if not offsets:
        return 0
    newest = max(offsets, key=lambda file: int(file.name))
    last = newest.read_text().splitlines()[-1]
    return int(last) if last.isdigit() else 0
