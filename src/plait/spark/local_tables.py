"""Small tables that the rows of every batch are joined with: what is known of queries before any row is.

Spark gets such a table once, as Arrow. As SQL text it would be parsed again in each batch, which takes
seconds for some ten thousand rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BIGINT, Kind, Type, Value


class LocalTable:
    """Rows of values as literals have them; an interval is its microseconds."""

    def __init__(self, columns: Sequence[tuple[str, Type]], rows: Sequence[Sequence[Value]]) -> None:
        types = [BIGINT if type_.kind is Kind.INTERVAL else type_ for _, type_ in columns]
        schema = arrow_schema([name for name, _ in columns], types)
        arrays = [pa.array([row[k] for row in rows], field.type) for k, field in enumerate(schema)]
        self._rows = pa.Table.from_arrays(arrays, schema=schema)
        self._frame: DataFrame | None = None

    def broadcast(self, session: SparkSession) -> DataFrame:
        """The table, made once for the session of a streaming query. It is at hand wherever rows are."""
        made = self._frame
        # Each batch has another Python object for the same session.
        if made is None or made.sparkSession._jsparkSession != session._jsparkSession:
            made = self._frame = F.broadcast(session.createDataFrame(self._rows))
        return made
