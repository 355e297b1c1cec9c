"""Spark's process ends before ours, as when a signal goes to both: an error says so, no traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock, PropertyMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from plait.spark.execution import Execution
from plait.spark.failures import explained
from plait.spark.session import _silence_pyspark, stop

# What calls raise: amid one, with one that was sent again, and later.
GONE = [
    Py4JError("An error occurred while calling o7.isActive"),
    Py4JNetworkError("Answer from Java side is empty"),
    ConnectionRefusedError(111, "Connection refused"),
]


def execution(
    gone: Exception,
    handler: Callable[[object, int], None] = lambda _frame, _batch: None,
    context: MagicMock | None = None,
) -> Execution:
    """One whose Spark is gone since it was started. `context` is Java's, which goes on unless given."""
    frame, query = MagicMock(), MagicMock()
    frame.sparkSession.sparkContext._jsc = context or java_context(has_stopped=False)
    for step in ("queryName", "outputMode", "option", "foreachBatch", "trigger"):
        getattr(frame.writeStream, step).return_value = frame.writeStream
    frame.writeStream.start.return_value = query
    for name in ("isActive", "status", "recentProgress"):
        setattr(type(query), name, PropertyMock(side_effect=gone))
    for call in (query.exception, query.processAllAvailable, query.stop):
        call.side_effect = gone
    return Execution(frame, "name", Path("checkpoint"), handler, 1.0)


def java_context(**answer: object) -> MagicMock:
    context = MagicMock()
    asked = context.sc.return_value.isStopped
    asked.return_value, asked.side_effect = answer.get("has_stopped"), answer.get("raises")
    return context


@pytest.mark.parametrize("gone", GONE, ids=lambda gone: type(gone).__name__)
def test_the_query_has_failed(gone: Exception) -> None:
    running = execution(gone)
    assert not running.is_active
    running.process_available()
    assert running.batch_seconds == {}
    assert running.failure is not None
    error = explained(running.failure, "query totals")
    assert (error.code, error.message) == ("spark-gone", "query totals stopped: Spark's process has ended")


@pytest.mark.parametrize("gone", GONE, ids=lambda gone: type(gone).__name__)
def test_a_query_that_was_to_stop_has_stopped(gone: Exception) -> None:
    def handler(_frame: object, _batch: int) -> None:
        running.request_stop()
        raise gone

    running = execution(gone, handler)
    with pytest.raises(type(gone)):
        running._process(MagicMock(), 3)
    running.stop(1.0)
    assert running.failure is None


@pytest.mark.parametrize(
    "context",
    [java_context(has_stopped=True), *(java_context(raises=gone) for gone in GONE)],
    ids=["stopped", *(type(gone).__name__ for gone in GONE)],
)
@pytest.mark.parametrize("is_asked_to_stop", [True, False])
def test_what_a_spark_says_that_ends_is_no_failure_of_a_query_that_was_to_stop(
    context: MagicMock, is_asked_to_stop: bool
) -> None:
    """Its words depend on what it was about to do."""
    odd = PySparkException("`SparkPlan.session()` is null")

    def handler(_frame: object, _batch: int) -> None:
        if is_asked_to_stop:
            running.request_stop()
        raise odd

    running = execution(GONE[0], handler, context)
    with pytest.raises(PySparkException):
        running._process(MagicMock(), 3)
    assert running.failure is (None if is_asked_to_stop else odd)


def test_what_else_goes_wrong_while_stopping_is_told() -> None:
    def handler(_frame: object, _batch: int) -> None:
        running.request_stop()
        raise ValueError("of ours")

    running = execution(GONE[0], handler)
    with pytest.raises(ValueError, match="of ours"):
        running._process(MagicMock(), 3)
    assert str(running.failure) == "of ours"


def test_a_session_that_is_gone_is_stopped() -> None:
    session = MagicMock()
    session.stop.side_effect = GONE[2]
    stop(session)
    session.stop.assert_called_once()


def test_calls_that_are_broken_off_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    _silence_pyspark()
    place = "/site-packages/py4j/java_gateway.py"
    record = logging.LogRecord("root", logging.ERROR, place, 1070, "KeyboardInterrupt", None, None)
    logging.getLogger().handle(record)
    logging.getLogger("py4j.clientserver").error("a batch failed")
    assert capsys.readouterr().err == ""
