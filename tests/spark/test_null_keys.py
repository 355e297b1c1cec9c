"""Joins on Spark's operators by keys that Spark does not know to be NULL: NULL equals nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM {0} (x DOUBLE, n INT, g STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = '{0}', format = 'csv');
"""
PAIRS = "SELECT a.n AS an, b.n AS bn FROM l a [RANGE 1 MINUTE], r b [RANGE 1 MINUTE] WHERE {}"
BY_X = "(SELECT x, count(*) AS c FROM {} [RANGE 1 MINUTE] GROUP BY x)"
QUERIES = {
    "doubles": PAIRS.format("a.x = b.x"),
    "divided": PAIRS.format("100 / a.n = 100 / b.n"),
    "cast": PAIRS.format("CAST(a.g AS INT) = CAST(b.g AS INT)"),
    "at_ticks": PAIRS.format("a.x = b.x").replace("a.n AS an, b.n AS bn", "window_end, count(*) AS n"),
    "of_groups": f"SELECT p.c, q.c AS d FROM {BY_X.format('l')} p JOIN {BY_X.format('r')} q ON p.x = q.x",
}
ROWS = "x,n,g,at\n,1,a,2026-01-01 12:00:00\n1.5,2,7,2026-01-01 12:00:01\n,0,b,2026-01-01 12:00:02\n"


def test_null_equals_nothing(spark: SparkSession, tmp_path: Path) -> None:
    for name in "lr":
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(ROWS)
    queries = [f"CREATE CONTINUOUS QUERY {name} AS {select};" for name, select in QUERIES.items()]
    sql = "\n".join([*map(STREAM.format, "lr"), *queries])
    with plait.open_text(sql, base=tmp_path, spark=spark) as session:
        running = session.run(
            engines="spark",
            state=tmp_path / "state",
            results=tmp_path / "results",
            available_now=True,
            drain=True,
        )
        running.wait()
        for query in session.queries:
            meant = session.evaluate(query).rows
            assert meant
            assert not difference(running.results(query).rows, meant), query
