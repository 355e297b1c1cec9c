"""Changes of the queries of a run, in this process: what may go wrong while one is made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from errno import ENOSPC
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import wait_until

import plait
from plait.errors import ExternalError, PlaitError, UnsupportedError
from plait.evaluator import difference
from plait.runtime import assembly
from plait.runtime.changes import Change
from plait.runtime.state import StateFolder
from plait.spark.execution import Execution, Frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k INT, v INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
"""
NOON = datetime(2026, 1, 1, 12)
NEW_COLUMN = "CREATE CONTINUOUS QUERY others AS SELECT w FROM s WHERE k = 0;"


class Changing:
    """A run over rows that arrive when they are told to."""

    def __init__(self, folder: Path, running: plait.Running) -> None:
        self.folder = folder
        self.running = running

    def arrive(self, first: int, last: int) -> None:
        rows = [
            {"k": n % 3, "v": n, "w": -n, "at": str(NOON + timedelta(seconds=n))} for n in range(first, last)
        ]
        draft = self.folder / "draft"
        draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        draft.rename(self.folder / "in" / f"{first}.json")
        wait_until(lambda: self.running.progress().streams[0].rows >= last)

    def values(self, query: str) -> list[object]:
        return sorted(row[0] for row in self.running.results(query))


@pytest.fixture
def changing(tmp_path: Path, spark: SparkSession) -> Iterator[Changing]:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(SQL)
    session = plait.open(tmp_path / "a.sql", spark=spark)
    with session.run(state=tmp_path / "state", results=tmp_path / "results", trigger_seconds=0.1) as running:
        yield Changing(tmp_path, running)


def test_a_run_goes_on_while_its_only_streaming_query_starts_again(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new column makes Spark read another frame; between the two nothing is active for a while."""
    followed_by = Execution.followed_by

    def slowly(self: Execution, frame: Frame) -> Execution:
        self.request_stop()
        self._query.stop()
        sleep(1)
        return followed_by(self, frame)

    monkeypatch.setattr(Execution, "followed_by", slowly)
    changing.arrive(0, 6)
    foreseen = changing.running.would_add_text(NEW_COLUMN)
    assert foreseen.restarted == ("shared-0",)
    assert "the system runs" in repr(foreseen)
    assert changing.running.add_text(NEW_COLUMN).added == foreseen.added
    changing.arrive(6, 12)
    wait_until(lambda: changing.values("others") == [-9, -6])
    assert changing.values("ones") == [1, 4, 7, 10]


def test_a_change_that_cannot_be_written_down_is_not_made(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing.arrive(0, 6)

    def full(_state: StateFolder, _change: Change) -> None:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(StateFolder, "add", full)
        for sql in (NEW_COLUMN, "CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;"):
            with pytest.raises(PlaitError, match="No space left on device"):
                changing.running.add_text(sql)
        with pytest.raises(PlaitError, match="No space left on device"):
            changing.running.drop("ones")
    assert [query.name for query in changing.running.queries()] == ["ones"]
    changing.arrive(6, 12)
    changing.running.add_text(NEW_COLUMN)
    changing.arrive(12, 18)
    wait_until(lambda: changing.values("others") == [-15, -12])
    assert changing.values("ones") == [1, 4, 7, 10, 13, 16]


def test_progress_can_be_looked_at_while_changes_are_made(changing: Changing) -> None:
    """As the display of a run does, which nobody tells of changes."""
    changing.arrive(0, 6)
    ended, errors, looks = Event(), list[Exception](), [0]

    def look() -> None:
        while not ended.is_set():
            looks[0] += 1
            try:
                changing.running.progress()
            except Exception as error:
                errors.append(error)
                return

    looking = Thread(target=look)
    looking.start()
    for number in range(8):
        changing.running.add_text(
            f"CREATE CONTINUOUS QUERY q{number} AS SELECT k, sum(v) AS total"
            f" FROM s [RANGE {number + 1} SECONDS] GROUP BY k HAVING sum(v) > {number};"
        )
        if number % 2:
            changing.running.drop(f"q{number - 1}")
    ended.set()
    looking.join()
    assert not errors
    assert looks[0] > 20


def test_a_refused_change_leaves_other_fragments_alone(tmp_path: Path, spark: SparkSession) -> None:
    """They may be in the middle of a batch, which nobody waits for."""
    for name in ("a", "b", "foreign"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "somebody.txt").write_text("else's")
    for name, count in (("a", 1), ("b", 40)):
        for number in range(count):
            at = [NOON.replace(tzinfo=UTC) + timedelta(seconds=number)] * 2_000
            rows = pa.table({"v": pa.array(range(2_000), pa.int32()), "at": pa.array(at)})
            file = tmp_path / name / f"{number:02}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (number, number))  # files are read in the order of their times
    streams = "".join(
        f"CREATE STREAM {name} (v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (connector = 'files', "
        f"path = '{tmp_path / name}', format = 'parquet', files_per_batch = 1);"
        for name in ("a", "b")
    )
    of_b = "".join(
        f"CREATE CONTINUOUS QUERY b{k} AS SELECT v % {k + 2} AS r, count(*) AS n"
        f" FROM b [RANGE {k + 1} SECONDS SLIDE 1 SECOND] GROUP BY v % {k + 2};"
        for k in range(6)
    )
    sql = f"{streams}CREATE CONTINUOUS QUERY qa AS SELECT v FROM a;{of_b}"
    refused = f"CREATE CONTINUOUS QUERY z INTO '{tmp_path / 'foreign'}' AS SELECT v FROM a WHERE v > 3;"
    session = plait.open_text(sql, spark=spark)
    with session.run(state=tmp_path / "state", results=tmp_path / "results", trigger_seconds=0) as running:
        while running.batches("b0") < 40:
            with pytest.raises(PlaitError, match="foreign"):
                running.add_text(refused)
            assert running.error is None
        with pytest.raises(PlaitError, match="foreign"):
            running.would_add_text(refused)
        running.drain()
        assert running.error is None
        for name in ("qa", "b0", "b5"):
            assert not difference(session.evaluate(name).rows, running.results(name).rows)


def test_a_refused_fragment_leaves_nothing_to_the_next_attempt(
    changing: Changing, spark: SparkSession
) -> None:
    changing.arrive(0, 6)
    (changing.folder / "late").mkdir()
    declared = "CREATE STREAM late (v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH ({});"
    query = (
        "CREATE CONTINUOUS QUERY of_late AS SELECT v, count(*) AS n FROM late [RANGE 2 SECONDS] GROUP BY v;"
    )
    with pytest.raises(PlaitError, match="nosuch"):
        changing.running.add_text(declared.format("connector = 'spark', format = 'nosuch'") + query)
    path = changing.folder / "late"
    files = f"connector = 'files', path = '{path}', format = 'json'"
    changing.running.add_text(declared.format(files) + query)

    def arrive(second: int) -> None:
        (changing.folder / "draft").write_text(
            json.dumps({"v": second, "at": str(NOON + timedelta(seconds=second))})
        )
        (changing.folder / "draft").rename(path / f"{second}.json")

    arrive(0)
    arrive(4)
    wait_until(lambda: changing.values("of_late") == [0])
    changing.running.stop()
    session = plait.open(changing.folder / "a.sql", spark=spark)
    state, results = changing.folder / "state", changing.folder / "results"
    with session.run(state=state, results=results, trigger_seconds=0.1) as again:
        changing.running = again
        arrive(8)
        wait_until(lambda: changing.values("of_late") == [0, 4])


def test_a_change_that_is_written_down_is_made_whatever_else_fails(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing.arrive(0, 6)

    def full(_path: Path, _outlets: object) -> None:
        raise ExternalError("state-folder", "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(assembly, "record", full)
        changing.running.add_text("CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;")
    changing.arrive(6, 12)
    changing.running.add_text("CREATE CONTINUOUS QUERY zeros AS SELECT v FROM s WHERE k = 0;")
    wait_until(lambda: changing.values("twos") == [8, 11])


def test_a_query_that_fails_alone_is_stopped_and_can_be_dropped(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(
        SQL.replace(
            "SELECT v FROM s WHERE k = 1",
            "SELECT a.v FROM s a [RANGE 1 DAY], s b [RANGE 1 DAY] WHERE a.k = b.k",
        )
    )
    session = plait.open(tmp_path / "a.sql", spark=spark)
    state, results = tmp_path / "state", tmp_path / "results"
    with session.run(state=state, results=results, trigger_seconds=0.1, most_rows=10) as running:
        changing = Changing(tmp_path, running)
        draft = tmp_path / "draft"
        rows = ({"k": 1, "v": n, "w": n, "at": str(NOON + timedelta(seconds=n))} for n in range(9))
        draft.write_text("\n".join(map(json.dumps, rows)))
        draft.rename(tmp_path / "in" / "first.json")
        wait_until(lambda: "query `ones` was stopped: " in str(running.error))
        assert [query.state for query in running.queries()] == ["failed"]
        running.drop("ONES")
        assert running.error is None
        running.add_text("CREATE CONTINUOUS QUERY few AS SELECT v FROM s WHERE k = 2;")
        changing.arrive(9, 18)
        wait_until(lambda: changing.values("few") == [11, 14, 17])


@pytest.mark.parametrize("engines", ["spark", "any"])
def test_a_query_that_would_miss_rows_of_its_stream_is_refused(
    engines: str, tmp_path: Path, spark: SparkSession
) -> None:
    """A source that gives what comes after a reader has begun: what another has read is gone for good. A
    reader that there is computes the query, too, in the database."""
    sql = (
        "CREATE STREAM s (value BIGINT, timestamp TIMESTAMP, WATERMARK FOR timestamp AS timestamp)"
        " WITH (connector = 'spark', format = 'rate', option.rowsPerSecond = 20);\n"
        "CREATE CONTINUOUS QUERY evens AS SELECT value FROM s WHERE value % 2 = 0;\n"
    )
    odds = "CREATE CONTINUOUS QUERY odds AS SELECT value FROM s WHERE value % 2 = 1;"
    with plait.open_text(sql, base=tmp_path, spark=spark).run(
        state=tmp_path / "state", results=tmp_path / "results", trigger_seconds=0.1, engines=engines
    ) as running:
        wait_until(lambda: len(running.results("evens")) > 0)
        if engines == "spark":
            with pytest.raises(UnsupportedError, match="it would miss rows of `s`"):
                running.add_text(odds)
            assert [query.name for query in running.queries()] == ["evens"]
        else:
            running.add_text(odds)
            wait_until(lambda: len(running.results("odds")) > 0)
