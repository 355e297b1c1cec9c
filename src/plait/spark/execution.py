"""One StreamingQuery of Spark's: started, watched, and stopped at a batch boundary.

Spark's own `stop` interrupts whatever is running. Here a stop is a request: a batch that has begun ends, and
the next one is not begun (Spark may have planned it already, and runs it at the next start). Only if the
batch does not end in time is it interrupted, which loses nothing either: it runs again. Spark's process may
end at any moment, also before ours: then the query has ended too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock
from time import monotonic, sleep
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from plait.spark.failures import SPARK_ERRORS, ended_without_reason, has_ended, is_gone

Frame: TypeAlias = DataFrame
Session: TypeAlias = SparkSession
Handler: TypeAlias = Callable[[DataFrame, int], None]

_POLL_SECONDS = 0.05
# What Spark says between two looks for data.
_BETWEEN_LOOKS = ("Waiting for next trigger", "Waiting for data to arrive")


class _StoppedBeforeBatch(Exception):  # noqa: N818 - it ends a query, and is no error
    pass


class Execution:
    """A streaming frame whose micro-batches go through a handler, from the moment it is made.

    `trigger_seconds` is the least time from batch to batch; with None all that is there is processed, and the
    execution ends. `batch` is held while the handler is at work: whoever else holds it keeps batches from
    beginning.
    """

    def __init__(
        self,
        frame: DataFrame,
        name: str,
        checkpoint: Path,
        handler: Handler,
        trigger_seconds: float | None,
        batch: Lock | None = None,
    ) -> None:
        self._session = frame.sparkSession
        self._given = name, checkpoint, handler, trigger_seconds
        self._handler = handler
        self._stopping = Event()
        self._batch = batch or Lock()
        self._interrupted = False
        self._failure: Exception | None = None
        writer = (
            frame.writeStream.queryName(name)
            .outputMode("append")
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(self._process)
        )
        if trigger_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(trigger_seconds * 1000)} milliseconds")
        self._query: StreamingQuery = writer.start()

    @property
    def is_active(self) -> bool:
        try:
            return bool(self._query.isActive)
        except SPARK_ERRORS:  # it is gone
            return False

    @property
    def found_nothing(self) -> bool:
        """Whether Spark has looked for more since the last batch, and there was nothing."""
        try:
            status = self._query.status
        except SPARK_ERRORS:
            return False
        # That data is available stays so until it has looked again.
        return status["message"] in _BETWEEN_LOOKS and not status["isDataAvailable"]

    @property
    def failure(self) -> Exception | None:
        """Why it ended, if it did not end well: what the handler raised, else what Spark says."""
        if self._failure is not None:
            return self._failure
        if self.is_active or self._stopping.is_set():
            return None
        try:
            failure = self._query.exception()
        except SPARK_ERRORS as error:
            return error
        *_, trigger_seconds = self._given
        # One that goes by a trigger has no end of its own.
        return failure or (None if trigger_seconds is None else ended_without_reason())

    @property
    def batch_seconds(self) -> dict[int, float]:
        """How long batches took, by number: with the handler also what Spark does around it, which is looking
        for data, planning, and its logs. It remembers about a hundred."""
        try:
            recent = self._query.recentProgress
        except SPARK_ERRORS:
            return {}
        # What it says of a look in vain is not of a batch.
        batches = (progress for progress in recent if "addBatch" in progress["durationMs"])
        return {each["batchId"]: each["durationMs"]["triggerExecution"] / 1000 for each in batches}

    @property
    def gauges(self) -> dict[str, float]:
        """What Spark tells of the last batch: seconds with all that is around it, and the rows and bytes that
        its own operators remember."""
        try:
            progress = self._query.lastProgress
        except SPARK_ERRORS:
            return {}
        if progress is None or "addBatch" not in progress["durationMs"]:
            return {}
        gauges = {"trigger_seconds": progress["durationMs"]["triggerExecution"] / 1000}
        operators = progress["stateOperators"]
        if operators:
            gauges["state_rows"] = sum(each["numRowsTotal"] for each in operators)
            gauges["state_bytes"] = sum(each["memoryUsedBytes"] for each in operators)
        return gauges

    def process_available(self) -> None:
        """Wait until all that is there is processed, and all that this closes."""
        # What ends the query meanwhile, a failure or a stop, is known elsewhere.
        with suppress(*SPARK_ERRORS):
            self._query.processAllAvailable()

    def request_stop(self) -> None:
        """Begin no further batch."""
        self._stopping.set()

    def stop(self, limit_seconds: float) -> None:
        """Stop at the end of the batch that is running, or amid it if that takes longer than the limit."""
        self.request_stop()
        deadline = monotonic() + limit_seconds
        # The query may have failed just now, which `failure` knows of.
        with suppress(*SPARK_ERRORS):
            while self.is_active and self._query.status["isTriggerActive"] and monotonic() < deadline:
                sleep(_POLL_SECONDS)
        self._interrupted = True
        with suppress(*SPARK_ERRORS):
            self._query.stop()
        with self._batch:  # Spark does not wait for the handler, but whoever closes what it uses has to
            pass

    def followed_by(self, frame: DataFrame) -> Execution:
        """Stop, and go on with another frame. Whoever calls this keeps batches from beginning: one that waits
        for that is not begun."""
        self.request_stop()
        self._interrupted = True
        with suppress(*SPARK_ERRORS):
            self._query.stop()
        name, checkpoint, handler, trigger_seconds = self._given
        return Execution(frame, name, checkpoint, handler, trigger_seconds, self._batch)

    def _process(self, frame: DataFrame, batch: int) -> None:
        with self._begun():
            try:
                self._handler(frame, batch)
            except Exception as error:
                if not (self._interrupted or (self._stopping.is_set() and self._is_of_the_end(error))):
                    self._failure = error
                raise

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """While the handler may be at work. Whoever stops the query may keep batches from beginning, and does
        not let go before it has stopped, which Spark cannot tell whoever waits here."""
        while not self._batch.acquire(timeout=_POLL_SECONDS):
            if self._stopping.is_set():
                raise _StoppedBeforeBatch
        try:
            if self._stopping.is_set():
                raise _StoppedBeforeBatch
            yield
        finally:
            self._batch.release()

    def _is_of_the_end(self, error: Exception) -> bool:
        """Whoever stops us may stop Spark as well, and not wait for the batch. It runs again at the next
        start: what is wrong beside that is told then."""
        return is_gone(error) or has_ended(self._session)
