"""Every query class on Spark's own operators gives the rows of its definition, however rows are cut into
micro-batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.native_runs import Cuts, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DECLARATIONS = """
CREATE STREAM readings (plug INT, load INT, price DECIMAL(8,2), level DOUBLE, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 20 SECONDS);
CREATE STREAM visits (plug INT, worker STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE rooms (plug INT, room STRING);
"""

ROOMS = [(1, "kitchen"), (2, "kitchen"), (2, "hall"), (None, "nowhere"), (7, "attic")]

START = datetime(2026, 1, 1, 12)
BATCHES = 4


def some_rows(seed: int, *, per_batch: int = 25, seconds: int = 40) -> Cuts:
    """Rows of all streams, out of order by less than the delay, on edges and with equal times and NULLs."""
    numbers = random.Random(seed)
    from decimal import Decimal

    def moment(batch: int) -> datetime:
        # Up to 9 seconds older than the latest of the batches before; often exactly on a second or a tick.
        offset = batch * seconds - 9 + numbers.random() * (seconds + 8.9)
        step = numbers.choice([0.000001, 1, 5, 10])
        micros = int(offset * 1_000_000 // (step * 1_000_000) * step * 1_000_000)
        return START + timedelta(microseconds=max(micros, 0) if batch == 0 else max(micros, int((batch * seconds - 9) * 1e6)))

    def plug() -> int | None:
        return numbers.choice([1, 1, 2, 3, 4, None])

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.15 else value

    cuts = []
    for batch in range(BATCHES):
        cuts.append(
            {
                "readings": [
                    (
                        plug(),
                        maybe(numbers.randint(0, 50)),
                        maybe(Decimal(numbers.randint(0, 999)) / 100),
                        maybe(numbers.choice([0.0, 1.5, float("nan"), 2.25])),
                        moment(batch),
                    )
                    for _ in range(per_batch)
                ],
                "alarms": [
                    (plug(), maybe(numbers.choice(["hot", "odd", "ann"])), moment(batch))
                    for _ in range(per_batch // 2)
                ],
                "visits": [
                    (plug(), maybe(numbers.choice(["ann", "bob"])), moment(batch))
                    for _ in range(per_batch // 2)
                ],
            }
        )
    return cuts


QUERIES = {
    "filter": "SELECT plug, load * 2 AS twice, 100 / load AS share FROM readings WHERE load > 5",
    "tumbling": """SELECT plug, count(*) AS n, count(load) AS loads, sum(load) AS total, avg(load) AS mean, min(price) AS low,
        max(price) AS high, sum(price) AS paid, stddev(level) AS spread, max(level) AS top, window_start, window_end
      FROM readings [RANGE 10 SECONDS] GROUP BY plug""",
    "sliding": "SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY plug",
    "odd": "SELECT count(*) AS n, window_start, window_end FROM readings [RANGE 7 SECONDS SLIDE 3 SECONDS]",
    "gap": "SELECT count(*) AS n, window_start, window_end FROM readings [RANGE 3 SECONDS SLIDE 10 SECONDS]",
    "spark_window": "SELECT count(*) AS n, window_end FROM readings GROUP BY window(at, '15 seconds', '10 seconds', '3 seconds')",
    "having": """SELECT plug, sum(load) FILTER (WHERE load > 10) AS high FROM readings [RANGE 10 SECONDS]
      GROUP BY plug HAVING count(*) > 1 AND plug > 1""",
    "union": "SELECT plug, code AS what FROM alarms WHERE plug > 1 UNION ALL SELECT plug, worker FROM visits",
    "union_aggregate": """SELECT plug, count(*) AS n, window_end FROM
      (SELECT plug, code AS what FROM alarms UNION ALL SELECT plug, worker FROM visits) e [RANGE 10 SECONDS] GROUP BY plug""",
    "inner": "SELECT a.code, r.load FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS] WHERE a.plug = r.plug",
    "three": """SELECT a.code, r.load, v.worker FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS],
      visits v [RANGE 9 SECONDS] WHERE a.plug = r.plug AND r.plug = v.plug""",
    "self": """SELECT l.load AS a, r.load AS b FROM readings l [RANGE 5 SECONDS], readings r [RANGE 8 SECONDS]
      WHERE l.plug = r.plug AND l.load < r.load AND l.load > 20""",
    "left": """SELECT a.plug, a.code, v.worker FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 3 SECONDS]
      ON a.plug = v.plug AND a.code <> v.worker""",
    "left_condition": """SELECT a.plug, a.code, v.worker FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 3 SECONDS]
      ON a.plug = v.plug AND a.code = 'hot' AND v.worker = 'ann'""",
    "right": """SELECT a.plug, a.code, v.worker FROM alarms a [RANGE 5 SECONDS] RIGHT JOIN visits v [RANGE 3 SECONDS]
      ON a.plug = v.plug""",
    "full": """SELECT a.plug, a.code, v.plug AS other, v.worker FROM alarms a [RANGE 5 SECONDS] FULL JOIN visits v [RANGE 3 SECONDS]
      ON a.plug = v.plug""",
    "outer_chain": """SELECT a.plug, r.load, v.worker FROM alarms a [RANGE 10 SECONDS]
      LEFT JOIN readings r [RANGE 5 SECONDS] ON a.plug = r.plug LEFT JOIN visits v [RANGE 7 SECONDS] ON a.plug = v.plug""",
    "distinct": "SELECT plug, count(DISTINCT load) AS n, window_end FROM readings [RANGE 10 SECONDS] GROUP BY plug",
    "distinct_pairs": "SELECT count(DISTINCT load, level) AS n, window_end FROM readings [RANGE 10 SECONDS]",
    "distinct_mixed": """SELECT plug, count(DISTINCT load) AS loads, count(DISTINCT level, load) AS pairs, sum(load) AS total,
      count(DISTINCT load) FILTER (WHERE load > 20) AS high FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug""",
    "groups_only": "SELECT plug FROM readings [RANGE 10 SECONDS] GROUP BY plug",
    "minutes_to_hours": """SELECT plug, sum(total) AS total, count(*) AS n, window_end FROM
      (SELECT plug, sum(load) AS total FROM readings [RANGE 5 SECONDS] GROUP BY plug) m [RANGE 20 SECONDS] GROUP BY plug""",
    "over_join": """SELECT sum(load) AS total, count(*) AS n, window_end FROM (
      SELECT r.load FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS] WHERE a.plug = r.plug) m [RANGE 10 SECONDS]""",
    "over_left_join": """SELECT count(*) AS n, count(worker) AS met, window_end FROM (
      SELECT v.worker FROM alarms a [RANGE 20 SECONDS] LEFT JOIN visits v [RANGE 5 SECONDS] ON a.plug = v.plug) m [RANGE 10 SECONDS]""",
    "over_full_join": """SELECT count(*) AS n, count(worker) AS met, window_end FROM (
      SELECT v.worker FROM alarms a [RANGE 20 SECONDS] FULL JOIN visits v [RANGE 5 SECONDS] ON a.plug = v.plug) m [RANGE 10 SECONDS]""",
    "highest": """WITH totals AS (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug)
      SELECT max(total) AS highest, count(*) AS n FROM totals""",
    "cq1": """SELECT r.plug, count(*) AS n, window_end FROM readings r [RANGE 20 SECONDS SLIDE 10 SECONDS],
      (SELECT plug, max(load) AS top FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug) m
      WHERE r.plug = m.plug AND r.load > 0.5 * m.top GROUP BY r.plug""",
    "cq3": """SELECT l.plug, l.top AS long_top, s.top AS short_top
      FROM (SELECT plug, max(load) AS top FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug) l
      JOIN (SELECT plug, max(load) AS top FROM readings [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY plug) s ON l.plug = s.plug""",
    "above_mean": """SELECT r.plug, r.load, m.mean FROM readings r [RANGE 20 SECONDS SLIDE 10 SECONDS],
      (SELECT avg(load) AS mean FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS]) m WHERE r.load > m.mean""",
    "joined_windows": """SELECT a.code, count(*) AS n, sum(r.load) AS total, window_end FROM alarms a [RANGE 10 SECONDS],
      readings r [RANGE 10 SECONDS] WHERE a.plug = r.plug GROUP BY a.code""",
    "tick_left": """SELECT r.plug, r.n, a.n AS alarms FROM (SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] GROUP BY plug) r
      LEFT JOIN (SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug) a ON r.plug = a.plug""",
    "tick_full": """SELECT r.plug, r.n, a.plug AS other, a.n AS alarms, window_end
      FROM (SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] GROUP BY plug) r
      FULL JOIN (SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug) a ON r.plug = a.plug""",
    "tick_union": """SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] GROUP BY plug
      UNION ALL SELECT plug, count(*) AS n FROM alarms [RANGE 10 SECONDS] GROUP BY plug""",
    "top": "SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 10 SECONDS] GROUP BY plug ORDER BY total DESC LIMIT 2",
    "lookup": "SELECT m.room, r.load FROM readings r LEFT JOIN rooms m ON r.plug = m.plug",
    "lookup_after_join": """SELECT a.code, r.load, m.room FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 5 SECONDS], rooms m
      WHERE a.plug = r.plug AND m.plug = a.plug AND m.room <> a.code""",
    "lookup_after_aggregate": """SELECT t.plug, m.room, t.total, window_end FROM
      (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug) t JOIN rooms m ON t.plug = m.plug
      ORDER BY t.total, m.room LIMIT 1""",
    "edge_filter": """SELECT plug, count(*) AS n, window_end FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS]
      WHERE window_end > TIMESTAMP '2026-01-01 12:00:20' GROUP BY plug""",
    "joined_sums": """SELECT s.total, r.load FROM (SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug) s [RANGE 15 SECONDS],
      readings r [RANGE 3 SECONDS] WHERE s.plug = r.plug""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, spark: SparkSession, tmp_path: Path) -> None:
    sql = f"{DECLARATIONS}CREATE CONTINUOUS QUERY q AS {QUERIES[name]};"
    check(spark, sql, some_rows(seed=len(name)), tmp_path, tables={"rooms": ROOMS})
