"""Names: which columns a clause sees, what result columns are called, how mistakes are explained."""

from __future__ import annotations

import pytest
from tests.unit.language.bound import codes, errors, query

PAIR = "s [RANGE 1 HOUR], r [RANGE 1 HOUR]"


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("k, V, s.ts FROM s", ("k", "V", "ts")),
        ("K AS Key, `day` FROM s", ("Key", "day")),
        ("v + 1, upper(k), -v, v * (1 + 2) FROM s", ("v + 1", "upper(k)", "-v", "v * (1 + 2)")),
        ("count(*), sum(v) FILTER (WHERE ok) FROM s [RANGE 1 HOUR]", ("count(*)", "sum(v) FILTER(WHERE ok)")),
        ("* FROM r", ("k", "w", "at")),
        (f"r.*, s.v FROM {PAIR}", ("k", "w", "at", "v")),
        (f"s.k, r.k, v FROM {PAIR}", ("s_k", "r_k", "v")),
        ("* FROM r a [RANGE 1 HOUR], r b [RANGE 1 HOUR]", ("a_k", "a_w", "a_at", "b_k", "b_w", "b_at")),
        ("x.* FROM (SELECT k AS a, v FROM s) AS x (b, c)", ("b", "c")),
    ],
)
def test_names_of_result_columns(select: str, columns: tuple[str, ...]) -> None:
    assert query(f"SELECT {select}").columns == columns


@pytest.mark.parametrize(
    ("select", "code", "underlined", "hint"),
    [
        ("SELECT dya FROM s", "unknown-column", "dya", "did you mean `day`?"),
        ("SELECT s.nope FROM s", "unknown-column", "s.nope", "there is `d`"),
        ("SELECT z.k FROM s", "unknown-alias", "z.k", "there is `s`"),
        ("SELECT z.* FROM s", "unknown-alias", "z.*", "there is `s`"),
        ("SELECT sensors.k FROM s AS sensor", "unknown-alias", "sensors.k", "did you mean `sensor`?"),
        ("SELECT a.s.k FROM s", "unknown-column", "a.s.k", "`alias.column`"),
        (f"SELECT k FROM {PAIR}", "ambiguous-column", "k", "write `s.k` or `r.k`"),
        ("SELECT k FROM r JOIN t USING (k), u", "ambiguous-column", "k", "`u.k`"),
        ("SELECT k, k FROM s", "duplicate-column", "k", "AS"),
        ("SELECT k AS a, v AS A FROM s", "duplicate-column", "v", "AS"),
        ("SELECT *, v FROM s", "duplicate-column", "v", "AS"),
        ("SELECT v AS a, a + 1 AS b FROM s", "unknown-column", "a", "repeat the expression"),
        ("SELECT v AS a FROM s WHERE a > 1", "unknown-column", "a", "repeat the expression"),
        ("SELECT k FROM flights", "unknown-relation", "flights", "there is"),
        ("SELECT k FROM s.t", "unsupported-syntax", "s", "plain names"),
        ("SELECT a.k FROM s a, r A", "duplicate-alias", "r A", "alias of its own"),
        ("SELECT k FROM s, r x, s", "duplicate-alias", "s", "alias of its own"),
        ("SELECT a FROM s AS z (a, b)", "alias-columns", "z (a, b)", ""),
        ("SELECT a FROM r AS z (a, b, A)", "duplicate-column", "z (a, b, A)", ""),
        ("WITH a AS (SELECT k FROM s), A AS (SELECT k FROM s) SELECT k FROM a", "duplicate", "A", "name"),
        ("SELECT x.k FROM s x, (SELECT k FROM r WHERE r.k = x.k) z", "unknown-alias", "x.k", "its own FROM"),
        ("SELECT v FROM r JOIN t USING (k, v)", "unknown-column", "v", ""),
    ],
)  # fmt: skip
def test_mistakes_with_names(select: str, code: str, underlined: str, hint: str) -> None:
    found = errors(select)
    assert (code, underlined) in codes(found)
    assert hint in next(error for error in found if error.code == code).hint


@pytest.mark.parametrize(
    ("select", "code", "underlined"),
    [
        ("SELECT k, v FROM s [RANGE 1 HOUR] GROUP BY k", "not-grouped", "v"),
        ("SELECT k, v + max(v) AS e FROM s [RANGE 1 HOUR] GROUP BY k", "not-grouped", "v"),
        ("SELECT k || 'a' AS e FROM s [RANGE 1 HOUR] GROUP BY upper(k)", "not-grouped", "k"),
        ("SELECT * FROM r [RANGE 1 HOUR] GROUP BY k, w", "not-grouped", "*"),
        ("SELECT k FROM s [RANGE 1 HOUR] GROUP BY k HAVING v > 1", "not-grouped", "v"),
        ("SELECT k FROM s [RANGE 1 HOUR] GROUP BY k ORDER BY v LIMIT 1", "not-grouped", "v"),
        ("SELECT k FROM s [RANGE 1 HOUR] ORDER BY count(*) LIMIT 1", "not-grouped", "k"),
        ("SELECT k FROM s [RANGE 1 HOUR] GROUP BY 2", "ordinal", "2"),
        ("SELECT max(v) AS m FROM s [RANGE 1 HOUR] GROUP BY m", "misplaced-aggregate", "max(v)"),
        ("SELECT max(v) AS m FROM s [RANGE 1 HOUR] GROUP BY 1", "misplaced-aggregate", "max(v)"),
        ("SELECT k FROM s [RANGE 1 HOUR] WHERE max(v) > 1 GROUP BY k", "misplaced-aggregate", "max(v)"),
        (f"SELECT s.k FROM {PAIR.replace(', r', ' JOIN r')} ON max(v) = w", "misplaced-aggregate", "max(v)"),
        ("SELECT k FROM s [RANGE 1 HOUR] GROUP BY k, ts - ts", "interval", "ts - ts"),
        ("SELECT upper(k) AS k FROM s [RANGE 1 HOUR] GROUP BY k HAVING k > 'a'", "ambiguous-column", "k"),
        ("SELECT k FROM s HAVING k > 'a'", "having", "k > 'a'"),
        ("SELECT k FROM s WHERE v", "not-boolean", "v"),
        ("SELECT k FROM s [RANGE 1 HOUR] GROUP BY k HAVING max(v)", "not-boolean", "max(v)"),
        ("SELECT k FROM s ORDER BY k", "order-without-limit", "k"),
        ("SELECT k FROM s [RANGE 1 HOUR] LIMIT 3", "limit-without-order", "3"),
        ("SELECT k FROM s [RANGE 1 HOUR] ORDER BY k LIMIT 0", "limit", "0"),
        ("SELECT k FROM s [RANGE 1 HOUR] ORDER BY k LIMIT 1 + 1", "limit", "1 + 1"),
        ("SELECT k FROM s [RANGE 1 HOUR] ORDER BY ts - ts LIMIT 1", "interval", "ts - ts"),
        ("SELECT k FROM s [RANGE 1 HOUR] ORDER BY 2 LIMIT 1", "ordinal", "2"),
    ],
)
def test_mistakes_with_groups_and_order(select: str, code: str, underlined: str) -> None:
    assert codes(errors(select)) == [(code, underlined)]


def test_all_mistakes_of_a_query_are_reported_at_once() -> None:
    found = codes(errors("SELECT nope, upper(v), sum(v) AS n FROM s WHERE zz = 1 AND v AND ok GROUP BY k2"))
    assert found == [
        ("unknown-column", "nope"),
        ("type", "upper(v)"),
        ("no-window", "s"),
        ("unknown-column", "zz"),
        ("not-boolean", "v"),
        ("unknown-column", "k2"),
    ]


def test_a_mistake_in_with_is_reported_once() -> None:
    found = errors("WITH a AS (SELECT nope FROM s), b AS (SELECT x FROM a) SELECT y FROM b JOIN a ON true")
    assert codes(found) == [("unknown-column", "nope")]
