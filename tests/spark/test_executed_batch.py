"""What lies behind the frame of a micro-batch: observations, and the rows that they saw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.patience import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BATCHES = 3
ROWS = 10


def streamed(spark: SparkSession) -> DataFrame:
    """Ten rows a batch, of a source that reads ranges of offsets: `value` and a time."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=ROWS, numPartitions=2, startTimestamp=1_767_268_800_000, advanceMillisPerBatch=1000
    )
    observed = rows.load().observe("seen", F.count(F.lit(1)).alias("rows"), F.max("value").alias("last"))
    return observed.withWatermark("timestamp", "0 seconds")


def looked_at(frame: DataFrame, folder: Path) -> list[tuple[Any, ...]]:
    """Of some batches: how many rows come out, what was observed, and the rows when they are read again."""
    from plait.spark.executed_batch import ExecutedBatch

    found: list[tuple[Any, ...]] = []
    raised: list[Exception] = []

    def look(batch_frame: DataFrame, number: int) -> None:
        if number >= BATCHES:
            return  # the query is being stopped
        try:
            executed = ExecutedBatch(batch_frame)
            given = batch_frame.toArrow().num_rows
            again = [row.value for row in executed.rows("seen").orderBy("value").collect()]
            found.append((given, executed.observed("seen"), again))
        except Exception as error:
            raised.append(error)

    query = (
        frame.writeStream.foreachBatch(look).option("checkpointLocation", str(folder / "checkpoint")).start()
    )
    try:
        wait_until(lambda: len(found) == BATCHES or bool(raised) or query.exception() is not None)
    finally:
        query.stop()
    if raised:
        raise raised[0]
    return found


def expected(given: list[int]) -> list[tuple[Any, ...]]:
    return [
        (count, [ROWS, number * ROWS + ROWS - 1], [*range(number * ROWS, number * ROWS + ROWS)])
        for number, count in enumerate(given)
    ]


def test_rows_before_a_filter_are_observed_and_read_again(spark: SparkSession, tmp_path: Path) -> None:
    assert looked_at(streamed(spark).where("value % 5 = 0"), tmp_path) == expected([2, 2, 2])


def test_so_are_rows_before_an_operator_that_keeps_state(spark: SparkSession, tmp_path: Path) -> None:
    sums = streamed(spark).groupBy("timestamp").sum("value")
    assert looked_at(sums, tmp_path) == expected([0, 1, 1])


def test_rows_that_nobody_wants_are_observed(spark: SparkSession, tmp_path: Path) -> None:
    assert looked_at(streamed(spark).where("FALSE"), tmp_path) == expected([0, 0, 0])


def test_each_of_two_queries_has_its_own_batches(spark: SparkSession, tmp_path: Path) -> None:
    other = streamed(spark).where("value < 0").writeStream.foreachBatch(lambda *_: None)
    running = other.option("checkpointLocation", str(tmp_path / "other")).start()
    try:
        assert looked_at(streamed(spark).where("value % 2 = 0"), tmp_path) == expected([5, 5, 5])
    finally:
        running.stop()
