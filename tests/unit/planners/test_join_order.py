from __future__ import annotations

from itertools import combinations, permutations
from time import process_time

import pytest

from plait import language
from plait.cost.model import CostModel
from plait.expressions.nodes import TRUE, Call, Column, Expression
from plait.expressions.types import INT
from plait.plan.nodes import Field, Join, Node, RangeWindow, StreamScan, TableScan, Window
from plait.plan.signature import signature
from plait.planners import driver
from plait.planners.join_order import longest_existing, smallest_first
from plait.space import OperatorKind, Space, restricted

STREAMS = "\n".join(
    f"CREATE STREAM {name} (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)"
    f" WITH (rate = {rate}, distinct.k = 100);"
    for name, rate in (("a", 1), ("b", 10), ("c", 100), ("d", 1000))
)
CATALOG = language.load_text(
    STREAMS + "CREATE TABLE t (k INT) WITH (rows = 2); CREATE TABLE u (k INT);"
).catalog
COST = CostModel(CATALOG)
SPACE = Space()


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


def test_a_sub_join_is_the_same_wherever_it_comes_from() -> None:
    in_chain = SPACE.subjoin(CHAIN, (1, 2))
    elsewhere = SPACE.subjoin(Join((C, D, B), both(equal(0, 2), equal(1, 2))), (0, 2))
    assert signature(in_chain) == signature(elsewhere)


def test_a_step_says_which_inputs_its_inputs_have_joined() -> None:
    step = SPACE.join_step(CHAIN, (0, 1), (2,))
    assert step.kind is OperatorKind.WINDOW_JOIN
    assert step.output == SPACE.subjoin(CHAIN, (0, 1, 2))
    assert isinstance(step.output, Join)
    for covered, read in zip(step.covers, step.inputs, strict=True):
        assert SPACE.subjoin(step.output, covered) == read.as_read


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


def test_a_join_of_many_streams_is_ordered_at_once() -> None:
    inputs = tuple(Window(A.inputs[0], RangeWindow(seconds)) for seconds in range(1, 121))
    join = Join(inputs, both(*(equal(0, index) for index in range(1, len(inputs)))))
    started = process_time()
    assert smallest_first(join, COST) == tuple(range(len(inputs)))
    assert process_time() - started < 2  # a tenth of it, rather; judging sub-joins as plans took a minute


def test_candidates_are_judged_by_the_size_of_their_sub_join() -> None:
    def greedy(join: Join) -> tuple[int, ...]:
        rates = {
            order: COST.size(restricted(join, tuple(sorted(order)))).rate_rows_per_s
            for length in (2, 3, 4)
            for order in permutations(range(4), length)
        }
        chosen: tuple[int, ...] = min(combinations(range(4), 2), key=rates.__getitem__)
        for length in (3, 4):
            longer = (o for o in rates if len(o) == length and o[: length - 1] == chosen)
            chosen = min(longer, key=rates.__getitem__)
        return chosen

    for inputs in permutations((A, B, C, D)):
        join = Join(inputs, both(equal(0, 1), equal(1, 2), equal(2, 3)))
        assert smallest_first(join, COST) == greedy(join)
