"""Texts that are too large, too deep, or not what they seem: a clear error, soon."""

import os
import sys
from pathlib import Path

import pytest

from plait.errors import PlaitError, Source, UserError
from plait.language import limits
from plait.language.statements import CreateQuery, Unreadable, parse


def problem(text: str) -> PlaitError:
    _, errors = parse(Source("test.sql", text))
    [error] = errors
    return error


def query(text: str) -> str:
    return f"CREATE CONTINUOUS QUERY q AS {text}"


NESTED = {
    "parentheses": lambda n: "SELECT " + "(" * n + "a" + ")" * n + " FROM s",
    "calls": lambda n: "SELECT " + "f(" * n + "a" + ")" * n + " FROM s",
    "types as calls": lambda n: "SELECT " + "int(" * n + "a" + ")" * n + " FROM s",
    "casts": lambda n: "SELECT " + "CAST(" * n + "a" + " AS INT)" * n + " FROM s",
    "subqueries": lambda n: "SELECT a FROM " + "(SELECT a FROM " * n + "s" + ") x [RANGE 1 MINUTE]" * n,
    "tables": lambda n: "SELECT a FROM " + "(" * n + "s" + ")" * n,
    "common tables": lambda n: "WITH x AS (" * n + "SELECT a FROM s" + ") SELECT a FROM x" * n,
    "case": lambda n: "SELECT " + "CASE WHEN a THEN " * n + "1" + " END" * n + " FROM s",
    "minus": lambda n: "SELECT " + "- " * n + "a FROM s",
    "not": lambda n: "SELECT " + "NOT " * n + "a FROM s",
    "brackets": lambda n: "SELECT " + "[" * n + "a" + "]" * n + " FROM s",
}


@pytest.mark.parametrize("kind", NESTED)
def test_nesting_up_to_the_limit_parses(kind: str) -> None:
    [statement], errors = parse(Source("test.sql", query(NESTED[kind](limits.MAX_DEPTH))))
    assert errors == []
    assert isinstance(statement, CreateQuery)


@pytest.mark.parametrize("depth", [limits.MAX_DEPTH + 1, 1500])
@pytest.mark.parametrize("kind", NESTED)
def test_nesting_beyond_the_limit_is_refused(kind: str, depth: int) -> None:
    assert problem(query(NESTED[kind](depth))).code == "depth"


@pytest.mark.parametrize("joint", [" + a", " = a", "::INT", "[1]"])
def test_chains_that_nest_without_parentheses_are_bounded(joint: str) -> None:
    assert problem(query("SELECT a" + joint * 200 + " FROM s")).code == "depth"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s WHERE a" + " AND a" * 1000,
        "SELECT a FROM s WHERE a" + " OR a" * 1000,
        "SELECT a" + " || a" * 1000 + " FROM s",
        "SELECT a FROM s WHERE a IN (" + "1, " * 5000 + "1)",
        "SELECT a FROM s" + " UNION ALL SELECT a FROM s" * 500,
        "SELECT CASE" + " WHEN a THEN 1" * 500 + " END FROM s",
        "SELECT a FROM s" + " JOIN s" * 200,
    ],
    ids=["and", "or", "concat", "in", "union", "when", "joins without a condition"],
)
def test_long_lists_are_fine(text: str) -> None:
    [statement], errors = parse(Source("test.sql", query(text)))
    assert errors == []
    assert isinstance(statement, CreateQuery)


def test_the_recursion_limit_is_given_back() -> None:
    before = sys.getrecursionlimit()
    parse(Source("test.sql", query("SELECT a FROM s")))
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" " * (limits.MAX_SOURCE_BYTES + 1), "source-size"),
        (";" * (limits.MAX_STATEMENTS + 1), "source-size"),
        ("(" * (limits.MAX_SOURCE_TOKENS + 1), "source-size"),
        ("SELECT " + "a, " * limits.MAX_STATEMENT_TOKENS, "statement-size"),
        ("CREATE SITE " + "x" * 100_000, "name"),
        ("CREATE SITE `" + "x" * 100_000 + "`", "name"),
    ],
    ids=["bytes", "statements", "words", "a statement", "a name", "a quoted name"],
)
def test_sizes(text: str, code: str) -> None:
    assert problem(text).code == code


def test_reading_stops_after_many_errors() -> None:
    _, errors = parse(Source("test.sql", "x;" * 1000))
    assert len(errors) == limits.MAX_ERRORS + 1
    assert errors[-1].code == "too-many-errors"


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("CREATE SITE a\x00b", "hidden-character", "\x00"),
        ("CREATE SITE a -- \u202e", "hidden-character", "\u202e"),
        ("CREATE SITE '\u2066'", "hidden-character", "\u2066"),
        ("CREATE SITE a\ud800", "hidden-character", "\ud800"),
        ("CREATE SITE a\u200bb", "hidden-character", "a\u200bb"),
        ("CREATE SITE ``", "name", "``"),
        (query("SELECT ‘x’ FROM s"), "quotation-marks", "‘x’"),
        (query("SELECT 'x FROM s"), "unreadable", "'"),
        (query("SELECT `x FROM s"), "unreadable", "`"),
        ("CREATE SITE a /* never /* closed */", "unreadable", "/"),
        (query("SELECT X'zz' FROM s"), "unreadable", "X"),
        (query("SELECT (a FROM s"), "brackets", "("),
        (query("SELECT a) FROM s"), "brackets", ")"),
        (query("SELECT (a] FROM s"), "brackets", "]"),
        (query("SELECT {fn abs(a)} FROM s"), "unsupported-syntax", "{"),
        (query("SELECT /*+ BROADCAST(s) */ a FROM s"), "unsupported-syntax", "/*+ BROADCAST(s) */"),
        (query("SELECT a FROM s |> WHERE a"), "unsupported-syntax", "|>"),
    ],
)
def test_signs_that_cannot_stand(text: str, code: str, where: str) -> None:
    error = problem(text)
    assert error.span is not None
    assert (error.code, text[error.span.start : error.span.end]) == (code, where)


def test_a_statement_unfit_to_parse_is_still_known_by_its_name() -> None:
    [statement], _ = parse(Source("test.sql", query("SELECT (a FROM s")))
    assert isinstance(statement, Unreadable)
    assert (statement.kind, statement.name.text) == ("query", "q")


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_bytes("\ufeffCREATE SITE a;\r\n".encode())
    source = limits.read_source(path)
    assert (source.name, source.text) == (str(path), "CREATE SITE a;\r\n")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"CREATE SITE \xff;", "source-encoding"),
        (b"PAR1\x15\x04\x15\xa8\x01", "source-encoding"),
        ("CREATE SITE a;".encode("utf-16"), "source-encoding"),
        (b" " * (limits.MAX_SOURCE_BYTES + 1), "source-size"),
    ],
    ids=["bad byte", "binary", "utf-16", "size"],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "a.sql"
    path.write_bytes(content)
    with pytest.raises(UserError) as raised:
        limits.read_source(path)
    assert raised.value.code == code


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    loop = tmp_path / "loop.sql"
    loop.symlink_to(loop)
    for path in (tmp_path / "missing.sql", tmp_path, loop, Path("a\0b"), tmp_path / ("x" * 300)):
        with pytest.raises(UserError) as raised:
            limits.read_source(path)
        assert raised.value.code == "source-file"


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.sql"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(UserError, match="neither a file nor a folder"):
            limits.read_source(path)
