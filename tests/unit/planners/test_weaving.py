"""The optimizers of the aggregates paper: the plans of their plainest form, whole, and at the cost they
say."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.weaving import PROBLEMS, REFERENCES, Reference, check_plan
from tests.workloads.windows import in_seconds

from plait.errors import UserError
from plait.plan.nodes import TickWindow
from plait.planners.weaving import (
    OPTIMIZERS,
    OTHER_READINGS,
    WeavingPlan,
    WeavingProblem,
    checked_window,
    weave_share,
)

ALL = {**OPTIMIZERS, **OTHER_READINGS}

by_name = pytest.mark.parametrize("name", ALL)


@by_name
@settings(max_examples=60, deadline=None)
@given(problem=PROBLEMS, seed=st.integers(0, 3))
def test_plans_are_those_of_the_plainest_form(name: str, problem: WeavingProblem, seed: int) -> None:
    scaled = [
        TickWindow(w.range_us // 10**6, w.slide_us // 10**6, w.offset_us // 10**6) for w in problem.windows
    ]
    rate = Fraction(problem.rate_rows_per_s) * 10**6
    reference = Reference(scaled, problem.nodes, rate, seed)
    expected = [{frozenset(tree) for tree in node} for node in REFERENCES[name](reference)]
    assert _trees_of_nodes(ALL[name](problem, seed)) == expected


@pytest.mark.parametrize("name", ["w-tn", "wg-tn"])
@settings(max_examples=40, deadline=None)
@given(problem=PROBLEMS)
def test_it_makes_no_difference_how_many_pairs_are_counted_at_once(
    name: str, problem: WeavingProblem
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weave_share, "COUNTED_AT_ONCE", 1)
        one_by_one = OPTIMIZERS[name](problem, 0)
    assert one_by_one == OPTIMIZERS[name](problem, 0)


@by_name
@settings(max_examples=20, deadline=None)
@given(problem=PROBLEMS, seed=st.integers(0, 3), woven_first=st.booleans())
def test_plans_are_whole_and_cost_what_they_say(
    name: str, problem: WeavingProblem, seed: int, woven_first: bool
) -> None:
    given_problem = WeavingProblem(problem.windows, problem.nodes, problem.rate_rows_per_s, woven_first)
    check_plan(ALL[name](given_problem, seed), given_problem)


@by_name
def test_plans_of_many_entangled_windows(name: str) -> None:
    random = Random(7)
    slides = [random.randint(2, 1_000) for _ in range(60)]
    windows = tuple(in_seconds(slide * random.randint(1, 9), slide) for slide in slides * 2)
    problem = WeavingProblem(windows, 7, 25.0)
    plan = ALL[name](problem, 1)
    check_plan(plan, problem)
    assert plan == ALL[name](WeavingProblem(windows, 7, 25.0), 1)


@by_name
def test_more_nodes_than_queries(name: str) -> None:
    problem = WeavingProblem((in_seconds(6, 2), in_seconds(9, 3)), 5, 10.0)
    plan = ALL[name](problem, 0)
    check_plan(plan, problem)
    assert len(plan.node_costs) == 5


@by_name
def test_no_queries(name: str) -> None:
    plan = ALL[name](WeavingProblem((), 3, 10.0), 0)
    assert (plan.trees, plan.node_costs, plan.total_cost, plan.max_cost) == ((), (0, 0, 0), 0, 0)


def test_the_thirteen_of_table_1() -> None:
    categories = {"g": ["rand", "rr", "tl"], "w": ["rand", "rr", "tl", "tn", "i"]}
    categories["wg"] = categories["w"]
    assert list(OPTIMIZERS) == [f"{name}-{kind}" for name, kinds in categories.items() for kind in kinds]


def test_weaving_stops_at_the_number_of_nodes_by_the_text_only() -> None:
    """Three queries that weave perfectly, and two nodes."""
    problem = WeavingProblem((in_seconds(4, 2),) * 3, 2, 10.0)
    assert [len(tree.queries) for tree in OPTIMIZERS["w-tn"](problem, 0).trees] == [3]
    assert [len(tree.queries) for tree in OTHER_READINGS["w-tn:text"](problem, 0).trees] == [2, 1]


def test_weaving_only_goes_on_without_gain_until_every_tree_has_a_node() -> None:
    problem = WeavingProblem(tuple(in_seconds(50 * slide, slide) for slide in (7, 11, 13, 17)), 2, 1.0)
    assert len(OPTIMIZERS["w-tn"](problem, 0).trees) == 2
    assert len(OPTIMIZERS["wg-tn"](problem, 0).trees) == 4


def test_queries_of_equal_edges_are_one_from_the_beginning_if_asked() -> None:
    windows = (in_seconds(4, 2), in_seconds(8, 2), in_seconds(3, 3), in_seconds(2, 4))
    apart = OPTIMIZERS["g-rr"](WeavingProblem(windows, 2, 1.0), 0)
    assert sorted(tree.queries for tree in apart.trees) == [(0,), (1,), (2,), (3,)]
    together = OPTIMIZERS["g-rr"](WeavingProblem(windows, 2, 1.0, weave_equal_edges_first=True), 0)
    assert sorted(tree.queries for tree in together.trees) == [(0, 1, 3), (2,)]


def test_seeds_choose_random_plans() -> None:
    problem = WeavingProblem(tuple(in_seconds(n, n) for n in range(1, 30)), 4, 10.0)
    for name in ("g-rand", "w-rand", "wg-rand"):
        assert len({OPTIMIZERS[name](problem, seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("nodes", [0, -1])
def test_there_is_at_least_one_node(nodes: int) -> None:
    with pytest.raises(UserError, match="nodes"):
        WeavingProblem((in_seconds(2, 1),), nodes, 1.0)


@pytest.mark.parametrize("rate", [float("nan"), -1.0, float("inf")])
def test_a_rate_is_a_number_that_is_not_negative(rate: float) -> None:
    with pytest.raises(UserError, match="rate"):
        WeavingProblem((in_seconds(2, 1),), 1, rate)


@pytest.mark.parametrize(("range_us", "slide_us"), [(0, 1), (-1, 1), (1, 0), (1, -2)])
def test_windows_are_positive(range_us: int, slide_us: int) -> None:
    with pytest.raises(UserError, match="window cannot have"):
        checked_window(range_us, slide_us)


def _trees_of_nodes(plan: WeavingPlan) -> list[set[frozenset[int]]]:
    nodes: list[set[frozenset[int]]] = [set() for _ in range(plan.nodes)]
    for tree in plan.trees:
        nodes[tree.node].add(frozenset(tree.queries))
    return nodes
