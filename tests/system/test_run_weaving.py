"""Window aggregates in several trees, as the planners of the aggregates paper have them: the rows are those
of each query alone, on either engine."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12)
SQL = """
CREATE SITE a; CREATE SITE b; CREATE SITE c;
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS)
  WITH (connector = 'files', path = 's', format = 'json', files_per_batch = 1, rate = 5, site = 'a');
"""
# Awkward slides, ranges that are no multiples of them, and two that are equal.
WINDOWS = ((6, 2), (8, 4), (7, 3), (70, 7), (70, 7), (5, 5), (13, 11), (1, 1))


@pytest.mark.parametrize(("planner", "trees"), [("w-rr", 3), ("wg-rr", None), ("g-tl", len(WINDOWS))])
@pytest.mark.parametrize("engines", ["duckdb", "spark"])
def test_trees_of_a_plan_run_as_planned(
    planner: str, trees: int | None, engines: str, tmp_path: Path, spark: SparkSession
) -> None:
    sql = SQL + "".join(
        f"CREATE CONTINUOUS QUERY q{n} AS SELECT k, sum(v) AS total, max(v) AS most, window_end "
        f"FROM s [RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS] GROUP BY k;\n"
        for n, (range_s, slide_s) in enumerate(WINDOWS)
    )
    (tmp_path / "s").mkdir()
    for number in range(3):
        rows = (
            {"k": n % 3, "v": n, "at": str(NOON + timedelta(seconds=n - n % 2))}
            for n in range(number * 30, number * 30 + 30)
        )
        file = tmp_path / "s" / f"{number}.json"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # they are read in that order
    with plait.open_text(sql, base=tmp_path, spark=spark) as session:
        planned = session.plan(planner).to_json()["trees"]
        assert trees is None or len(planned) == trees
        running = session.run(
            planner,
            engines=engines,
            available_now=True,
            drain=True,
            state=tmp_path / "state",
            results=tmp_path / "results",
        )
        running.wait()
        if engines == "duckdb":
            computed = {query.name: query.fragment for query in running.queries()}
            assert {*computed.values()} == {"shared-0"}
        for name in session.queries:
            assert not difference(running.results(name).rows, session.evaluate(name).rows), name
