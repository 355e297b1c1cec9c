"""Who is best, and by how much the others are behind: what Table 3 and Fig. 2 of the paper are made of.

As in the paper, a result is the average over the runs of one configuration, and what is compared are these.
The **best** is the best of the paper's thirteen; others are compared with it too. Costs that are equal by
the rule for ties (`plait.planners.weaving.ties`) are equally good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, pstdev

from plait.benchmarks.aggregates_paper.paper import Standing
from plait.benchmarks.aggregates_paper.trials import Outcome, Trial
from plait.benchmarks.aggregates_paper.workload import Configuration
from plait.planners.weaving import OPTIMIZERS
from plait.planners.weaving.ties import is_less


class Measure(StrEnum):
    MAX_COST = "max_cost"
    TOTAL_COST = "total_cost"

    def of(self, outcome: Outcome) -> float:
        return outcome.max_cost if self is Measure.MAX_COST else outcome.total_cost


@dataclass(frozen=True)
class Quality:
    """Fig. 2: 0 is the average of the best plans, 1 of the worst; and the standard deviation."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Result:
    """Average costs of one configuration, by measure and contestant."""

    configuration: Configuration
    costs: dict[Measure, dict[str, float]]

    def best(self, measure: Measure) -> float:
        return min(self.costs[measure][name] for name in OPTIMIZERS)

    def worst(self, measure: Measure) -> float:
        return max(self.costs[measure][name] for name in OPTIMIZERS)

    def over_best(self, measure: Measure, name: str) -> float:
        return self.costs[measure][name] / self.best(measure)

    def is_best(self, measure: Measure, name: str) -> bool:
        return not is_less(self.best(measure), self.costs[measure][name])


def results(trials: Sequence[Trial]) -> list[Result]:
    runs: dict[Configuration, list[Trial]] = {}
    for trial in trials:
        runs.setdefault(trial.configuration, []).append(trial)
    return [
        Result(
            configuration,
            {
                measure: {
                    name: fmean(measure.of(run.outcomes[name]) for run in own) for name in own[0].outcomes
                }
                for measure in Measure
            },
        )
        for configuration, own in runs.items()
    ]


def standing(given: Sequence[Result], measure: Measure, name: str) -> Standing:
    """A row of Table 3."""
    behind = [result.over_best(measure, name) - 1 for result in given if not result.is_best(measure, name)]
    return Standing(1 - len(behind) / len(given), fmean(behind) if behind else 0.0)


def quality(given: Sequence[Result], measure: Measure, name: str) -> Quality:
    """A bar of Fig. 2."""
    best = fmean(result.best(measure) for result in given)
    scale = fmean(result.worst(measure) for result in given) - best
    apart = [(result.costs[measure][name] - result.best(measure)) / scale for result in given]
    return Quality(fmean(apart), pstdev(apart))


def mean_over_best(given: Sequence[Result], measure: Measure, name: str) -> float:
    return fmean(result.over_best(measure, name) for result in given)


def total_of_best_balance(given: Sequence[Result]) -> float:
    """What the plan of the best Max Cost costs in total, over the best Total Cost, on average."""
    ratios = []
    for result in given:
        costs = result.costs[Measure.MAX_COST]
        balanced = min(OPTIMIZERS, key=lambda name: costs[name])
        ratios.append(result.over_best(Measure.TOTAL_COST, balanced))
    return fmean(ratios)
