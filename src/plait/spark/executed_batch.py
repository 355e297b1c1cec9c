"""A micro-batch as Spark executes it, behind the frame that it hands over: what was observed on the way of
the rows, and the rows of streams as they were read, once more.

Spark has no public way to either within a batch: it tells what was observed when the batch is done with, and
the frame that it hands over is the end of a computation that cannot be looked into.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

_OBSERVATION = "CollectMetrics"
_REFUSE_STREAMS = "spark.sql.streaming.unsupportedOperationCheck"


class ExecutedBatch:
    """The batch that a frame, as `foreachBatch` gives it, is of."""

    def __init__(self, frame: DataFrame) -> None:
        self._session = frame.sparkSession
        ours = self._session._jsparkSession
        queries = ours.sharedState().activeStreamingQueries().values()
        # A streaming query has a session of its own.
        (query,) = (each for each in queries if each.sparkSessionForStream().equals(ours))
        self._execution: JavaObject = query.lastExecution()

    def observed(self, name: str) -> list[Any]:
        """The values of an observation, once the frame is computed. No observation is optimised away."""
        row = self._execution.observedMetrics().apply(name)
        return [row.get(k) for k in range(row.length())]

    def rows(self, name: str) -> DataFrame:
        """The rows that an observation sees. They are read from the source again."""
        observation = _found(self._execution.logical(), name)
        assert observation is not None, name
        # What is left of a stream in this plan is what the batch has of it.
        self._session.conf.set(_REFUSE_STREAMS, "false")
        jvm = self._session._jvm
        assert jvm is not None
        plain = jvm.org.apache.spark.sql.classic.Dataset.ofRows(
            self._session._jsparkSession, observation.child()
        )
        return DataFrame(plain, self._session)


def _found(node: JavaObject, name: str) -> JavaObject | None:
    if node.nodeName() == _OBSERVATION and node.name() == name:
        return node
    children = node.children()
    found = (_found(children.apply(k), name) for k in range(children.length()))
    return next((each for each in found if each is not None), None)
