"""The driver of the rules, and the bounds of what they do."""

from __future__ import annotations

import sys

import pytest

import plait.rewrite
from plait.errors import InternalError
from plait.language import load_text
from plait.plan.format import parse_plans
from plait.plan.nodes import Filter, Node, Project, StreamScan, walk_plan
from plait.rewrite import RULES, Merger, canonicalise
from plait.rewrite.building import MAX_EXPRESSION_SIZE

STREAM = "CREATE STREAM s (x INT, y INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND);"
PLAN = parse_plans("r0 := scan s [x INT, y INT]\nr1 := filter r0: (x#0 = 1)\nq = r1")["q"]


def planned(query: str) -> Node:
    return load_text(f"{STREAM} CREATE CONTINUOUS QUERY q AS {query};").query("q").plan


def drop_filters(plan: Node) -> Node:
    return Project(plan.inputs[0], ()) if isinstance(plan, Filter) else plan


def add_filters(plan: Node) -> Node:
    return Filter(plan, PLAN.predicate) if isinstance(PLAN, Filter) else plan


def test_a_wrong_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plait.rewrite, "RULES", (*RULES, drop_filters))
    with pytest.raises(InternalError, match="`drop_filters` changed the types"):
        canonicalise(PLAN)


def test_a_rule_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plait.rewrite, "RULES", (add_filters,))
    with pytest.raises(InternalError, match="still changes after"):
        canonicalise(PLAN)


def test_plans_of_one_merger_share_their_nodes() -> None:
    merger = Merger()
    queries = [
        "SELECT x, count(*) AS n FROM s [RANGE 1 MINUTE] WHERE y = 1 GROUP BY x",
        "SELECT max(z.y) AS m FROM (SELECT y, at FROM s WHERE 1 = y) AS z [RANGE 1 MINUTE]",
        "SELECT t.x, count(1) AS k FROM s AS t [RANGE 60 SECONDS] WHERE t.y = 1 GROUP BY t.x",
    ]
    first, other, again = (canonicalise(planned(query), merger) for query in queries)
    assert first is again
    assert not {id(node) for node in walk_plan(first)} & {id(node) for node in walk_plan(other)}


def test_columns_are_read_only_as_far_as_used() -> None:
    plan = canonicalise(planned("SELECT count(*) AS n FROM s [RANGE 1 MINUTE]"))
    assert StreamScan("s", ()) in set(walk_plan(plan))


def test_doubling_subqueries_do_not_explode() -> None:
    """Sixteen doublings make 65,536 parts if all are put into one expression."""
    query = "s"
    for level in range(16):
        query = f"(SELECT x + x AS x, y FROM {query} WHERE x > {level}) AS s{level}"
    plan = canonicalise(planned(f"SELECT x FROM {query}"))
    assert canonicalise(plan) == plan
    assert all(text.count("+") < MAX_EXPRESSION_SIZE for text in map(str, walk_plan(plan)))


def test_a_long_conjunction_is_rewritten_in_one_go() -> None:
    terms = " AND ".join(f"(x <> {number} OR y = {number})" for number in range(300))
    plan = canonicalise(planned(f"SELECT x FROM s WHERE {terms}"))
    assert canonicalise(plan) == plan


def test_many_equal_inputs_are_ordered_without_trying_all_orders() -> None:
    streams = ", ".join(f"s [RANGE 1 MINUTE] AS s{number}" for number in range(12))
    plan = canonicalise(planned(f"SELECT s0.x FROM {streams} WHERE s0.x = s11.x"))
    assert canonicalise(plan) == plan


def numbers(first: int, last: int) -> str:
    return ", ".join(map(str, range(first, last)))


def sums(first: int, last: int, stream: str = "s", other: str = "s") -> str:
    return " AND ".join(f"{stream}.x + {number} > {other}.y" for number in range(first, last))


def chain(streams: int) -> str:
    inputs = ", ".join(f"s [RANGE 1 MINUTE] AS s{number}" for number in range(streams))
    terms = " AND ".join(f"s{number}.x = s{number + 1}.y" for number in range(streams - 1))
    return f"SELECT s0.x FROM {inputs} WHERE {terms}"


TOP = "SELECT x, y FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE y = 5 AND {} ORDER BY x LIMIT 3"
IN_9000 = f"x IN ({numbers(0, 9000)})"
PAIRS = "s [RANGE 1 MINUTE] AS a, s [RANGE 1 MINUTE] AS b"
LARGE = {
    "allowed less excluded": f"SELECT x FROM s WHERE {IN_9000} AND x NOT IN ({numbers(0, 500)})",
    "allowed twice": f"SELECT x FROM s WHERE x IN ({numbers(0, 4500)}) AND x IN ({numbers(9, 4600)})",
    "bounds": f"SELECT x FROM s WHERE {' AND '.join(f'x > {number}' for number in range(2500))}",
    "absorption": f"SELECT x FROM s WHERE ({sums(0, 900)}) OR ({sums(1, 901)})",
    "coalesce": f"SELECT coalesce({', '.join(f'x + {number}' for number in range(2000))}) AS c FROM s",
    "branches": f"SELECT CASE {' '.join(f'WHEN x = {n} THEN y + {n}' for n in range(1000))} END AS c FROM s",
    "columns": f"SELECT {', '.join(f'x + {number} AS c{number}' for number in range(500))} FROM s",
    "facts below": f"SELECT x FROM ({TOP.format(sums(0, 500))}) AS s WHERE x > 5 AND {sums(500, 1000)}",
    "facts of inputs": f"SELECT a.x FROM {PAIRS} WHERE a.x = b.x AND a.y = b.y AND {sums(0, 500, 'a', 'b')}",
    "a join of 64 equal inputs": chain(64),
}


@pytest.mark.parametrize("query", LARGE.values(), ids=LARGE.keys())
def test_large_queries_take_no_quadratic_time(query: str) -> None:
    plan = planned(query)
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        canonicalise(plan)
    finally:
        sys.setprofile(None)
    assert calls < 10_000_000  # about a second of work, whatever the machine does beside
