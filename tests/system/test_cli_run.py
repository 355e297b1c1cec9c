"""`plait run` around a run that is made up: what it is asked for, what is shown, how it is stopped.

What really runs on Spark is in tests/spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import Any

import pytest
from tests.patience import wait_until

from plait.api import Merged, Session
from plait.cli import run
from plait.deployment.fragments import Way
from plait.errors import ExternalError, PlaitError, UserError
from plait.runtime import MOST_ROWS
from plait.runtime.snapshot import QueryProgress, QueryState, RunProgress, StreamProgress

ROOT = Path(__file__).parents[2]
TRAFFIC = str(ROOT / "examples" / "traffic.sql")

NOON = 1_767_268_800_000_000
TURNS = QueryProgress(
    "left_turns", Way.NATIVE, "results/left_turns", "exactly once", QueryState.ENDED, rows=1, batches=2
)
DONE = RunProgress(2.0, NOON, (StreamProgress("sensor1", 6, watermark_us=NOON),), (TURNS,))


@dataclass
class MadeUpRun:
    """Ends when it is stopped, or after being asked `polls` times whether it has."""

    polls: int = 0
    result: RunProgress = DONE
    error: PlaitError | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    on_poll: Callable[[], None] = lambda: None
    stopped: bool = False
    merged_at_start: Merged = field(default_factory=lambda: Merged((), {}))

    @property
    def has_ended(self) -> bool:
        self.on_poll()
        self.polls -= 1
        return self.stopped or self.polls < 0

    def progress(self) -> RunProgress:
        return self.result

    def stop(self) -> None:
        self.stopped = True
        if self.error is not None:
            raise self.error


@pytest.fixture
def command() -> ModuleType:
    """The module of the command; `plait.cli` also has a function of its name, which others import."""
    return import_module("plait.cli.run")


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUpRun:
    running = MadeUpRun()

    def started(_session: Session, planner: str, **asked: Any) -> MadeUpRun:
        running.asked = {"planner": planner, **asked}
        return running

    monkeypatch.setattr(Session, "run", started)
    return running


def test_what_is_asked_for(made_up: MadeUpRun) -> None:
    options = [
        "--available-now",
        "--drain",
        "--for",
        "2min",
        "--retain",
        "7d",
        "--compact",
        "10min",
        "--trigger",
        "500 ms",
        "--master",
        "local[1]",
        "--log",
        "--planner",
        "independent",
        "--engines",
        "spark",
    ]
    assert run(["run", TRAFFIC, *options, "--state", "s", "--results", "r"]) == 0
    assert made_up.asked == {
        "planner": "independent",
        "engines": "spark",
        "state": "s",
        "results": "r",
        "available_now": True,
        "drain": True,
        "for_seconds": 120.0,
        "trigger_seconds": 0.5,
        "most_rows": MOST_ROWS,
        "merge": True,
        "retain": "7d",
        "compact": "10min",
        "master": "local[1]",
        "log": True,
    }


def test_the_defaults(made_up: MadeUpRun) -> None:
    assert run(["run", TRAFFIC]) == 0
    assert made_up.asked == {
        "planner": "plait",
        "engines": "any",
        "state": "plait-state",
        "results": "results",
        "available_now": False,
        "drain": False,
        "for_seconds": None,
        "trigger_seconds": 1.0,
        "most_rows": MOST_ROWS,
        "merge": True,
        "retain": None,
        "compact": None,
        "master": None,
        "log": False,
    }


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--for", "60"], "the duration `60` lacks a unit: for example '60 seconds'"),
        (["--for", "0s"], "is zero"),
        (["--trigger", "soon"], "is not a duration"),
        (["--format", "xml"], "xml"),
    ],
)
def test_options_that_cannot_be_understood(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", TRAFFIC, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_summary_and_how_to_go_on(made_up: MadeUpRun, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = replace(TURNS, waiting="the next window closes at noon", is_open=True)
    made_up.result = replace(DONE, queries=(waiting,))
    assert run(["run", TRAFFIC, "--state", "my state"]) == 0
    shown = capsys.readouterr().out
    assert "left_turns      1      0   results/left_turns" in shown
    assert "still open:\n  left_turns: the next window closes at noon" in shown
    assert f"go on with   plait run {TRAFFIC} --state 'my state'\n" in shown
    assert f"close all    plait run {TRAFFIC} --state 'my state' --available-now --drain\n" in shown


def test_a_drained_run_does_not_go_on(made_up: MadeUpRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", TRAFFIC, "--drain", "--available-now"]) == 0
    assert "go on with" not in capsys.readouterr().out
    assert made_up.asked["drain"]


def test_quiet_says_nothing(made_up: MadeUpRun, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.polls = 3
    assert run(["run", TRAFFIC, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_summary_for_machines(made_up: MadeUpRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", TRAFFIC, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["queries"][0]["rows"] == 1
    assert (document["stopped"], document["errors"]) == (False, [])
    assert made_up.asked


def test_lines_of_progress_where_there_is_no_terminal(
    made_up: MadeUpRun,
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "LINE_SECONDS", 0.0)
    made_up.polls = 2
    assert run(["run", TRAFFIC]) == 0
    assert capsys.readouterr().err.count("2 s: sensor1 0 rows/s up to 2026-01-01 12:00:00") == 2


def test_a_pause_is_followed_by_one_line(
    made_up: MadeUpRun,
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = iter([0.0])
    monkeypatch.setattr(command, "monotonic", lambda: next(clock, 3600.0))
    monkeypatch.setattr(command, "sleep", lambda _seconds: None)
    made_up.polls = 10
    assert run(["run", TRAFFIC]) == 0
    assert capsys.readouterr().err.count("2 s: sensor1") == 1


def test_a_live_table_on_a_terminal(
    made_up: MadeUpRun,
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "is_terminal", lambda _stream: True)
    monkeypatch.setattr(command, "LIVE_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes Rich take any output for a terminal
    made_up.polls = 2
    assert run(["run", TRAFFIC]) == 0
    captured = capsys.readouterr()
    assert "bad records" in captured.err
    assert "results/left_turns" in captured.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly(made_up: MadeUpRun, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.polls = 1_000_000
    made_up.on_poll = lambda: os.kill(os.getpid(), number)
    before = signal.getsignal(number)
    assert run(["run", TRAFFIC, "--json"]) == 0
    captured = capsys.readouterr()
    assert made_up.stopped
    assert json.loads(captured.out)["stopped"]
    assert captured.err.startswith("starting Spark …\nstopping when the batches that run are done")
    assert signal.getsignal(number) is before


def test_a_second_signal_stops_at_once(made_up: MadeUpRun, monkeypatch: pytest.MonkeyPatch) -> None:
    class StoppedError(BaseException):
        pass

    def leave(code: int) -> None:
        raise StoppedError(code)

    def slow_stop() -> None:
        Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        signal.pause()

    monkeypatch.setattr(os, "_exit", leave)
    made_up.polls = 1_000_000
    made_up.on_poll = lambda: os.kill(os.getpid(), signal.SIGINT)
    made_up.stop = slow_stop  # type: ignore[method-assign]
    with pytest.raises(StoppedError) as raised:
        run(["run", TRAFFIC])
    assert raised.value.args == (130,)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """What a process heeds it lets its children heed; one in the background may not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_while_spark_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    starting = tmp_path / "bin" / "spark-submit"  # Spark starts by this, and ends by itself as late as Java
    starting.parent.mkdir()
    starting.write_text("#!/bin/sh\ncd $SPARK_HOME\necho $$ > draft\nmv draft pid\nexec sleep 600\n")
    starting.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "plait", "run", TRAFFIC],
        cwd=tmp_path,
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "pid").exists)
    process.send_signal(signal.SIGINT)
    try:
        assert process.communicate(timeout=60) == ("", "starting Spark …\n\ninterrupted\n")
        assert process.returncode == 130
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
    finally:
        process.kill()
        process.wait()
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_failed_query_gives_the_exit_code_and_the_rest_its_summary(
    made_up: MadeUpRun, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.error = ExternalError("results", "cannot write results/left_turns: No space left on device")
    assert run(["run", TRAFFIC]) == 4
    captured = capsys.readouterr()
    assert "results/left_turns" in captured.out
    assert captured.err.startswith("starting Spark …\nexternal[results]: cannot write")
    assert run(["run", TRAFFIC, "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["errors"][0]["code"] == "results"


def test_what_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_session: Session, _planner: str, **_asked: Any) -> None:
        raise UserError("state-in-use", "another run uses the state folder plait-state")

    monkeypatch.setattr(Session, "run", refused)
    assert run(["run", TRAFFIC]) == 2
    assert "another run uses" in capsys.readouterr().err
    assert run(["run", TRAFFIC, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "state-in-use"


def test_why_a_query_failed_is_said_at_once_and_not_again(
    made_up: MadeUpRun,
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run that goes on may never end."""
    error = UserError("unreadable-data", "the file is no Parquet file")
    failed = replace(DONE.queries[0], state=QueryState.FAILED, error=error)
    made_up.result = replace(DONE, queries=(failed, *DONE.queries[1:]))
    made_up.polls = 5
    monkeypatch.setattr(command, "LINE_SECONDS", 0.0)
    assert run(["run", TRAFFIC]) == 0
    assert capsys.readouterr().err.count("the file is no Parquet file") == 1
