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
}


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, spark: SparkSession, tmp_path: Path) -> None:
    sql = f"{DECLARATIONS}CREATE CONTINUOUS QUERY q AS {QUERIES[name]};"
    check(spark, sql, some_rows(seed=len(name)), tmp_path, tables={"rooms": ROOMS})
