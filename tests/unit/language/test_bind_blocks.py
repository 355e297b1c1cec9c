"""What each kind of block is bound to: rows as they come, aggregates, unions, WITH, other queries."""

from __future__ import annotations

import pytest
from tests.unit.language.bound import plan, query, shape


def test_rows_of_one_stream_need_no_window() -> None:
    assert plan("SELECT k, v + 1 AS next FROM s WHERE v > 1 AND ok") == shape("""
        r0 := scan s
        r1 := filter r0: ((v#1 > 1) and ok#5)
        r2 := project r1: k#0, (v#1 + 1)
        q = r2
        """)


def test_aggregate_over_a_sliding_window() -> None:
    assert plan("""
        SELECT k, count(*) AS n, sum(v) FILTER (WHERE ok) AS total
        FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE v > 0 GROUP BY k HAVING count(*) > 2
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 5 min slide 1 min
        r2 := filter r1: (v#1 > 0)
        r3 := aggregate r2 by k#0: count(), sum(v#1) where ok#5
        r4 := filter r3: (count#1 > 2:BIGINT)
        r5 := project r4: k#0, count#1, sum#2
        q = r5
        """)


def test_aggregate_without_groups() -> None:
    assert plan("SELECT avg(x) AS mean FROM s [RANGE 1 HOUR]") == shape("""
        r0 := scan s
        r1 := window r0: range 1 h slide 1 h
        r2 := aggregate r1: avg(x#3)
        r3 := project r2: avg#0
        q = r3
        """)


def test_an_aggregate_written_twice_is_computed_once() -> None:
    text = plan(
        "SELECT max(v) AS a, max(v) + 1 AS b FROM s [RANGE 1 HOUR] HAVING max(v) > 3 ORDER BY max(v) LIMIT 1"
    )
    assert "aggregate r1: max(v#1)\n" in text


@pytest.mark.parametrize(
    ("select", "keys", "projected"),
    [
        pytest.param(
            "upper(k) AS u FROM s [RANGE 1 HOUR] GROUP BY upper(k)", "upper(k#0)", "_#0", id="expression"
        ),
        pytest.param("upper(k) AS u FROM s [RANGE 1 HOUR] GROUP BY u", "upper(k#0)", "_#0", id="alias"),
        pytest.param(
            "upper(k) AS u, v FROM s [RANGE 1 HOUR] GROUP BY 2, 1",
            "v#1, upper(k#0)",
            "_#1, v#0",
            id="ordinal",
        ),
        pytest.param(
            "v + 1 + 2 AS e FROM s [RANGE 1 HOUR] GROUP BY v + 1", "(v#1 + 1)", "(_#0 + 2)", id="part"
        ),
        pytest.param(
            "upper(k) AS v FROM s [RANGE 1 HOUR] GROUP BY v, k", "v#1, k#0", "upper(k#1)", id="column first"
        ),
        pytest.param(
            "K FROM s [RANGE 1 HOUR] GROUP BY s.k, k, 'x'", "k#0", "k#0", id="once, without constants"
        ),
    ],
)
def test_group_by(select: str, keys: str, projected: str) -> None:
    lines = plan(f"SELECT {select}").splitlines()
    assert lines[2] == f"r2 := aggregate r1 by {keys}:"
    assert lines[3] == f"r3 := project r2: {projected}"


def test_having_sees_aliases_and_groups() -> None:
    text = plan(
        "SELECT k key, max(v) v FROM s [RANGE 1 DAY] GROUP BY k HAVING v > 3 AND key > 'a' AND s.k < 'b'"
    )
    assert "filter r2: ((max#1 > 3) and (k#0 > 'a') and (k#0 < 'b'))\n" in text


def test_first_rows_by_columns_that_are_not_selected() -> None:
    assert plan("SELECT k FROM s [RANGE 1 HOUR] ORDER BY v + 1 DESC, k, x NULLS LAST LIMIT 3") == shape("""
        r0 := scan s
        r1 := window r0: range 1 h slide 1 h
        r2 := project r1: k#0, (v#1 + 1), x#3
        r3 := top r2: 3 by _#1 desc nulls last, k#0 asc nulls first, x#2 asc nulls last
        r4 := project r3: k#0
        q = r4
        """)


def test_order_by_alias_ordinal_and_aggregate() -> None:
    assert plan("""
        SELECT upper(k) AS k, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY s.k
        ORDER BY k, 2 DESC, sum(v) LIMIT 3
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 1 h slide 1 h
        r2 := aggregate r1 by k#0: count(), sum(v#1)
        r3 := project r2: upper(k#0), count#1, sum#2
        r4 := top r3: 3 by _#0 asc nulls first, count#1 desc nulls last, sum#2 asc nulls first
        r5 := project r4: _#0, count#1
        q = r5
        """)


def test_union_casts_to_common_types() -> None:
    assert plan(
        "SELECT k, v FROM s UNION ALL SELECT k, w + 1.5 FROM r UNION ALL (SELECT k, 1 FROM r)"
    ) == shape("""
        r0 := scan s
        r1 := project r0: k#0, v#1
        r2 := project r1: k#0, cast(v#1 as DECIMAL(12,1))
        r3 := scan r
        r4 := project r3: k#0, (cast(w#1 as DECIMAL(10,0)) + 1.5:DECIMAL(2,1))
        r5 := project r3: k#0, 1
        r6 := project r5: k#0, cast(_#1 as DECIMAL(12,1))
        r7 := union r2, r4, r6
        q = r7
        """)


def test_first_rows_of_a_union_that_ticks() -> None:
    lines = plan("""
        SELECT k, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k
        UNION ALL SELECT k, count(*) FROM r [RANGE 1 HOUR] GROUP BY k
        ORDER BY n DESC, upper(k) LIMIT 5
        """).splitlines()
    assert lines[-5:] == [
        "r8 := union r3, r7",
        "r9 := project r8: k#0, count#1, upper(k#0)",
        "r10 := top r9: 5 by count#1 desc nulls last, _#2 asc nulls first",
        "r11 := project r10: k#0, count#1",
        "q = r11",
    ]


def test_queries_of_with_see_those_before_them_and_hide_the_catalog() -> None:
    assert plan("""
        WITH s AS (SELECT k FROM s WHERE ok), b (key) AS (SELECT upper(k) FROM s), unused AS (SELECT * FROM r)
        SELECT key FROM b
        """) == shape("""
        r0 := scan s
        r1 := filter r0: ok#5
        r2 := project r1: k#0
        r3 := project r2: upper(k#0)
        r4 := project r3: _#0
        q = r4
        """)


def test_subquery_with_a_window_of_its_own() -> None:
    assert plan(
        "SELECT count(*) AS n FROM (SELECT k FROM s WHERE ok) [RANGE 1 HOUR SLIDE 1 MINUTE]"
    ) == shape("""
        r0 := scan s
        r1 := filter r0: ok#5
        r2 := project r1: k#0
        r3 := window r2: range 1 h slide 1 min
        r4 := aggregate r3: count()
        r5 := project r4: count#0
        q = r5
        """)


def test_a_block_over_ticks_uses_them() -> None:
    assert plan("""
        SELECT max(n) AS most, window_start
        FROM (SELECT k, count(*) AS n FROM s [RANGE 2 HOURS SLIDE 1 HOUR] GROUP BY k)
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 2 h slide 1 h
        r2 := aggregate r1 by k#0: count()
        r3 := project r2: k#0, count#1
        r4 := aggregate r3: max(count#1)
        r5 := project r4: max#0, (window_end - 7200000000:INTERVAL)
        q = r5
        """)


MINUTES = "CREATE CONTINUOUS QUERY minutes AS SELECT k, sum(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k;"


def test_a_query_over_another_has_its_plan_in_place() -> None:
    assert plan("SELECT k, max(total) AS most FROM minutes m [RANGE 1 HOUR] GROUP BY k", MINUTES) == shape("""
        r0 := scan s
        r1 := window r0: range 1 min slide 1 min
        r2 := aggregate r1 by k#0: sum(v#1)
        r3 := project r2: k#0, sum#1
        r4 := window r3: range 1 h slide 1 h
        r5 := aggregate r4 by k#0: max(sum#1)
        r6 := project r5: k#0, max#1
        q = r6
        """)


def test_a_query_that_ticks_is_joined_at_its_ticks() -> None:
    text = plan(
        "SELECT m.k FROM minutes m, s [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE m.k = s.k AND s.v > total",
        MINUTES,
    )
    assert "join r3, r4: true\n" in text
    assert "r4 := window r0: range 5 min slide 1 min\n" in text


def test_queries_may_be_declared_in_any_order() -> None:
    first = query("SELECT k FROM later", "CREATE CONTINUOUS QUERY later AS SELECT k FROM s WHERE ok;")
    assert first.plan.inputs[0] == query("SELECT k FROM s WHERE ok").plan


def test_row_windows() -> None:
    assert plan("""
        SELECT k, max(v) AS m, window_start, window_end
        FROM s [PARTITION BY k ROWS 10 SLIDE 2] WHERE ok GROUP BY k
        """) == shape("""
        r0 := scan s
        r1 := window r0: rows 10 slide 2 partition k#0
        r2 := filter r1: ok#5
        r3 := aggregate r2 by k#0: max(v#1)
        r4 := project r3: k#0, max#1, window_start, window_end
        q = r4
        """)
