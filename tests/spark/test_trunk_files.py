"""Streams of Parquet files whose queries run together: the database reads what Spark says has come."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import PlaitError
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SQL = """
CREATE STREAM readings (plug INT, load DOUBLE, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'readings', format = 'parquet', files_per_batch = 1);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'alarms', format = 'parquet');
CREATE STREAM again (plug INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'readings', format = 'parquet');
CREATE CONTINUOUS QUERY of_1 AS SELECT plug, load FROM readings WHERE plug = 1;
CREATE CONTINUOUS QUERY totals AS
  SELECT window_end, plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug;
CREATE CONTINUOUS QUERY alarmed AS
  SELECT r.plug, r.load, a.code FROM readings r [RANGE 10 SECONDS], alarms a [RANGE 10 SECONDS]
  WHERE r.plug = a.plug AND a.code <> 'none';
CREATE CONTINUOUS QUERY both AS
  SELECT r.load FROM readings r [RANGE 1 SECOND], again g [RANGE 1 SECOND] WHERE r.plug = g.plug;
"""


def write(file: Path, value: str, rows: Sequence[tuple[Any, Any, float | None]], type_: pa.DataType) -> None:
    times = [None if s is None else NOON + timedelta(seconds=s) for *_, s in rows]
    columns = {
        "plug": pa.array([plug for plug, *_ in rows], pa.int32()),
        value: pa.array([each for _, each, _ in rows], type_),
        "at": pa.array(times, pa.timestamp("us", "UTC")),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name("_draft")
    pq.write_table(pa.table(columns), draft)
    latest = max((each.stat().st_mtime for each in file.parent.iterdir() if each != draft), default=0.0)
    os.utime(draft, (latest + 1, latest + 1))  # files are read in the order of their times
    draft.replace(file)


def write_all(folder: Path, first: int, batches: int) -> None:
    for batch in range(first, first + batches):
        rows = [(k % 3, k / 4, 30 * batch + k) for k in range(30)]
        write(folder / "readings" / f"{batch}.parquet", "load", rows, pa.float64())
        alarms = [(k % 4, ["none", "hot", None][k % 3], 30 * batch + 3 * k) for k in range(10)]
        write(folder / "alarms" / f"{batch}.parquet", "code", alarms, pa.string())


def run(session: plait.Session, folder: Path, *, drain: bool = False) -> plait.RunProgress:
    running = session.run(state=folder / "state", results=folder / "results", available_now=True, drain=drain)
    running.wait()
    return running.progress()


def check(session: plait.Session, folder: Path) -> None:
    for query in session.queries:
        expected = session.evaluate(query).rows
        assert expected
        assert not difference(expected, session.results(query, state=folder / "state").rows), query


def test_rows_and_what_is_bad(spark: SparkSession, tmp_path: Path) -> None:
    write_all(tmp_path, 0, 2)
    write(tmp_path / "readings" / "1b.parquet", "load", [(1, -0.0, 65), (1, 2.0, None)], pa.float64())
    (tmp_path / "readings" / "empty.parquet").touch()
    write(tmp_path / "readings" / "below" / "0.parquet", "load", [(1, 1.0, 5)], pa.float64())
    with plait.open_text(SQL, base=tmp_path, spark=spark) as session:
        first = run(session, tmp_path)
        write_all(tmp_path, 3, 1)
        last = run(session, tmp_path, drain=True)
        check(session, tmp_path)
    assert {stream.name: stream.bad_records for stream in first.streams} == {
        "readings": 1,
        "alarms": 0,
        "again": 1,
    }
    (readings,) = (stream for stream in last.streams if stream.name == "readings")
    assert (readings.rows, readings.bad_records) == (91, 1)
    assert readings.bad_folder is not None
    (line,) = (text for file in readings.bad_folder.iterdir() for text in file.read_text().splitlines())
    assert json.loads(line) == {
        "reason": "the event time `at` is NULL",
        "record": '{"plug":1,"load":2.0}',
    }


@pytest.mark.parametrize("hostile", ["garbage", "gone"])
def test_a_file_that_cannot_be_read_ends_it_and_is_read_when_mended(
    hostile: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plait.spark.trunk_files import TrunkFiles

    write_all(tmp_path, 0, 2)
    file = tmp_path / "alarms" / "2.parquet"
    write(file, "code", [(1, "hot", 70)], pa.string())
    meant = file.read_bytes()
    correct = TrunkFiles.process

    def process(*arguments: Any) -> Any:
        file.unlink() if hostile == "gone" else file.write_bytes(b"PAR1 no Parquet")
        return correct(*arguments)

    with plait.open_text(SQL, base=tmp_path, spark=spark) as session:
        with monkeypatch.context() as patch:
            patch.setattr(TrunkFiles, "process", process)
            with pytest.raises(PlaitError, match=r"alarms/2\.parquet") as raised:
                run(session, tmp_path, drain=True)
        assert raised.value.errors[0].code == {"gone": "data-gone", "garbage": "unreadable-data"}[hostile]
        assert "start again" in raised.value.errors[0].hint
        file.write_bytes(meant)
        run(session, tmp_path, drain=True)
        check(session, tmp_path)


def test_a_done_batch_that_runs_again_counts_files_that_are_gone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reach(step: str) -> None:
        if step == "batch-finished":  # and not committed by Spark
            raise OSError("the process ends")

    write_all(tmp_path, 0, 1)
    file = tmp_path / "readings" / "0.parquet"
    write(file, "load", [(1, 1.0, 3), (1, 2.0, 9), (1, 3.0, None)], pa.float64())
    with plait.open_text(SQL, base=tmp_path, spark=spark) as session:
        with monkeypatch.context() as patch:
            patch.setattr("plait.runtime.fragment_run.reach", reach)
            with pytest.raises(PlaitError, match="the process ends"):
                run(session, tmp_path)
        file.unlink()
        write(tmp_path / "readings" / "1.parquet", "load", [(1, 4.0, 20)], pa.float64())
        progress = run(session, tmp_path, drain=True)
        assert len(session.results("of_1", state=tmp_path / "state").rows) == 3
    counts = {stream.name: (stream.rows, stream.bad_records) for stream in progress.streams}
    assert counts == {"readings": (3, 1), "alarms": (10, 0), "again": (3, 1)}
