"""Changes of the queries of a run, in this process: what may go wrong while one is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from errno import ENOSPC
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until

import plait
from plait.errors import PlaitError
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
