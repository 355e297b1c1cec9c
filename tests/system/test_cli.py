"""What all commands have in common: help, exit codes, errors, pipes, files."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
import pytest

import plait
from plait.cli import COMMANDS, run

ROOT = Path(__file__).parents[2]
PLAIT = Path(sys.executable).parent / "plait"
TRAFFIC = str(ROOT / "examples" / "traffic.sql")

STREAM = "CREATE STREAM s (x INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);\n"


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "wrong.sql"
    file.write_text(
        STREAM + "CREATE CONTINUOUS QUERY q AS SELECT y FROM s;\nCREATE SITE a WITH (cores = 'x');\n"
    )
    return file


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = import_module(f"plait.cli.{name}").command
    assert isinstance(command, click.Command)
    assert command.get_short_help_str(limit=200) == COMMANDS[name], "plait --help says something else"
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert f"plait {name}" in shown.split("Examples:")[1]


def test_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"plait {plait.__version__}\n"


def test_as_a_module_of_python() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plait", "chek"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean `check`?" in done.stderr


def test_help_loads_neither_parser_nor_database() -> None:
    code = "import sys, plait.cli; print(sorted({'sqlglot', 'duckdb', 'rich'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"


def test_mistakes_in_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chek"]) == 2
    assert run(["check"]) == 2
    assert run(["plan", "x.sql", "--format", "png"]) == 2
    error = capsys.readouterr().err
    assert "error[usage]: No such command 'chek'" in error
    assert "did you mean `check`?" in error
    assert "hint: `plait check --help` shows how it is used" in error
    assert "Traceback" not in error


def test_errors_go_to_standard_error(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(wrong)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "there is no column `y`" in output.err
    assert "cores" in output.err, "all errors of a file are reported"
    assert f"--> {wrong}:2:37" in output.err
    assert "Traceback" not in output.err
    assert "\x1b" not in output.err, "no colours where nobody sees them"


def test_errors_as_json(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(wrong), "--json"]) == 2
    output = capsys.readouterr()
    assert output.err == ""
    errors = json.loads(output.out)["errors"]
    assert [(error["file"], error["line"]) for error in errors] == [(str(wrong), 2), (str(wrong), 3)]
    assert errors[0]["kind"] == "error"


@pytest.mark.parametrize("asking", ["--json", "--format json", "--format=json"])
def test_usage_errors_as_json(asking: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", *asking.split(), "--nonsense", "x.sql"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "usage"


def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["check", str(tmp_path / "none.sql")]) == 2
    assert run(["check", str(tmp_path / "empty")]) == 2
    error = capsys.readouterr().err
    assert f"there is no file {tmp_path / 'none.sql'}" in error
    assert "holds no .sql files" in error


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def check(text: bytes, *arguments: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return run(["check", "-", *arguments])

    assert check(STREAM.encode()) == 0
    assert capsys.readouterr().out == "all right: 1 stream, 0 tables, 0 sites, 0 queries\n"
    assert check(b"CREATE \xff") == 2
    assert "not a UTF-8 text: byte 7" in capsys.readouterr().err
    assert check(STREAM.encode(), "-") == 2
    assert "can be read once only" in capsys.readouterr().err


def test_standard_input_beside_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "streams.sql").write_text(STREAM)
    for query, code in (("SELECT x FROM s", 0), ("SELECT y FROM s", 2)):
        text = f"CREATE CONTINUOUS QUERY q AS {query};"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert run(["check", str(tmp_path), "-"]) == code
    output = capsys.readouterr()
    assert output.out.startswith("all right: 1 stream, 0 tables, 0 sites, 1 query\n")
    assert "--> <stdin>:1:37" in output.err


def test_closed_standard_streams(tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(STREAM)

    def shell(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f"{PLAIT} {command}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    closed_input = shell("check - <&-")
    assert (closed_input.returncode, closed_input.stdout) == (2, "")
    assert "standard input is closed" in closed_input.stderr
    for command in ("check s.sql >&-", "check s.sql --json >&-"):
        closed_output = shell(command)
        assert closed_output.returncode == 4
        assert closed_output.stderr.startswith("external[output]: standard output is closed")
    assert shell("check s.sql 2>&-").returncode == 0
    assert shell("check none.sql 2>&-").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["check", TRAFFIC], ["plan", TRAFFIC, "--json"], ["--help"]])
def test_a_full_disk_is_no_bug(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PLAIT, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert "external[system]: No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_bug_is_reported_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("broken")
    def broken() -> None:
        try:
            raise KeyError("hunter2")
        except KeyError as error:
            raise ZeroDivisionError("password: hunter2") from error

    module = ModuleType("plait.cli.broken")
    module.__dict__["command"] = broken
    monkeypatch.setitem(sys.modules, "plait.cli.broken", module)
    monkeypatch.setitem(COMMANDS, "broken", "")
    assert run(["broken"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("internal[internal]: ZeroDivisionError\n")
    assert "Traceback" not in error
    file = Path(error.split("please report it with ")[1].splitlines()[0])
    written = file.read_text()
    file.unlink()
    assert "in broken" in written
    assert written.index("KeyError\n") < written.index("ZeroDivisionError\n")
    shown = error + "".join(line for line in written.splitlines() if "raise " not in line)
    assert "hunter2" not in shown, "messages of foreign exceptions may quote secrets"
    monkeypatch.setenv("PLAIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run(["broken"])


def test_a_reader_that_goes_away() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PLAIT, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == b""


def test_interrupted() -> None:
    # A shell's background jobs ignore SIGINT, and so would what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen([PLAIT, "check", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdin is not None
    with pytest.raises(subprocess.TimeoutExpired):  # it waits for its input
        process.wait(timeout=1.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=10)
    assert process.returncode == 130
    assert error.decode().strip() == "interrupted"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_PLAIT_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("plait ev", ["plain,evaluate"]),
        ("plait plan x.sql --planner in", ["plain,independent"]),
        ("plait bench pl", ["plain,planning"]),
        ("plait evaluate tr", ["file,tr"]),
        (f"plait evaluate {TRAFFIC} sp", ["file,sp", "plain,speed_by_type"]),
        ("plait evaluate none.sql sp", ["file,sp"]),
    ],
)
def test_completion_knows_names(
    words: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PLAIT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.splitlines() == completed


@pytest.mark.parametrize(
    ("variable", "value", "coloured"),
    [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)],
)
def test_colours_where_they_are_wanted(
    variable: str,
    value: str,
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(["chek"]) == 2
    assert ("\x1b[" in capsys.readouterr().err) is coloured
