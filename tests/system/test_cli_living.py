"""`plait add`, `drop`, `list` and `stop`, on a system that runs in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.java_options import QUICK_ENVIRONMENT
from tests.patience import wait_until

import plait
from plait.cli import run
from plait.runtime.journal import ROWS, read_totals

SQL = """
CREATE STREAM s (k INT, v INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE CONTINUOUS QUERY sums AS
  SELECT k, sum(v) AS total, window_end FROM s [RANGE 10 SECONDS] GROUP BY k;
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
"""
NOON = datetime(2026, 1, 1, 12)


class Living:
    """The system, and what the command line says to it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self._files = 0

    def says(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        state = str(self.folder / "state")
        assert run([*arguments, "--state", state]) == code, self._capsys.readouterr()
        output, errors = self._capsys.readouterr()
        return output or errors

    def add(self, sql: str) -> dict[str, int | None]:
        (self.folder / "more.sql").write_text(sql)
        added: dict[str, int | None] = json.loads(self.says("add", str(self.folder / "more.sql"), "--json"))[
            "added"
        ]
        return added

    def arrive(self, first: int, last: int) -> None:
        """A row a second, and wait until they are read."""
        rows = [
            {"k": n % 3, "v": n, "w": -n, "at": str(NOON + timedelta(seconds=n))} for n in range(first, last)
        ]
        draft = self.folder / "draft"
        draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        draft.rename(self.folder / "in" / f"{first}.json")
        journal = self.folder / "state" / "streams" / "s" / "journal.sqlite"
        wait_until(lambda: read_totals(journal).counts.get(ROWS, 0) >= last)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        table = plait.attach(self.folder / "state").results(query).to_arrow()
        return [tuple(row.values()) for row in table.to_pylist()]

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "plait", "run", str(self.folder / "a.sql"), "--trigger", "100ms"]
        command += ["--state", str(self.folder / "state"), "--results", str(self.folder / "results")]
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(command, env=os.environ | QUICK_ENVIRONMENT, stdout=log, stderr=log)
        log.close()
        socket = self.folder / "state" / "control.sock"
        wait_until(lambda: process.poll() is not None or socket.exists())
        assert process.poll() is None, (self.folder / "log").read_text()
        return process


@pytest.fixture
def living(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Living:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(SQL)
    return Living(tmp_path, capsys)


def test_nobody_runs(living: Living) -> None:
    for command in (["list"], ["stop"], ["drop", "x"]):
        assert "no system runs with the state folder" in living.says(*command, code=2)
    assert json.loads(living.says("list", "--json", code=2))["errors"][0]["code"] == "not-running"


@pytest.mark.spark
def test_a_life(living: Living) -> None:
    process = living.start()
    try:
        living.arrive(0, 15)
        t0_us = (NOON + timedelta(seconds=14) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        added = living.add(
            "CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;"
            "CREATE CONTINUOUS QUERY others AS SELECT w FROM s WHERE k = 0;"  # a column that nobody read
            "CREATE CONTINUOUS QUERY least AS SELECT min(v) AS m, window_end FROM s [RANGE 5 SECONDS];"
            "CREATE CONTINUOUS QUERY above AS SELECT k FROM sums WHERE total > 5;"
        )
        assert added == dict.fromkeys(("twos", "others", "least", "above"), t0_us)
        assert "2026-01-01 12:00:14" in living.says("list")
        listed = {each["name"]: each for each in json.loads(living.says("list", "--json"))["queries"]}
        assert listed["twos"]["after_us"] == t0_us
        assert listed["ones"]["after_us"] is None
        assert {each["fragment"] for each in listed.values()} == {"shared-0"}
        living.arrive(15, 31)
        assert "`sums` is read by `above`" in living.says("drop", "sums", code=2)
        assert living.says("drop", "ones", "sums", "--yes") == "dropped ones\ndropped sums\n"
        assert "there is no query `ones`" in living.says("drop", "ones", code=2)
        wrong = living.folder / "wrong.sql"
        wrong.write_text("CREATE CONTINUOUS QUERY q AS SELECT nothing FROM s;")
        assert f"--> {wrong}:1:37" in living.says("add", str(wrong), code=2)
        assert [*living.add("CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;")] == ["ones#2"]
        assert living.says("stop") == "stopped\n"
        assert process.wait(60) == 0
        process = living.start()  # with the file that it was begun with
        names = [each["name"] for each in json.loads(living.says("list", "--json"))["queries"]]
        assert names == ["twos", "others", "least", "above", "ones#2"]
        living.arrive(31, 46)
        living.says("stop")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert living.rows("ones#1") == [(n,) for n in range(31) if n % 3 == 1]
    assert living.rows("ones") == [(n,) for n in range(31, 46) if n % 3 == 1]
    assert living.rows("twos") == [(n,) for n in range(15, 46) if n % 3 == 2]
    assert living.rows("others") == [(-n,) for n in range(15, 46) if n % 3 == 0]
    ends = [NOON + timedelta(seconds=n) for n in range(20, 46, 5)]
    least = [(m, end.replace(tzinfo=None)) for m, end in living.rows("least") if isinstance(end, datetime)]
    assert sorted(least) == [(15 + 5 * n, end) for n, end in enumerate(ends)]
