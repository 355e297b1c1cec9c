"""Hostile data while queries run: a query that cannot go on ends with a clear error, a record that cannot be
read is counted and kept, and everything else goes on with the right rows. When the data is mended, the next
run completes what was left, and nothing is lost or doubled.

All of it happens in one run of many streams, since starting one takes longer than everything in it. Every
query runs by itself, so that each can fail by itself.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hostile.hostile_records import (
    BAD_CSV,
    BAD_CSV_FILES,
    BAD_JSON,
    COLUMNS,
    DECLARED,
    ODD_CSV,
    ODD_JSON,
)
from tests.patience import wait_until

import plait
from plait.engines import database_tables
from plait.errors import PlaitError
from plait.evaluator import difference
from plait.runtime.progress import line, summary_text
from plait.runtime.snapshot import RunProgress
from plait.spark.sources import Sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TINY_FILES = 300
WATERMARK = "WATERMARK FOR at AS at - INTERVAL 10 SECONDS"


def stream(name: str, file_format: str, columns: str = "k INT, v INT, at TIMESTAMP", more: str = "") -> str:
    options = f"connector = 'files', path = '{name}', format = '{file_format}'{more}"
    return f"CREATE STREAM {name} ({columns}, {WATERMARK}) WITH ({options});"


SQL = "\n".join(
    [
        stream("garbage", "parquet"),
        stream("nested", "parquet"),
        stream("vanishing", "parquet"),
        stream("turned", "csv"),
        stream("lines", "csv", DECLARED),
        stream("objects", "json", DECLARED),
        stream("ahead", "csv"),
        stream("kept_aside", "parquet", more=", max_future = '1 hour'"),
        stream("tiny", "json"),
        stream("good", "csv"),
        """
CREATE TABLE spoilt (k INT, w INT) WITH (connector = 'files', path = 'spoilt', format = 'csv');
CREATE TABLE held (k INT, w INT) WITH (connector = 'duckdb', path = 'held.duckdb');

CREATE CONTINUOUS QUERY of_garbage AS SELECT sum(v) AS total, window_end FROM garbage [ROWS 2];
CREATE CONTINUOUS QUERY of_nested AS SELECT k, v FROM nested;
CREATE CONTINUOUS QUERY of_vanishing AS SELECT k, sum(v) AS total FROM vanishing [RANGE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY of_turned AS SELECT k, v FROM turned;
CREATE CONTINUOUS QUERY of_lines AS SELECT k, v, d, x, name FROM lines;
CREATE CONTINUOUS QUERY sums_of_lines AS
  SELECT count(*) AS n, sum(v) AS v, sum(d) AS d, max(x) AS x, v + v AS too_large, window_end
  FROM lines [RANGE 1 MINUTE] GROUP BY v + v;
CREATE CONTINUOUS QUERY of_objects AS SELECT k, v, d, x, name FROM objects;
CREATE CONTINUOUS QUERY of_ahead AS SELECT count(*) AS n, window_end FROM ahead [RANGE 1 MINUTE];
CREATE CONTINUOUS QUERY of_kept_aside AS SELECT count(*) AS n, window_end FROM kept_aside [RANGE 1 MINUTE];
CREATE CONTINUOUS QUERY of_tiny AS
  SELECT k, sum(v) AS total, count(*) AS n, window_end FROM tiny [RANGE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY all_good AS SELECT k, v FROM good;
CREATE CONTINUOUS QUERY good_totals AS
  SELECT k, sum(v) AS total, window_end FROM good [RANGE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY last_good AS SELECT sum(v) AS total, window_end FROM good [ROWS 2];
CREATE CONTINUOUS QUERY full_disk AS SELECT k, v FROM good;
CREATE CONTINUOUS QUERY no_folder AS SELECT v, k FROM good;
CREATE CONTINUOUS QUERY with_spoilt AS SELECT g.k, g.v, t.w FROM good g JOIN spoilt t ON g.k = t.k;
CREATE CONTINUOUS QUERY with_held AS SELECT g.k, g.v, t.w FROM good g JOIN held t ON g.k = t.k;
""",
    ]
)

# What fails: the error's code, a part of it, and the file or folder that it has to name.
FAILING = {
    "of_garbage": ("unreadable-data", "cannot be read as parquet", "garbage/b.parquet"),
    "of_nested": ("stored-type", "declared INT but stored as STRUCT", "nested/b.parquet"),
    "of_vanishing": ("data-gone", "not there any more", "vanishing/b.parquet"),
    "of_turned": ("stored-columns", "first line is not that of the others", "turned/b.csv"),
    "full_disk": ("results", "No space left on device", "results/full_disk/"),
    "no_folder": ("results", "Not a directory", "results/no_folder/"),
    "with_spoilt": ("stored-value", "holds 'eight', which is no INT", "spoilt/a.csv, line 3"),
    "with_held": ("database-held", "open for writing elsewhere", "held.duckdb"),
}
NOBODYS_BUSINESS = ("Traceback", "py4j", "java.", "org.apache", "Exception", "SQLSTATE", "\tat ")


PARQUET = ("garbage", "nested", "vanishing", "kept_aside")
CSV = ("turned", "ahead", "good")
FOLDERS = (*PARQUET, *CSV, "lines", "objects", "tiny", "spoilt")


class Folders:
    """The data that is read, and beside it what it means: the same without what is hostile."""

    def __init__(self, root: Path) -> None:
        self.data, self.meant = root / "data", root / "meant"
        for folder in (self.data, self.meant):
            for name in FOLDERS:
                (folder / name).mkdir(parents=True)

    def write(self, name: str, content: bytes | str, meant: bytes | str | None = None) -> None:
        """A file that appears as a whole; `meant` is what it should be, if it is not."""
        for folder, chosen in ((self.data, content), (self.meant, content if meant is None else meant)):
            draft = folder / "_draft"
            draft.write_bytes(chosen if isinstance(chosen, bytes) else chosen.encode())
            draft.replace(folder / name)

    def mend(self, name: str) -> None:
        shutil.copy(self.meant / name, self.data / name)


def parquet(second: int = 1, **changed: Any) -> bytes:
    at = [datetime(2026, 1, 1, 12, 0, second + k, tzinfo=UTC) for k in range(2)]
    columns = {"k": pa.array([1, 2], pa.int32()), "v": pa.array([10, 20], pa.int32()), "at": pa.array(at)}
    file = pa.BufferOutputStream()
    pq.write_table(pa.table(columns | changed), file)
    return bytes(file.getvalue())


def csv(*rows: str) -> str:
    return "\n".join(("k,v,at", *rows)) + "\n"


def write_first_files(folders: Folders) -> None:
    """Each stream begins well."""
    for name in PARQUET:
        folders.write(f"{name}/a.parquet", parquet())
    for name in CSV:
        folders.write(f"{name}/a.csv", csv("1,10,2026-01-01 12:00:01", "2,20,2026-01-01 12:00:02"))
    folders.write("lines/a.csv", f"{COLUMNS}\n1,10,1.5,-0.0,ann,2026-01-01 12:00:01\n")
    folders.write("objects/a.json", '{"k": 1, "v": 1, "at": "2026-01-01 12:00:01"}\n')
    folders.write("tiny/a.json", '{"k": 1, "v": 1, "at": "2026-01-01 12:00:01"}\n')
    folders.write("spoilt/a.csv", "k,w\n1,7\n2,8\n")
    for folder in (folders.data, folders.meant):
        with duckdb.connect(str(folder / "held.duckdb")) as database:
            database.execute("CREATE TABLE held AS FROM (VALUES (1, 7), (2, 8)) t(k, w)")


def write_hostile_files(folders: Folders) -> None:
    fitting = parquet(3)
    folders.write("garbage/b.parquet", b"PAR1" + bytes(range(200)) + b"PAR1", fitting)
    folders.write("nested/b.parquet", parquet(3, v=pa.array([{"a": 1}, {"a": 2}])), fitting)
    folders.write("vanishing/b.parquet", fitting)
    folders.write("turned/b.csv", "v,k,at\n3,30,2026-01-01 12:00:03\n", csv("30,3,2026-01-01 12:00:03"))
    odd_lines = "\n".join(ODD_CSV)
    folders.write("lines/b.csv", "\n".join([COLUMNS, *BAD_CSV, odd_lines, ""]), f"{COLUMNS}\n{odd_lines}\n")
    folders.write("lines/windows.csv", f"\ufeff{COLUMNS}\r\n4,1,1.0,1.0,crlf,2026-01-01 12:00:05\r\n")
    for number, content in enumerate(BAD_CSV_FILES):
        folders.write(f"lines/c{number}.csv", f"{COLUMNS}\n".encode() + content, f"{COLUMNS}\n")
    folders.write("objects/b.json", "\n".join([*BAD_JSON, *ODD_JSON]), "\n".join(ODD_JSON))
    folders.write("objects/empty.json", b"")
    folders.write("ahead/b.csv", csv("9,90,9999-01-01 00:00:00"))
    in_the_future = parquet(3, at=pa.array([datetime(9999, 1, 1, tzinfo=UTC)] * 2))
    folders.write("kept_aside/b.parquet", in_the_future)
    folders.write("kept_aside/empty.parquet", b"")
    (folders.meant / "kept_aside" / "b.parquet").unlink()
    for number in range(TINY_FILES):
        at = f"2026-01-01 12:{number % 3:02}:{number % 60:02}"
        folders.write(f"tiny/{number:04}.json", json.dumps({"k": number % 7, "v": number, "at": at}))
    with (folders.data / "ahead" / "a.csv").open("a") as file:
        file.write("3,30,2026-01-01 12:00:03\n")
    folders.write("spoilt/a.csv", "k,w\n1,7\n2,eight\n", "k,w\n1,7\n2,8\n")


@contextmanager
def held_elsewhere(database: Path) -> Iterator[None]:
    """Another process has the database open for writing."""
    program = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); c.execute('CREATE TABLE t (i INT)'); "
    program += "print('held', flush=True); input()"
    command = [sys.executable, "-c", program, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "held\n"
        yield
        writer.communicate("\n")


@dataclass(frozen=True)
class Done:
    """A run that was drained over hostile data."""

    session: plait.Session
    meaning: plait.Session
    folders: Folders
    progress: RunProgress
    error: PlaitError

    @property
    def state(self) -> Path:
        return self.folders.data.parent / "state"

    def published(self, query: str) -> list[tuple[Any, ...]]:
        return list(self.session.results(query, state=self.state).rows)

    def bad_records(self, name: str) -> list[dict[str, str]]:
        (found,) = (stream for stream in self.progress.streams if stream.name == name)
        assert found.bad_folder is not None
        files = sorted(found.bad_folder.glob("*.jsonl"))
        records = [json.loads(text) for file in files for text in file.read_text().splitlines()]
        assert len(records) == found.bad_records
        return records


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def done(folders: Folders, spark: SparkSession) -> Iterator[Done]:
    write_first_files(folders)
    root = folders.data.parent
    session = plait.open_text(SQL, base=folders.data, spark=spark)
    check_batch, fsync = Sources.check_batch, os.fsync

    def vanishes(self: Sources, streams: Any, checkpoint: Path) -> None:
        noted = (log.read_text() for log in checkpoint.glob("sources/*/[0-9]*"))
        if "fragments" in checkpoint.parts and any("vanishing/b.parquet" in text for text in noted):
            (folders.data / "vanishing" / "b.parquet").unlink(missing_ok=True)
        check_batch(self, streams, checkpoint)

    def is_full(descriptor: int) -> None:
        if "/results/full_disk/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        running = session.run(
            "independent", state=root / "state", results=root / "results", trigger_seconds=0.5
        )
        wait_until(lambda: all(stream.rows for stream in running.progress().streams))
        wait_until(lambda: all(query.batches for query in running.progress().queries))
        patch.setattr(Sources, "check_batch", vanishes)
        patch.setattr(os, "fsync", is_full)
        patch.setattr(database_tables, "PATIENCE_S", 0.2)
        (root / "results" / "no_folder").rename(root / "results" / "_no_folder")
        (root / "results" / "no_folder").write_text("a file")
        write_hostile_files(folders)
        with held_elsewhere(folders.data / "held.duckdb"):
            folders.write("good/b.csv", csv("1,30,2026-01-01 12:01:01", "2,40,2026-01-01 12:01:02"))
            with pytest.raises(PlaitError):
                running.drain()
    assert running.error is not None
    meaning = plait.open_text(SQL, base=folders.meant)
    yield Done(session, meaning, folders, running.progress(), running.error)
    meaning.close()
    session.close()


def test_each_failure_has_one_clear_error(done: Done) -> None:
    failed = {query.name: query.error for query in done.progress.failed}
    assert set(failed) == set(FAILING)
    said = done.error.render()
    assert not any(words in said for words in NOBODYS_BUSINESS), said
    places = [place for _, _, place in FAILING.values()]
    for error in done.error.errors:
        assert error.hint, error.render()
        assert any(place in error.render() for place in places), error.render()


@pytest.mark.parametrize("query", FAILING)
def test_what_cannot_go_on_says_why(done: Done, query: str) -> None:
    code, reason, place = FAILING[query]
    (error,) = (each.error for each in done.progress.failed if each.name == query)
    assert error is not None
    assert error.code == code
    assert reason in error.render()
    assert place in error.render()


def test_the_others_go_on_with_the_right_rows(done: Done) -> None:
    going_on = set(done.session.queries) - set(FAILING)
    for query in going_on:
        found, meant = done.published(query), done.meaning.evaluate(query).rows
        assert not difference(found, meant), query
        assert found, query


def test_nothing_half_written_is_visible(done: Done) -> None:
    for file in (done.folders.data.parent / "results").rglob("*"):
        assert "_draft" not in file.name
        if file.suffix == ".parquet":
            pq.read_table(file)
    for query in set(FAILING) - {"no_folder"}:
        found, meant = done.published(query), list(done.meaning.evaluate(query).rows)
        assert all(found.count(row) <= meant.count(row) for row in found), query


@pytest.mark.parametrize(("record", "reason"), BAD_CSV.items())
def test_bad_lines_are_kept_with_the_reason(done: Done, record: str, reason: str) -> None:
    assert any(reason in bad["reason"] and bad["record"] == record for bad in done.bad_records("lines"))


@pytest.mark.parametrize(("record", "reason"), BAD_JSON.items(), ids=[text[:40] for text in BAD_JSON])
def test_bad_objects_are_kept_with_the_reason(done: Done, record: str, reason: str) -> None:
    assert any(reason in bad["reason"] and bad["record"] == record for bad in done.bad_records("objects"))


def test_every_bad_record_is_counted(done: Done) -> None:
    assert len(done.bad_records("lines")) == len(BAD_CSV) + len(BAD_CSV_FILES)
    assert len(done.bad_records("objects")) == len(BAD_JSON)
    reasons = [bad["reason"] for bad in done.bad_records("lines")]
    assert all(any(reason in said for said in reasons) for reason in BAD_CSV_FILES.values())
    counts = {stream.name: stream.rows for stream in done.progress.streams}
    assert counts["lines"] == 2 + len(ODD_CSV)
    assert counts["objects"] == 1 + len(ODD_JSON)
    assert counts["tiny"] == 1 + TINY_FILES


def test_a_clock_in_the_far_future_is_told(done: Done) -> None:
    for shown in (line(done.progress), summary_text(done.progress)):
        assert "the watermark of ahead is" in shown
        assert "ahead of the clock" in shown
    (aside,) = {bad["reason"] for bad in done.bad_records("kept_aside")}
    assert "further ahead than `max_future` allows" in aside
    assert "the watermark of kept_aside" not in summary_text(done.progress)


def test_a_file_that_was_added_to_after_being_read_is_told(done: Done) -> None:
    (ahead,) = (stream for stream in done.progress.streams if stream.name == "ahead")
    assert ahead.changed_files == (str(done.folders.data / "ahead" / "a.csv"),)
    assert "ahead/a.csv of ahead changed after being read" in summary_text(done.progress)


def test_when_all_is_mended_nothing_was_lost_or_doubled(done: Done) -> None:
    for name in ("garbage/b.parquet", "nested/b.parquet", "vanishing/b.parquet", "spoilt/a.csv"):
        done.folders.mend(name)
    (done.folders.data / "turned" / "b.csv").write_text("k,v,at\n30,3,2026-01-01 12:00:03\n")
    results = done.folders.data.parent / "results"
    (results / "no_folder").unlink()
    (results / "_no_folder").rename(results / "no_folder")
    done.session.run("independent", state=done.state, results=results, available_now=True, drain=True).wait()
    for query in done.session.queries:
        assert not difference(done.published(query), done.meaning.evaluate(query).rows), query
