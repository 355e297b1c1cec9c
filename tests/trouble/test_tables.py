"""Tables that are taken away, or spoilt, under a run: the queries that join them are stopped and named, the
others go on from the same micro-batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.trouble.troubled import Troubled, await_failed, queries_over, said_of, states, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OTHERS = ("ones_of_s", "sums_of_s", "with_good")


def table(name: str) -> str:
    return (
        f"CREATE TABLE {name} (k INT, w INT)"
        f" WITH (connector = 'files', path = '{name}.csv', format = 'csv');\n"
        f"CREATE CONTINUOUS QUERY with_{name} AS SELECT s.v, t.w FROM s JOIN {name} t ON s.k = t.k;\n"
    )


def test_tables_that_go_or_change_their_type(tmp_path: Path, spark: SparkSession) -> None:
    sql = stream("s") + queries_over("s") + "".join(map(table, ("gone", "spoilt", "good")))
    troubled = Troubled(tmp_path, spark, sql)
    for name in ("gone", "spoilt", "good"):
        troubled.put(f"{name}.csv", b"k,w\n0,7\n1,8\n")
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right(*OTHERS, "with_gone", "with_spoilt")
        (troubled.data / "gone.csv").unlink()
        (troubled.data / "spoilt.csv").write_text("k,w\n0,7\n1,eight\n")
        troubled.arrive("s", 10, 20)
        await_failed(running, "with_gone", "with_spoilt")
        for query, (code, words) in {
            "with_gone": ("no-such-path", str(troubled.data / "gone.csv")),
            "with_spoilt": ("stored-value", f"{troubled.data / 'spoilt.csv'}, line 3"),
        }.items():
            said = said_of(running, query)
            assert f"[{code}]: query `{query}` was stopped, and the others went on" in said
            assert words in said
        troubled.arrive("s", 20, 30)
        troubled.await_right(*OTHERS)
        assert len(troubled.published("with_gone")) == 7  # of the first file, each once
        # Mended, and from now on.
        (troubled.data / "gone.csv").write_text("k,w\n0,7\n1,8\n")
        running.drop("with_gone")
        again = "CREATE CONTINUOUS QUERY back AS SELECT s.v, t.w FROM s JOIN gone t ON s.k = t.k;"
        running.add_text(again)
        troubled.arrive("s", 30, 40)
        troubled.await_right(*OTHERS)
        assert states(running) == {
            **dict.fromkeys((*OTHERS, "back"), "running"),
            "with_spoilt": "failed",
        }
        meant = [(n, {0: 7, 1: 8}[n % 3]) for n in range(30, 40) if n % 3 < 2]
        assert sorted(running.results("back").rows) == meant
    with troubled.running() as running:
        assert states(running)["with_spoilt"] == "failed"
        running.drop("with_spoilt")
    troubled.drain()
    troubled.check_drained(*OTHERS)


def test_the_table_of_a_query_that_was_dropped_may_go(tmp_path: Path, spark: SparkSession) -> None:
    """On Spark's operators what was dropped goes on without being heard, where it counts the stream."""
    sql = stream("s") + table("gone")
    troubled = Troubled(tmp_path, spark, sql)
    troubled.put("gone.csv", b"k,w\n0,7\n1,8\n")
    with troubled.running(engines="spark") as running:
        troubled.arrive("s", 0, 10)
        troubled.await_right("with_gone")
        running.drop("with_gone")
        (troubled.data / "gone.csv").unlink()
        running.add_text("CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;")
        troubled.arrive("s", 10, 20)
        wait_until(lambda: sorted(running.results("ones").rows) == [(10,), (13,), (16,), (19,)])
        wait_until(lambda: running.progress().streams[0].rows == 20)
        assert running.error is None
    with troubled.running(engines="spark") as running:
        troubled.arrive("s", 20, 30)
        wait_until(lambda: running.progress().streams[0].rows == 30)
        assert running.error is None
