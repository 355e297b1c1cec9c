"""Single micro-batches: tables as of each, batches given again, schemas of what is published."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.native_runs import (
    FileStreams,
    Run,
    declared,
    native_fragment,
    started,
    store_tables,
)

from plait.expressions.arrow import arrow_schema
from plait.runtime.arrow_rows import ArrowRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE rooms (plug INT, room STRING);
CREATE CONTINUOUS QUERY in_rooms AS
  SELECT m.room AS `the room`, CAST(r.load AS DECIMAL(9,2)) AS load, r.at, CAST(r.at AS DATE) AS day
  FROM readings r, rooms m WHERE r.plug = m.plug;
CREATE CONTINUOUS QUERY never AS SELECT load FROM readings WHERE plug = 1 AND plug = 2;
CREATE CONTINUOUS QUERY never_counted AS
  SELECT count(*) AS n, window_end FROM readings [RANGE 10 SECONDS] WHERE plug = 1 AND plug = 2;
CREATE CONTINUOUS QUERY last_windows AS
  SELECT plug, count(*) AS n, window_end FROM readings [RANGE 10 SECONDS] GROUP BY plug;
"""
NOON = datetime(2026, 1, 1, 12)


def begun(session: SparkSession, query: str, folder: Path) -> tuple[FileStreams, Run, dict[str, Path]]:
    catalog, bound = declared(QUERIES, query)
    return FileStreams(session, catalog, folder), Run(native_fragment(bound, catalog)), {}


def test_a_batch_sees_the_tables_of_its_time_and_publishes_the_declared_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    from plait.spark.native import NativeComputation

    catalog, query = declared(QUERIES, "in_rooms")
    streams, done, stored = begun(spark, "in_rooms", tmp_path)
    running = started(
        NativeComputation(done.fragment, catalog, streams, streams.beats),
        done,
        stored,
        tmp_path / "checkpoint",
    )
    for room in ("kitchen", "hall"):
        store_tables(stored, catalog, {"rooms": [(1, room)]}, tmp_path)
        streams.add("readings", [(1, 5, NOON), (2, 6, NOON)])
        running.processAllAvailable()
    running.stop()
    assert [row[0] for row in done.rows] == ["kitchen", "hall"]
    for table in done.published.values():
        assert table.schema == arrow_schema(query.columns, query.plan.types)


@pytest.mark.parametrize("query", ["never", "never_counted"])
def test_a_query_that_never_gives_rows_runs(query: str, spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.native import NativeComputation

    catalog, _ = declared(QUERIES, query)
    streams, done, stored = begun(spark, query, tmp_path)
    running = started(
        NativeComputation(done.fragment, catalog, streams, streams.beats),
        done,
        stored,
        tmp_path / "checkpoint",
    )
    streams.add("readings", [(1, 5, NOON)])
    running.processAllAvailable()
    streams.end()
    running.processAllAvailable()
    running.stop()
    assert done.published
    assert not done.rows


def test_windows_at_the_end_of_time_and_batches_given_again(spark: SparkSession, tmp_path: Path) -> None:
    """The last window of the year 9999 ends in the year 10000. A batch whose commit is lost is given again,
    with the same rows."""
    from plait.spark.native import NativeComputation

    catalog, _ = declared(QUERIES, "last_windows")
    streams, done, stored = begun(spark, "last_windows", tmp_path)

    def run_all() -> None:
        computation = NativeComputation(done.fragment, catalog, streams, streams.beats)
        started(computation, done, stored, tmp_path / "checkpoint", available_now=True).awaitTermination()

    streams.add("readings", [(1, 5, datetime(9999, 12, 31, 23, 59, 59, 999_999)), (None, 6, NOON)])
    run_all()
    streams.end()
    run_all()
    first = {number: _numbers(table) for number, table in done.published.items()}
    assert [row for rows in first.values() for row in rows] == [
        (None, 1, 1_767_268_810_000_000),
        (1, 1, 253_402_300_800_000_000),
    ]
    last = max(first)
    (tmp_path / "checkpoint" / "commits" / str(last)).unlink()
    (tmp_path / "checkpoint" / "commits" / f".{last}.crc").unlink(missing_ok=True)
    del done.published[last]
    run_all()
    assert {number: _numbers(table) for number, table in done.published.items()} == first


def _numbers(table: pa.Table) -> list[tuple[object, ...]]:
    as_numbers = table.set_column(2, "window_end", table["window_end"].cast(pa.int64()))
    return list(ArrowRows(as_numbers))
