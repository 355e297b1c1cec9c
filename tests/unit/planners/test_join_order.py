from __future__ import annotations

import pytest

from plait import language
from plait.cost.model import CostModel
from plait.expressions.nodes import TRUE, Call, Column, Expression
from plait.expressions.types import INT
from plait.plan.nodes import Field, Join, Node, RangeWindow, StreamScan, TableScan, Window
from plait.plan.signature import signature
from plait.planners import driver
from plait.planners.join_order import longest_existing, smallest_first
from plait.space import OperatorKind, is_connected, join_step, restricted, subjoin

STREAMS = "\n".join(
    f"CREATE STREAM {name} (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)"
    f" WITH (rate = {rate}, distinct.k = 100);"
    for name, rate in (("a", 1), ("b", 10), ("c", 100), ("d", 1000))
)
CATALOG = language.load_text(
    STREAMS + "CREATE TABLE t (k INT) WITH (rows = 2); CREATE TABLE u (k INT);"
).catalog
COST = CostModel(CATALOG)


def source(name: str) -> Node:
    return Window(StreamScan(name, (Field("k", INT),)), RangeWindow(10_000_000))


def table(name: str) -> Node:
    return TableScan(name, (Field("k", INT),))


def equal(left: int, right: int) -> Expression:
    return Call("eq", (Column(left, INT), Column(right, INT)))


def both(*terms: Expression) -> Expression:
    return Call("and", terms)


A, B, C, D = map(source, "abcd")
CHAIN = Join((A, B, C, D), both(equal(0, 1), equal(1, 2), Call("lt", (Column(2, INT), Column(3, INT)))))


def test_what_follows_from_equations_holds_for_sub_joins() -> None:
    assert restricted(CHAIN, (0, 2)).predicate == equal(0, 1)
    assert restricted(CHAIN, (0, 3)).predicate == TRUE
    assert is_connected(restricted(CHAIN, (0, 2)))
    assert not is_connected(restricted(CHAIN, (0, 3)))


def test_a_sub_join_is_the_same_wherever_it_comes_from() -> None:
    in_chain = subjoin(CHAIN, (1, 2))
    elsewhere = subjoin(Join((C, D, B), both(equal(0, 2), equal(1, 2))), (0, 2))
    assert signature(in_chain) == signature(elsewhere)


def test_a_step_says_which_inputs_its_inputs_have_joined() -> None:
    step = join_step(CHAIN, (0, 1), (2,))
    assert step.kind is OperatorKind.WINDOW_JOIN
    assert step.output == subjoin(CHAIN, (0, 1, 2))
    assert isinstance(step.output, Join)
    for covered, read in zip(step.covers, step.inputs, strict=True):
        assert subjoin(step.output, covered) == read.as_read


def test_small_results_come_first_and_cross_products_last() -> None:
    assert smallest_first(CHAIN, COST) == (0, 1, 2, 3)
    # d joins with c alone, so that it comes after c although b would give less together with it.
    apart = Join((A, D, B, C), both(equal(0, 2), equal(1, 3)))
    order = smallest_first(apart, COST)
    assert set(order[:2]) == {0, 2}
    assert sorted(order) == [0, 1, 2, 3]


def test_two_tables_are_never_joined_before_a_stream() -> None:
    join = Join((table("t"), table("u"), A), both(equal(0, 1), equal(1, 2)))
    assert 2 in smallest_first(join, COST)[:2]


@pytest.mark.parametrize(
    ("existing", "longest"),
    [
        ([], ()),
        ([(2, 3)], (2, 3)),
        ([(0, 1), (1, 2), (1, 2, 3)], (1, 2, 3)),
        ([(0, 1, 2)], ()),  # not reachable input by input
    ],
)
def test_the_longest_existing_sub_join(existing: list[tuple[int, ...]], longest: tuple[int, ...]) -> None:
    assert longest_existing(CHAIN, lambda members: members in existing) == longest


QUERIES = {
    "ab": "SELECT a.k FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k",
    "bc": "SELECT b.k FROM b [RANGE 10 SECONDS], c [RANGE 10 SECONDS] WHERE b.k = c.k",
    "abc": "SELECT a.k FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS]"
    " WHERE a.k = b.k AND b.k = c.k",
}


def joins_planned(*names: str) -> int:
    text = STREAMS + "".join(f"CREATE CONTINUOUS QUERY {name} AS {QUERIES[name]};" for name in names)
    deployment = driver.plan(language.load_text(text)).deployment
    return sum(operator.kind is OperatorKind.WINDOW_JOIN for operator in deployment.operators)


def test_a_join_grows_out_of_one_that_exists() -> None:
    assert joins_planned("abc") == 2
    assert joins_planned("ab", "abc") == 2


def test_an_existing_sub_join_is_left_alone_where_it_would_cost_more() -> None:
    # b ⋈ c gives a hundred times the rows of a ⋈ b: to start from it costs more than to join a and b anew.
    assert joins_planned("bc", "abc") == 3


def test_a_stream_joined_with_itself_keeps_its_roles() -> None:
    text = STREAMS + (
        "CREATE CONTINUOUS QUERY pairs AS SELECT x.k, y.at, z.k AS other "
        "FROM a [RANGE 10 SECONDS] x, a [RANGE 10 SECONDS] y, b [RANGE 10 SECONDS] z, c [RANGE 10 SECONDS] w "
        "WHERE x.k < y.k AND y.k = z.k AND w.k = x.k;"
    )
    # The driver compares every operator's output with what it computes from its inputs.
    deployment = driver.plan(language.load_text(text)).deployment
    assert sum(operator.kind is OperatorKind.WINDOW_JOIN for operator in deployment.operators) == 3
