"""Sinks: what a reader finds, also when publishing was interrupted or repeated."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.workloads.single_queries import outlet_of

from plait.catalog import Sink as Declared
from plait.catalog import SinkKind
from plait.errors import ExternalError, InternalError, UserError
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, decimal
from plait.plan.nodes import Field, StreamScan
from plait.runtime import results_folder
from plait.runtime.lock import FolderLock
from plait.runtime.sinks import ConsoleSink, FileSink, MemorySink, Sink, SparkSink, WriteFrame, sink_for
from plait.runtime.state_key import StateKey
from plait.workload import Query

SCHEMA = arrow_schema(["plug", "room"], [INT, STRING])


def table(*rows: tuple[int | None, str | None]) -> pa.Table:
    return pa.table({"plug": [r[0] for r in rows], "room": [r[1] for r in rows]}, schema=SCHEMA)


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def query(sink: Declared | None = None, name: str = "Rooms") -> Query:
    scan = StreamScan("s", (Field("plug", INT), Field("room", STRING)))
    return Query(name, scan, ("plug", "room"), sink=sink or Declared())


def no_frames(_sink: Declared, _rows: pa.Table, _batch_id: int, _writer: str) -> None:
    pytest.fail("nothing is written through Spark")


def opened(query: Query, results: Path, state_id: str, write_frame: WriteFrame = no_frames) -> Sink:
    state = StateKey(state_id, results / state_id)
    return sink_for(query.sink, outlet_of(query, results), state, write_frame)


# Files


def test_one_parquet_file_a_batch_with_the_promised_schema(tmp_path: Path) -> None:
    sink = FileSink(SCHEMA, tmp_path, SinkKind.PARQUET)
    sink.publish(
        17, table((1, "hall"), (2, None)).cast(pa.schema({"plug": pa.int64(), "room": pa.large_string()}))
    )
    assert written(tmp_path) == ["000000017.parquet"]
    read = pq.read_table(tmp_path / "000000017.parquet", partitioning=None)
    assert read.schema.equals(SCHEMA)
    assert read.to_pylist() == [{"plug": 1, "room": "hall"}, {"plug": 2, "room": None}]


def test_a_batch_that_is_repeated_replaces_its_file(tmp_path: Path) -> None:
    sink = FileSink(SCHEMA, tmp_path, SinkKind.PARQUET)
    for _ in range(2):
        sink.publish(0, table((1, "hall")))
    assert written(tmp_path) == ["000000000.parquet"]
    assert pq.read_table(tmp_path).num_rows == 1


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    FileSink(SCHEMA, tmp_path, SinkKind.PARQUET).publish(0, table())
    assert written(tmp_path) == []


def test_json_lines_hold_values_as_json_output_does(tmp_path: Path) -> None:
    names = ["b", "n", "d", "x", "y", "s", "day", "ts", "late"]
    types = [BOOLEAN, BIGINT, decimal(10, 2), DOUBLE, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP]
    schema = arrow_schema(names, types)
    values = [True, 2**60, Decimal("1.50"), 0.5, float("nan"), 'ö"\n', date(2026, 1, 31)]
    times = [datetime(2026, 1, 31, 12, tzinfo=UTC), 253_402_300_800_000_000]
    rows = pa.table({n: [v, None] for n, v in zip(names, values + times, strict=True)}, schema=schema)
    FileSink(schema, tmp_path, SinkKind.JSON).publish(3, rows)
    first, second = (tmp_path / "000000003.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {
        "b": True,
        "n": 2**60,
        "d": "1.50",
        "x": 0.5,
        "y": "NaN",
        "s": 'ö"\n',
        "day": "2026-01-31",
        "ts": "2026-01-31T12:00:00",
        "late": "10000-01-01 00:00:00",
    }
    assert json.loads(second) == dict.fromkeys(names)


def test_rows_of_other_columns_are_a_bug(tmp_path: Path) -> None:
    with pytest.raises(InternalError):
        FileSink(SCHEMA, tmp_path, SinkKind.PARQUET).publish(0, pa.table({"plug": [1]}))
    assert written(tmp_path) == []


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExternalError) as raised:
        FileSink(SCHEMA, tmp_path, SinkKind.PARQUET).publish(0, table((1, "hall")))
    assert raised.value.message == f"cannot write {tmp_path / '000000000.parquet'}: No space left on device"
    assert written(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ExternalError, match=r"cannot write .*rooms: Not a directory"):
        opened(query(), tmp_path / "results", "state")


PUBLISH = """
import sys
from pathlib import Path
import pyarrow as pa
from plait.catalog import SinkKind
from plait.runtime.sinks import FileSink
rows = pa.table({"plug": pa.array([1], pa.int32())})
FileSink(rows.schema, Path(sys.argv[1]), SinkKind.PARQUET).publish(5, rows)
"""


@pytest.mark.parametrize(
    ("failpoint", "left"),
    [
        ("results-drafted", ["_draft.000000005.parquet.part"]),
        ("results-published", ["000000005.parquet"]),
    ],
)
def test_killed_while_publishing(tmp_path: Path, failpoint: str, left: list[str]) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PUBLISH, str(tmp_path)],
        env={**os.environ, "PLAIT_FAILPOINT": failpoint},
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert written(tmp_path) == left
    visible = [file.path.name for file in results_folder.batch_files(tmp_path)]
    assert visible == [name for name in left if not name.startswith("_")]


# Whose folder


def test_a_start_claims_the_folder_and_removes_drafts(tmp_path: Path) -> None:
    for _ in range(2):
        results_folder.claim(tmp_path / "rooms", StateKey("state-1", tmp_path / "state"), "Rooms")
        assert written(tmp_path / "rooms") == ["_plait.json"]
        (tmp_path / "rooms" / "_draft.000000001.parquet.part").write_text("half of")


def test_rows_of_another_state_are_not_mixed_with(tmp_path: Path) -> None:
    opened(query(), tmp_path, "state-1").publish(0, table((1, "hall")))
    with pytest.raises(UserError) as raised:
        opened(query(), tmp_path, "state-2")
    assert raised.value.code == "results-of-another-state"
    assert f"remove {tmp_path / 'rooms'}" in raised.value.hint


def test_the_folder_of_another_state_is_not_free_before_its_first_row(tmp_path: Path) -> None:
    state = tmp_path / "state-1"
    state.mkdir()
    lock = FolderLock(state / "lock")  # it is about to begin
    opened(query(), tmp_path, "state-1")
    with pytest.raises(UserError, match=f"for the results of another state folder, {state}"):
        opened(query(), tmp_path, "state-2")
    (state / "plait-state.json").write_text('{"id": "state-1"}')
    lock.release()
    with pytest.raises(UserError, match=f"for the results of another state folder, {state}"):
        opened(query(), tmp_path, "state-2")
    (state / "plait-state.json").write_text('{"id": "state-3"}')
    opened(query(), tmp_path, "state-2")


def test_a_folder_without_rows_of_a_state_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    opened(query(), tmp_path, "state-1")
    opened(query(), tmp_path, "state-2").publish(0, table((1, "hall")))
    with pytest.raises(UserError):
        opened(query(), tmp_path, "state-1")


def test_two_queries_do_not_share_a_folder(tmp_path: Path) -> None:
    into = Declared(target=str(tmp_path / "shared"))
    opened(query(into), tmp_path, "state")
    with pytest.raises(UserError, match="the results of query `Rooms` go to") as raised:
        opened(query(into, "others"), tmp_path, "state")
    assert raised.value.code == "results-shared"


@pytest.mark.parametrize("name", ["notes.txt", "000000000.parquet"])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="holds files that are no results"):
        results_folder.claim(tmp_path, StateKey("state", tmp_path / "state"), "rooms")


def test_a_damaged_marker_with_rows_is_refused(tmp_path: Path) -> None:
    FileSink(SCHEMA, tmp_path, SinkKind.PARQUET).publish(0, table((1, "hall")))
    (tmp_path / "_plait.json").write_text("{")
    with pytest.raises(UserError, match="for the results of another state"):
        results_folder.claim(tmp_path, StateKey("state", tmp_path / "state"), "rooms")


# Other sinks


def test_the_console_shows_a_table_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink(SCHEMA, "rooms")
    sink.publish(4, table((1, "hall"), (22, None)))
    sink.publish(5, table())
    assert capsys.readouterr().out == (
        "rooms, batch 4: 2 rows\nplug   room\n───────────\n   1   hall\n  22   NULL\n\n"
    )


def test_a_batch_that_is_done_again_in_the_same_run_is_not_shown_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sink = ConsoleSink(SCHEMA, "rooms")
    for batch in (4, 4, results_folder.numbered(1, 4), 4, 5):
        sink.publish(batch, table((1, "hall")))
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("rooms")]
    assert heads == [f"rooms, batch {batch}: 1 row" for batch in (4, 4, 5)]


def test_memory_keeps_each_batch_once() -> None:
    sink = MemorySink(SCHEMA)
    assert sink.table().schema == SCHEMA
    sink.publish(1, table((2, "b")))
    for _ in range(2):
        sink.publish(0, table((1, "a")))
    assert sink.table().to_pydict() == {"plug": [1, 2], "room": ["a", "b"]}


def test_spark_gets_the_rows_and_who_writes_them(tmp_path: Path) -> None:
    taken: list[tuple[Declared, int, int, str]] = []

    def write(sink: Declared, rows: pa.Table, batch_id: int, writer: str) -> None:
        taken.append((sink, rows.num_rows, batch_id, writer))

    declared = Declared(SinkKind.SPARK, "elsewhere", "delta")
    sink = opened(query(declared), tmp_path, "state-1", write)
    assert isinstance(sink, SparkSink)
    sink.publish(7, table((1, "hall")))
    sink.publish(8, table())
    assert taken == [(declared, 1, 7, "state-1/rooms")]
    assert written(tmp_path) == []
