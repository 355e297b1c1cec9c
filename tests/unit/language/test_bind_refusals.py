"""What is refused: impossible windows, joins that never end, and syntax that is not on the list."""

from __future__ import annotations

import pytest
from sqlglot import exp
from tests.unit.language.bound import codes, errors, plan

from plait.errors import UnsupportedError
from plait.language.syntax import ALLOWED

MINUTES = "CREATE CONTINUOUS QUERY minutes AS SELECT k, sum(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k;"
PAIRS = (
    "CREATE CONTINUOUS QUERY pairs AS SELECT s.k FROM s [RANGE 1 MINUTE], r [RANGE 1 MINUTE] WHERE s.k = r.k;"
)
SLIDING = "s [RANGE 5 MINUTES SLIDE 1 MINUTE]"
HOP = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)"


@pytest.mark.parametrize(
    ("select", "code", "underlined"),
    [
        ("SELECT count(*) AS n FROM s", "no-window", "s"),
        ("SELECT k FROM s ORDER BY k LIMIT 1", "no-window", "s"),
        ("SELECT s.k FROM s, r [RANGE 1 MINUTE]", "no-window", "s"),
        ("SELECT x.k FROM (SELECT k FROM s) x, r [RANGE 1 MINUTE]", "no-window", "k FROM s) x"),
        ("SELECT count(*) AS n FROM (SELECT k FROM s [RANGE 1 DAY])", "no-window", "k FROM s [RANGE 1 DAY]"),
        ("SELECT s.k FROM minutes m, s WHERE m.k = s.k", "no-window", "s"),
        ("SELECT s.k FROM pairs p, s [RANGE 1 MINUTE] WHERE p.k = s.k", "no-window", "pairs p"),
        ("SELECT count(*) AS n FROM pairs", "no-window", "pairs"),
        (f"SELECT k FROM {SLIDING}", "slide-without-aggregate", "[RANGE 5 MINUTES SLIDE 1 MINUTE]"),
        (f"SELECT k FROM {HOP}", "slide-without-aggregate", HOP),
        ("SELECT k FROM s [ROWS 10]", "row-window-without-aggregate", "[ROWS 10]"),
        ("SELECT count(*) AS n FROM s [ROWS 10] JOIN t USING (k)", "row-window-join", "s [ROWS 10]"),
        (f"SELECT s.k FROM {SLIDING}, minutes m [RANGE 9 MINUTES SLIDE 3 MINUTES] GROUP BY s.k",
         "different-ticks", "minutes m [RANGE 9 MINUTES SLIDE 3 MINUTES]"),
        (f"SELECT s.k FROM {HOP}, r [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY s.k",
         "different-ticks", "r [RANGE 1 MINUTE SLIDE 30 SECONDS]"),
        ("SELECT s.k FROM s, t [RANGE 1 MINUTE]", "table-window", "[RANGE 1 MINUTE]"),
        ("SELECT window_end FROM s", "no-window-edge", "window_end"),
        ("SELECT t.window_end, count(*) AS n FROM s [RANGE 1 HOUR], t", "no-window-edge", "t.window_end"),
        (f"SELECT max(v) AS m FROM {SLIDING}, r [RANGE 1 MINUTE] GROUP BY window_start",
         "ambiguous-column", "window_start"),
    ],
)  # fmt: skip
def test_windows_that_do_not_fit(select: str, code: str, underlined: str) -> None:
    found = errors(select, MINUTES + PAIRS)
    assert codes(found) == [(code, underlined)]
    assert found[0].hint


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("s [RANGE 4000 DAYS]", "window-too-large"),
        ("s [RANGE 1 DAY SLIDE 4000 DAYS]", "window-too-large"),
        ("s [RANGE 20 YEARS]", "duration"),
        ("s [RANGE 0 SECONDS]", "duration"),
        ("s [RANGE 1 MINUTE SLIDE 0 SECONDS]", "duration"),
        ("s [RANGE 0.1 MICROSECONDS]", "duration"),
        ("s [RANGE 10 DAYS SLIDE 1 MILLISECOND]", "window-too-dense"),
        ("s [ROWS 2000000000]", "window-too-large"),
        ("s [ROWS 1000000000 SLIDE 1]", "window-too-dense"),
        ("s [ROWS 0]", "window-rows"),
        ("s [PARTITION BY nope ROWS 10]", "unknown-column"),
        ("s [PARTITION BY k, K ROWS 10]", "window-partition"),
        ("s [PARTITION BY r.k ROWS 10]", "unknown-column"),
        ("HOP(TABLE s, DESCRIPTOR(k), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)", "not-event-time"),
        ("TUMBLE(TABLE minutes, DESCRIPTOR(ts), INTERVAL 5 MINUTES)", "no-event-time"),
        ("TUMBLE(TABLE t, DESCRIPTOR(k), INTERVAL 5 MINUTES)", "no-event-time"),
        ("TUMBLE(TABLE s [RANGE 1 HOUR], DESCRIPTOR(ts), INTERVAL 5 MINUTES)", "second-window"),
        ("s [RANGE 1 HOUR] GROUP BY window(ts, '1 hour')", "second-window"),
        ("s GROUP BY window(ts, '1 hour'), window(ts, '2 hours')", "second-window"),
        ("s GROUP BY window(k, '1 hour')", "not-event-time"),
        ("s GROUP BY window(ts)", "window-call"),
        ("s GROUP BY window(ts, 5)", "duration"),
        ("s GROUP BY window(ts, '1 hour', '2 hours')", "window-gaps"),
        ("s GROUP BY window(ts, '1 hour', '1 hour', '4000 days')", "window-too-large"),
        ("s, r GROUP BY window(ts, '1 hour')", "window-call"),
        ("minutes GROUP BY window(ts, '1 hour')", "no-event-time"),
    ],
)
def test_impossible_windows(source: str, code: str) -> None:
    found = errors(f"SELECT count(*) AS n FROM {source}", MINUTES)
    assert [error.code for error in found] == [code]
    assert found[0].span is not None


@pytest.mark.parametrize(
    ("select", "code", "underlined"),
    [
        ("SELECT k FROM t", "no-stream", "q"),
        ("SELECT count(*) AS n FROM t", "no-stream", "t"),
        ("SELECT t.k FROM t JOIN u USING (k)", "no-stream", "u USING (k)"),
        ("SELECT k FROM s UNION ALL SELECT k FROM t", "no-stream", "k FROM t"),
        ("SELECT 1 AS one", "no-from", "SELECT 1 AS one"),
        ("SELECT k FROM s UNION ALL SELECT v FROM s", "union-types", "k FROM s"),
        ("SELECT k FROM s UNION ALL SELECT k, v FROM s", "union-columns", "k, v FROM s"),
        ("SELECT k FROM s UNION ALL SELECT k FROM r ORDER BY k LIMIT 1", "limit-without-ticks", "k"),
        ("SELECT k FROM s UNION ALL SELECT k FROM r ORDER BY k", "order-without-limit", "k"),
        ("SELECT s.k FROM t LEFT JOIN s ON t.k = s.k", "kept-table", "s ON t.k = s.k"),
        ("SELECT s.k FROM s RIGHT JOIN t ON t.k = s.k", "kept-table", "t ON t.k = s.k"),
        ("SELECT s.k FROM s FULL JOIN t ON t.k = s.k", "kept-table", "t ON t.k = s.k"),
        ("SELECT s.k FROM s JOIN t", "no-join-condition", "t"),
        ("SELECT s.k FROM s LEFT JOIN t", "no-join-condition", "t"),
        ("SELECT s.k FROM s CROSS JOIN t ON s.k = t.k", "cross-join", "t ON s.k = t.k"),
        ("SELECT s.k FROM s JOIN t ON v", "not-boolean", "v"),
        ("SELECT s.k FROM s JOIN t ON s.k = u.k JOIN u ON true", "unknown-alias", "u.k"),
        ("SELECT s.v FROM s JOIN (SELECT size AS k FROM u) z USING (k)", "type", "k"),
    ],
)
def test_what_never_gives_an_answer(select: str, code: str, underlined: str) -> None:
    assert codes(errors(select)) == [(code, underlined)]


@pytest.mark.parametrize(
    ("select", "construct", "underlined"),
    [
        ("SELECT DISTINCT k FROM s", "SELECT DISTINCT", "SELECT DISTINCT"),
        ("SELECT k FROM (SELECT DISTINCT k FROM s) x", "SELECT DISTINCT", "SELECT DISTINCT"),
        ("SELECT k FROM s UNION SELECT k FROM r", "UNION without ALL", "UNION"),
        ("SELECT k FROM s INTERSECT SELECT k FROM r", "INTERSECT", None),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", "EXCEPT", None),
        ("SELECT k FROM s TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "TABLESAMPLE (10"),
        ("SELECT k FROM s PIVOT (sum(v) FOR k IN ('a', 'b'))", "PIVOT", None),
        ("SELECT k FROM s LATERAL VIEW explode(k) z AS y", "LATERAL VIEW", None),
        ("SELECT k FROM s, LATERAL (SELECT k FROM r) z", "LATERAL", None),
        ("SELECT k FROM s QUALIFY k > 'a'", "QUALIFY", "QUALIFY k > 'a'"),
        ("SELECT k FROM s SORT BY k", "SORT BY", "SORT BY k"),
        ("SELECT k FROM s CLUSTER BY k", "CLUSTER BY", "CLUSTER BY k"),
        ("SELECT k FROM s ORDER BY k LIMIT 1 OFFSET 2", "OFFSET", "OFFSET 2"),
        ("SELECT k FROM s FOR UPDATE", "FOR UPDATE", "FOR UPDATE"),
        ("SELECT k FROM s GROUP BY ALL", "GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT k FROM s GROUP BY ROLLUP (k)", "ROLLUP", None),
        ("SELECT k FROM s GROUP BY CUBE (k)", "CUBE", None),
        ("SELECT k FROM s GROUP BY GROUPING SETS ((k), ())", "GROUPING SETS", None),
        ("SELECT s.k FROM s NATURAL JOIN t", "NATURAL", "NATURAL"),
        ("SELECT s.k FROM s LEFT SEMI JOIN t ON s.k = t.k", "SEMI joins", None),
        ("SELECT s.k FROM s LEFT ANTI JOIN t ON s.k = t.k", "ANTI joins", None),
        ("SELECT k FROM (s JOIN t ON true)", "parenthesised join", None),
        ("SELECT id FROM range(5)", "table functions", "range(5)"),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM r)", "IN (SELECT", "IN (SELECT k FROM r"),
        ("SELECT k FROM s WHERE EXISTS (SELECT k FROM r)", "EXISTS", None),
        ("SELECT k FROM s WHERE v > ALL (SELECT w FROM r)", "ALL (SELECT", None),
        ("SELECT k FROM s WHERE v = (SELECT max(w) FROM r)", "subquery is not supported", None),
        ("SELECT k FROM s WHERE (k, v) IN (('a', 1))", "tuple", None),
        ("SELECT k FROM s WHERE k ILIKE 'a%'", "ILIKE", "k ILIKE 'a%'"),
        ("SELECT sum(v) OVER (PARTITION BY k) AS e FROM s", "OVER", None),
        ("SELECT k[0] AS e FROM s", "subscript", None),
        ("SELECT sum(v ORDER BY k) AS e FROM s [RANGE 1 HOUR]", "ORDER BY inside", "ORDER BY"),
        ("SELECT v & 1 AS e FROM s", "operator &", "v & 1"),
        ("SELECT upper(k -> 1) AS e FROM s", "", None),
        ("SELECT * EXCEPT (k) FROM s", "EXCEPT", None),
        ("SELECT v + ? AS e FROM s", "placeholder", None),
        ("SELECT ts + INTERVAL '1 2' DAY TO HOUR AS e FROM s", "interval from", None),
        ("WITH RECURSIVE c AS (SELECT k FROM s) SELECT k FROM c", "WITH RECURSIVE", "WITH RECURSIVE"),
        ("(SELECT k FROM s) ORDER BY k LIMIT 1", "parenthesised query", None),
    ],
)
def test_syntax_that_is_not_on_the_list(select: str, construct: str, underlined: str | None) -> None:
    found = errors(select)
    assert isinstance(found[0], UnsupportedError)
    assert construct in found[0].message
    assert found[0].hint
    if underlined is not None:
        assert codes(found[:1]) == [("unsupported-syntax", underlined)]


def test_the_list_names_parts_that_exist() -> None:
    for node, parts in ALLOWED.items():
        if node.__module__.startswith("sqlglot"):
            known = set(node.arg_types) | ({"window"} if node in (exp.Table, exp.Subquery) else set())
            assert parts <= known, node


def test_nesting_is_bounded() -> None:
    def nested(levels: int) -> str:
        chain = ", ".join(f"c{n} AS (SELECT k FROM c{n - 1})" for n in range(1, levels))
        return f"WITH c0 AS (SELECT k FROM s), {chain} SELECT k FROM c{levels - 1}"

    assert plan(nested(30)).startswith("r0 := scan s")
    assert [error.code for error in errors(nested(33))] == ["too-large"]


def test_what_is_read_twice_again_and_again_is_bounded() -> None:
    window = "[RANGE 1 MINUTE]"
    doubled = ", ".join(
        f"c{n} AS (SELECT a.k FROM c{n - 1} a {window}, c{n - 1} b {window})" for n in range(1, 20)
    )
    found = errors(f"WITH c0 AS (SELECT k FROM s), {doubled} SELECT k FROM c19")
    assert [error.code for error in found] == ["too-large"]
    assert "1,024 sources" in found[0].message
