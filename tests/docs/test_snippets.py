"""Every snippet of the README and of docs/ is run.

| block | what is done with it |
|---|---|
| `console` | each `$ command` is run; the lines below it are its output (`...` stands for anything) |
| `sh` | each line is run and must succeed |
| `sql` | must check; sees the `sql` blocks before it in the same file |
| `sql`, then `text` | must be refused with that text |
| `python` | is run, one after the other; with `>>>` as a doctest |

Commands run in a copy of the repository's examples, in this process, on the Spark of the tests. Of `make` it
is checked that the target exists: running `make test` from a test would not end. Documents that run queries
on Spark are marked so.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import plait
from plait.cli import run
from plait.errors import PlaitError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
# The examples of docs/semantics.md come with data and results, and have a test of their own.
SPECIAL = ROOT / "docs" / "semantics.md"
DOCUMENTS = [ROOT / "README.md", *sorted(set(ROOT.glob("docs/**/*.md")) - {SPECIAL})]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks_of(document: Path) -> list[Block]:
    """The fenced blocks, those in lists included."""
    found: list[Block] = []
    fence: tuple[str, str, int] | None = None
    lines: list[str] = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        match = re.fullmatch(r"( *)```(\w*)", line.rstrip())
        if fence is None and match:
            fence, lines = (match[1], match[2], number), []
        elif fence is not None and match and not match[2]:
            found.append(Block(fence[1], "\n".join(lines) + "\n", fence[2]))
            fence = None
        elif fence is not None:
            lines.append(line.removeprefix(fence[0]))
    assert fence is None, f"{document.name}: a block that starts in line {fence} has no end"
    return found


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a reader has in front of him, and may write to."""
    for folder in ("examples", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "README.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def work_in(folder: Path, spark: SparkSession) -> None:
    """Make Spark, whose process goes on, take relative paths from here too."""
    jvm, context = spark._jvm, spark.sparkContext._jsc
    assert jvm is not None
    assert context is not None
    files = jvm.org.apache.hadoop.fs.FileSystem.get(context.hadoopConfiguration())
    files.setWorkingDirectory(jvm.org.apache.hadoop.fs.Path(str(folder)))


def needs_spark(document: Path) -> bool:
    commands = [block.text for block in blocks_of(document) if block.language in ("console", "sh", "python")]
    words = ("plait run ", "SparkSession.builder", "session.run(")
    return any(word in text for text in commands for word in words)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            document,
            marks=[pytest.mark.spark] if needs_spark(document) else [],
            id=str(document.relative_to(ROOT)),
        )
        for document in DOCUMENTS
        if blocks_of(document)
    ],
)
def test_snippets(
    document: Path, clone: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    if needs_spark(document):
        work_in(clone, request.getfixturevalue("spark"))
    namespace: dict[str, Any] = {"__name__": "snippet"}
    statements = ""
    blocks = blocks_of(document)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        where = f"{document.relative_to(ROOT)}:{block.line}"
        expected = following.text if following is not None and following.language == "text" else None
        match block.language:
            case "console":
                for command, output in console(block.text):
                    check_output(f"{where}: {command}", output, execute(command, capsys)[1])
            case "sh":
                for command in filter(None, block.text.splitlines()):
                    code, output = execute(command, capsys)
                    assert code == 0, f"{where}: {command}\n{output}"
            case "sql":
                accepted = check_sql(where, statements, block.text, expected, clone)
                statements += block.text if accepted else ""
            case "python":
                run_python(where, block.text, namespace)
            case "text" | "":
                pass  # shows a shape, or belongs to the block before
            case other:
                pytest.fail(f"{where}: there is no rule for blocks of {other}")


def console(text: str) -> Iterator[tuple[str, str]]:
    """Commands and what each of them prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def execute(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output of `plait …`, `echo … | plait …`, `plait … > file`, all in this process."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        return subprocess.call(["make", "--dry-run", "-C", str(ROOT), *words[1:]]), ""
    with pytest.MonkeyPatch.context() as patch:
        if words[0] == "echo":
            pipe = words.index("|")
            text = " ".join(words[1:pipe]) + "\n"
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            words = words[pipe + 1 :]
        target = words[-1] if ">" in words else None
        assert words[0] == "plait", f"there is no rule for {command}"
        capsys.readouterr()
        code = run(words[1 : words.index(">") if target else None])
    captured = capsys.readouterr()
    if words[:2] == ["plait", "run"] and code == 0:
        return code, captured.out  # the rest is how it went on, which depends on the machine
    if target is None:
        return code, captured.out + captured.err
    Path(target).write_text(captured.out, encoding="utf-8")
    return code, captured.err


def check_output(where: str, expected: str, actual: str) -> None:
    checker = doctest.OutputChecker()
    if not checker.check_output(expected, actual, OPTIONS):
        example = doctest.Example("", expected)
        pytest.fail(f"{where}\n{checker.output_difference(example, actual, OPTIONS)}", pytrace=False)


def check_sql(where: str, before: str, text: str, expected: str | None, folder: Path) -> bool:
    """Whether the block is to be accepted; fails if it is not what happens."""
    try:
        plait.open_text(before + text, base=folder / "examples")
    except PlaitError as error:
        if expected is None:
            pytest.fail(f"{where}: {error.render()}", pytrace=False)
        # A reader sees the block alone: count its lines from 1.
        offset = before.count("\n")
        check_output(where, expected, shifted(error.render(), offset))
        return False
    if expected is not None and re.match(r"(error|unsupported)\[", expected):
        pytest.fail(f"{where}: was not refused", pytrace=False)
    return True


def shifted(rendered: str, offset: int) -> str:
    rendered = re.sub(r"<sql>:(\d+):", lambda match: f"<sql>:{int(match[1]) - offset}:", rendered)
    return re.sub(
        r"^ *(\d+) \|", lambda match: f"{int(match[1]) - offset:>5} |", rendered, flags=re.MULTILINE
    )


def run_python(where: str, text: str, namespace: dict[str, Any]) -> None:
    if ">>>" not in text:
        exec(compile(text, where, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(text, namespace, where, where, 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, "".join(report)
