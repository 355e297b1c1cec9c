"""Hostile command lines, files and folders: a clear error, exit code 2, nothing written, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plait.cli import run

STREAM = "CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)"
GOOD = f"{STREAM};\nCREATE CONTINUOUS QUERY q AS SELECT k FROM s;\n"
SECRET = "hunter2-shown"


def stored(path: str = "data", file_format: str = "csv", more: str = "") -> str:
    options = f"connector = 'files', path = '{path}', format = '{file_format}'{more}"
    return f"{STREAM} WITH ({options});\nCREATE CONTINUOUS QUERY q AS SELECT k FROM s;\n"


@dataclass(frozen=True)
class CommandLine:
    """`files` are written below an empty current folder first; an ending slash makes a folder."""

    name: str
    arguments: tuple[str, ...]
    code: str
    files: dict[str, str | bytes] = field(default_factory=dict)


def line(name: str, arguments: str, code: str, **files: str | bytes) -> CommandLine:
    """File names as keywords: `__` stands for a dot, `_in_` for a slash."""
    named = {key.replace("_in_", "/").replace("__", "."): content for key, content in files.items()}
    return CommandLine(name, tuple(arguments.split()), code, named)


CASES = [
    line("no command that exists", "frobnicate", "usage"),
    line("no file", "check", "usage"),
    line("an option that does not exist", "check good.sql --frobnicate", "usage", good__sql=GOOD),
    line("a file that is not there", "check missing.sql", "source-file"),
    line("one file of two is not there", "check good.sql missing.sql", "source-file", good__sql=GOOD),
    line("a folder without SQL", "check .", "no-files", readme__txt="nothing"),
    line("a file in a file", "check good.sql/more.sql", "source-file", good__sql=GOOD),
    CommandLine("a name of 5,000 letters", ("check", "x" * 5000 + ".sql"), "source-file"),
    CommandLine("a name with NUL", ("check", "a\0b.sql"), "source-file"),
    CommandLine("no query to evaluate but a name of 5,000 letters", ("evaluate", "x" * 5000), "no-files"),
    line("standard input twice", "check - -", "standard-input"),
    line("a device without end", "check /dev/zero", "source-file"),
    line("a device without content", "check /dev/null", "source-file"),
    line("an empty file", "check empty.sql", "no-statements", empty__sql=""),
    line("only blanks", "check blank.sql", "no-statements", blank__sql=" \n\t\n"),
    line("only comments", "check comments.sql", "no-statements", comments__sql="-- nothing\n/* here */\n"),
    line("only semicolons", "check semicolons.sql", "no-statements", semicolons__sql=";;;\n;"),
    line("Latin-1", "check latin.sql", "source-encoding", latin__sql="-- Zürich\n".encode("latin-1")),
    line("UTF-16", "check wide.sql", "source-encoding", wide__sql=GOOD.encode("utf-16")),
    line("a lone surrogate", "check lone.sql", "source-encoding", lone__sql=b"-- \xed\xa0\x80\n"),
    line("cut in a character", "check cut.sql", "source-encoding", cut__sql="-- €".encode()[:-1]),
    line("a gzip file", "check packed.sql", "source-encoding", packed__sql=b"\x1f\x8b\x08\x00\x00\xff\xfe"),
    line("the same file twice", "check good.sql good.sql", "source-file", good__sql=GOOD),
    line("an unknown planner", "plan good.sql --planner pliat", "unknown-planner", good__sql=GOOD),
    line("an unknown planner to run", "run good.sql --planner pliat", "unknown-planner", good__sql=GOOD),
    line(
        "an unknown planner to explain", "explain good.sql --planner pliat", "unknown-planner", good__sql=GOOD
    ),
    line("no planner", "plan good.sql --planner", "usage", good__sql=GOOD),
    line("an unknown format of plans", "plan good.sql --format pdf", "usage", good__sql=GOOD),
    line("a picture of a comparison", "plan good.sql --compare --format svg", "usage", good__sql=GOOD),
    line("output into a missing folder", "plan good.sql -o no/plan.txt", "output-folder", good__sql=GOOD),
    line("output onto a folder", "plan good.sql -o .", "output-folder", good__sql=GOOD),
    line(
        "plan of nothing that can be read",
        "plan bad.sql",
        "unknown-relation",
        bad__sql=GOOD.replace("FROM s", "FROM t"),
    ),
    line("an unknown query", "evaluate good.sql nothing", "unknown-query", good__sql=GOOD),
    line("an unknown format of rows", "evaluate good.sql --format xml", "usage", good__sql=GOOD),
    line("a limit that is no number", "evaluate good.sql --limit few", "usage", good__sql=GOOD),
    line("a negative limit", "evaluate good.sql --limit -5", "usage", good__sql=GOOD),
    line("a stream without stored data", "evaluate good.sql", "no-stored-data", good__sql=GOOD),
    line("data that is not there", "evaluate q.sql", "no-such-path", q__sql=stored()),
    line(
        "a data folder without files", "evaluate q.sql", "no-files", q__sql=stored(), data_in__hidden="k,ts\n"
    ),
    line(
        "a column that the data lacks",
        "evaluate q.sql",
        "stored-columns",
        q__sql=stored(),
        data_in_a__csv="k,tz\n",
    ),
    line(
        "a column twice in the data",
        "evaluate q.sql",
        "stored-columns",
        q__sql=stored(),
        data_in_a__csv="k,ts,k\n",
    ),
    line("data without header", "evaluate q.sql", "stored-columns", q__sql=stored(), data_in_a__csv="\n"),
    line(
        "a number that is none",
        "evaluate q.sql",
        "stored-value",
        q__sql=stored(),
        data_in_a__csv="k,ts\nx,2026-01-01\n",
    ),
    line(
        "a number too large",
        "evaluate q.sql",
        "stored-value",
        q__sql=stored(),
        data_in_a__csv="k,ts\n99999999999,\n",
    ),
    line(
        "a time that is none",
        "evaluate q.sql",
        "stored-value",
        q__sql=stored(),
        data_in_a__csv="k,ts\n1,today\n",
    ),
    line(
        "a line with too many fields",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(),
        data_in_a__csv="k,ts\n1,,,,2\n",
    ),
    line(
        "a quote that never ends",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(),
        data_in_a__csv='k,ts\n"1,\n2,\n',
    ),
    line(
        "CSV in another encoding",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(),
        data_in_a__csv=b"k,ts\n\xff\xfe,\n",
    ),
    line(
        "no Parquet",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(file_format="parquet"),
        data_in_a__parquet="k",
    ),
    line(
        "no JSON",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(file_format="json"),
        data_in_a__json="{k: }\n",
    ),
    line(
        "a JSON list",
        "evaluate q.sql",
        "unreadable-data",
        q__sql=stored(file_format="json"),
        data_in_a__json="[1, 2]\n",
    ),
    line(
        "a secret folder that is not there",
        "evaluate q.sql",
        "no-such-path",
        q__sql=stored("${PLAIT_TEST_SECRET}"),
    ),
    line(
        "a secret folder with bad data",
        "evaluate q.sql",
        "stored-value",
        q__sql=stored("${PLAIT_TEST_SECRET}"),
        **{f"{SECRET}_in_a__csv": "k,ts\nx,\n"},
    ),
    line(
        "rows into a missing folder",
        "evaluate q.sql q -o no/rows.csv --format csv",
        "output-folder",
        q__sql=stored(),
        data_in_a__csv="k,ts\n1,2026-01-01\n",
    ),
    line("a benchmark that does not exist", "bench plannning", "unknown-benchmark"),
]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[CommandLine], Path]:
    monkeypatch.setenv("PLAIT_TEST_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)

    def prepare(case: CommandLine) -> Path:
        for name, content in case.files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return prepare


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_command_line_is_refused_clearly(
    case: CommandLine, place: Callable[[CommandLine], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = place(case)
    before = contents(folder)
    exit_code = run(list(case.arguments))
    output = capfd.readouterr()
    assert exit_code == 2, output.err
    assert f"error[{case.code}]: " in output.err or f"unsupported[{case.code}]: " in output.err
    assert not output.out
    assert "Traceback" not in output.err
    assert SECRET not in output.err
    assert contents(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to the superuser")
def test_an_unreadable_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "locked.sql"
    file.write_text(GOOD)
    file.chmod(0)
    assert run(["check", str(file)]) == 2
    assert "error[source-file]: " in capfd.readouterr().err


def test_a_pipe_is_no_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It would be waited on for ever."""
    pipe = tmp_path / "pipe.sql"
    os.mkfifo(pipe)
    assert run(["check", str(pipe)]) == 2
    assert "error[source-file]: " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"SELECT", "bare-query"),
        (b"-- \xff\n", "source-encoding"),
        (b"", "no-statements"),
        (b"x" * 10_000_000, "source-size"),
    ],
    ids=["half a query", "not UTF-8", "nothing", "10 MB"],
)
def test_hostile_standard_input_of_a_real_process(text: bytes, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from plait.cli import main; main()", "check", "-"],
        input=text,
        capture_output=True,
        cwd=tmp_path,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert f"error[{code}]: " in done.stderr.decode()
    assert not done.stdout
    assert b"Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
