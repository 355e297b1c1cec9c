"""What one join for several queries takes in, keeps and makes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.sharing.joining import alike, joining

from plait.cost.sharing import JoinWork
from plait.sharing.demands import OneJoin, demands, work_of


def work(*filters: str, **how: Any) -> JoinWork:
    return work_of(demands(*joining(*filters, **how)))


ALL_A_SECOND = 1_000 * 1_000 * (10 + 10) / 100  # combinations of all rows


def test_of_one_query_it_is_what_the_query_wants() -> None:
    members, cost = joining("a.v = 1 AND b.w > 3")
    found = work_of(demands(members, cost))
    assert found.taken_rows_per_s == pytest.approx(10 + 1_000 / 3)
    assert found.kept_rows == pytest.approx(10 * 10 + 1_000 / 3 * 10)
    assert found.combinations_per_s == pytest.approx(cost.size(members[0].join).rate_rows_per_s)


def test_queries_that_want_the_same_add_nothing() -> None:
    assert work("a.v = 1 AND b.w = 2", "a.v = 1 AND b.w = 2") == work("a.v = 1 AND b.w = 2")


def test_rows_meet_that_nobody_wants_together() -> None:
    one = work("a.v = 1 AND b.w = 2").combinations_per_s
    pairs = work(*(f"a.v = {n} AND b.w = {n + 50}" for n in range(30)))
    assert pairs.combinations_per_s == pytest.approx(30 * 30 * one)
    assert pairs.taken_rows_per_s == pytest.approx(30 * 20)
    wanted = work(*(f"a.v = {n % 5} AND b.w = {n // 5 + 50}" for n in range(30)))
    assert wanted.combinations_per_s == pytest.approx(30 * one)
    assert wanted.taken_rows_per_s == pytest.approx((5 + 6) * 10)


def test_equal_columns_are_chosen_once() -> None:
    one = work("a.k = 1").combinations_per_s
    assert work(*(f"a.k = {n}" for n in range(30))).combinations_per_s == pytest.approx(30 * one)
    with_own = work(*(f"a.k = {n} AND b.w = {n + 50}" for n in range(30)))
    assert with_own.combinations_per_s == pytest.approx(30 * one / 100)
    bounds = [f"a.k BETWEEN {n} AND {n + 1}" for n in range(3)]
    assert work(*bounds).combinations_per_s == pytest.approx(3 * work(bounds[0]).combinations_per_s)


def test_a_third_stream_meets_all() -> None:
    """Of `a` and `b`, rows of one `k` meet; these meet what anybody wants of `c`."""
    streams = "".join(
        f"CREATE STREAM {name} (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 1000);"
        for name in "abc"
    )
    queries = [
        f"CREATE CONTINUOUS QUERY q{n} AS SELECT a.v FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], "
        f"c [RANGE 5 SECONDS] WHERE a.k = b.k AND a.v = c.v AND a.k = {n} AND c.k = {n + 50};"
        for n in range(6)
    ]
    one = work_of(demands(*alike(streams + queries[0])))
    several = work_of(demands(*alike(streams + "".join(queries))))
    assert several.combinations_per_s == pytest.approx(6 * 6 * one.combinations_per_s)


def test_rows_are_kept_for_the_greatest_range() -> None:
    found = work("a.v = 1", "a.v = 2", ranges_s=[10, 90])
    assert found.kept_rows == pytest.approx(2 * 10 * 90 + 1_000 * 10)
    assert found.combinations_per_s == pytest.approx(2 * 10 * 1_000 * (90 + 10) / 100)


def test_there_is_no_more_than_without_filters() -> None:
    found = work(*(f"a.v > {n} AND b.w < {n}" for n in range(100)))
    assert found.taken_rows_per_s == pytest.approx(2_000)
    assert found.kept_rows == pytest.approx(20_000)
    assert found.combinations_per_s == pytest.approx(ALL_A_SECOND)
    keys = work(*(f"a.k BETWEEN {n} AND {n + 5}" for n in range(1_000)))
    assert keys.combinations_per_s == pytest.approx(ALL_A_SECOND)


def test_a_trial_changes_nothing() -> None:
    wanted = demands(*joining("a.v = 1 AND b.w = 51", "a.v = 2 AND b.w = 52", "a.v = 1 AND b.w = 52"))
    join = OneJoin(wanted[0].streams)
    for demand in wanted[:2]:
        join.add(demand)
    before = join.work
    trial = OneJoin(wanted[0].streams, over=join)
    trial.add(wanted[2])
    assert join.work == before == work_of(wanted[:2])
    assert trial.work == work_of(wanted)
