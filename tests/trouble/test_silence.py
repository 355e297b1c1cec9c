"""Streams that bring nothing: it is said which, since when, whom it holds back, and what is to be done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.trouble.troubled import Troubled, queries_over, query_of, remarked, stream

from plait.runtime import reporting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BOTH = """
CREATE CONTINUOUS QUERY both AS
  SELECT a.window_end, a.n AS of_s, b.n AS of_t
  FROM (SELECT window_end, count(*) AS n FROM s [RANGE 10 SECONDS]) a
  JOIN (SELECT window_end, count(*) AS n FROM t [RANGE 10 SECONDS]) b ON a.window_end = b.window_end;
"""


def test_a_silent_stream_is_named_and_holds_nobody_else_back(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "_SILENT_S", 0.5)
    troubled = Troubled(tmp_path, spark, stream("s") + stream("t") + queries_over("s") + BOTH)
    with troubled.running() as running:
        troubled.arrive("s", 0, 30)
        wait_until(lambda: remarked(running, "t is silent since 20", "holds back both"))
        troubled.arrive("t", 0, 15)
        troubled.await_right("both")
        troubled.arrive("s", 30, 60)
        troubled.await_right("ones_of_s", "sums_of_s", "both")
        # It has given rows; that no more come is said all the same.
        assert query_of(running, "both").rows == 1
        wait_until(lambda: remarked(running, "t is silent since 20", "an idle_timeout would let them go on"))
        assert ", held back by t, silent since 20" in query_of(running, "both").waiting
        assert not remarked(running, "s is silent")
        troubled.arrive("t", 15, 60)
        troubled.await_right("both")
    troubled.drain()
    troubled.check_drained("ones_of_s", "sums_of_s", "both")


def test_an_idle_timeout_lets_others_go_on(tmp_path: Path, spark: SparkSession) -> None:
    sql = stream("s") + stream("t", more=", idle_timeout = '1 second'") + queries_over("s")
    union = """
    CREATE CONTINUOUS QUERY counted AS SELECT count(*) AS n, window_end
      FROM (SELECT v FROM s UNION ALL SELECT v FROM t) x [RANGE 10 SECONDS];
    """
    troubled = Troubled(tmp_path, spark, sql + union)
    troubled.arrive("t", 0, 1)
    troubled.arrive("s", 0, 35)
    with troubled.running() as running:
        # All that s has closed, though t has not come so far.
        wait_until(lambda: len(running.results("counted").rows) == 3)
        troubled.await_right("ones_of_s", "sums_of_s")
        assert sorted(row[0] for row in running.results("counted").rows) == [10, 10, 11]
    troubled.drain()
    troubled.check_drained("ones_of_s", "sums_of_s", "counted")
