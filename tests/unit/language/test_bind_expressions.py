"""How expressions are bound: operators, shorthands, constants, functions."""

from __future__ import annotations

import pytest
from tests.unit.language.bound import codes, errors, plan, projected


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("v = 1", "(v#1 = 1)"),
        ("v == 1", "(v#1 = 1)"),
        ("v <> 1", "(v#1 <> 1)"),
        ("v != 1", "(v#1 <> 1)"),
        ("NOT v < 1", "not((v#1 < 1))"),
        ("v BETWEEN 1 AND 2", "((v#1 >= 1) and (v#1 <= 2))"),
        ("v NOT BETWEEN 1 AND 2", "not(((v#1 >= 1) and (v#1 <= 2)))"),
        ("v IN (1, 2)", "in(v#1, 1, 2)"),
        ("k NOT IN ('a')", "not(in(k#0, 'a'))"),
        ("v IS NULL", "is_null(v#1)"),
        ("v IS NOT NULL", "not(is_null(v#1))"),
        ("ok IS TRUE", "null_safe_eq(ok#5, true)"),
        ("ok IS NOT FALSE", "not(null_safe_eq(ok#5, false))"),
        ("k <=> 'a'", "null_safe_eq(k#0, 'a')"),
        ("k IS DISTINCT FROM 'a'", "not(null_safe_eq(k#0, 'a'))"),
        ("k IS NOT DISTINCT FROM NULL", "null_safe_eq(k#0, null:STRING)"),
        ("k LIKE 'a%'", "like(k#0, 'a%')"),
        ("k NOT LIKE 'a%'", "not(like(k#0, 'a%'))"),
        ("k RLIKE 'a.*'", "rlike(k#0, 'a.*')"),
        (
            "ok AND (v = 1 AND v = 2) AND (v = 3 OR ok)",
            "(ok#5 and (v#1 = 1) and (v#1 = 2) and ((v#1 = 3) or ok#5))",
        ),
        ("k || 'a' || 'b'", "concat(k#0, 'a', 'b')"),
        ("v DIV 2L", "int_divide(cast(v#1 as BIGINT), 2:BIGINT)"),
        ("v % 2", "modulo(v#1, 2)"),
        ("-v", "negate(v#1)"),
        ("CASE WHEN ok THEN 1 END", "case(ok#5, 1, null:INT)"),
        ("CASE v WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE k END", "case((v#1 = 1), 'a', (v#1 = 2), 'b', k#0)"),
        ("if(ok, 1, 2)", "case(ok#5, 1, 2)"),
        ("coalesce(v, NULL, 0)", "coalesce(v#1, null:INT, 0)"),
        ("UCASE(k)", "upper(k#0)"),
        ("CAST(k AS INT)", "cast(k#0 as INT)"),
        ("TRY_CAST(k AS DATE)", "cast(k#0 as DATE)"),
        ("k::DOUBLE", "cast(k#0 as DOUBLE)"),
        ("CAST('no date' AS DATE)", "cast('no date' as DATE)"),
        ("'no date'::DATE", "cast('no date' as DATE)"),
        ("5 :: STRING", "cast(5 as STRING)"),
        ("EXTRACT(HOUR FROM ts)", "hour(ts#6)"),
        ("timestampdiff(SECOND, ts, ts)", "timestampdiff('SECOND', ts#6, ts#6)"),
        ("date_trunc('hour', ts)", "date_trunc('hour', ts#6)"),
    ],
)
def test_operators_and_functions(written: str, bound: str) -> None:
    assert projected(written) == bound


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("1", "1"),
        ("-2147483648", "-2147483648"),
        ("2147483648", "2147483648:BIGINT"),
        ("-9223372036854775808", "-9223372036854775808:BIGINT"),
        ("1.50", "1.50:DECIMAL(3,2)"),
        ("1e3", "1000.0:DOUBLE"),
        ("5L", "5:BIGINT"),
        ("1.5BD", "1.5:DECIMAL(2,1)"),
        ("2.5D", "2.5:DOUBLE"),
        ("'it''s'", r"'it\'s'"),
        ('"text"', "'text'"),
        ("TRUE", "true"),
        ("CAST(NULL AS STRING)", "null:STRING"),
        ("DATE '2024-02-29'", "2024-02-29:DATE"),
        ("TIMESTAMP '1970-01-01 00:00:01'", "1000000:TIMESTAMP"),
        ("TIMESTAMP '1970-01-01T01:00:00+01:00'", "0:TIMESTAMP"),
        ("ts + INTERVAL '5' MINUTES", "(ts#6 + 300000000:INTERVAL)"),
        ("ts + INTERVAL 5 MINUTES", "(ts#6 + 300000000:INTERVAL)"),
        ("ts - INTERVAL '1 day 2 hours'", "(ts#6 - 93600000000:INTERVAL)"),
        ("ts + -INTERVAL '1' DAY", "(ts#6 + -86400000000:INTERVAL)"),
        ("ts > '2024-01-01'", "(ts#6 > 1704067200000000:TIMESTAMP)"),
    ],
)
def test_constants(written: str, bound: str) -> None:
    assert projected(written) == bound


@pytest.mark.parametrize(
    ("pattern", "bound"),
    [
        ("'10!%' ESCAPE '!'", r"'10\\%'"),
        ("'a!!b_' ESCAPE '!'", "'a!b_'"),
        (r"'a\\b#_' ESCAPE '#'", r"'a\\\\b\\_'"),
    ],
)
def test_another_escape_sign_becomes_a_backslash(pattern: str, bound: str) -> None:
    assert projected(f"k LIKE {pattern}") == f"like(k#0, {bound})"


def test_long_chains_are_flat() -> None:
    terms = " OR ".join(f"v = {number}" for number in range(1_000))
    assert plan(f"SELECT k FROM s WHERE {terms}").count(" or ") == 999


@pytest.mark.parametrize(
    ("expression", "code", "underlined"),
    [
        ("v + k", "type", "v + k"),
        ("k = 1", "type", "k = 1"),
        ("sqrt(k, 1)", "type", "sqrt(k, 1)"),
        ("uper(k)", "unknown-function", "uper(k)"),
        ("rand()", "unsupported-function", "rand"),
        ("now()", "unsupported-function", "now"),
        ("window(ts, '1 minute')", "window-call", "window(ts, '1 minute')"),
        ("sum(v, v)", "type", "sum(v, v)"),
        ("DATE '2024-02-30'", "type", "DATE '2024-02-30'"),
        ("TIMESTAMP 'soon'", "type", "TIMESTAMP 'soon'"),
        ("ts + INTERVAL '1' MONTH", "duration", "INTERVAL '1' MONTH"),
        ("CAST(v AS ARRAY<INT>)", "type", "ARRAY<INT>"),
        ("k LIKE 'a!b' ESCAPE '!'", "like-escape", "'a!b'"),
        ("k LIKE k ESCAPE '!'", "like-escape", "k LIKE k ESCAPE '!'"),
        ("EXTRACT(FORTNIGHT FROM ts)", "type", "EXTRACT(FORTNIGHT FROM ts)"),
        ("ts - ts", "interval", "ts - ts"),
        ("(NULL)", "untyped-null", "(NULL)"),
        ("* + 1", "star", "*"),
        ("upper(k) FILTER (WHERE ok)", "filter", "upper(k)"),
        ("99999999999999999999999999999999999999999", "type", "99999999999999999999999999999999999999999"),
    ],
)
def test_what_cannot_be_bound(expression: str, code: str, underlined: str) -> None:
    found = errors(f"SELECT {expression} AS e FROM s [RANGE 1 HOUR]")
    assert codes(found) == [(code, underlined)]
    assert found[0].message


@pytest.mark.parametrize(
    ("aggregate", "code", "underlined"),
    [
        ("sum(max(v))", "misplaced-aggregate", "max(v)"),
        ("sum(k)", "type", "sum(k)"),
        ("min()", "aggregate", "min"),
        ("count(DISTINCT *)", "star", "*"),
        ("count(s.*)", "star", "s.*"),
        ("sum(DISTINCT v)", "aggregate-distinct", "sum(DISTINCT v)"),
        ("max(ts - ts)", "type", "max(ts - ts)"),
        ("sum(v) FILTER (WHERE v)", "not-boolean", "v"),
        ("sum(v) FILTER (WHERE max(v) > 1)", "misplaced-aggregate", "max(v)"),
    ],
)
def test_aggregates_that_cannot_be_bound(aggregate: str, code: str, underlined: str) -> None:
    assert codes(errors(f"SELECT {aggregate} AS e FROM s [RANGE 1 HOUR]")) == [(code, underlined)]


@pytest.mark.parametrize(
    ("aggregate", "bound"),
    [
        ("count(*)", "count()"),
        ("count(v)", "count(v#1)"),
        ("count(DISTINCT k, v)", "count_distinct(k#0, v#1)"),
        ("mean(v)", "avg(v#1)"),
        ("stddev(v)", "stddev_samp(cast(v#1 as DOUBLE))"),
        ("min(upper(k)) FILTER (WHERE v > 1 AND ok)", "min(upper(k#0)) where ((v#1 > 1) and ok#5)"),
    ],
)
def test_aggregates(aggregate: str, bound: str) -> None:
    assert f"r2 := aggregate r1: {bound}\n" in plan(f"SELECT {aggregate} AS e FROM s [RANGE 1 HOUR]")
