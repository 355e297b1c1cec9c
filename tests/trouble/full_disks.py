"""Disks that are full: for the results of one query, for those of all, for the state, and for what is only in
passing. Whoever needs the disk is named; nothing half-written is visible; with room again, no row is lost or
doubled.

Run by `test_full_disks.py`, where disks can be made.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.trouble.troubled import Troubled, await_failed, queries_over, said_of, states, stream

from plait.errors import PlaitError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = ("ones_of_s", "sums_of_s")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "small", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Nothing fits on the disk meanwhile."""
    ballast = disk / "_ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    yield
    ballast.unlink()


def test_no_room_for_results(tmp_path: Path, disk: Path, spark: SparkSession) -> None:
    own = f"CREATE CONTINUOUS QUERY own INTO '{disk / 'own'}' AS SELECT v, at FROM s WHERE k = 2;\n"
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s") + own)
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*QUERIES, "own")
        with full(disk):
            troubled.arrive("s", 10, 20)
            await_failed(running, "own")
            said = said_of(running, "own")
            assert f"query `own` was stopped, and the others went on: cannot write {disk / 'own'}" in said
            assert "No space left on device" in said
            assert "drop `own`, and add it again when that is mended" in said
            troubled.arrive("s", 20, 30)
            troubled.await_right(*QUERIES)
    assert [file.name for file in (disk / "own").iterdir() if file.name != "_plait.json"] == [
        "000000000.parquet"
    ]
    with troubled.running() as running:
        running.drop("own")
    troubled.drain()
    troubled.check_drained(*QUERIES)


def test_no_room_for_what_all_share(tmp_path: Path, disk: Path, spark: SparkSession) -> None:
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    troubled.results = disk / "results"
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*QUERIES)
        with full(disk):
            troubled.arrive("s", 10, 20)
            await_failed(running, *QUERIES)
            said = said_of(running, "sums_of_s")
            assert "cannot write" in said
            assert "No space left on device" in said
    troubled.arrive("s", 20, 30)
    troubled.drain()
    troubled.check_drained(*QUERIES)


def test_no_room_for_the_state(tmp_path: Path, disk: Path, spark: SparkSession) -> None:
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    troubled.state = disk / "state"
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*QUERIES)
        with full(disk):
            with pytest.raises(PlaitError, match=r"disk is full|No space left on device"):
                running.add_text("CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;")
            assert [*states(running)] == [*QUERIES]
            troubled.arrive("s", 10, 20)
            await_failed(running, *QUERIES)
            said = said_of(running, "ones_of_s")
            assert "the disk is full" in said
            assert "shared-0" in said
            assert "make room" in said
    troubled.arrive("s", 20, 30)
    troubled.drain()
    troubled.check_drained(*QUERIES)


def test_no_room_in_passing(tmp_path: Path, spark: SparkSession) -> None:
    """Spark's shuffles go through a folder for what is only in passing, `/tmp` unless it is said."""
    in_passing = Path(os.environ["SPARK_LOCAL_DIRS"])
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    with troubled.running(engines="spark") as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*QUERIES)
        with full(in_passing):
            troubled.arrive("s", 10, 30)
            await_failed(running, "sums_of_s")
            assert "query sums_of_s stopped: the disk is full" in said_of(running, "sums_of_s")
            troubled.arrive("s", 30, 40)
            troubled.await_right("ones_of_s")
    troubled.drain(engines="spark")
    troubled.check_drained(*QUERIES)
