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

from plait.cli import COMMANDS, run

ROOT = Path(__file__).parents[2]
PLAIT = Path(sys.executable).parent / "plait"

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
    assert capsys.readouterr().out.startswith("plait 0.")


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


def test_usage_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--json", "--nonsense", "x.sql"]) == 2
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
    assert check(STREAM.encode(), "more.sql") == 2
    assert "cannot be combined" in capsys.readouterr().err


def test_a_bug_is_reported_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("broken")
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    module = ModuleType("plait.cli.broken")
    module.__dict__["command"] = broken
    monkeypatch.setitem(sys.modules, "plait.cli.broken", module)
    monkeypatch.setitem(COMMANDS, "broken", "")
    assert run(["broken"]) == 70
    error = capsys.readouterr().err
    assert "internal[internal]: ZeroDivisionError: a bug" in error
    assert "Traceback" not in error
    written = Path(error.split("please report it with ")[1].strip())
    assert "Traceback" in written.read_text()
    written.unlink()
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
    process = subprocess.Popen([PLAIT, "check", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
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


def test_completion_knows_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PLAIT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "plait ev")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out == "plain,evaluate\n"
