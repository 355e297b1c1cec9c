"""What the text of a query parses to, and what it must not parse to."""

import pytest
from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError
from plait.language.dialect import WindowClause, WindowTable
from plait.language.spans import span_of
from plait.language.statements import CreateQuery, parse

MINUTE_US = 60_000_000


def query(text: str) -> exp.Query:
    statements, errors = parse(Source("test.sql", f"CREATE CONTINUOUS QUERY q AS {text}"))
    assert errors == []
    [statement] = statements
    assert isinstance(statement, CreateQuery)
    return statement.select


def problem(text: str) -> PlaitError:
    _, errors = parse(Source("test.sql", f"CREATE CONTINUOUS QUERY q AS {text}"))
    [error] = errors
    return error


def expression(text: str) -> exp.Expr:
    node = query(f"SELECT {text} FROM s").expressions[0]
    assert isinstance(node, exp.Expr)
    return node


def marked(error: PlaitError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def table(text: str) -> exp.Expr:
    node = query(f"SELECT * FROM {text}").args["from_"].this
    assert isinstance(node, exp.Expr)
    return node


def interval_us(node: exp.Expr) -> int:
    assert isinstance(node, exp.Interval)
    assert node.args["unit"].name == "MICROSECOND"
    return int(node.this.name)


@pytest.mark.parametrize(
    ("spelling", "size_us", "slide_us"),
    [
        ("[RANGE 5 MINUTES]", 5 * MINUTE_US, None),
        ("[range 5 minutes slide 1 minute]", 5 * MINUTE_US, MINUTE_US),
        ("[Range 2min]", 2 * MINUTE_US, None),
        ("[RANGE 5s SLIDE 1 s]", 5_000_000, 1_000_000),
        ("[RANGE 100 MS]", 100_000, None),
        ("[RANGE 1 MICROSECOND]", 1, None),
        ("[RANGE 2 WEEKS]", 2 * 7 * 24 * 60 * MINUTE_US, None),
        ("[RANGE 1d]", 24 * 60 * MINUTE_US, None),
        ("[RANGE 1 HOUR 30 MINUTES]", 90 * MINUTE_US, None),
        ("[RANGE INTERVAL '5' MINUTES SLIDE INTERVAL 1 MINUTE]", 5 * MINUTE_US, MINUTE_US),
        ("[RANGE INTERVAL '5 minutes']", 5 * MINUTE_US, None),
        ("[RANGE '5 minutes' SLIDE '1 min']", 5 * MINUTE_US, MINUTE_US),
        ("[RANGE 1.5 SECONDS]", 1_500_000, None),
    ],
)
def test_a_time_window_in_every_spelling(spelling: str, size_us: int, slide_us: int | None) -> None:
    window = table(f"s {spelling}").args["window"]
    assert isinstance(window, WindowClause)
    assert window.args["unit"] == "range"
    assert interval_us(window.args["size"]) == size_us
    slide = window.args["slide"]
    assert (None if slide is None else interval_us(slide)) == slide_us


@pytest.mark.parametrize(
    "text",
    [
        "s [RANGE 5 MINUTES] AS a",
        "s [RANGE 5 MINUTES] a",
        "s AS a [RANGE 5 MINUTES]",
        "s a [RANGE 5 MINUTES]",
        "(SELECT x FROM t) [RANGE 5 MINUTES] a",
        "(SELECT x FROM t) AS a [RANGE 5 MINUTES]",
    ],
)
def test_a_window_stands_before_or_behind_the_alias(text: str) -> None:
    node = table(text)
    assert node.alias == "a"
    assert interval_us(node.args["window"].args["size"]) == 5 * MINUTE_US


def test_windows_of_joined_streams_stay_with_their_stream() -> None:
    select = query(
        "SELECT * FROM a x [RANGE 1 MINUTE], b [RANGE 2 MINUTES] LEFT JOIN c z [RANGE 3 MINUTES] ON x.k = k"
    )
    joined = [select.args["from_"].this, *(join.this for join in select.args["joins"])]
    sizes = [interval_us(node.args["window"].args["size"]) for node in joined]
    assert sizes == [MINUTE_US, 2 * MINUTE_US, 3 * MINUTE_US]


def test_a_row_window() -> None:
    window = table("s [PARTITION BY a, t.b ROWS 10 SLIDE 2]").args["window"]
    assert window.args["unit"] == "rows"
    assert (window.args["size"].name, window.args["slide"].name) == ("10", "2")
    assert [column.name for column in window.args["partition"]] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES) h",
        "hop(s, descriptor(ts), 1 minute, 5 minutes) AS h",
        "TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)) AS h",
        "HOP(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SLIDE => '1 minute', SIZE => '5 minutes') h",
        "HOP(TABLE s, DESCRIPTOR(ts), SIZE => 5 MINUTES, SLIDE => 1 MINUTE) h",
    ],
)
def test_hop_in_every_spelling(text: str) -> None:
    node = table(text)
    assert isinstance(node, WindowTable)
    assert node.args["function"] == "hop"
    assert node.args["table"].name == "s"
    assert node.args["descriptor"].name == "ts"
    assert interval_us(node.args["size"]) == 5 * MINUTE_US
    assert interval_us(node.args["slide"]) == MINUTE_US
    assert node.alias == "h"


def test_tumble_with_an_offset_over_a_subquery() -> None:
    node = table("TUMBLE((SELECT x, ts FROM s), DESCRIPTOR(ts), 1 HOUR, -15 MINUTES)")
    assert isinstance(node, WindowTable)
    assert isinstance(node.args["table"], exp.Subquery)
    assert interval_us(node.args["size"]) == 60 * MINUTE_US
    assert interval_us(node.args["offset"]) == -15 * MINUTE_US
    assert node.args.get("slide") is None


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("s [NOW]", "window-now", "[NOW"),
        ("s [RANGE UNBOUNDED]", "window-unbounded", "UNBOUNDED"),
        ("s [ROWS UNBOUNDED]", "window-unbounded", "UNBOUNDED"),
        ("s [PARTITION BY a RANGE 5 MINUTES]", "window-partition", "[PARTITION BY a RANGE"),
        ("SESSION(TABLE s, DESCRIPTOR(ts), 5 MINUTES)", "window-function", "SESSION"),
    ],
)
def test_windows_that_are_not_supported_say_what_is(text: str, code: str, where: str) -> None:
    error = problem(f"SELECT * FROM {text}")
    assert isinstance(error, UnsupportedError)
    assert (error.code, marked(error)) == (code, where)
    assert error.hint


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("s [RANGE 5 MINUTS]", "there is no unit of time `MINUTS`", "5 MINUTS"),
        ("s [RANGE 5]", "the duration `5` lacks a unit", "5"),
        ("s [RANGE 0 MINUTES]", "the duration `0 MINUTES` is zero", "0 MINUTES"),
        ("s [RANGE -5 MINUTES]", "the duration `-5 MINUTES` is negative", "-5 MINUTES"),
        ("s [RANGE 1 MONTH]", "a duration in month has no fixed length", "1 MONTH"),
        ("s [RANGE 1000 YEARS]", "a duration in years has no fixed length", "1000 YEARS"),
        ("s [RANGE 99999 WEEKS]", "the duration `99999 WEEKS` is longer than 100 years", "99999 WEEKS"),
        ("s [RANGE 0.1 US]", "the duration `0.1 US` is finer than a microsecond", "0.1 US"),
        ("s [ROWS 0]", "a row window counts whole rows, at least 1", "0"),
        ("s [ROWS 1.5]", "a row window counts whole rows, at least 1", "1.5"),
        ("s [RANGE]", "expected a duration such as 5 MINUTES, found `]`", "]"),
        ("s []", "expected RANGE or ROWS, found `]`", "]"),
        ("s [RANGE 5 MINUTES, 5]", "expected SLIDE or ], found `,`", ","),
        ("s [RANGE 5 MINUTES] x [RANGE 5 MINUTES]", "this already has a window", "[RANGE 5 MINUTES]"),
        ("HOP(TABLE s, DESCRIPTOR(ts), 5 MINUTES)", "HOP lacks its size", None),
        ("HOP(TABLE s, 5 MINUTES, 5 MINUTES)", "expected DESCRIPTOR(column), found `5`", "5"),
        (
            "TUMBLE(TABLE s, DESCRIPTOR(ts), 5 MINUTES, SLIDE => 1 MINUTE)",
            "unexpected argument of TUMBLE",
            "SLIDE",
        ),
        ("TABLE(range(5))", "expected HOP or TUMBLE, found `range`", "range"),
    ],
)
def test_windows_that_are_wrong(text: str, message: str, where: str | None) -> None:
    error = problem(f"SELECT * FROM {text}")
    assert error.message == message
    assert where is None or marked(error) == where


@pytest.mark.parametrize(
    "text",
    [
        "upper(a)",
        "date_trunc('hour', ts)",
        "if(a, b, c)",
        "window(ts, '5 minutes')",
        "count(*)",
        "int(a)",
        "left(a, 2)",
        "replace(a, 'x')",
        "year(ts)",
        "date(ts)",
        "log(a)",
        "coalesce(a, b)",
        "f()",
    ],
)
def test_every_call_keeps_its_name(text: str) -> None:
    call = expression(text)
    assert isinstance(call, exp.Anonymous)
    assert call.name == text.partition("(")[0]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("TRIM(a)", "trim", ["a"]),
        ("TRIM(BOTH 'x' FROM a)", "trim", ["'x'", "a"]),
        ("TRIM(LEADING FROM a)", "ltrim", ["a"]),
        ("TRIM(TRAILING 'x' FROM a)", "rtrim", ["'x'", "a"]),
        ("POSITION('x' IN a)", "position", ["'x'", "a"]),
        ("POSITION('x', a)", "position", ["'x'", "a"]),
        ("SUBSTRING(a FROM 2 FOR 3)", "substring", ["a", "2", "3"]),
        ("SUBSTRING(a FOR 3)", "substring", ["a", "1", "3"]),
        ("SUBSTR(a, 2)", "substring", ["a", "2"]),
    ],
)
def test_calls_with_words_in_them_become_plain(text: str, name: str, arguments: list[str]) -> None:
    call = expression(text)
    assert isinstance(call, exp.Anonymous)
    assert call.name == name
    assert [argument.sql(dialect="spark") for argument in call.expressions] == arguments


def test_what_is_no_call_has_its_own_node() -> None:
    assert type(expression("CAST(a AS INT)")) is exp.Cast
    assert type(expression("a::INT")) is exp.Cast
    assert type(expression("TRY_CAST(a AS INT)")) is exp.TryCast
    assert type(expression("EXTRACT(HOUR FROM ts)")) is exp.Extract
    assert type(expression("CASE WHEN a THEN 1 END")) is exp.Case
    assert type(expression("sum(DISTINCT a) FILTER (WHERE a > 1)")) is exp.Filter


@pytest.mark.parametrize(
    "text", ["a NOT LIKE 'x'", "a IS NOT NULL", "a NOT IN (1, 2)", "a NOT BETWEEN 1 AND 2"]
)
def test_negation_is_a_node(text: str) -> None:
    assert type(expression(text)) is exp.Not


@pytest.mark.parametrize(
    ("text", "value"),
    [("'it''s'", "it's"), ('"Car"', "Car"), (r"'a\'b'", "a'b"), ("'a;b--c'", "a;b--c")],
)
def test_strings_are_those_of_spark_4(text: str, value: str) -> None:
    literal = expression(text)
    assert isinstance(literal, exp.Literal)
    assert (literal.is_string, literal.name) == (True, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a,, b FROM s", "expected an expression, found `,`"),
        ("SELECT a, FROM s", "expected an expression, found `FROM`"),
        ("SELECT FROM s", "expected what to SELECT, found `FROM`"),
        ("FROM s SELECT a", "expected SELECT, found `FROM`"),
        ("VALUES (1)", "expected SELECT, found `VALUES`"),
        ("SELECT a FROM s WHERE a >", "expected an expression, but the statement ends"),
        ("SELECT a FROM s GROUP BY", "expected what to GROUP BY, but the statement ends"),
        ("SELECT a FROM s JOIN t ON", "expected a condition, but the statement ends"),
        ("SELECT a FROM s AS", "expected a name, but the statement ends"),
        ("SELECT a FROM", "expected the name of a stream, table or query, but the statement ends"),
        ("SELECT a FROM s *", "unexpected `*`"),
        ("SELECT a FROM s NOT INDEXED", "unexpected `INDEXED`"),
        ("SELECT a FROM s WHERE a BETWEEN 1 2", "expected AND between the bounds of BETWEEN, found `2`"),
        ("SELECT a FROM s WHERE a IN ()", "expected a value in IN (…), found `)`"),
        ("SELECT count(DISTINCT) FROM s", "expected an expression, found `)`"),
        ("SELECT CASE WHEN a 1 END FROM s", "expected THEN, found `1`"),
        ("SELECT CASE a END FROM s", "expected WHEN, found `END`"),
        ("SELECT CASE WHEN a THEN 1 ELSE END FROM s", "expected WHEN, ELSE or END, found `FROM`"),
        ("SELECT CAST(a AS INT + 1) FROM s", "expected ), found `+`"),
        ("SELECT sum(a) FILTER (a > 1) FROM s", "expected WHERE, found `a`"),
        ("SELECT 1e FROM s", "expected the digits of the exponent, found `1e`"),
        ("SELECT a FROM s ORDER BY a ASC DESC", "unexpected `DESC`"),
        ("SELECT a FROM s LIMIT 5 ONLY", "unexpected `ONLY`"),
        ("SELECT a FROM s GROUP BY DISTINCT a", "expected what to GROUP BY, but the statement ends"),
        ("WITH x AS (SELECT a FROM s)", "expected SELECT behind WITH, but the statement ends"),
        ("INSERT INTO x SELECT 1", "expected SELECT or WITH, found `INSERT`"),
        ("SELECT a b c FROM s", "unexpected `c`"),
    ],
)
def test_what_sqlglot_would_swallow_is_an_error(text: str, message: str) -> None:
    assert problem(text).message == message


def test_a_misspelt_keyword_is_recognised() -> None:
    assert problem("SELECT a FORM s").hint == "did you mean `FROM`?"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a + b * c", "a + b * c"),
        ("upper(concat(a, b))", "upper(concat(a, b))"),
        ("CASE WHEN a THEN 1 END", "CASE WHEN a THEN 1 END"),
        ("CAST(a AS INT)", "CAST(a AS INT)"),
        ("ts - INTERVAL 5 MINUTES", "ts - INTERVAL 5 MINUTES"),
        ("a IS NULL", "a IS NULL"),
        ("(a)", "(a)"),
    ],
)
def test_the_place_of_an_expression(text: str, where: str) -> None:
    source = Source("test.sql", f"CREATE CONTINUOUS QUERY q AS SELECT {text} FROM s")
    [statement], _ = parse(source)
    assert isinstance(statement, CreateQuery)
    span = span_of(statement.select.expressions[0], source)
    assert source.text[span.start : span.end] == where


def test_a_node_without_a_place_takes_its_parents() -> None:
    source = Source("test.sql", "CREATE CONTINUOUS QUERY q AS SELECT a FROM s")
    [statement], _ = parse(source)
    assert isinstance(statement, CreateQuery)
    lost = exp.Distinct()
    statement.select.set("distinct", lost)
    span = span_of(lost, source)
    assert source.text[span.start : span.end] == "SELECT a FROM s"
