"""Statements: what can be declared, and that one mistake never hides another."""

import pytest

from plait.errors import PlaitError, Source, UnsupportedError
from plait.expressions import types
from plait.language.statements import (
    CreateLink,
    CreateQuery,
    CreateSite,
    CreateStream,
    CreateTable,
    Drop,
    Statement,
    Unreadable,
    parse,
)

STREAM = "CREATE STREAM s (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"


def statements(text: str) -> list[Statement]:
    parsed, errors = parse(Source("test.sql", text))
    assert errors == []
    return parsed


def problems(text: str) -> list[PlaitError]:
    return parse(Source("test.sql", text))[1]


def marked(error: PlaitError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def test_a_stream() -> None:
    [stream] = statements(
        """create stream Flights (num INT, `dest` STRING COMMENT 'city', at TIMESTAMP,
             watermark for AT as at - interval '10' seconds)
           with (connector = 'files', path = 'data/flights', format = 'parquet',
                 Rate = '240/min', distinct.num = 300)"""
    )
    assert isinstance(stream, CreateStream)
    assert stream.name.text == "Flights"
    assert [(column.name.text, column.type) for column in stream.columns] == [
        ("num", types.INT),
        ("dest", types.STRING),
        ("at", types.TIMESTAMP),
    ]
    assert (stream.watermark.column.key, stream.watermark.delay_us) == ("at", 10_000_000)
    assert {option.key: option.value for option in stream.options} == {
        "connector": "files",
        "path": "data/flights",
        "format": "parquet",
        "rate": 4.0,
        "distinct.num": 300,
    }


def test_a_watermark_without_delay() -> None:
    [stream] = statements(STREAM)
    assert isinstance(stream, CreateStream)
    assert stream.watermark.delay_us == 0


def test_table_site_and_link() -> None:
    table, site, link = statements(
        """CREATE TABLE t (k BIGINT, x FLOAT) WITH (rows = 1000);
           CREATE SITE atlanta WITH (cores = 4, memory = '16 GB', bandwidth = '1 Gbps', database = 'duckdb');
           CREATE LINK atlanta TO newyork WITH (bandwidth = '100 Mbps', latency = '20 ms')"""
    )
    assert isinstance(table, CreateTable)
    assert [(column.type, column.storage) for column in table.columns] == [
        (types.BIGINT, ""),
        (types.DOUBLE, "FLOAT"),
    ]
    assert isinstance(site, CreateSite)
    assert [option.value for option in site.options] == [4.0, 16_000_000_000, 125_000_000.0, "duckdb"]
    assert isinstance(link, CreateLink)
    assert (link.source.text, link.target.text) == ("atlanta", "newyork")
    assert [option.value for option in link.options] == [12_500_000.0, 20_000]


def test_a_query() -> None:
    text = (
        "CREATE CONTINUOUS QUERY q AT newyork INTO 'results/q' AS WITH x AS (SELECT a FROM s) SELECT a FROM x"
    )
    [query] = statements(text)
    assert isinstance(query, CreateQuery)
    assert query.site is not None
    assert query.folder is not None
    assert (query.name.text, query.site.text, query.folder.path) == ("q", "newyork", "results/q")
    assert text[query.span.start : query.span.end] == text


@pytest.mark.parametrize(
    ("text", "kind", "name", "target", "if_exists"),
    [
        ("DROP STREAM s", "stream", "s", None, False),
        ("DROP TABLE IF EXISTS t", "table", "t", None, True),
        ("DROP CONTINUOUS QUERY q", "query", "q", None, False),
        ("drop query q", "query", "q", None, False),
        ("DROP LINK a TO b", "link", "a", "b", False),
        ("DROP SITE a", "site", "a", None, False),
    ],
)
def test_drop(text: str, kind: str, name: str, target: str | None, if_exists: bool) -> None:
    [drop] = statements(text)
    assert isinstance(drop, Drop)
    assert (drop.kind, drop.name.text, drop.if_exists) == (kind, name, if_exists)
    assert (drop.target.text if drop.target else None) == target


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BOOLEAN", types.BOOLEAN),
        ("TINYINT", types.TINYINT),
        ("SMALLINT", types.SMALLINT),
        ("integer", types.INT),
        ("LONG", types.BIGINT),
        ("REAL", types.DOUBLE),
        ("DOUBLE", types.DOUBLE),
        ("DECIMAL", types.decimal(10, 0)),
        ("DECIMAL(12)", types.decimal(12, 0)),
        ("NUMERIC(12,2)", types.decimal(12, 2)),
        ("VARCHAR", types.STRING),
        ("TEXT", types.STRING),
        ("DATE", types.DATE),
        ("TIMESTAMP", types.TIMESTAMP),
    ],
)
def test_types(written: str, expected: types.Type) -> None:
    [table] = statements(f"CREATE TABLE t (c {written})")
    assert isinstance(table, CreateTable)
    assert table.columns[0].type == expected


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("TIMESTAMP_NTZ", "use TIMESTAMP (times are UTC)"),
        ("ARRAY<INT>", "use one row per element"),
        ("MAP<STRING, ARRAY<INT>>", "use one column per key"),
        ("STRUCT<a: INT, b: INT>", "use one column per field"),
        ("BINARY", "use STRING, hexadecimal for example"),
        ("VARCHAR(10)", "use STRING (lengths are not checked)"),
        ("STRNG", "did you mean `STRING`?"),
        ("DECIMAL(39,2)", "DECIMAL(p,s) has 1 to 38 digits, of which s (0 to p) are behind the point"),
        ("DECIMAL(1,2,3)", "DECIMAL(p,s) has 1 to 38 digits, of which s (0 to p) are behind the point"),
    ],
)
def test_types_that_are_refused(written: str, hint: str) -> None:
    [error] = problems(f"CREATE TABLE t (a INT, c {written}, b INT)")
    assert (error.code, error.hint, marked(error)) == ("type", hint, written)


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("CREATE STREAM s (a INT, ts TIMESTAMP)", "no-watermark", "(a INT, ts TIMESTAMP)"),
        ("CREATE STREAM s (a INT, WATERMARK FOR a AS a)", "event-time-type", "a INT"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR tss AS tss)", "unknown-column", "tss"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS a)", "watermark", "a"),
        ("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - 5)", "duration", "5"),
        ("CREATE STREAM s (a INT, A INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)", "duplicate-column", "A"),
        ("CREATE STREAM s (WATERMARK FOR ts AS ts)", "no-columns", "(WATERMARK FOR ts AS ts)"),
        (
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts)",
            "table-watermark",
            "WATERMARK FOR ts AS ts",
        ),
        ("CREATE TABLE t (a INT NOT NULL)", "column-constraint", "NOT NULL"),
        ("CREATE TABLE t (a INT CHECK (a > (1)), b INT)", "column-constraint", "CHECK (a > (1))"),
        ("CREATE TABLE t", "syntax", "t"),
        ("CREATE TABLE t ()", "syntax", ")"),
        ("CREATE STREAM `a b` (a INT)", "name", "`a b`"),
        ("CREATE STREAM a.b (a INT)", "name", "a"),
        (f"CREATE SITE {'x' * 129}", "name", "x" * 129),
        ("CREATE SITE größe", "name", "größe"),
        ("CREATE SITE 7up", "name", "7up"),
        ("CREATE SITE s IN x", "syntax", "IN"),
        ("CREATE LINK a", "syntax", "a"),
        ("CREATE OR REPLACE SITE a", "or-replace", "OR REPLACE"),
        ("CREATE SITE IF NOT EXISTS a", "if-not-exists", "IF NOT EXISTS"),
        ("CREATE VIEW v AS SELECT 1", "statement", "VIEW"),
        ("CREATE STREM s (a INT)", "statement", "STREM"),
        ("CREAT SITE a", "statement", "CREAT"),
        ("SELECT a FROM s", "bare-query", "SELECT"),
        ("WITH x AS (SELECT 1) SELECT a FROM x", "bare-query", "WITH"),
        ("INSERT INTO s VALUES (1)", "statement", "INSERT"),
        ("EXPLAIN SELECT 1", "statement", "EXPLAIN"),
        ("SET x = 1", "statement", "SET"),
        ("DROP INDEX i", "statement", "INDEX"),
        ("CREATE", "syntax", "CREATE"),
        ("CREATE CONTINUOUS QUERY q INTO results AS SELECT 1", "syntax", "results"),
        ("CREATE CONTINUOUS QUERY q INTO '../x' AS SELECT 1", "sink-path", "'../x'"),
        ("CREATE CONTINUOUS QUERY q INTO '${X}' AS SELECT 1", "sink-path", "'${X}'"),
        ("CREATE CONTINUOUS QUERY q SELECT 1", "syntax", "SELECT"),
        ("CREATE CONTINUOUS QUERY q WITH (a = 1) AS SELECT 1", "unknown-option", "a"),
    ],
)
def test_mistakes(text: str, code: str, where: str) -> None:
    [error] = problems(text)
    assert (error.code, marked(error)) == (code, where)


def test_what_is_meant_but_not_done_is_unsupported() -> None:
    for text in ("CREATE OR REPLACE SITE a", "CREATE VIEW v AS SELECT 1", "INSERT INTO s VALUES (1)"):
        [error] = problems(text)
        assert isinstance(error, UnsupportedError)
        assert error.hint


def test_one_bad_statement_does_not_hide_the_next() -> None:
    parsed, errors = parse(
        Source(
            "test.sql",
            """CREATE SITE a WITH (cors = 4);
               SELECT 1;;
               CREATE CONTINUOUS QUERY q AS SELECT (a FROM s;
               CREATE CONTINUOUS QUERY r AS SELECT a,, b FROM s;
               CREATE TABLE t (a ARRAY<INT>, b FOO);
               CREATE SITE b;""",
        )
    )
    assert [error.code for error in errors] == [
        "unknown-option",
        "bare-query",
        "brackets",
        "syntax",
        "type",
        "type",
    ]
    assert [type(statement) for statement in parsed] == [
        CreateSite,
        Unreadable,
        Unreadable,
        Unreadable,
        CreateSite,
    ]
    assert [statement.name.text for statement in parsed if isinstance(statement, Unreadable)] == [
        "q",
        "r",
        "t",
    ]


def test_what_stands_before_an_unclosed_string_is_still_read() -> None:
    parsed, errors = parse(
        Source("test.sql", "CREATE SITE a; CREATE SIT b; CREATE SITE c WITH (database = 'duckdb);")
    )
    assert [type(statement) for statement in parsed] == [CreateSite]
    assert [error.code for error in errors] == ["statement", "unreadable"]
    assert marked(errors[-1]) == "'"


def test_comments_and_empty_statements_are_nothing() -> None:
    assert statements("") == []
    assert statements(" ;; -- nothing; here\n /* nor; /* here */ */ ;") == []


def test_lines_and_columns_of_a_file_with_carriage_returns() -> None:
    [error] = problems("CREATE SITE a;\r\n\r\nCREATE SITE b\r\n  WITH (cors = 4);\r\n")
    assert error.span is not None
    assert str(error.span) == "test.sql:4:9"
    assert error.span.underlined().splitlines()[0].endswith("|   WITH (cors = 4);")


def test_errors_never_show_what_sqlglot_says() -> None:
    for text in (
        "SELECT a FROM s WHERE a AND",
        "SELECT CAST(a AS) FROM s",
        "SELECT (,) FROM s",
        "SELECT a FROM ()",
    ):
        for error in problems(f"CREATE CONTINUOUS QUERY q AS {text}"):
            assert "\x1b" not in error.render()
            assert "sqlglot" not in error.render()
            assert "<" not in error.message
