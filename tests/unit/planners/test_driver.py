"""The driver finds out a planner that is wrong, and names it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from plait import language
from plait.cost.model import CostModel
from plait.deployment.deployment import Deployment
from plait.errors import InfeasibleError, InternalError, UnsupportedError, UserError
from plait.planners import driver
from plait.planners.base import (
    ALL_FEATURES,
    Planner,
    PlannerFeature,
    PlanningContext,
    PlanningResult,
)
from plait.planners.plait import PlaitPlanner
from plait.statistics import Basis, Estimate, Statistics, declared
from plait.workload import Workload

TEXT = """
CREATE STREAM a (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (distinct.v = 10);
CREATE CONTINUOUS QUERY q AS SELECT k FROM a WHERE v = 3;
"""


class Wrong:
    """Plans as `plait` does, then spoils the result."""

    name: ClassVar[str] = "wrong"
    features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        result = PlaitPlanner().plan(workload, context)
        return replace(result, deployment=self.spoiled(result.deployment))

    def spoiled(self, deployment: Deployment) -> Deployment:
        return deployment


class CheaperThanTrue(Wrong):
    def spoiled(self, deployment: Deployment) -> Deployment:
        return replace(deployment, cost=replace(deployment.cost, cores=0.0))


class Forgetful(Wrong):
    def spoiled(self, deployment: Deployment) -> Deployment:
        return replace(deployment, queries=())


class Overloading(Wrong):
    def spoiled(self, deployment: Deployment) -> Deployment:
        (site,) = deployment.sites
        return replace(deployment, sites=(replace(site, cores=site.cores_used / 2),))


class OnlyJoins(Wrong):
    features: ClassVar[frozenset[PlannerFeature]] = frozenset({PlannerFeature.WINDOW_JOINS})


class GivingUp(Wrong):
    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        raise InfeasibleError("cores", f"{len(workload.queries)} queries are too many for {context.seed}")


def run(planner: Planner, text: str = TEXT) -> driver.PlanReport:
    workload = language.load_text(text)
    statistics = declared(workload.catalog)
    context = PlanningContext(workload.catalog, statistics, CostModel(workload.catalog, statistics))
    return driver.run(planner, driver.canonical_workload(workload), context)


@pytest.mark.parametrize(
    ("planner", "detail"),
    [
        (CheaperThanTrue(), "cost/cores is stated as 0"),
        (Forgetful(), "not in both"),
        (Overloading(), "cores of local"),
    ],
)
def test_a_wrong_planner_is_named(planner: Planner, detail: str) -> None:
    with pytest.raises(InternalError, match="the planner `wrong`") as caught:
        run(planner)
    assert detail in caught.value.detail


def test_a_planner_only_gets_what_it_can_plan() -> None:
    aggregate = TEXT + "CREATE CONTINUOUS QUERY n AS SELECT count(*) AS n FROM a [RANGE 1 MINUTE];"
    with pytest.raises(
        UnsupportedError, match=r"`wrong` cannot plan window aggregates \(query `n`\)"
    ) as caught:
        run(OnlyJoins(), aggregate)
    assert "`plait`" in caught.value.hint


def test_an_error_names_its_planner() -> None:
    with pytest.raises(InfeasibleError) as caught:
        run(GivingUp())
    assert "planner: wrong" in caught.value.detail


def test_an_unknown_planner_is_answered_with_the_closest() -> None:
    with pytest.raises(UserError) as caught:
        driver.plan(language.load_text(TEXT), "indepndent")
    assert "`independent`" in caught.value.hint


def test_a_plan_that_rests_on_assumptions_says_so() -> None:
    (notice,) = driver.plan(language.load_text(TEXT)).notices
    assert notice.code == "assumed-statistics"
    assert "rate = 100" in notice.message
    assert "distinct" not in notice.message
    known = Statistics({("a", "rate"): Estimate(5.0, Basis.SAMPLED)})
    report = driver.plan(language.load_text(TEXT), statistics=known)
    assert report.notices == ()
    assert {stream.basis for stream in report.deployment.streams} == {"sampled"}


def test_progress_is_reported() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.steps: list[tuple[int, int]] = []

        def planned(self, done: int, total: int) -> None:
            self.steps.append((done, total))

    recorder = Recorder()
    driver.plan(language.load_text(TEXT), observer=recorder)
    assert recorder.steps == [(1, 1)]
