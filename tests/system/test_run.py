"""Whole runs on real Spark: the rows are the definition's, each once, whenever a run is stopped or killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.patience import wait_until

import plait
from plait.errors import ExternalError, UserError
from plait.evaluator import difference
from plait.planners import PLANNERS
from plait.planners.weaving import OPTIMIZERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'readings', format = 'csv');
CREATE TABLE rooms (plug INT, room STRING) WITH (connector = 'files', path = 'rooms', format = 'csv');
CREATE CONTINUOUS QUERY high AS SELECT plug, load FROM readings WHERE load > 15;
CREATE CONTINUOUS QUERY per_minute AS
  SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 1 MINUTE] GROUP BY plug;
CREATE CONTINUOUS QUERY last_three AS
  SELECT sum(load) AS total, count(*) AS n, window_end FROM readings [ROWS 3 SLIDE 2];
CREATE CONTINUOUS QUERY in_rooms AS
  SELECT m.room, r.load FROM readings r LEFT JOIN rooms m ON r.plug = m.plug;
"""
QUERIES = ("high", "per_minute", "last_three", "in_rooms")

MORNING = """plug,load,at
1,10,2026-01-01 12:00:05
2,20,2026-01-01 12:00:20
1,30,2026-01-01 12:00:20
2,7,
1,,2026-01-01 12:00:58
"""
NOON = """plug,load,at
1,40,2026-01-01 12:00:55
2,50,2026-01-01 12:01:10
3,60,2026-01-01 12:03:10
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries.sql").write_text(SQL)
    for name in ("readings", "rooms"):
        (tmp_path / name).mkdir()
    (tmp_path / "rooms" / "rooms.csv").write_text("plug,room\n1,kitchen\n2,hall\n")
    (tmp_path / "readings" / "morning.csv").write_text(MORNING)
    return tmp_path


@pytest.fixture
def session(folder: Path, spark: SparkSession) -> plait.Session:
    return plait.open(folder / "queries.sql", spark=spark)


def start(session: plait.Session, folder: Path, **options: Any) -> plait.Running:
    """Every query by itself, unless another planner is named."""
    usual: dict[str, Any] = {
        "planner": "independent",
        "state": folder / "state",
        "results": folder / "results",
    }
    return session.run(**usual | options)


def finish(session: plait.Session, folder: Path, **options: Any) -> plait.Running:
    running = start(session, folder, available_now=True, **options)
    running.wait()
    return running


def add_noon(folder: Path) -> None:
    (folder / "readings" / "noon.csv").write_text(NOON)


def check(session: plait.Session, folder: Path, *, as_of_watermark: bool = False) -> None:
    """All that any reader of the files sees is what the queries mean."""
    session.close()  # what was evaluated before may have changed
    for query in session.queries:
        published = session.results(query, state=folder / "state").rows
        meant = session.evaluate(query, as_of_watermark=as_of_watermark).rows
        assert not difference(published, meant), query


@pytest.mark.parametrize("planner", sorted(PLANNERS.keys() - OPTIMIZERS.keys()))
def test_a_drained_run_gives_what_the_queries_mean(
    session: plait.Session, folder: Path, planner: str
) -> None:
    add_noon(folder)
    running = finish(session, folder, planner=planner, drain=True)
    check(session, folder)

    progress = running.progress()
    (readings,) = progress.streams
    assert (readings.rows, readings.bad_records) == (7, 1)
    assert readings.bad_folder is not None
    (bad,) = readings.bad_folder.glob("*.jsonl")
    assert "NULL" in json.loads(bad.read_text())["reason"]
    assert {query.name: query.rows for query in progress.queries} == {
        name: len(session.evaluate(name)) for name in QUERIES
    }
    assert not any(query.late_rows or query.error or query.waiting for query in progress.queries)

    with pytest.raises(UserError, match="it was drained"):
        start(session, folder, planner=planner)


def test_a_second_start_goes_on(session: plait.Session, folder: Path) -> None:
    finish(session, folder)
    check(session, folder, as_of_watermark=True)
    finish(session, folder)
    check(session, folder, as_of_watermark=True)
    add_noon(folder)
    finish(session, folder)
    check(session, folder, as_of_watermark=True)
    running = finish(session, folder, drain=True)
    check(session, folder)
    assert running.progress().streams[0].rows == 7


COUNTED = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'readings', format = 'csv');
CREATE STREAM visits (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'visits', format = 'csv');
CREATE CONTINUOUS QUERY pairs AS SELECT r.load, v.load AS more
  FROM readings r [RANGE 1 MINUTE], visits v [RANGE 1 MINUTE] WHERE r.load < v.load;
CREATE CONTINUOUS QUERY seen AS SELECT plug FROM visits;
"""


def test_streams_are_counted_once_whoever_reads_them(folder: Path, spark: SparkSession) -> None:
    """Readings by the one query in the database that reads them, visits beside the two that do."""
    (folder / "visits").mkdir()
    (folder / "visits" / "morning.csv").write_text(MORNING)
    (folder / "queries.sql").write_text(COUNTED)
    session = plait.open(folder / "queries.sql", spark=spark)
    running = finish(session, folder)
    assert [stream.rows for stream in running.progress().streams] == [4, 4]
    add_noon(folder)
    (folder / "visits" / "noon.csv").write_text(NOON)
    running = finish(session, folder, drain=True)
    check(session, folder)
    progress = running.progress()
    assert [query.way for query in progress.queries] == ["shared", "native"]
    assert [(each.name, each.rows, each.bad_records) for each in progress.streams] == [
        ("readings", 7, 1),
        ("visits", 7, 1),
    ]
    checkpoints = (folder / "state" / "streams").glob("*/checkpoint")
    assert [path.parent.name for path in checkpoints] == ["visits"]


def test_it_runs_until_it_is_stopped(session: plait.Session, folder: Path) -> None:
    with start(session, folder, trigger_seconds=0.1) as running:
        wait_until(lambda: len(running.results("in_rooms")) == 4)
        add_noon(folder)
        wait_until(lambda: len(running.results("in_rooms")) == 7)
        with pytest.raises(UserError, match=f"another run uses .* process {os.getpid()}"):
            start(session, folder)
    assert running.has_ended
    running = start(session, folder, trigger_seconds=0.1)
    running.drain()
    check(session, folder)


def test_it_ends_after_a_time(session: plait.Session, folder: Path) -> None:
    running = start(session, folder, for_seconds=0.1)
    assert running.wait(120)


def test_a_query_that_fails_does_not_stop_the_others(
    session: plait.Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plait.runtime import results_folder

    publish = results_folder.publish

    def failing(folder: Path, name: str, write: Callable[..., object]) -> None:
        if folder.name == "high":
            raise ExternalError("results", "the disk is full")
        publish(folder, name, write)

    monkeypatch.setattr(results_folder, "publish", failing)
    add_noon(folder)
    running = start(session, folder, available_now=True, drain=True)
    with pytest.raises(ExternalError, match="the disk is full"):
        running.wait()
    states = {query.name: query.state.value for query in running.progress().queries}
    assert states == {"high": "failed", "per_minute": "ended", "last_three": "ended", "in_rooms": "ended"}
    assert len(running.results("in_rooms")) == 7

    monkeypatch.undo()
    with pytest.raises(UserError, match="finish that with --drain"):
        start(session, folder)
    finish(session, folder, drain=True)
    check(session, folder)


def test_results_are_not_started_twice(session: plait.Session, folder: Path) -> None:
    finish(session, folder)
    with pytest.raises(UserError, match="for the results of another state folder"):
        start(session, folder, state=folder / "other")
    assert not (folder / "other").exists()
    for file in (folder / "results" / "high").iterdir():
        file.unlink()
    with pytest.raises(UserError, match="the results of `high` that the state knows of are not in"):
        start(session, folder)


def test_a_silent_stream_holds_others_back_for_its_timeout_only(folder: Path, spark: SparkSession) -> None:
    text = """
    CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
      WITH (connector = 'files', path = 'readings', format = 'csv');
    CREATE STREAM alarms (plug INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'files', path = 'alarms', format = 'csv', idle_timeout = '1 second');
    CREATE CONTINUOUS QUERY together AS
      SELECT count(*) AS n, window_end FROM
        (SELECT plug FROM readings UNION ALL SELECT plug FROM alarms) x [RANGE 1 MINUTE];
    """
    (folder / "alarms").mkdir()
    (folder / "alarms" / "first.csv").write_text("plug,at\n9,2026-01-01 12:00:00\n")
    session = plait.open_text(text, base=folder, spark=spark)
    add_noon(folder)
    with start(session, folder, trigger_seconds=0.1) as running:
        # 12:01 and 12:02; the watermark of the readings has not reached the end of the last window.
        wait_until(lambda: len(running.results("together")) == 2)
        wait_until(lambda: "held back by readings" in running.progress().queries[0].waiting)


def test_rows_that_wait_to_be_read_make_no_stream_silent(folder: Path, spark: SparkSession) -> None:
    """Batches are farther apart than the timeout: only a look in vain tells that nothing has come."""
    text = """
    CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
      WITH (connector = 'files', path = 'readings', format = 'csv', files_per_batch = 1,
            idle_timeout = '10 milliseconds');
    CREATE CONTINUOUS QUERY per_minute AS SELECT count(*) AS n, window_end FROM readings [RANGE 1 MINUTE];
    CREATE CONTINUOUS QUERY per_row AS SELECT count(*) AS n, window_end FROM readings [ROWS 1];
    """
    for minute in range(1, 6):
        row = f"1,10,2026-01-01 12:0{minute}:30"
        file = folder / "readings" / f"{minute}.csv"
        file.write_text(f"plug,load,at\n{row}\n")
        os.utime(file, (time() + minute, time() + minute))  # the order in which files are read
    session = plait.open_text(text, base=folder, spark=spark)
    with start(session, folder, trigger_seconds=0.5) as running:
        wait_until(lambda: len(running.results("per_minute")) == 6 and len(running.results("per_row")) == 9)
        assert not any(query.late_rows for query in running.progress().queries)


@pytest.mark.slow
def test_a_stream_that_never_pauses_is_closed_by_draining(tmp_path: Path, spark: SparkSession) -> None:
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    end = now + timedelta(seconds=4)
    text = f"""
    CREATE STREAM bids (auction BIGINT, price DECIMAL(10, 2), at TIMESTAMP,
                        WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
      WITH (connector = 'generator', generator = 'auctions.bids', rate = 50,
            start = '{now - timedelta(seconds=4)}', end = '{end}');
    CREATE CONTINUOUS QUERY counted AS SELECT count(*) AS n, window_end FROM bids [RANGE 1 SECOND];
    CREATE CONTINUOUS QUERY per_row AS SELECT sum(price) AS total, window_end FROM bids [ROWS 20];
    CREATE CONTINUOUS QUERY dear AS SELECT auction, price FROM bids WHERE price > 150;
    """
    with plait.open_text(text, spark=spark) as session:
        running = start(session, tmp_path, trigger_seconds=0.5)
        wait_until(lambda: datetime.now(UTC).replace(tzinfo=None) > end)
        running.drain()
        for query in ("counted", "per_row", "dear"):
            assert not difference(session.evaluate(query).rows, running.results(query).rows), query


def test_rows_may_be_given_in_python(folder: Path, spark: SparkSession) -> None:
    schema = "plug INT, load INT, at TIMESTAMP"
    frame = spark.readStream.schema(schema).option("header", True).csv(str(folder / "readings"))
    text = """
    CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
    CREATE CONTINUOUS QUERY high AS SELECT plug, load FROM readings WHERE load > 15;
    """
    session = plait.open_text(text, spark=spark)
    with pytest.raises(UserError, match="has no connector"):
        start(session, folder)
    assert not (folder / "state").exists()
    with pytest.raises(UserError, match="there is no stream `reading`"):
        start(session, folder, streams={"reading": frame})
    running = finish(session, folder, streams={"readings": frame}, drain=True)
    assert sorted(running.results("high").rows) == [(1, 30), (2, 20)]


def test_a_state_is_gone_on_with_by_the_planner_that_began_it(session: plait.Session, folder: Path) -> None:
    finish(session, folder, planner="plait")
    with pytest.raises(UserError, match="with the planner plait, not with independent"):
        start(session, folder)
    add_noon(folder)
    finish(session, folder, planner="plait", drain=True)
    check(session, folder)
