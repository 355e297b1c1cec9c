"""A micro-batch as Spark executes it, behind the frame that it hands over: what was observed on the way of
the rows, and the rows of streams as they were read, once more.

Spark has no public way to either within a batch: it tells what was observed when the batch is done with, and
the frame that it hands over is the end of a computation that cannot be looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.engines.duckdb import too_many_rows
from plait.spark.failures import SPARK_ERRORS

_FRAME = "LogicalRDD"  # as it stands in plans of what is made of it
_OBSERVATION = "CollectMetrics"
_PLACE = "place_in_part"
_TOO_MANY = "plait: more rows than are allowed at once"
_QUERY = "sql.streaming.queryId"
_REFUSE_STREAMS = "spark.sql.streaming.unsupportedOperationCheck"
# Operators that know rows of earlier batches, unless what they work on is stored.
_KEEPING_STATE = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "Join",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)


class ExecutedBatch:
    """The batch that a frame, as `foreachBatch` gives it, is of: to be asked for in the thread that is given
    it."""

    def __init__(self, frame: DataFrame) -> None:
        self._session = frame.sparkSession
        jvm = self._session._jvm
        assert jvm is not None
        self._jvm = jvm
        query = jvm.java.util.UUID.fromString(self._session.sparkContext.getLocalProperty(_QUERY))
        active = self._session._jsparkSession.sharedState().activeStreamingQueries()
        self._execution: JavaObject = active.get(query).lastExecution()

    def observed(self, name: str) -> list[Any]:
        """The values of an observation, once the frame is computed. No observation is optimised away."""
        row = self._execution.observedMetrics().apply(name)
        return [row.get(k) for k in range(row.length())]

    @property
    def plan(self) -> JavaObject:
        """Spark's operators, with what they have counted once the frame is computed."""
        return self._execution.executedPlan()

    def rows(self, name: str) -> DataFrame:
        """The rows that an observation sees, read from the source again. If there are several observations of
        that name, they see the same."""
        seen = next(each for each in _nodes(self._execution.logical()) if _is_observation(each, name))
        # What is left of a stream in this plan is what the batch has of it. The session is the query's own,
        # and has no other frames.
        self._session.conf.set(_REFUSE_STREAMS, "false")
        again = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(
            self._session._jsparkSession, seen.child()
        )
        return DataFrame(again, self._session)


def collected(rows: DataFrame, frame: DataFrame, most_rows: int | None = None) -> pa.Table:
    """The rows that are made of a batch's frame, which is computed in any case: Spark leaves it out if it
    finds that nothing can come of it, but what is read has to be counted, and state to be kept. More than
    `most_rows` are an error."""
    if _FRAME not in rows._jdf.queryExecution().optimizedPlan().toString():
        frame.write.format("noop").mode("append").save()
    if most_rows is None:
        return rows.toArrow()
    try:
        table = _bounded(rows, most_rows).toArrow()
    except SPARK_ERRORS as error:
        if _TOO_MANY in str(error):
            raise too_many_rows(most_rows) from None
        raise
    if table.num_rows > most_rows:
        raise too_many_rows(most_rows)
    return table


def _bounded(rows: DataFrame, most_rows: int) -> DataFrame:
    """The same rows, of which no part of Spark's makes many more than allowed: a join that explodes would
    take all memory before somebody could count. (LIMIT would gather the parts into one, in every batch.)"""
    place = "monotonically_increasing_id() & 8589934591"  # the lower bits count the rows of a part
    numbered = rows.withColumn(_PLACE, F.expr(place))
    is_allowed = f"IF({_PLACE} <= {most_rows}, TRUE, CAST(raise_error('{_TOO_MANY}') AS BOOLEAN))"
    return numbered.where(is_allowed).drop(_PLACE)


def keeps_state(frame: DataFrame) -> bool:
    """Whether a streaming frame has operators that know rows of earlier batches: read again by themselves,
    the rows of a batch would be others."""
    nodes = _nodes(frame._jdf.queryExecution().analyzed())
    return any(node.nodeName() in _KEEPING_STATE and _is_all_streaming(node) for node in nodes)


def _is_all_streaming(node: JavaObject) -> bool:
    children = node.children()
    return all(children.apply(k).isStreaming() for k in range(children.length()))


def _is_observation(node: JavaObject, name: str) -> bool:
    return bool(node.nodeName() == _OBSERVATION and node.name() == name)


def _nodes(node: JavaObject) -> Iterator[JavaObject]:
    yield node
    children = node.children()
    for k in range(children.length()):
        yield from _nodes(children.apply(k))
