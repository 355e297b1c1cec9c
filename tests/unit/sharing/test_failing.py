"""Which expressions of a query are counted where they fail, and on which rows."""

from __future__ import annotations

from plait import language
from plait.deployment.describe import failing_text
from plait.rewrite import canonicalise
from plait.sharing.failing import checks
from plait.workload import Workload

STREAMS = """
CREATE STREAM s (k INT, a INT, b INT, note STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM r (k INT, c INT, at TIMESTAMP, WATERMARK FOR at AS at);
"""


def _loaded(select: str) -> Workload:
    return language.load_text(f"{STREAMS} CREATE CONTINUOUS QUERY q AS {select};")


def _found(select: str) -> list[tuple[str, str]]:
    plan = canonicalise(_loaded(select).query("q").plan)
    return sorted((check.scan.stream, failing_text(check)) for check in checks(plan))


def test_what_cannot_fail_is_not_looked_at() -> None:
    assert _found("SELECT a / 2 AS x, a % 3 AS y, CAST(a AS BIGINT) + b AS z FROM s WHERE note = 'a'") == [
        ("s", "a + b")
    ]
    assert _found("SELECT count(*) AS n, sum(a) AS x FROM s [RANGE 1 MINUTE]") == []


def test_an_expression_is_looked_at_wherever_it_stands() -> None:
    window = "s [RANGE 1 MINUTE]"
    assert _found("SELECT k FROM s WHERE a / b > 1") == [("s", "a / b")]
    assert _found(f"SELECT sum(a / b) AS x FROM {window}") == [("s", "a / b")]
    assert _found(f"SELECT a / b AS x, count(*) AS n FROM {window} GROUP BY a / b") == [("s", "a / b")]
    assert _found(f"SELECT count(*) FILTER (WHERE a / b > 1) AS n FROM {window}") == [("s", "a / b")]
    joined = "FROM s x [RANGE 1 MINUTE], r y [RANGE 1 MINUTE] WHERE x.k = y.k"
    assert _found(f"SELECT x.a / x.b AS x {joined}") == [("s", "a / b")]
    assert _found(f"SELECT y.c AS c {joined} AND x.a / x.b > y.c") == [("s", "a / b")]


def test_expressions_over_several_rows_are_not() -> None:
    assert _found("SELECT sum(a) / sum(b) AS x FROM s [RANGE 1 MINUTE]") == []
    assert (
        _found("SELECT x.a / y.c AS x FROM s x [RANGE 1 MINUTE], r y [RANGE 1 MINUTE] WHERE x.k = y.k") == []
    )


def test_an_expression_is_looked_at_once() -> None:
    (check,) = checks(canonicalise(_loaded("SELECT a / b AS x FROM s WHERE a / b > 1").query("q").plan))
    assert {field.name for field in check.scan.columns} == {"a", "b"}
