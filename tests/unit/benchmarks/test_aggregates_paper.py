"""The aggregates paper's experiments on a few small configurations: what is drawn, compared and written
down."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from plait.benchmarks.aggregates_paper import paper
from plait.benchmarks.aggregates_paper.benchmark import AggregatesPaperBenchmark
from plait.benchmarks.aggregates_paper.own import AMBITIONS, never_worse_fraction
from plait.benchmarks.aggregates_paper.standings import Measure, Result, quality, results, standing
from plait.benchmarks.aggregates_paper.trials import CONTESTANTS, trials
from plait.benchmarks.aggregates_paper.workload import Configuration, Slides, configurations, windows
from plait.errors import UserError
from plait.planners.weaving import OPTIMIZERS

SMALL = Configuration(20, 4, 10.0, 25, 0.0, 10, Slides.ANY)
FEW = (SMALL, replace(SMALL, nodes=16), replace(SMALL, slides=Slides.PRIME, rate_rows_per_s=100.0))


def test_table_2() -> None:
    chosen = list(configurations())
    assert len(set(chosen)) == 256
    assert Counter(each.nodes for each in chosen) == {4: 64, 8: 64, 16: 64, 32: 64}


def test_windows_are_those_of_the_configuration() -> None:
    drawn = windows(replace(SMALL, queries=500), seed=1)
    assert drawn == windows(replace(SMALL, queries=500, nodes=9, rate_rows_per_s=1.0), seed=1)
    assert drawn != windows(replace(SMALL, queries=500), seed=2)
    slides_s = {window.slide_us / 1e6 for window in drawn}
    assert slides_s == set(range(1, 26))
    assert {window.range_us / window.slide_us for window in drawn} == set(range(1, 11))
    assert all(window.offset_us == 0 for window in drawn)


def test_diverse_slides_are_prime() -> None:
    drawn = windows(replace(SMALL, queries=300, slides=Slides.PRIME), seed=1)
    assert {window.slide_us // 10**6 for window in drawn} == {2, 3, 5, 7, 11, 13, 17, 19, 23}


def test_skew_is_towards_long_slides() -> None:
    drawn = Counter(
        window.slide_us // 10**6 for window in windows(replace(SMALL, queries=4_000, skew=1.0), 1)
    )
    assert drawn[25] > 1.5 * drawn[24] > 1.5 * drawn[20] > drawn[1]


@pytest.mark.parametrize(
    "wrong", [{"longest_slide_s": 0}, {"greatest_overlap": 0}, {"queries": -1}, {"skew": float("nan")}]
)
def test_configurations_that_mean_nothing(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError):
        replace(SMALL, **wrong)  # type: ignore[arg-type]


def test_trials_are_the_same_in_several_processes() -> None:
    alone, together = (list(trials(FEW[:1], (1, 2), processes)) for processes in (1, 2))
    for one, other in zip(alone, together, strict=True):
        costs = [{name: each.total_cost for name, each in trial.outcomes.items()} for trial in (one, other)]
        assert costs[0] == costs[1]


def test_standings() -> None:
    """Two configurations, in one of which the better of two is best."""
    others = dict.fromkeys(OPTIMIZERS, 4.0)
    given = [
        Result(SMALL, {measure: {**others, "wg-i": 2.0, "wg-tn": 3.0} for measure in Measure}),
        Result(FEW[1], {measure: {**others, "wg-i": 1.0 + 1e-12, "wg-tn": 1.0} for measure in Measure}),
    ]
    assert standing(given, Measure.MAX_COST, "wg-i") == paper.Standing(1.0, 0.0)
    assert standing(given, Measure.MAX_COST, "wg-tn") == paper.Standing(0.5, 0.5)
    assert quality(given, Measure.TOTAL_COST, "g-tl").mean == pytest.approx(1.0)
    assert quality(given, Measure.TOTAL_COST, "wg-tn").mean == pytest.approx(0.5 / 2.5)


def test_results_are_averages_of_runs() -> None:
    done = list(trials(FEW[:1], (1, 2), processes=1))
    (result,) = results(done)
    costs = [trial.outcomes["g-tl"].max_cost for trial in done]
    assert result.costs[Measure.MAX_COST]["g-tl"] == pytest.approx(sum(costs) / 2)


def test_plans_that_are_worse_are_counted() -> None:
    (trial,) = trials(FEW[:1], (1,), processes=1)
    assert never_worse_fraction([trial]) == 1.0
    worse = replace(trial.outcomes["weave-total"], total_cost=1e9)
    outcomes = {**trial.outcomes, "weave-total": worse}
    assert never_worse_fraction([replace(trial, outcomes=outcomes)]) == pytest.approx(2 / 3)


def test_the_document_has_figures_beside_the_papers_and_claims() -> None:
    steps: list[str] = []
    report = AggregatesPaperBenchmark(FEW, processes=1).run(quick=True, observer=steps.append)
    document = report.to_json()
    assert document == json.loads(json.dumps(document))
    assert steps[0] == f"{len(CONTESTANTS)} optimizers, 0 of 3 workloads planned"
    figures = document["figures"]
    assert figures["configurations"] == figures["workloads"] == 3
    assert figures["table_3_max_cost_wg_i_best_share_of_paper"] == 0.8
    assert 0 <= figures["table_3_max_cost_wg_i_best_share"] <= 1
    assert figures["table_4_w_tl_plan_seconds_mean_of_paper"] == 12.6
    assert {f"total_cost_{name.replace('-', '_')}_over_best13_mean" for name in OPTIMIZERS} <= figures.keys()
    assert {ambition.key for ambition in AMBITIONS} <= figures.keys()
    assert figures["weave_never_worse_fraction"] == 1.0
    assert figures["weave_total_total_over_bound_mean"] >= 1.0
    assert figures["weave_balance_max_over_bound_mean"] >= 1.0
    assert set(report.charts) == {"max-cost", "total-cost", "nodes"}
    assert len(document["claims"]) == 12
    assert all(claim["holds"] or claim["why_not"] for claim in document["claims"])
