"""Published results as a DataFrame of Spark's, which reads the files when it is asked for rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql.functions import col

from plait.spark.execution import Frame, Session


def files_frame(spark: Session, folder: Path, columns: list[str], query: str | None) -> Frame:
    """The rows of the Parquet files that are there now; of one query, if several share the folder."""
    frame = spark.read.parquet(str(folder))
    if query is not None:
        frame = frame.where(col("query") == query)
    return frame.select([f"`{column.replace('`', '``')}`" for column in columns])


def table_frame(spark: Session, rows: pa.Table) -> Frame:
    """Rows that are no files."""
    return spark.createDataFrame(rows)
