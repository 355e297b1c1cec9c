"""Joins: commas, ON, USING, outer joins, tables, and whose windows say which rows meet."""

from __future__ import annotations

import pytest
from tests.unit.language.bound import plan, query, shape

from plait.plan.nodes import Flowing, Ticking, Windowed

MINUTE_US = 60_000_000


def test_commas_and_inner_joins_are_one_join() -> None:
    assert plan("""
        SELECT a.v, b.w, name FROM s a [RANGE 1 MINUTE] JOIN r b [RANGE 2 MINUTES] ON a.k = b.k AND v < w, t
        WHERE t.k = a.k
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 1 min
        r2 := scan r
        r3 := window r2: range 2 min
        r4 := table t
        r5 := join r1, r3, r4: ((k#0 = k#7) and (v#1 < w#8))
        r6 := filter r5: (k#10 = k#0)
        r7 := project r6: v#1, w#8, name#11
        q = r7
        """)


def test_outer_joins_nest_from_left_to_right() -> None:
    assert plan("""
        SELECT s.k FROM s [RANGE 1 MINUTE] LEFT JOIN r [RANGE 2 MINUTES] ON s.k = r.k AND w > v
        RIGHT JOIN r z [RANGE 3 MINUTES] ON z.k = r.k JOIN t ON t.k = z.k
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 1 min
        r2 := scan r
        r3 := window r2: range 2 min
        r4 := left join r1, r3: ((k#0 = k#7) and (w#8 > v#1))
        r5 := window r2: range 3 min
        r6 := right join r4, r5: (k#10 = k#7)
        r7 := table t
        r8 := join r6, r7: (k#13 = k#10)
        r9 := project r8: k#0
        q = r9
        """)


def test_a_self_join_reads_one_window_twice() -> None:
    select = "SELECT a.k, b.k FROM s a [RANGE 1 MINUTE] JOIN s b [RANGE 1 MINUTE] ON a.v < b.v"
    assert plan(select) == shape("""
        r0 := scan s
        r1 := window r0: range 1 min
        r2 := join r1, r1: (v#1 < v#8)
        r3 := project r2: k#0, k#7
        q = r3
        """)


@pytest.mark.parametrize(
    ("join", "kind", "merged"),
    [
        ("JOIN", "join", "k#0"),
        ("LEFT JOIN", "left join", "k#0"),
        ("RIGHT JOIN", "right join", "k#7"),
        ("FULL JOIN", "full join", "coalesce(k#0, k#7)"),
    ],
)
def test_the_column_of_using_is_one_column(join: str, kind: str, merged: str) -> None:
    lines = plan(
        f"SELECT k, w, s.k AS left_k FROM s [RANGE 1 MINUTE] {join} r [RANGE 1 MINUTE] USING (k)"
    ).splitlines()
    assert lines[4] == f"r4 := {kind} r1, r3: (k#0 = k#7)"
    assert lines[5] == f"r5 := project r4: {merged}, w#8, k#0"


def test_a_star_has_the_columns_of_using_once_and_first() -> None:
    assert query("SELECT * FROM r JOIN t USING (k) JOIN u USING (K)").columns == (
        "K",
        "w",
        "at",
        "name",
        "city",
        "size",
    )


def test_rows_of_a_stream_join_tables_without_a_window() -> None:
    bound = query("SELECT s.k, name, size FROM s LEFT JOIN t ON t.k = s.k, u WHERE u.k = s.k")
    assert bound.plan.timing == Flowing()


def test_a_table_may_be_filtered_in_a_subquery_first() -> None:
    select = "SELECT v, n FROM s JOIN (SELECT k, name AS n FROM t WHERE city = 'x') z USING (k)"
    assert plan(select) == shape("""
        r0 := scan s
        r1 := table t
        r2 := filter r1: (city#2 = 'x')
        r3 := project r2: k#0, name#1
        r4 := join r0, r3: (k#0 = k#7)
        r5 := project r4: v#1, name#8
        q = r5
        """)


def test_a_subquery_over_windows_joins_by_these() -> None:
    pair = "(SELECT s.k FROM s [RANGE 1 MINUTE], r [RANGE 2 MINUTES] WHERE s.k = r.k)"
    bound = query(f"SELECT x.k FROM {pair} x, r [RANGE 3 MINUTES] WHERE x.k = r.k")
    assert bound.plan.timing == Windowed((MINUTE_US, 2 * MINUTE_US, 3 * MINUTE_US))


def test_windows_of_a_joined_aggregate_tick_together() -> None:
    assert plan("""
        SELECT name, count(*) AS n
        FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] FULL JOIN r [RANGE 1 MINUTE] USING (k) JOIN t USING (k)
        GROUP BY name
        """) == shape("""
        r0 := scan s
        r1 := window r0: range 5 min slide 1 min
        r2 := scan r
        r3 := window r2: range 1 min slide 1 min
        r4 := full join r1, r3: (k#0 = k#7)
        r5 := table t
        r6 := join r4, r5: (coalesce(k#0, k#7) = k#10)
        r7 := aggregate r6 by name#11: count()
        r8 := project r7: name#0, count#1
        q = r8
        """)


def test_rows_joined_with_aggregates_tick() -> None:
    most = "(SELECT k, max(v) AS m FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k)"
    bound = query(
        f"SELECT s.k, s.v FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] JOIN {most} x ON s.k = x.k AND s.v = x.m"
    )
    assert bound.plan.timing == Ticking(MINUTE_US, 0)
