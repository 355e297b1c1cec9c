"""`plait results` over a state folder as a run leaves it: formats, following, all queries at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.workloads.single_queries import outlet_of

from plait.batches import BatchRows
from plait.catalog import Sink as Declared
from plait.catalog import SinkKind
from plait.cli import run
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import INT, STRING
from plait.plan.nodes import Field, StreamScan
from plait.runtime.outlets import Outlet, record
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import Sink, sink_for
from plait.runtime.state_key import StateKey
from plait.workload import Query

SCHEMA = arrow_schema(["plug", "room"], [INT, STRING])


def query(name: str, kind: SinkKind = SinkKind.PARQUET) -> Query:
    scan = StreamScan("s", (Field("plug", INT), Field("room", STRING)))
    return Query(name, scan, ("plug", "room"), sink=Declared(kind))


def never(_sink: Declared, _rows: pa.Table, _batch: int, _writer: str) -> None:
    raise AssertionError


def rows(*plugs: int) -> pa.Table:
    return pa.table({"plug": list(plugs), "room": [f"room {plug}" for plug in plugs]}, schema=SCHEMA)


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sink:
    """A run's state in the current folder, and the sink of its query `Rooms` with three rows."""
    monkeypatch.chdir(tmp_path)
    state, results = Path("plait-state"), Path("results")
    state.mkdir()
    queries = [query("Rooms"), query("quiet", SinkKind.JSON), query("shown", SinkKind.CONSOLE)]
    outlets = [outlet_of(each, results) for each in queries]
    record(state, outlets)
    key = StateKey("state-1", state.absolute())
    sink, *_ = [sink_for(q.sink, outlet, key, never) for q, outlet in zip(queries, outlets, strict=True)]
    sink.publish(0, rows(1, 2))
    sink.publish(3, rows(3))
    return sink


@pytest.mark.usefixtures("rooms")
class TestFormats:
    def test_a_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "rooms"]) == 0
        assert capsys.readouterr().out == (
            "Rooms: 3 rows\nplug   room\n─────────────\n   1   room 1\n   2   room 2\n   3   room 3\n"
        )

    def test_a_limited_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "rooms", "--limit", "1"]) == 0
        assert capsys.readouterr().out.endswith("   1   room 1\n… 2 more rows\n")

    @pytest.mark.parametrize(("limit", "expected"), [([], 3), (["--limit", "2"], 2), (["--limit", "0"], 3)])
    def test_csv(self, limit: list[str], expected: int, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "rooms", "--format", "csv", *limit]) == 0
        lines = ["plug,room", "1,room 1", "2,room 2", "3,room 3"]
        assert capsys.readouterr().out.splitlines() == lines[: 1 + expected]

    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "rooms", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "name": "Rooms",
            "columns": [{"name": "plug", "type": "INT"}, {"name": "room", "type": "STRING"}],
            "row_count": 3,
            "rows": [[1, "room 1"], [2, "room 2"], [3, "room 3"]],
        }

    def test_parquet(self) -> None:
        assert run(["results", "rooms", "--format", "parquet", "--output", "all.parquet"]) == 0
        assert pq.read_table("all.parquet").equals(rows(1, 2, 3))

    def test_a_query_without_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "quiet"]) == 0
        assert capsys.readouterr().out == "quiet: 0 rows\n"
        assert run(["results", "quiet", "--format", "csv"]) == 0
        assert capsys.readouterr().out == "plug,room\n"

    def test_all_queries_as_files(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["results", "--all", "--output", "out/tables"]) == 0
        assert pq.read_table("out/tables/Rooms.parquet").equals(rows(1, 2, 3))
        assert pq.read_table("out/tables/quiet.parquet").equals(rows())
        assert sorted(path.name for path in Path("out/tables").iterdir()) == [
            "Rooms.parquet",
            "quiet.parquet",
        ]
        assert "shown: left out, its rows go to the console" in capsys.readouterr().err


@pytest.mark.usefixtures("rooms")
class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["romms"], "did you mean `Rooms`?"),
            ([], "of which query?"),
            (["shown"], "the rows of `shown` go to the console"),
            (["rooms", "--format", "parquet"], "add --output FILE"),
            (["rooms", "--follow", "--output", "x"], "add > FILE"),
            (["rooms", "--output", "results/rooms/x.csv"], "would be in a folder whose files are read"),
            (["rooms", "--state", "elsewhere"], "elsewhere is no state folder"),
            (["--all"], "add --output DIR"),
            (["--all", "rooms", "--output", "x"], "--all goes with no query"),
            (["--all", "--output", "results/rooms"], "would be in a folder whose files are read"),
            (["--all", "--output", "x", "--format", "csv"], "--all writes Parquet files"),
        ],
    )
    def test_user_errors(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["results", *arguments]) == 2
        assert message in capsys.readouterr().err

    def test_a_folder_that_cannot_be_made(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("file").write_text("")
        assert run(["results", "--all", "--output", "file/below"]) == 4
        assert "cannot make the folder file/below: Not a directory" in capsys.readouterr().err


def start(*arguments: str) -> subprocess.Popen[str]:
    """A process that Ctrl-C ends, also if the tests run in the background of a shell, which ignores it."""
    command = [sys.executable, "-m", "plait", "results", *arguments]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def test_following_gives_each_row_once_until_interrupted(rooms: Sink) -> None:
    with start("rooms", "--follow", "--format", "json") as process:
        first = [json.loads(output(process).readline())["plug"] for _ in range(3)]
        rooms.publish(3, rows(3))  # again, as after a crash
        rooms.publish(4, rows(4, 5))
        then = [json.loads(output(process).readline())["plug"] for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest = output(process).read()
    assert (first, then, rest) == ([1, 2, 3], [4, 5], "")
    assert process.returncode == 0


def test_following_ends_with_the_limit(rooms: Sink, capsys: pytest.CaptureFixture[str]) -> None:
    rooms.publish(4, rows(4))
    assert run(["results", "rooms", "--follow", "--format", "csv", "--limit", "2"]) == 0
    assert capsys.readouterr().out == "plug,room\n1,room 1\n2,room 2\n"
    assert run(["results", "rooms", "--follow", "--limit", "3"]) == 0
    assert capsys.readouterr().out.count("plug   room") == 2


def test_queries_that_share_files_are_exported_each_to_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plait.cli.results.FILES_AT_ONCE", 2)
    names = ["first", "Second", "third", "none"]
    folder = tmp_path / "results" / "shared-0-12345678"
    folder.mkdir(parents=True)
    Path("plait-state").mkdir()
    types = (INT, STRING)
    outlets = [
        Outlet(name, SinkKind.PARQUET, str(folder), folder, ("plug", "room"), types, is_shared=True)
        for name in names
    ]
    record(Path("plait-state"), outlets)
    sink = SharedSink(folder, ("plug", "room"), types, names)
    sink.publish(
        0, [BatchRows(("first", "Second"), rows(1, 2, 3), pa.chunked_array([[0, 1, 0]], pa.int32()))]
    )
    sink.publish(1, [BatchRows(("third",), rows(4))])
    assert run(["results", "--all", "--output", "tables"]) == 0
    exported = {name: pq.read_table(Path("tables") / f"{name}.parquet") for name in names}
    assert {name: table["plug"].to_pylist() for name, table in exported.items()} == {
        "first": [1, 3],
        "Second": [2],
        "third": [4],
        "none": [],
    }
    assert all(table.schema == SCHEMA for table in exported.values())
