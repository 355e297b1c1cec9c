"""Expressions that fail on rows, on real Spark: NULL, counted for each query whichever way it runs, with the
first row, and once however often a batch runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from plait.evaluator import difference
from plait.runtime.progress import summary_json, summary_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait.runtime.snapshot import RunProgress

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k INT, v INT, w INT, note STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 's', format = 'csv', files_per_batch = 1);
CREATE CONTINUOUS QUERY ratios AS SELECT v / w AS ratio FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY other_ratios AS SELECT v / w AS ratio FROM s WHERE k = 2;
CREATE CONTINUOUS QUERY guarded AS SELECT CASE WHEN w <> 0 THEN v / w END AS ratio FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY numbers AS SELECT k FROM s WHERE CAST(note AS INT) > 5 AND k < 3;
CREATE CONTINUOUS QUERY more AS SELECT v + 1 AS more, v % w AS rest FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY totals AS
  SELECT k, sum(v / w) AS total, window_end FROM s [RANGE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY fine AS SELECT v / 2 AS half FROM s WHERE k = 1;
"""
HEADER = "k,v,w,note,at\n"
FILES = (
    "1,8,2,7,2026-01-01 12:00:01\n1,5,1,six,2026-01-01 12:00:02\n3,5,1,seven,2026-01-01 12:00:03\n",
    "1,3,0,,2026-01-01 12:00:05\n1,4,0,9,2026-01-01 12:00:04\n2,2147483647,0,x,2026-01-01 12:00:06\n",
    "1,2147483647,1,1,2026-01-01 12:00:07\n",
)


def sample(k: int, v: int, w: int) -> str:
    return json.dumps({"k": k, "v": v, "w": w})


EXPECTED = {
    "ratios": [("v / w", 2, sample(1, 4, 0))],
    "other_ratios": [("v / w", 1, sample(2, 2147483647, 0))],
    "guarded": [],
    "numbers": [("CAST(note AS INT)", 2, json.dumps({"k": 1, "note": "six"}))],
    "more": [("v % w", 2, sample(1, 4, 0)), ("v + 1", 1, sample(1, 2147483647, 1))],
    "totals": [("v / w", 3, sample(1, 4, 0))],
    "fine": [],
}


@pytest.fixture
def session(tmp_path: Path, spark: SparkSession) -> plait.Session:
    (tmp_path / "queries.sql").write_text(SQL)
    (tmp_path / "s").mkdir()
    for number, rows in enumerate(FILES):
        file = tmp_path / "s" / f"{number}.csv"
        file.write_text(HEADER + rows)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))  # they are read in that order
    return plait.open(tmp_path / "queries.sql", spark=spark)


def failed(progress: RunProgress) -> dict[str, list[tuple[str, int, str]]]:
    return {
        query.name: [(each.expression, each.rows, _sorted(each.sample)) for each in query.failed]
        for query in progress.queries
    }


def _sorted(row: str) -> str:
    return json.dumps(dict(sorted(json.loads(row).items())))


@pytest.mark.parametrize("engines", ["any", "spark"])
def test_what_fails_is_counted(session: plait.Session, engines: str, tmp_path: Path) -> None:
    running = session.run(
        state=tmp_path / "state",
        results=tmp_path / "results",
        available_now=True,
        engines=engines,
    )
    running.wait()
    progress = running.progress()
    assert {str(query.way) for query in progress.queries} <= (
        {"shared"} if engines == "any" else {"native", "woven"}
    )
    assert failed(progress) == EXPECTED
    for name, expressions in EXPECTED.items():
        by_definition = {expression: rows for (_, expression), rows in session.evaluate(name).failed.items()}
        assert by_definition == {expression: rows for expression, rows, _ in expressions}
        found, meant = running.results(name).rows, session.evaluate(name, as_of_watermark=True).rows
        assert not difference(found, meant), name
    assert 'ratios: v / w on 2 rows of s, first {"' in summary_text(progress)
    told = {query["name"]: query["failed"] for query in summary_json(progress)["queries"]}
    assert told["numbers"][0]["sample"]["note"] == "six"
    # The next run goes on with these counts.
    (tmp_path / "s" / "4.csv").write_text(HEADER + "1,1,0,1,2026-01-01 12:00:09\n")
    again = session.run(
        state=tmp_path / "state", results=tmp_path / "results", available_now=True, engines=engines
    )
    again.wait()
    assert failed(again.progress())["ratios"] == [("v / w", 3, sample(1, 4, 0))]
