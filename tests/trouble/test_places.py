"""Trouble with the places that rows go to: a query whose own place fails is stopped alone; what all share
stops all of them, and the next run goes on; a place that is slow is named while it is."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.trouble.troubled import Troubled, await_failed, queries_over, remarked, said_of, states, stream

from plait.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OTHERS = ("ones_of_s", "sums_of_s")


def test_places_of_ones_own_that_go_wrong(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in place of the folder, no folder, and what Spark's writer refuses. The batch is done again
    without these queries, and what others have printed of it is not printed again."""
    sql = stream("s") + queries_over("s")
    sql += "CREATE CONTINUOUS QUERY loud WITH (sink = 'console') AS SELECT v FROM s WHERE v % 10 = 5;\n"
    for name in ("replaced", "removed"):
        sql += (
            f"CREATE CONTINUOUS QUERY {name} INTO '{tmp_path / name}' AS SELECT v, at FROM s WHERE k = 0;\n"
        )
    lake = tmp_path / "lake"
    sql += (
        f"CREATE CONTINUOUS QUERY refused WITH (sink = 'spark', format = 'parquet', path = '{lake}')"
        " AS SELECT v, at FROM s WHERE k = 2;\n"
    )
    troubled = Troubled(tmp_path, spark, sql)
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*OTHERS, "replaced", "removed")
        (tmp_path / "replaced").rename(tmp_path / "elsewhere")
        (tmp_path / "replaced").write_text("in the way")
        shutil.rmtree(tmp_path / "removed")
        shutil.rmtree(lake)
        lake.write_text("in the way")
        troubled.arrive("s", 10, 20)
        await_failed(running, "replaced", "removed", "refused")
        for query, words in {
            "replaced": f"cannot write {tmp_path / 'replaced'}",
            "removed": f"cannot write {tmp_path / 'removed'}",
            "refused": "Spark's parquet refuses a batch of results",
        }.items():
            said = said_of(running, query)
            assert f"external[results]: query `{query}` was stopped, and the others went on: {words}" in said
            assert f"drop `{query}`, and add it again when that is mended" in said
        troubled.arrive("s", 20, 30)
        troubled.await_right(*OTHERS)
    with troubled.running() as running:
        assert states(running) == {
            **dict.fromkeys((*OTHERS, "loud"), "running"),
            **dict.fromkeys(("replaced", "removed", "refused"), "failed"),
        }
        running.drop("replaced", "removed", "refused")
    troubled.drain()
    troubled.check_drained(*OTHERS)
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("loud, batch")]
    assert [head.split(": ")[1] for head in heads] == ["1 row"] * 3
    assert len({*heads}) == 3


def test_results_that_are_taken_away_under_a_run(tmp_path: Path, spark: SparkSession) -> None:
    """Those of queries that share files: all of them end. Queries over another stream go on."""
    sql = stream("s") + stream("t")
    for name in "st":
        sql += "".join(
            f"CREATE CONTINUOUS QUERY {word}_of_{name} AS SELECT v FROM {name} WHERE k = {k};\n"
            for k, word in enumerate(("zeros", "ones"))
        )
    troubled = Troubled(tmp_path, spark, sql)
    of_s, of_t = ("zeros_of_s", "ones_of_s"), ("zeros_of_t", "ones_of_t")
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.arrive("t", 0, 10)
        troubled.await_right(*of_s, *of_t)
        (folder,) = (folder for folder in troubled.results.iterdir() if folder.name.startswith("shared-0-"))
        shutil.move(folder, tmp_path / "elsewhere")
        troubled.arrive("s", 10, 20)
        await_failed(running, *of_s)
        for query in of_s:
            assert f"external[results]: cannot write {folder}/" in said_of(running, query)
        troubled.arrive("t", 10, 20)
        troubled.await_right(*of_t)
    with pytest.raises(UserError, match=f"that the state knows of are not in {folder}"), troubled.running():
        pass
    shutil.move(tmp_path / "elsewhere", folder)
    troubled.drain()
    troubled.check_drained(*of_s, *of_t)


def test_a_place_that_is_slow_is_named_and_nothing_is_lost(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output goes to somebody who does not read: a pipe that is full."""
    loud = "CREATE CONTINUOUS QUERY loud WITH (sink = 'console') AS SELECT k, v, at FROM s;\n"
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s") + loud)
    receiving, sending = os.pipe()
    fcntl.fcntl(sending, fcntl.F_SETPIPE_SZ, 4096)
    with troubled.running() as running, os.fdopen(sending, "w") as pipe, os.fdopen(receiving) as reader:
        monkeypatch.setattr(sys, "stdout", pipe)
        troubled.arrive("s", 0, 1000)
        wait_until(lambda: remarked(running, "loud: the console takes", "make it quicker, or drop the query"))
        troubled.arrive("s", 1000, 1010)  # which waits in its file, and nowhere else
        heard: list[str] = []
        listening = Thread(target=lambda: heard.extend(iter(reader.readline, "")))
        listening.start()
        troubled.await_right(*OTHERS)
        wait_until(lambda: not remarked(running, "loud"))
        running.stop()
        monkeypatch.undo()
        pipe.close()
        listening.join()
    assert [line for line in heard if line.startswith("loud, batch")] == [
        "loud, batch 0: 1,000 rows\n",
        "loud, batch 1: 10 rows\n",
    ]
    troubled.check_drained("ones_of_s")
