"""Hints: each says the way out, and the way out works."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.unit.language.bound import CATALOG, errors, place, query, statement_errors, workload

from plait.errors import ErrorReport, Source, closest
from plait.language import load
from plait.language.limits import MAX_ERRORS
from plait.language.statements import parse

MINUTES = """
CREATE CONTINUOUS QUERY minutes AS
SELECT k, window_end, count(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k, window_end;
"""


@pytest.mark.parametrize(
    ("wrong", "underlined", "hint", "followed"),
    [
        ("SELECT a.k FROM s a, r [RANGE 1 HOUR] WHERE a.k = r.k", "s a",
         "write `s [RANGE 5 MINUTES] AS a`",
         "SELECT a.k FROM s [RANGE 5 MINUTES] AS a, r [RANGE 1 HOUR] WHERE a.k = r.k"),
        ("SELECT count(*) AS n FROM s a", "s a", "write `s [RANGE 5 MINUTES SLIDE 1 MINUTE] AS a`",
         "SELECT count(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] AS a"),
        ("SELECT count(*) AS n FROM (SELECT k FROM s) x", "k FROM s) x",
         "write `(SELECT …) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x`",
         "SELECT count(*) AS n FROM (SELECT k FROM s) [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x"),
        ("SELECT k FROM s [ROWS 10]", "[ROWS 10]", "aggregate it, use",
         "SELECT count(k) AS n FROM s [ROWS 10]"),
        ("SELECT k FROM s [ROWS 10]", "[ROWS 10]", ", or leave the window out", "SELECT k FROM s"),
        ("SELECT k FROM s [ROWS 10]", "[ROWS 10]", "use a time window [RANGE 5 MINUTES]",
         "SELECT k FROM s [RANGE 5 MINUTES]"),
        ("SELECT s.k FROM s [ROWS 10], t WHERE s.k = t.k", "[ROWS 10]",
         "use a time window [RANGE 5 MINUTES], or", "SELECT s.k FROM s [RANGE 5 MINUTES], t WHERE s.k = t.k"),
        ("SELECT s.k FROM s [ROWS 10], t WHERE s.k = t.k", "[ROWS 10]", "or leave the window out",
         "SELECT s.k FROM s, t WHERE s.k = t.k"),
        ("SELECT s.k FROM s [ROWS 10], r [RANGE 1 HOUR] WHERE s.k = r.k", "[ROWS 10]",
         "use a time window: [RANGE 5 MINUTES]",
         "SELECT s.k FROM s [RANGE 5 MINUTES], r [RANGE 1 HOUR] WHERE s.k = r.k"),
        ("SELECT cast(k AS BLOB) AS b FROM s", "BLOB", "use STRING", "SELECT cast(k AS STRING) AS b FROM s"),
        ("SELECT cast(k AS STRIN) AS b FROM s", "STRIN", "did you mean `STRING`?",
         "SELECT cast(k AS STRING) AS b FROM s"),
        ("SELECT k::inte AS b FROM s", "inte", "did you mean `INT`?", "SELECT k::int AS b FROM s"),
        ("SELECT sum(k) AS n FROM s [RANGE 1 HOUR]", "sum(k)", "write CAST(… AS DOUBLE) around the STRING",
         "SELECT sum(CAST(k AS DOUBLE)) AS n FROM s [RANGE 1 HOUR]"),
        ("SELECT avg(ok) AS n FROM s [RANGE 1 HOUR]", "avg(ok)", "write CAST(… AS INT) around the BOOLEAN",
         "SELECT avg(CAST(ok AS INT)) AS n FROM s [RANGE 1 HOUR]"),
        ("SELECT sum(ts) AS n FROM s [RANGE 1 HOUR]", "sum(ts)", "unix_seconds(t) gives one",
         "SELECT sum(unix_seconds(ts)) AS n FROM s [RANGE 1 HOUR]"),
        ("SELECT stddev(v, 2) AS n FROM s [RANGE 1 HOUR]", "stddev(v, 2)", "give it one argument",
         "SELECT stddev(v) AS n FROM s [RANGE 1 HOUR]"),
        ("SELECT count(k, v) AS n FROM s [RANGE 1 HOUR]", "count(k, v)", "count(DISTINCT a, b)",
         "SELECT count(DISTINCT k, v) AS n FROM s [RANGE 1 HOUR]"),
        ("SELECT CASE WHEN ok THEN 'a' ELSE 2 END AS e FROM s", "CASE WHEN ok THEN 'a' ELSE 2 END",
         "write CAST(… AS STRING) around the INT",
         "SELECT CASE WHEN ok THEN 'a' ELSE CAST(2 AS STRING) END AS e FROM s"),
        ("SELECT k = v AS e FROM s", "k = v", "or CAST(… AS INT) around the STRING",
         "SELECT CAST(k AS INT) = v AS e FROM s"),
        ("SELECT k = x AS e FROM s", "k = x", "write CAST(… AS DOUBLE) around the STRING",
         "SELECT CAST(k AS DOUBLE) = x AS e FROM s"),
        ("SELECT ok = v AS e FROM s", "ok = v", "write CAST(… AS INT) around the BOOLEAN",
         "SELECT CAST(ok AS INT) = v AS e FROM s"),
        ("SELECT v = ts AS e FROM s", "v = ts", "unix_seconds(t) gives one",
         "SELECT v = unix_seconds(ts) AS e FROM s"),
        ("SELECT ts - ts = v AS e FROM s", "ts - ts = v", "timestampdiff(unit, from, to)",
         "SELECT timestampdiff(SECOND, ts, ts) = v AS e FROM s"),
        ('SELECT v FROM s WHERE "k" = "start"', '"k"', "for the column write `k` in backquotes",
         "SELECT v FROM s WHERE `k` = 'start'"),
        ("SELECT v FROM s WHERE k = \"v\"", '"v"', "for the text 'v'", "SELECT v FROM s WHERE k = 'v'"),
        ('SELECT v FROM s WHERE "kind" = "start"', '"kind"', "for the column write `kind`",
         "SELECT v FROM s WHERE `k` = 'start'"),
        ('SELECT "k" FROM s', '"k"', "for the column write `k`", "SELECT `k` FROM s"),
        ('SELECT k FROM "s"', '"s"', "in backquotes: `s`", "SELECT k FROM `s`"),
        ("SELECT k FROM s WHERE k IN ('a' 'b')", "'b'", "a comma is missing before it",
         "SELECT k FROM s WHERE k IN ('a', 'b')"),
        ("SELECT count(*) AS n FROM s [RANGE 5 MINUTES SLID 1 MINUTE]", "SLID", "did you mean `SLIDE`?",
         "SELECT count(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]"),
        ("SELECT count(*) AS n FROM s [RANGE 5 MINUTES, SLIDE 1 MINUTE]", ",", "no comma",
         "SELECT count(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]"),
        ("SELECT window_end, sum(n) AS n FROM minutes [RANGE 1 HOUR]", "window_end",
         "this is the column `window_end` of `minutes`;\nthe window of this block is `window.end`",
         "SELECT window.end, sum(n) AS n FROM minutes [RANGE 1 HOUR]"),
        ("SELET k FROM s", "SELET", "did you mean `SELECT`?", "SELECT k FROM s"),
        ("SELECT k FORM s", "s", "did you mean `FROM`?", "SELECT k FROM s"),
        ("SELECT k FROM s WERE v > 1", "v", "did you mean `WHERE`?", "SELECT k FROM s WHERE v > 1"),
        ("SELECT k FROM s WHERE k LKE 'a'", "LKE", "did you mean `LIKE`?",
         "SELECT k FROM s WHERE k LIKE 'a'"),
    ],
)  # fmt: skip
def test_a_query_that_follows_the_hint_is_bound(
    wrong: str, underlined: str, hint: str, followed: str
) -> None:
    error = errors(wrong, MINUTES)[0]
    assert place(error) == underlined
    assert hint in error.hint
    query(followed, MINUTES)


@pytest.mark.parametrize("joined", ["t", "r [RANGE 1 HOUR]"])
def test_a_row_window_in_a_join_is_not_to_be_aggregated(joined: str) -> None:
    [error] = errors(f"SELECT s.k FROM s [ROWS 10], {joined}")
    assert error.message.endswith(", and cannot be joined")
    assert "aggregate" not in error.hint
    assert ("leave the window out" in error.hint) == (joined == "t")


@pytest.mark.parametrize(
    ("wrong", "underlined", "hint", "followed"),
    [
        ("CREATE SITE a CREATE SITE b;", "CREATE", "a `;` is missing before it",
         "CREATE SITE a; CREATE SITE b;"),
        ("CREATE SITE a DROP SITE a;", "DROP", "a `;` is missing before it", "CREATE SITE a; DROP SITE a;"),
        ("CREATE LINK FROM atlanta TO newyork;", "FROM", "leave FROM out: `a TO b`",
         "CREATE LINK atlanta TO newyork;"),
        ("CREATE SITE a WITH (memory = 16);", "16", "for example '16 GB'",
         "CREATE SITE a WITH (memory = '16 GB');"),
        ("CREATE SITE a WITH (memory = '16');", "'16'", "for example '16 GB'",
         "CREATE SITE a WITH (memory = '16 GB');"),
        ("CREATE SITE a WITH (cores = 1 memory = '1 GB');", "memory", "a comma is missing before it",
         "CREATE SITE a WITH (cores = 1, memory = '1 GB');"),
        ("CREATE SITE a WITH (memory = 1 GB);", "GB", "a value with a unit goes in quotes",
         "CREATE SITE a WITH (memory = '1 GB');"),
        ("CREATE SITE größe;", "größe", "letters (a to z)", "CREATE SITE groesse;"),
        ("CREATE CONTINUOUS QUERY q INTO 'o' AT atlanta AS SELECT k FROM s;", "AT", "AT goes before INTO",
         "CREATE CONTINUOUS QUERY q AT atlanta INTO 'o' AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q WITH (sink = 'json') INTO 'o' AS SELECT k FROM s;", "INTO",
         "INTO goes before WITH",
         "CREATE CONTINUOUS QUERY q INTO 'o' WITH (sink = 'json') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q WITH (sink = 'spark') WITH (format = 'noop') AS SELECT k FROM s;", "sink",
         "add format = ",
         "CREATE CONTINUOUS QUERY q WITH (sink = 'spark', format = 'noop') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q WITH (sink = 'json') WITH (a = 1) AS SELECT k FROM s;", "WITH",
         "write all options in one WITH (…)",
         "CREATE CONTINUOUS QUERY q WITH (sink = 'json') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q INTO 'o' WITH (sink = 'console') AS SELECT k FROM s;", "'o'",
         "leave INTO out", "CREATE CONTINUOUS QUERY q WITH (sink = 'console') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q INTO 'o' WITH (sink = 'spark', format = 'delta') AS SELECT k FROM s;",
         "'o'",
         "write path = 'o' into WITH (…)",
         "CREATE CONTINUOUS QUERY q WITH (sink = 'spark', format = 'delta', path = 'o') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q WITH (format = 'delta') AS SELECT k FROM s;", "format",
         "add sink = 'spark'",
         "CREATE CONTINUOUS QUERY q WITH (format = 'delta', sink = 'spark') AS SELECT k FROM s;"),
        ("CREATE CONTINUOUS QUERY q AS SELECT k FROM trips;", "trips", "if another file declares it",
         "CREATE TABLE trips (k INT); CREATE CONTINUOUS QUERY q AS SELECT s.k FROM s, trips;"),
    ],
)  # fmt: skip
def test_a_statement_that_follows_the_hint_is_read(
    wrong: str, underlined: str, hint: str, followed: str
) -> None:
    error = statement_errors(wrong)[0]
    assert place(error) == underlined
    assert hint in error.hint
    workload(followed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE SITE a WITH rate = 5", "expected ( and the options, found `rate`"),
        ("CREATE LINK atlanta newyork", "expected TO, found `newyork`"),
        ("CREATE CONTINUOUS QUERY q AS SELECT k, FROM s", "expected an expression, found `FROM`"),
        ("CREATE CONTINUOUS QUERY q AS SELECT k FROM s s minute", "unexpected `minute`"),
    ],
)
def test_nothing_is_suggested_that_could_not_stand_there(text: str, message: str) -> None:
    [error] = parse(Source("test.sql", text))[1]
    assert (error.message, error.hint) == (message, "")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE CONTINUOUS QUERY q AS SELECT 'abc FROM s;\n"
        "CREATE CONTINUOUS QUERY z AS SELECT 'd' AS x FROM s",
        "CREATE CONTINUOUS QUERY q AS SELECT 'abc FROM s;\nCREATE SITE b;\n"
        "CREATE CONTINUOUS QUERY z AS SELECT 'd' AS x, 'e AS y FROM s",
    ],
)
def test_a_lost_quote_is_looked_for_where_its_string_begins(text: str) -> None:
    found = parse(Source("test.sql", text))[1]
    assert "the string that begins at test.sql:1:37 goes on to another line" in found[-1].hint


def test_a_missing_semicolon_hides_no_statement() -> None:
    text = "CREATE SITE a\nCREATE LINK a TO b\nCREATE SITE c; CREATE SITE d"
    statements, found = parse(Source("test.sql", text))
    assert [str(error.span) for error in found] == ["test.sql:2:1", "test.sql:3:1"]
    assert [type(statement).__name__ for statement in statements] == [
        "Unreadable",
        "CreateSite",
        "CreateSite",
    ]


def test_what_is_missing_in_many_places_is_reported_once() -> None:
    queries = "".join(f"CREATE CONTINUOUS QUERY q{i} AT mars AS SELECT k FROM trips;\n" for i in range(41))
    site, relation = sorted(statement_errors(queries), key=lambda error: error.message)
    assert (site.code, site.detail) == ("unknown-site", "and in 40 more places")
    assert (relation.code, relation.detail) == ("unknown-relation", "and in 40 more places")
    assert "if another file declares it, name that file too" in relation.hint


def test_a_file_that_is_given_twice(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text(CATALOG)
    with pytest.raises(ErrorReport) as caught:
        load([file, tmp_path / "." / "a.sql"])
    [error] = caught.value.errors
    assert (error.code, error.hint) == ("source-file", "name it once")
    load([file])


def test_very_many_errors_are_not_all_shown() -> None:
    queries = "".join(f"CREATE CONTINUOUS QUERY q{i} AS SELECT a{i}, b{i} FROM s;\n" for i in range(1_000))
    found = statement_errors(queries)
    assert found[0].message == f"there are 2,000 errors; the first {MAX_ERRORS} are shown"
    assert len(found) == MAX_ERRORS + 1


def test_close_names_are_found_among_thousands_in_no_time() -> None:
    before = time.process_time()
    names = [f"table_{i:05}" for i in range(20_000)]
    for i in range(199):
        assert closest(f"tabel_{i * 100:05}", names) == f"did you mean `table_{i * 100:05}`?"
    assert time.process_time() - before < 2


def test_nothing_far_is_called_close() -> None:
    assert not closest("rate", ["format", *map(str, range(20))])
