"""Results that go through a format of Spark's: values kept, options handed over, refusals reported."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.catalog import Secret, Sink, SinkKind
from plait.errors import ExternalError
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, decimal
from plait.runtime.arrow_rows import ArrowRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = ["n", "ok", "price", "load", "room", "day", "ts"]
SCHEMA = arrow_schema(NAMES, [BIGINT, BOOLEAN, decimal(38, 2), DOUBLE, STRING, DATE, TIMESTAMP])
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
ROW = (1, True, Decimal("1.50"), 0.1, "ö", date(2026, 1, 31), MOMENT)
NULLS = (None,) * 7


def rows(*values: tuple[object, ...]) -> pa.Table:
    return pa.table([list(column) for column in zip(*values, strict=True)], schema=SCHEMA)


def test_batches_are_appended_with_their_values(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.sink import FrameWriter

    write = FrameWriter(spark)
    sink = Sink(SinkKind.SPARK, str(tmp_path / "lake"), "parquet", {"compression": "gzip"})
    write(sink, rows(ROW), 0, "state/q")
    write(sink, rows(NULLS), 1, "state/q")
    read = pq.read_table(tmp_path / "lake")
    assert read.column_names == NAMES
    assert sorted(ArrowRows(read.cast(SCHEMA)), key=str) == [(*ROW[:-1], MOMENT.replace(tzinfo=None)), NULLS]
    assert len(list((tmp_path / "lake").glob("*.gz.parquet"))) == 2


def test_a_refusal_names_the_format_and_no_secret(spark: SparkSession, tmp_path: Path) -> None:
    from plait.spark.sink import FrameWriter

    secret = Secret("${PASSWORD}", "hush")
    sink = Sink(SinkKind.SPARK, str(tmp_path / "x"), "no-such-format", {"password": secret})
    with pytest.raises(ExternalError) as raised:
        FrameWriter(spark)(sink, rows(ROW), 0, "state/q")
    assert raised.value.message == "Spark's no-such-format refuses a batch of results"
    assert "hush" not in raised.value.render()
