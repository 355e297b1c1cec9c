"""The state folder: begun, gone on with, and refused before anything is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from plait.catalog import Secret
from plait.deployment.fragments import Fragment, Result, Way
from plait.errors import ExternalError, UserError
from plait.language import load_text
from plait.plan.nodes import sources_of
from plait.rewrite import canonicalise
from plait.runtime.declarations import Declarations, declarations_of
from plait.runtime.journal import Journal
from plait.runtime.manifest import FORMAT, Phase
from plait.runtime.state import StateFolder
from plait.runtime.state_key import LOCK, MANIFEST

READINGS = (
    "CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)"
)
HIGH = "CREATE CONTINUOUS QUERY high AS SELECT plug FROM readings WHERE load > 5"
PAIRS = "CREATE CONTINUOUS QUERY pairs AS SELECT sum(load) AS total FROM readings [ROWS 2]"


def declared(*statements: str) -> Declarations:
    workload = load_text(";\n".join(statements))
    fragments = []
    for query in workload.queries.values():
        way = Way.SHARED if "ROWS" in statements[-1] and query.name == "pairs" else Way.NATIVE
        result = Result(query.name, query.columns, canonicalise(query.plan))
        fragments.append(Fragment(query.name, (result,), (), way))
        assert sources_of(query.plan)
    return declarations_of(workload, fragments)


def opened(path: Path, now: Declarations, *, spark: str = "4.2.0", drain: bool = False) -> StateFolder:
    state = StateFolder.open(path, now, planner="independent", spark=spark, drain=drain)
    try:
        if not state.is_new:
            state.check_contents(now.fragments, {key: now.read_by.get(key) for key in now.streams})
    except BaseException:
        state.close()
        raise
    return state


def begun(path: Path, *statements: str) -> Declarations:
    """A state folder of these statements, closed again."""
    now = declared(*statements)
    state = opened(path, now)
    state.prepare(state.manifest.declarations.fragments, state.manifest.declarations.streams)
    state.create()
    state.close()
    return now


def run_batch(
    state: StateFolder, query: str, batch: int, *, finish: bool = True, commit: bool = True
) -> None:
    """What Spark and the journal write for a batch."""
    folder = state.fragment(query)
    for log in ("offsets", *(["commits"] if commit else [])):
        (folder.checkpoint / log).mkdir(parents=True, exist_ok=True)
        (folder.checkpoint / log / str(batch)).write_text('v1\n{"batchWatermarkMs":0}\n')
    journal = Journal(folder.journal)
    journal.begin(batch, dict)
    if finish:
        journal.finish(batch, {"rows": 1}, {})
    journal.close()


def test_a_state_is_begun_and_gone_on_with(tmp_path: Path) -> None:
    now = declared(READINGS, HIGH)
    state = opened(tmp_path / "a" / "state", now)
    assert state.is_new
    state.prepare(state.manifest.declarations.fragments, state.manifest.declarations.streams)
    state.create()
    assert state.fragment("high").beats.is_dir()
    assert state.stream("readings").bad.is_dir()
    identity = state.id
    state.close()
    again = opened(tmp_path / "a" / "state", now)
    assert not again.is_new
    assert again.id == identity
    again.close()


def test_a_folder_that_was_not_begun_leaves_nothing_behind(tmp_path: Path) -> None:
    state = opened(tmp_path / "state", declared(READINGS, HIGH))
    state.prepare(state.manifest.declarations.fragments, state.manifest.declarations.streams)
    state.close()
    assert not (tmp_path / "state").exists()


def test_a_crash_before_the_manifest_begins_anew(tmp_path: Path) -> None:
    state = opened(tmp_path / "state", declared(READINGS, HIGH))
    (tmp_path / "state" / f"_draft.{MANIFEST}").write_text("{")
    state.fragment("high").beats.mkdir(parents=True)
    state._lock.release()
    (state.fragment("high").path / "state.duckdb").write_text("of another plan")
    again = opened(tmp_path / "state", declared(READINGS, HIGH))
    assert again.is_new
    again.prepare(again.manifest.declarations.fragments, again.manifest.declarations.streams)
    assert list(again.fragment("high").path.iterdir()) == [again.fragment("high").beats]
    again.close()


def test_planning_hints_and_aliases_may_change(tmp_path: Path) -> None:
    begun(tmp_path / "state", f"{READINGS} WITH (rate = 5)", HIGH)
    renamed = "CREATE CONTINUOUS QUERY high AS SELECT r.plug FROM readings r WHERE 5 < r.load"
    opened(tmp_path / "state", declared(f"{READINGS} WITH (rate = 500)", renamed)).close()


def test_what_changed_is_shown(tmp_path: Path) -> None:
    begun(tmp_path / "state", READINGS, HIGH, PAIRS)
    other = "CREATE CONTINUOUS QUERY other AS SELECT load FROM readings"
    now = declared(READINGS.replace("10 SECONDS", "20 SECONDS"), HIGH.replace("> 5", "> 6"), other)
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", now)
    error = caught.value
    assert error.code == "state-changed"
    lines = error.detail.splitlines()
    assert "stream `readings` changed:" in lines
    assert "  -delay: 10 s" in lines
    assert "  +delay: 20 s" in lines
    assert "1 query added: `other`" in lines
    assert "1 query removed: `pairs`" in lines
    assert "query `high` changed:" in lines
    assert f"  -{HIGH}" in lines
    assert f"  +{HIGH.replace('> 5', '> 6')}" in lines
    assert "put it back" in error.hint
    assert "--results" in error.hint


@pytest.mark.parametrize(
    ("statements", "shown"),
    [
        ([HIGH.replace("high", "tall"), PAIRS], ["query `high` is called `tall` now"]),
        (
            [HIGH.replace("high", "High"), PAIRS],
            [
                "query `high` changed:",
                "  -name: high",
                "  +name: High",
                "  -runs in: high",
                "  +runs in: High",
            ],
        ),
        (
            [HIGH.replace("SELECT plug", "SELECT plug AS socket"), PAIRS],
            ["query `high` changed:", "  -column: plug", "  +column: socket"],
        ),
        (
            [HIGH.replace("SELECT", "\n-- once more\nSELECT").replace("load > 5", "load > 6"), PAIRS],
            [
                "query `high` changed:",
                f"  -{HIGH}",
                "  +CREATE CONTINUOUS QUERY high AS ",
                "  +-- once more",
                "  +SELECT plug FROM readings WHERE load > 6",
            ],
        ),
    ],
    ids=["renamed", "renamed in part", "a column renamed", "changed"],
)
def test_a_changed_query_is_shown_as_it_is_written(
    tmp_path: Path, statements: list[str], shown: list[str]
) -> None:
    begun(tmp_path / "state", READINGS, HIGH, PAIRS)
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", declared(READINGS, *statements))
    assert caught.value.detail.splitlines() == shown


def test_equal_queries_that_are_renamed_are_each_said_to_be(tmp_path: Path) -> None:
    begun(tmp_path / "state", READINGS, *(HIGH.replace("high", name) for name in ("a", "b", "c", "kept")))
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", declared(READINGS, *(HIGH.replace("high", n) for n in ("y", "kept", "x"))))
    assert caught.value.detail.splitlines() == [
        "query `a` is called `y` now",
        "query `b` is called `x` now",
        "1 query removed: `c`",
    ]


def test_a_query_that_reads_a_changed_one_is_named(tmp_path: Path) -> None:
    reader = "CREATE CONTINUOUS QUERY reader AS SELECT plug FROM high WHERE plug > 1"
    begun(tmp_path / "state", READINGS, HIGH, reader)
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", declared(READINGS, HIGH.replace("> 5", "> 6"), reader))
    assert caught.value.detail.splitlines()[-2:] == ["query `reader` changed:", "  what it reads has changed"]


def test_secrets_are_written_by_their_names(tmp_path: Path) -> None:
    workload = load_text(f"{READINGS};\n{HIGH}")
    stream = replace(
        workload.catalog.stream("readings"),
        connector="files",
        options={"path": Secret("${WHERE}/x", "hidden/x")},
    )
    catalog = replace(workload.catalog, streams={"readings": stream})
    query = workload.query("high")
    fragment = Fragment("high", (Result("high", query.columns, canonicalise(query.plan)),), (), Way.NATIVE)
    state = opened(tmp_path / "state", declarations_of(replace(workload, catalog=catalog), [fragment]))
    state.create()
    text = (tmp_path / "state" / MANIFEST).read_text()
    assert "hidden" not in text
    assert "${WHERE}/x" in text
    state.close()


def test_another_planner_is_a_change(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    with pytest.raises(UserError, match="with the planner independent, not with plait"):
        StateFolder.open(tmp_path / "state", now, planner="plait", spark="4.2.0", drain=False)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    now = declared(READINGS, HIGH)
    state = opened(tmp_path / "state", now)
    with pytest.raises(UserError, match=f"process {os.getpid()}, since 20"):
        opened(tmp_path / "state", now)
    state.create()
    with pytest.raises(UserError, match="another run uses"):
        opened(tmp_path / "state", now)
    state.close()
    opened(tmp_path / "state", now).close()


def test_a_killed_process_lets_go_of_the_lock(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from plait.runtime.lock import FolderLock\n"
        "FolderLock(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    (tmp_path / "state").mkdir()
    subprocess.run([sys.executable, "-c", program, tmp_path / "state" / LOCK], check=False)
    opened(tmp_path / "state", declared(READINGS, HIGH)).close()


def changed_manifest(**changes: object) -> Callable[[Path], object]:
    def change(path: Path) -> object:
        document = json.loads((path / MANIFEST).read_text())
        return (path / MANIFEST).write_text(json.dumps({**document, **changes}))

    return change


@pytest.mark.parametrize(
    ("harm", "code", "message"),
    [
        (lambda path: (path / MANIFEST).write_text("{"), "state-damaged", "no JSON"),
        (lambda path: (path / MANIFEST).write_text("[]"), "state-damaged", "no object"),
        (changed_manifest(phase="?"), "state-damaged", "incomplete"),
        (changed_manifest(queries=None), "state-damaged", "incomplete"),
        (changed_manifest(format=99), "state-version", f"it has format 99, .* writes format {FORMAT}"),
        (changed_manifest(format=99, plait="0.0.1"), "state-version", "written with Plait 0.0.1"),
        (changed_manifest(plait="0.0.1"), "state-version", "written with Plait 0.0.1"),
        (changed_manifest(spark="4.1.2"), "state-version", "written with Spark 4.1.2"),
    ],
)
def test_damage_and_other_versions(
    tmp_path: Path, harm: Callable[[Path], object], code: str, message: str
) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    harm(tmp_path / "state")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", now)
    assert caught.value.code == code
    assert re.search(message, f"{caught.value.message}\n{caught.value.detail}")
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_repaired_spark_is_the_same_version(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    opened(tmp_path / "state", now, spark="4.2.1").close()


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"no state folder, and not empty: it holds notes\.txt"):
        opened(tmp_path, declared(READINGS, HIGH))
    with pytest.raises(UserError, match="is no folder"):
        opened(tmp_path / "notes.txt", declared(READINGS, HIGH))
    with pytest.raises(UserError, match="has one of the signs"):
        opened(tmp_path / "a[1]", declared(READINGS, HIGH))
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExternalError, match="cannot be used"):
        opened(tmp_path / "file" / "state", declared(READINGS, HIGH))


def test_checkpoint_and_journal_have_to_agree(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    state = opened(tmp_path / "state", now)
    run_batch(state, "high", 0)
    run_batch(state, "high", 1, commit=False)
    run_batch(state, "high", 2, finish=False, commit=False)
    folder = state.fragment("high")
    state.close()
    opened(tmp_path / "state", now).close()

    (folder.checkpoint / "offsets" / "2").rename(tmp_path / "2")
    with pytest.raises(UserError, match="the checkpoint ends at batch 1, before batch 2"):
        opened(tmp_path / "state", now)
    (tmp_path / "2").rename(folder.checkpoint / "offsets" / "2")
    (folder.checkpoint / "commits" / "2").write_text("v1\n{}")
    with pytest.raises(UserError, match="the journal ends before batch 2"):
        opened(tmp_path / "state", now)
    (folder.checkpoint / "commits" / "2").unlink()
    folder.checkpoint.rename(tmp_path / "checkpoint")
    with pytest.raises(UserError, match="of `high` the checkpoint is missing"):
        opened(tmp_path / "state", now)
    (tmp_path / "checkpoint").rename(folder.checkpoint)
    folder.journal.unlink()
    with pytest.raises(UserError, match="the journal ends before batch 0"):
        opened(tmp_path / "state", now)


def test_the_databases_of_queries_have_to_be_there(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, PAIRS)
    state = opened(tmp_path / "state", now)
    run_batch(state, "pairs", 0)
    state.close()
    with pytest.raises(UserError, match=r"the file state\.duckdb is missing"):
        opened(tmp_path / "state", now)


def test_a_manifest_that_is_gone_is_damage(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    state = opened(tmp_path / "state", now)
    run_batch(state, "high", 0)
    state.close()
    (tmp_path / "state" / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"plait-state\.json is missing"):
        opened(tmp_path / "state", now)


def test_streams_that_have_ended_stay_so(tmp_path: Path) -> None:
    now = begun(tmp_path / "state", READINGS, HIGH)
    state = opened(tmp_path / "state", now)
    state.enter(Phase.DRAINING)
    state.close()
    with pytest.raises(UserError, match="were being ended"):
        opened(tmp_path / "state", now)
    state = opened(tmp_path / "state", now, drain=True)
    state.enter(Phase.DRAINED)
    state.close()
    with pytest.raises(UserError, match="it was drained"):
        opened(tmp_path / "state", now, drain=True)


def test_queries_that_would_run_in_another_way_are_said_to_in_one_line(tmp_path: Path) -> None:
    begun(tmp_path / "state", READINGS, HIGH)
    now = declared(READINGS, HIGH)
    high = replace(now.queries["high"], run=now.queries["high"].run.replace("native", "shared"))
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "state", replace(now, queries={"high": high}))
    first, second = caught.value.detail.splitlines()
    assert first == "1 query would run in another way: `high`"
    assert "--engines" in second
