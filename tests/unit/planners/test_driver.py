"""The driver finds out a planner that is wrong, and names it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from plait import language
from plait.catalog import Site
from plait.cost.model import CostModel
from plait.deployment.deployment import Deployment
from plait.errors import ErrorReport, InfeasibleError, InternalError, UnsupportedError, UserError
from plait.expressions.nodes import TRUE
from plait.expressions.types import INT
from plait.plan.nodes import Field, Join, RowWindow, StreamScan, TableScan, Window
from plait.planners import driver
from plait.planners.base import (
    ALL_FEATURES,
    Planner,
    PlannerFeature,
    PlanningContext,
    PlanningResult,
    PlanningStatus,
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
    shares: ClassVar[bool] = True
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
    """Plans as if sites had no limits, then states those that they have."""

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        limited = workload.catalog.sites
        catalog = replace(workload.catalog, sites={key: Site(site.name) for key, site in limited.items()})
        result = super().plan(workload, replace(context, catalog=catalog))
        sites = tuple(replace(used, cores=limited[used.name].cores) for used in result.deployment.sites)
        return replace(result, deployment=replace(result.deployment, sites=sites))


class OnlyJoins(Wrong):
    features: ClassVar[frozenset[PlannerFeature]] = frozenset({PlannerFeature.WINDOW_JOINS})


class Broken(Wrong):
    def spoiled(self, deployment: Deployment) -> Deployment:
        nothing: dict[str, Deployment] = {}
        return nothing[deployment.streams[0].id]


class Careless(Wrong):
    """Returns something that is no deployment."""

    def spoiled(self, deployment: Deployment) -> Deployment:
        return replace(deployment, operators=(None, *deployment.operators))  # type: ignore[arg-type]


class Interrupted(Wrong):
    def spoiled(self, _: Deployment) -> Deployment:
        raise KeyboardInterrupt


class Boasting(Wrong):
    """Says more of a result than is true."""

    def __init__(self, status: PlanningStatus, bound: float | None) -> None:
        self._status, self._bound = status, bound

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        return replace(super().plan(workload, context), status=self._status, bound=self._bound)


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
        (Overloading(), "cores of tiny"),
        (Boasting(PlanningStatus.INFEASIBLE, None), "queries are admitted"),
        (Boasting(PlanningStatus.OPTIMAL, 1e9), "the bound 1e+09 is above"),
        (Boasting(PlanningStatus.OPTIMAL, float("nan")), "the bound nan is above"),
        (Broken(), "KeyError"),
        (Careless(), "AttributeError"),
    ],
)
def test_a_wrong_planner_is_named(planner: Planner, detail: str) -> None:
    site = "CREATE SITE tiny WITH (cores = 1e-6);" if isinstance(planner, Overloading) else ""
    with pytest.raises(InternalError, match="the planner `wrong`") as caught:
        run(planner, site + TEXT)
    assert detail in caught.value.detail


def test_the_cause_of_a_failure_is_kept() -> None:
    with pytest.raises(InternalError) as caught:
        run(Broken())
    assert isinstance(caught.value.__cause__, KeyError)


def test_every_error_of_a_report_names_the_planner() -> None:
    class Complaining(Wrong):
        def spoiled(self, _: Deployment) -> Deployment:
            raise ErrorReport([UserError("one", "first"), UserError("two", "second")])

    with pytest.raises(ErrorReport) as caught:
        run(Complaining())
    assert [error.detail for error in caught.value.errors] == ["planner: wrong"] * 2


def test_an_interrupted_planner_is_not_a_wrong_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted())


def test_a_join_of_row_windows_is_a_join_at_ticks() -> None:
    class NoTickJoins(Wrong):
        features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES - {PlannerFeature.TICK_JOINS}

    workload = language.load_text(TEXT + "CREATE TABLE t (k INT);")
    last_rows = Window(StreamScan("a", (Field("k", INT),)), RowWindow(5, 5))
    join = Join((last_rows, TableScan("t", (Field("k", INT),))), TRUE)
    query = replace(workload.query("q"), plan=join, columns=("k", "j"))
    context = PlanningContext(workload.catalog, declared(workload.catalog), CostModel(workload.catalog))
    with pytest.raises(UnsupportedError, match="joins of windows at ticks"):
        driver.run(NoTickJoins(), replace(workload, queries={"q": query}), context)


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
    assert isinstance(caught.value.__cause__, InfeasibleError)
    assert caught.value.__cause__.detail == ""  # the planner's own error is left as it was


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
