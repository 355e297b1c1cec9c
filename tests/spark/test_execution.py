"""Executions on real Spark: batches go through the handler, failures are told, stops cut no batch in two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until

from plait.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.spark.execution import Execution

pytestmark = pytest.mark.spark

Start = Callable[..., "Execution"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def frame(spark: SparkSession, files: Path) -> DataFrame:
    return spark.readStream.schema("x INT").option("maxFilesPerTrigger", 1).csv(str(files))


@pytest.fixture
def start(frame: DataFrame, tmp_path: Path) -> Start:
    def start(
        handler: Callable[[DataFrame, int], None],
        trigger_seconds: float | None = None,
        batch: Lock | None = None,
    ) -> Execution:
        from plait.spark.execution import Execution

        return Execution(frame, tmp_path.name, tmp_path / "checkpoint", handler, trigger_seconds, batch)

    return start


def wait(execution: Execution) -> None:
    wait_until(lambda: not execution.is_active)


def test_all_that_is_there_is_processed_once(files: Path, start: Start) -> None:
    seen: dict[int, list[int]] = {}

    def handler(frame: DataFrame, batch: int) -> None:
        seen[batch] = [row.x for row in frame.collect()]

    for number in range(2):
        (files / f"{number}.csv").write_text(f"{number}\n{number}\n")
    execution = start(handler)
    wait(execution)
    assert execution.failure is None
    assert sorted(seen.values()) == [[0, 0], [1, 1]]

    (files / "2.csv").write_text("2\n")
    execution = start(handler)
    wait(execution)
    assert seen[2] == [2]


def test_a_batch_takes_longer_than_its_handler(files: Path, start: Start) -> None:
    handled: dict[int, float] = {}

    def handler(frame: DataFrame, batch: int) -> None:
        began = monotonic()
        frame.collect()
        handled[batch] = monotonic() - began

    for number in range(2):
        (files / f"{number}.csv").write_text(f"{number}\n")
    execution = start(handler)
    wait(execution)
    assert execution.batch_seconds.keys() == handled.keys() == {0, 1}
    assert all(execution.batch_seconds[batch] > seconds - 0.001 for batch, seconds in handled.items())


def test_what_a_handler_raises_is_the_failure(files: Path, start: Start) -> None:
    def handler(_: DataFrame, __: int) -> None:
        raise UserError("broken", "this does not work")

    (files / "0.csv").write_text("0\n")
    execution = start(handler)
    wait(execution)
    assert isinstance(execution.failure, UserError)


def test_a_stop_waits_for_the_batch_and_begins_no_other(files: Path, start: Start) -> None:
    begun, released = Event(), Event()
    done: list[int] = []

    def handler(_: DataFrame, batch: int) -> None:
        begun.set()
        assert released.wait(60)
        done.append(batch)

    for number in range(3):
        (files / f"{number}.csv").write_text(f"{number}\n")
    execution = start(handler, trigger_seconds=0)
    assert begun.wait(60)
    execution.request_stop()
    released.set()
    execution.stop(60)
    assert not execution.is_active
    assert execution.failure is None
    assert done == [0]

    execution = start(handler)
    wait(execution)
    assert done == [0, 1, 2]


class AwaitedLock:
    """Tells when somebody wants it."""

    def __init__(self) -> None:
        self.wanted = Event()
        self._lock = Lock()

    def acquire(self, timeout: float = -1) -> bool:
        self.wanted.set()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def test_another_frame_follows_while_a_batch_waits_to_begin(
    files: Path, frame: DataFrame, start: Start
) -> None:
    """Whoever keeps batches from beginning stops the query: the batch that waits for that must not be waited
    for in turn."""
    batches = AwaitedLock()
    begun: list[int] = []

    def handler(_: DataFrame, batch: int) -> None:
        begun.append(batch)

    (files / "0.csv").write_text("0\n")
    assert batches.acquire()
    batches.wanted.clear()
    execution = start(handler, trigger_seconds=0, batch=batches)
    assert batches.wanted.wait(60)
    following = execution.followed_by(frame)
    assert begun == []
    batches.release()
    wait_until(lambda: begun == [0])
    following.stop(60)
    assert execution.failure is None
    assert following.failure is None


def test_a_batch_that_takes_too_long_is_left_to_the_next_start(files: Path, start: Start) -> None:
    begun = Event()
    done: list[int] = []

    def handler(frame: DataFrame, batch: int) -> None:
        begun.set()
        frame.selectExpr("reflect('java.lang.Thread', 'sleep', 60000L)").collect()
        done.append(batch)

    (files / "0.csv").write_text("0\n")
    execution = start(handler, trigger_seconds=0)
    assert begun.wait(60)
    execution.stop(0)
    assert not execution.is_active
    assert execution.failure is None
    assert done == []
