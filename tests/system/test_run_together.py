"""Queries that run together, on real Spark: none waits for a stream that it does not read, and each has its
rows where it wants them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.patience import wait_until

import plait
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'readings', format = 'csv');
CREATE STREAM alarms (plug INT, code INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'alarms', format = 'csv');
CREATE CONTINUOUS QUERY of_1 AS SELECT plug, load FROM readings WHERE plug = 1;
CREATE CONTINUOUS QUERY of_2 AS SELECT plug, load FROM readings WHERE plug = 2;
CREATE CONTINUOUS QUERY apart INTO 'own' AS SELECT plug, load FROM readings WHERE plug = 3;
CREATE CONTINUOUS QUERY totals AS
  SELECT window_end, plug, sum(load) AS total FROM readings [RANGE 1 MINUTE] GROUP BY plug;
CREATE CONTINUOUS QUERY alarmed AS
  SELECT r.plug, r.load, a.code FROM readings r [RANGE 1 MINUTE], alarms a [RANGE 1 MINUTE]
  WHERE r.plug = a.plug;
CREATE CONTINUOUS QUERY at_once AS
  SELECT r.window_end, r.n AS readings, a.n AS alarms
  FROM (SELECT window_end, count(*) AS n FROM readings [RANGE 1 MINUTE]) r
  JOIN (SELECT window_end, count(*) AS n FROM alarms [RANGE 1 MINUTE]) a ON r.window_end = a.window_end;
"""
READINGS = """plug,load,at
1,10,2026-01-01 12:00:05
2,20,2026-01-01 12:00:20
2,7,
3,30,2026-01-01 12:00:58
1,40,2026-01-01 12:05:00
"""
ALARMS = "plug,code,at\n1,7,2026-01-01 12:00:30\n2,8,2026-01-01 12:06:00\n"


@pytest.fixture
def session(tmp_path: Path, spark: SparkSession) -> plait.Session:
    (tmp_path / "queries.sql").write_text(SQL)
    for name in ("readings", "alarms"):
        (tmp_path / name).mkdir()
    (tmp_path / "readings" / "1.csv").write_text(READINGS)
    return plait.open(tmp_path / "queries.sql", spark=spark)


def waiting(running: plait.Running, query: str) -> str:
    return next(each.waiting for each in running.progress().queries if each.name == query)


def test_no_query_waits_for_a_stream_that_it_does_not_read(session: plait.Session, tmp_path: Path) -> None:
    """All are one streaming query, and `alarms` brings nothing at first."""
    with session.run(state=tmp_path / "state", results=tmp_path / "results", trigger_seconds=0.2) as running:
        wait_until(lambda: len(running.results("totals")) == 3)
        assert len(running.results("of_1")) == 2
        assert not len(running.results("at_once"))
        wait_until(lambda: waiting(running, "at_once") == "no data yet in alarms")
        (tmp_path / "alarms" / "1.csv").write_text(ALARMS)
        wait_until(lambda: len(running.results("at_once")) == 1)
        running.drain()
        assert {query.way for query in running.progress().queries} == {"shared"}
        for query in session.queries:
            assert not difference(running.results(query).rows, session.evaluate(query).rows), query


def test_rows_are_where_each_query_wants_them(session: plait.Session, tmp_path: Path) -> None:
    running = session.run(
        state=tmp_path / "state", results=tmp_path / "results", available_now=True, drain=True
    )
    running.wait()
    (shared,) = (tmp_path / "results").glob("shared-0-*")
    rows = pq.read_table(shared).to_pylist()
    assert [row["query"] for row in rows] == ["of_1", "of_1", "of_2"]
    assert {(row["query"], row["load"]) for row in rows} == {("of_1", 10), ("of_1", 40), ("of_2", 20)}
    assert pq.read_table(tmp_path / "own").to_pylist() == [{"plug": 3, "load": 30}]
    assert (tmp_path / "results" / "totals").is_dir()
    readings = next(stream for stream in running.progress().streams if stream.name == "readings")
    assert (readings.rows, readings.bad_records) == (4, 1)
