"""Trouble with what a run is made of: Java's process, workers of Python's, open files. The queries that it
concerns are named, and the next run goes on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.java_options import QUICK_ENVIRONMENT
from tests.patience import wait_until
from tests.trouble.troubled import (
    NOBODYS_BUSINESS,
    Troubled,
    await_failed,
    queries_over,
    said_of,
    states,
    stream,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = ("ones_of_s", "sums_of_s")


def test_two_runs_at_once_and_the_end_of_java(tmp_path: Path, spark: SparkSession) -> None:
    """In a process with a Java of its own."""
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    troubled.arrive("s", 0, 10)
    (troubled.data / "queries.sql").write_text(troubled.sql)
    with started(troubled) as process:
        wait_until(lambda: (troubled.state / "results.json").exists() and troubled.is_right(*QUERIES))
        second = subprocess.run(command(troubled), capture_output=True, text=True, cwd=tmp_path, check=False)
        assert second.returncode == 2
        assert f"another run uses the state folder {troubled.state}" in second.stderr
        assert f"process {process.pid}" in second.stderr
        troubled.arrive("s", 10, 20)
        troubled.await_right(*QUERIES)
        os.kill(java_of(process.pid), signal.SIGKILL)
        assert process.wait(120) == 4
    said = (tmp_path / "output").read_text()
    assert "stopped: Spark's process has ended" in said
    assert "hint: start again, and it goes on without gap or duplicate" in said
    assert not any(words in said for words in NOBODYS_BUSINESS), said
    troubled.arrive("s", 20, 30)
    troubled.drain()
    troubled.check_drained(*QUERIES)


def command(troubled: Troubled) -> list[str]:
    return [
        *(sys.executable, "-m", "plait", "run", str(troubled.data / "queries.sql")),
        *("--trigger", "200ms", "--state", str(troubled.state), "--results", str(troubled.results)),
    ]


@contextmanager
def started(troubled: Troubled) -> Iterator[subprocess.Popen[bytes]]:
    with (troubled.root / "output").open("wb") as log:
        process = subprocess.Popen(
            command(troubled),
            stdout=log,
            stderr=log,
            cwd=troubled.root,
            env={**os.environ, **QUICK_ENVIRONMENT},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def java_of(process: int) -> int:
    """The process of Java's that a run has started."""
    (java,) = (each for each in descendants(process) if comm(each) == "java")
    return java


def descendants(process: int) -> list[int]:
    found = []
    with suppress(OSError):  # it is gone meanwhile
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def test_too_many_open_files(tmp_path: Path, spark: SparkSession) -> None:
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*QUERIES)
        troubled.arrive("s", 10, 20)
        with no_more_files():
            await_failed(running, *QUERIES)
        said = said_of(running, "sums_of_s")
        assert "too many files are open" in said
        assert "ulimit -n" in said
    troubled.arrive("s", 20, 30)
    troubled.drain()
    troubled.check_drained(*QUERIES)


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process may open none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_worker_of_pythons_dies(tmp_path: Path, spark: SparkSession) -> None:
    """A generated stream is made by some."""
    made = """
    CREATE STREAM bids (auction BIGINT, price DECIMAL(10, 2), at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'generator', generator = 'auctions.bids', rate = 50,
            start = '2026-01-01 12:00:00', end = '2026-01-01 12:01:00');
    CREATE CONTINUOUS QUERY dear AS SELECT auction, price FROM bids WHERE price > 150;
    """
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s") + made)
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        wait_until(lambda: kill_workers() and states(running)["dear"] == "failed")
        said = said_of(running, "dear")
        assert "query dear stopped: a process of Python's that Spark had started has ended" in said
        troubled.arrive("s", 10, 20)
        troubled.await_right(*QUERIES)
    troubled.drain()
    troubled.check_drained(*QUERIES, "dear")


def kill_workers() -> bool:
    """All processes of Python's that the Java of this process has started, as they are now: always done."""
    for process in descendants(os.getpid()):
        with suppress(OSError):  # it is gone already
            if b"pyspark" in Path(f"/proc/{process}/cmdline").read_bytes() and comm(process) != "java":
                os.kill(process, signal.SIGKILL)
    return True


def comm(process: int) -> str:
    """What runs in a process."""
    return Path(f"/proc/{process}/comm").read_text().strip()
