"""Files of results that queries share are read by others as they were written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from plait.batches import BatchRows
from plait.expressions.types import BIGINT, DOUBLE, INT, STRING
from plait.runtime.shared_results import SharedSink

pytestmark = pytest.mark.spark

# Differences of these do not fit into 64 bits, and runs of equal ones take none.
TOTALS = [2**63 - 1, -(2**63), None, 0, 2**63 - 1, -1, *[7] * 300, None, -(2**63)]


def test_spark_and_duckdb_read_what_is_written(spark: SparkSession, tmp_path: Path) -> None:
    names = ("plug", "total", "share", "text")
    sink = SharedSink(tmp_path, names, (INT, BIGINT, DOUBLE, STRING), ["high", "low"])
    count = len(TOTALS)
    rows = pa.table(
        {
            "c0": pa.array(range(count), pa.int32()),
            "c1": pa.array(TOTALS, pa.int64()),
            "c2": pa.array([n / 3 for n in range(count)]),
            "c3": pa.array([None if n % 5 == 0 else f"{n}" for n in range(count)]),
        }
    )
    whose = pa.chunked_array([pa.array([n % 2 for n in range(count)], pa.int32())])
    sink.publish(0, [BatchRows(("low", "high"), rows, whose)])
    file = str(tmp_path / "000000000.parquet")
    expected = [("low", "high")[n % 2] for n in range(count)]
    written = [(query, *(column[n].as_py() for column in rows.columns)) for n, query in enumerate(expected)]
    by_spark = spark.read.parquet(file).orderBy("plug").collect()
    assert [tuple(row) for row in by_spark] == written
    with duckdb.connect() as database:
        assert database.execute(f"FROM '{file}' ORDER BY plug").fetchall() == written
