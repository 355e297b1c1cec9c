"""Queries that take more than there is, or is allowed: of rows, and of memory. The culprit is stopped and
named with what is to be done, and the others go on from the same micro-batch."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trouble.troubled import NOON, Troubled, await_failed, queries_over, said_of, states, stream

from plait.machine import MemoryShares
from plait.runtime import assembly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OTHERS = ("ones_of_s", "sums_of_s")
SAME = """
CREATE CONTINUOUS QUERY same AS
  SELECT x.v, y.k FROM s x [RANGE 1 HOUR], s y [RANGE 1 HOUR] WHERE x.v = y.v;
"""
PAIRS = """
CREATE CONTINUOUS QUERY pairs AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 HOUR], s y [RANGE 1 HOUR] WHERE x.k = y.k AND x.v <> y.v;
"""
ON_SPARK = """
CREATE CONTINUOUS QUERY pairs_of_0 AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 HOUR], t y [RANGE 1 HOUR] WHERE x.k = y.k AND x.k = 0;
CREATE CONTINUOUS QUERY pairs_of_1 AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 HOUR], t y [RANGE 1 HOUR] WHERE x.k = y.k AND x.k = 1;
CREATE CONTINUOUS QUERY pairs_and_others AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 HOUR] LEFT JOIN s y [RANGE 1 HOUR] ON x.k = y.k AND x.v <> y.v;
"""


def test_a_join_that_explodes(tmp_path: Path, spark: SparkSession) -> None:
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s") + SAME + PAIRS)
    with troubled.running(most_rows=100) as running:
        troubled.arrive("s", 0, 6)
        troubled.await_right(*OTHERS, "same", "pairs")
        troubled.arrive("s", 6, 60)
        await_failed(running, "pairs")
        said = said_of(running, "pairs")
        assert "query `pairs` was stopped, and the others went on: a micro-batch gives more than 100" in said
        assert "or allow more with --most-rows" in said
        troubled.arrive("s", 60, 70)
        troubled.await_right(*OTHERS, "same")
    assert len(troubled.published("pairs")) == 6  # of the first rows, each once
    with troubled.running(most_rows=100) as running:
        assert states(running)["pairs"] == "failed"
        running.drop("pairs")
    troubled.drain()
    troubled.check_drained(*OTHERS, "same")


def test_a_join_that_explodes_in_an_operator_of_sparks(tmp_path: Path, spark: SparkSession) -> None:
    """One that computes a query, and one that computes two. With more allowed, the next run goes on with all
    three."""
    troubled = Troubled(tmp_path, spark, stream("s") + stream("t") + queries_over("s") + ON_SPARK)
    exploding = ("pairs_of_0", "pairs_of_1", "pairs_and_others")
    with troubled.running(engines="spark", most_rows=100) as running:
        for name in "st":
            troubled.arrive(name, 0, 6)
        troubled.await_right(*OTHERS, *exploding)
        for name in "st":
            troubled.arrive(name, 6, 60)
        await_failed(running, *exploding)
        too_many = "stopped: a micro-batch gives more than 100 rows at once"
        assert f"query pairs_and_others {too_many}" in said_of(running, "pairs_and_others")
        assert f"woven-0, 2 queries over s, t {too_many}" in said_of(running, "pairs_of_0")
        assert "or allow more with --most-rows" in said_of(running, "pairs_of_1")
        troubled.arrive("s", 60, 70)
        troubled.await_right(*OTHERS)
    troubled.drain(engines="spark")
    troubled.check_drained(*OTHERS, *exploding)


WIDE = """
CREATE STREAM s (k INT, note STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 's', format = 'parquet');
CREATE CONTINUOUS QUERY few AS SELECT k FROM s WHERE k % 100000 = 1;
CREATE CONTINUOUS QUERY notes AS SELECT count(DISTINCT note) AS n, window_end FROM s [RANGE 10 SECONDS];
"""
SKEWED = """
CREATE CONTINUOUS QUERY skewed AS
  SELECT x.k, y.k AS l FROM s x [RANGE 1 HOUR], s y [RANGE 1 HOUR]
  WHERE x.k % 1 = y.k % 1 AND x.note < y.note AND x.note = 'x';
"""


def wide_rows(first: int, last: int) -> bytes:
    """Ten thousand a second, of a hundred bytes."""
    numbers = np.arange(first, last)
    start_us = int(NOON.timestamp() * 1e6)
    file = io.BytesIO()
    pq.write_table(
        pa.table(
            {
                "k": pa.array(numbers, pa.int32()),
                "note": pa.array([f"{n:0100}" for n in numbers]),
                "at": pa.array(start_us + numbers * 100, pa.timestamp("us", "UTC")),
            }
        ),
        file,
    )
    return file.getvalue()


def test_more_memory_than_there_is(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows of a join have one key, so no part of them can be spilled; a group of many values can."""
    memory_bytes = 40 * 1024**2
    monkeypatch.setattr(assembly, "_LEAST_MEMORY_BYTES", memory_bytes)
    monkeypatch.setattr(assembly, "memory_shares", lambda: MemoryShares(0, memory_bytes, memory_bytes))
    troubled = Troubled(tmp_path, spark, WIDE + SKEWED)
    with troubled.running() as running:
        troubled.put("s/0.parquet", wide_rows(0, 10))
        troubled.await_right("few", "notes", "skewed")
        troubled.put("s/1.parquet", wide_rows(10, 300_000))
        await_failed(running, "skewed")
        said = said_of(running, "skewed")
        assert "query `skewed` was stopped, and the others went on: DuckDB needs more than its 4" in said
        assert "use fewer rows, shorter ranges or longer slides" in said
        troubled.put("s/2.parquet", wide_rows(300_000, 310_000))
        troubled.await_right("few", "notes")
        running.drop("skewed")
    troubled.drain()
    troubled.check_drained("few", "notes")
