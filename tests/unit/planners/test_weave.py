"""`weave`: plans are whole, never worse than those of the paper's optimizers, and close to the best ones; no
plan costs less than the bounds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.weaving import PROBLEMS, all_node_costs, check_plan
from tests.workloads.windows import in_seconds

from plait.errors import UserError
from plait.planners.weaving import (
    OPTIMIZERS,
    OWN_OPTIMIZERS,
    Preference,
    WeavingPlan,
    WeavingProblem,
    plan_weave,
    weave,
)
from plait.planners.weaving.bounds import least_total_cost, max_cost_bound, total_cost_bound
from plait.planners.weaving.weave import max_cost_at

FEW_STEPS = 60

by_preference = pytest.mark.parametrize("preference", Preference)

SMALL_PROBLEMS = PROBLEMS.map(
    lambda problem: replace(problem, windows=problem.windows[:6], nodes=min(problem.nodes, 3))
)


@by_preference
@settings(max_examples=60, deadline=None)
@given(problem=PROBLEMS, seed=st.integers(0, 3), woven_first=st.booleans(), steps=st.sampled_from([0, 7, 60]))
def test_plans_are_whole_and_never_worse_than_the_thirteen(
    preference: Preference, problem: WeavingProblem, seed: int, woven_first: bool, steps: int
) -> None:
    problem = replace(problem, weave_equal_edges_first=woven_first)
    plan = plan_weave(problem, seed, preference, steps)
    check_plan(plan, problem)
    value, least = _compared(plan, problem, seed, preference)
    assert value <= least * (1 + 1e-9)


@by_preference
def test_many_queries_on_few_and_many_nodes(preference: Preference) -> None:
    random = Random(3)
    windows = tuple(
        in_seconds(random.randint(1, 40) * slide + random.choice([0, 0, 1]), slide)
        for slide in (random.randint(1, 30) for _ in range(120))
    )
    for nodes in (3, 12):
        problem = WeavingProblem(windows, nodes, 20.0)
        plan = plan_weave(problem, 1, preference, 200)
        check_plan(plan, problem)
        value, least = _compared(plan, problem, 1, preference)
        assert value < 0.99 * least
        again = plan_weave(WeavingProblem(windows, nodes, 20.0), 1, preference, 200)
        assert plan == again


@settings(max_examples=40, deadline=None)
@given(problem=SMALL_PROBLEMS, speeds=st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=3, max_size=3))
def test_bounds_are_not_above_the_best_plan_nor_this_above_what_is_found(
    problem: WeavingProblem, speeds: list[float]
) -> None:
    speeds = speeds[: problem.nodes]
    plans = list(all_node_costs(problem, speeds))
    least_total = min(map(sum, plans))
    least_max = min(_max_cost(costs, speeds) for costs in plans)
    total = plan_weave(problem, 0, Preference.TOTAL, FEW_STEPS, speeds)
    balance = plan_weave(problem, 0, Preference.BALANCE, FEW_STEPS, speeds)
    assert total_cost_bound(problem) <= least_total
    assert least_total_cost(problem) == pytest.approx(least_total, rel=1e-9)
    assert least_total <= total.total_cost * (1 + 1e-9)
    assert max_cost_bound(problem, speeds) <= least_max
    assert least_max <= max_cost_at(balance, speeds) * (1 + 1e-9)


def test_the_best_plan_of_small_problems_is_found_nearly_always() -> None:
    random = Random(5)
    found = {Preference.TOTAL: 0, Preference.BALANCE: 0}
    for seed in range(25):
        slides = [random.choice([2, 3, 4, 5, 6, 7, 9, 10]) for _ in range(7)]
        windows = tuple(in_seconds(random.randint(1, 20) * slide, slide) for slide in slides)
        problem = WeavingProblem(windows, 3, random.choice([1.0, 5.0, 20.0]))
        plans = list(all_node_costs(problem, [1.0] * 3))
        total = plan_weave(problem, seed, Preference.TOTAL, FEW_STEPS).total_cost
        balance = plan_weave(problem, seed, Preference.BALANCE, FEW_STEPS).max_cost
        found[Preference.TOTAL] += total <= min(map(sum, plans)) * (1 + 1e-9)
        found[Preference.BALANCE] += balance <= min(map(max, plans)) * (1 + 1e-9)
    assert found[Preference.TOTAL] == 25
    assert found[Preference.BALANCE] >= 22


@by_preference
def test_trivial_problems(preference: Preference) -> None:
    nothing = plan_weave(WeavingProblem((), 3, 10.0), 0, preference)
    assert (nothing.trees, nothing.node_costs) == ((), (0, 0, 0))
    for windows, nodes in (((6, 2),), 1), (((6, 2),), 4), (((6, 2), (9, 3)), 5), (((4, 2),) * 3, 1):
        problem = WeavingProblem(tuple(in_seconds(*window) for window in windows), nodes, 10.0)
        check_plan(plan_weave(problem, 0, preference), problem)


def test_one_query_split_from_its_like_where_nodes_are_idle() -> None:
    problem = WeavingProblem((in_seconds(40, 2),) * 10, 2, 1.0)
    assert len(plan_weave(problem, 0, Preference.TOTAL).trees) == 1
    balance = plan_weave(problem, 0, Preference.BALANCE)
    assert [len(tree.queries) for tree in balance.trees] == [5, 5]


def test_faster_nodes_get_more() -> None:
    problem = WeavingProblem((in_seconds(40, 2),) * 40, 2, 1.0)
    plan = plan_weave(problem, 0, Preference.BALANCE, speeds=[1.0, 3.0])
    assert [len(tree.queries) for tree in plan.trees] == [10, 30]
    total = plan_weave(problem, 0, Preference.TOTAL, speeds=[1.0, 3.0])
    assert [tree.node for tree in total.trees] == [1]


@pytest.mark.parametrize("speeds", [[1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, 1.0, 1.0]])
def test_speeds_that_mean_nothing(speeds: list[float]) -> None:
    with pytest.raises(UserError):
        plan_weave(WeavingProblem((in_seconds(4, 2),), 2, 1.0), 0, speeds=speeds)


def test_where_problems_are_large_not_all_plan_first(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(9)
    windows = tuple(in_seconds(random.randint(1, 60), random.randint(2, 12)) for _ in range(150))
    problem = WeavingProblem(windows, 4, 10.0)
    for most in (len(windows) * len(problem.edge_sets), 0):
        monkeypatch.setattr(weave, "MOST_FOR_ALL", 0)
        monkeypatch.setattr(weave, "MOST_FOR_SOME", most)
        plan = plan_weave(problem, 0, steps=40)
        check_plan(plan, problem)
        assert plan.max_cost < OPTIMIZERS["wg-tn"](problem, 0).max_cost


def test_the_least_total_of_many_edge_sets_is_not_computed() -> None:
    windows = tuple(in_seconds(slide, slide) for slide in range(2, 18))
    assert least_total_cost(WeavingProblem(windows, 2, 1.0)) is None
    assert least_total_cost(WeavingProblem((), 2, 1.0)) == 0


def test_names() -> None:
    assert list(OWN_OPTIMIZERS) == ["weave-total", "weave-balance", "weave-both"]


def _compared(
    plan: WeavingPlan, problem: WeavingProblem, seed: int, preference: Preference
) -> tuple[float, float]:
    """By the preferred measure: the plan, and the best of the thirteen."""
    others = [optimizer(problem, seed) for optimizer in OPTIMIZERS.values()]
    least_total = min(other.total_cost for other in others)
    least_max = min(other.max_cost for other in others)

    def value(of: WeavingPlan) -> float:
        match preference:
            case Preference.TOTAL:
                return of.total_cost
            case Preference.BALANCE:
                return of.max_cost
            case Preference.BOTH:
                return (of.total_cost / least_total + of.max_cost / least_max) / 2

    return value(plan), min(map(value, others))


def _max_cost(costs: list[float], speeds: list[float]) -> float:
    return max(cost / speed for cost, speed in zip(costs, speeds, strict=True))
