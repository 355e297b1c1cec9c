"""Writes a batch of results through any format that Spark writes.

How often a row is there after a crash is up to the format. Delta drops what the same application wrote under
the same version before, so it is given both; others get a repeated batch twice.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from plait.catalog import Sink
from plait.errors import ExternalError
from plait.spark.failures import SPARK_ERRORS, reason_of


class FrameWriter:
    """Appends batches; the same batch of the same writer is recognised by formats that can."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __call__(self, sink: Sink, rows: pa.Table, batch_id: int, writer: str) -> None:
        assert sink.format is not None, sink
        options = {"txnAppId": writer, "txnVersion": str(batch_id)} if sink.is_delta else {}
        try:
            frame = self._session.createDataFrame(rows)
            # What the user says last counts.
            frame.write.format(sink.format).options(**{**options, **sink.spark_options}).mode("append").save(
                sink.target
            )
        except SPARK_ERRORS as error:
            raise ExternalError(
                "results",
                f"Spark's {sink.format} refuses a batch of results",
                detail=reason_of(error),
                hint="nothing is lost: mend it and start again, and the rows will be there",
            ) from None
