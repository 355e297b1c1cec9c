"""What starting a Spark changes in this process is undone, however many threads start one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import Popen
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from plait.spark import session


@pytest.fixture(autouse=True)
def some_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "java_home", lambda: Path("some/java"))
    monkeypatch.setenv("JAVA_HOME", "before")


def test_two_threads_start_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both, were_both, makers = Barrier(2), [], []

    def start(_: SparkSession.Builder) -> Any:
        makers.append(java_gateway.Popen)  # type: ignore[attr-defined]
        try:
            both.wait(timeout=0.5)
            were_both.append(True)
        except BrokenBarrierError:
            were_both.append(False)

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    with ThreadPoolExecutor(2) as threads:
        for started in [threads.submit(session.session) for _ in range(2)]:
            started.result()
    assert were_both == [False, False]
    assert Popen not in makers
    assert java_gateway.Popen is Popen  # type: ignore[attr-defined]
    assert os.environ["JAVA_HOME"] == "before"


@pytest.mark.parametrize("processes", [0, 2])
def test_an_interrupt_forgets_the_java_that_it_ends_and_no_other(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Popen[bytes]] = []

    def start(_: SparkSession.Builder) -> Any:
        started.extend(java_gateway.Popen(["sleep", "60"]) for _ in range(processes))  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    monkeypatch.setattr(SparkContext, "_gateway", "a gateway")
    monkeypatch.setattr(SparkContext, "_jvm", "its Java")
    with pytest.raises(KeyboardInterrupt):
        session.session()
    assert all(process.poll() is not None for process in started)
    assert (SparkContext._gateway is None) == (SparkContext._jvm is None) == bool(processes)


def test_java_ignores_what_is_sent_to_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process heeds it, and needs Java until the batches that run are done."""
    programs: list[Popen[bytes]] = []
    # Shells are started with it too, and let what they run ignore it.
    program = "kill -INT $$; kill -TERM $$; sh -c 'kill -TERM $$; exit 7'"

    def start(_: SparkSession.Builder) -> Any:
        programs.append(java_gateway.Popen(["sh", "-c", program]))  # type: ignore[attr-defined]

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    session.session()
    assert [program.wait(60) for program in programs] == [7]
