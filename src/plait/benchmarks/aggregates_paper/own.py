"""What `weave`, our own optimizer, reaches beside the best of the paper's thirteen, and how far it is from
what any plan can reach.

Ratios are averages over configurations, as everywhere here. Whether a plan is worse than the best of the
thirteen, in the measure that is preferred, is asked of every workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from plait.benchmarks.aggregates_paper.standings import Measure, Result, mean_over_best
from plait.benchmarks.aggregates_paper.trials import Outcome, Trial
from plait.benchmarks.aggregates_paper.workload import problem
from plait.benchmarks.report import Claim, Report
from plait.planners.weaving import OPTIMIZERS, Preference
from plait.planners.weaving.bounds import least_total_cost, max_cost_bound, total_cost_bound
from plait.planners.weaving.ties import is_less

MOST_SECONDS = 1.0

LEAST_TOTAL = "weave_least_total_over_best13_mean"


@dataclass(frozen=True)
class Ambition:
    """A ratio to the best of the thirteen, on average."""

    preference: Preference
    measure: Measure
    most: float

    @property
    def key(self) -> str:
        return f"weave_{self.preference}_{self.measure.removesuffix('_cost')}_over_best13_mean"

    def why_not(self, report: Report) -> str:
        least = report.figures.get(LEAST_TOTAL, 0.0)
        if self.measure is Measure.TOTAL_COST and isinstance(least, float) and least > self.most:
            return f"where the least that there is is known, it is {least} on average"
        return "its plans are not that good"


AMBITIONS = (
    Ambition(Preference.BALANCE, Measure.MAX_COST, 0.90),
    Ambition(Preference.TOTAL, Measure.TOTAL_COST, 0.985),
    Ambition(Preference.BOTH, Measure.MAX_COST, 0.90),
    Ambition(Preference.BOTH, Measure.TOTAL_COST, 1.12),
)


def add_own(done: Sequence[Trial], compared: Sequence[Result], report: Report) -> None:
    _add_gaps(done, report)
    for ambition in AMBITIONS:
        ratio = mean_over_best(compared, ambition.measure, f"weave-{ambition.preference}")
        report.figures[ambition.key] = round(ratio, 4)
        claim = (
            f"weave that prefers {ambition.preference}: {ambition.measure.replace('_', ' ')} over the best"
            " of the thirteen, on average"
        )
        _claim(
            report, claim, ambition.most, round(ratio, 4), ratio <= ambition.most, ambition.why_not(report)
        )
    share = never_worse_fraction(done)
    report.figures["weave_never_worse_fraction"] = round(share, 4)
    _claim(
        report,
        "weave is never worse than the best of the thirteen in what it prefers: share of its plans",
        1.0,
        round(share, 4),
        share == 1.0,
        "some plans are worse",
    )
    seconds = [trial.outcomes[f"weave-{preference}"].seconds for trial in done for preference in Preference]
    within = sum(each <= MOST_SECONDS for each in seconds) / len(seconds)
    report.figures["weave_plan_seconds_mean"] = round(fmean(seconds), 3)
    _claim(
        report,
        "weave makes a plan within 1 s, while all cores plan: share of plans",
        0.95,
        round(within, 4),
        within >= 0.95,
        "was the machine busy?",
    )


def never_worse_fraction(done: Sequence[Trial]) -> float:
    """Of the plans of all preferences."""
    good = [
        not is_less(least, value)
        for trial in done
        for preference in Preference
        for value, least in [_preferred(trial, preference)]
    ]
    return sum(good) / len(good)


def _preferred(trial: Trial, preference: Preference) -> tuple[float, float]:
    """What is preferred, of weave and the least of the thirteen."""
    others = [trial.outcomes[name] for name in OPTIMIZERS]
    least_total = min(other.total_cost for other in others)
    least_max = min(other.max_cost for other in others)

    def value(outcome: Outcome) -> float:
        match preference:
            case Preference.TOTAL:
                return outcome.total_cost
            case Preference.BALANCE:
                return outcome.max_cost
            case Preference.BOTH:
                return (outcome.total_cost / least_total + outcome.max_cost / least_max) / 2

    return value(trial.outcomes[f"weave-{preference}"]), min(map(value, others))


def _add_gaps(done: Sequence[Trial], report: Report) -> None:
    """What plans cost over what none can cost less than; and where it is known, over the least there is."""
    over_bound: dict[Preference, list[float]] = {Preference.TOTAL: [], Preference.BALANCE: []}
    over_least, least_over_best = [], []
    known: dict[tuple[object, ...], float | None] = {}
    for trial in done:
        given = problem(trial.configuration, trial.seed)
        total = trial.outcomes["weave-total"].total_cost
        over_bound[Preference.TOTAL].append(total / total_cost_bound(given))
        balance = trial.outcomes["weave-balance"].max_cost
        over_bound[Preference.BALANCE].append(balance / max_cost_bound(given))
        # It does not hang on the number of nodes.
        key = given.windows, given.rate_rows_per_s
        if key not in known:
            known[key] = least_total_cost(given)
        least = known[key]
        if least is not None:
            over_least.append(total / least)
            least_over_best.append(least / min(trial.outcomes[name].total_cost for name in OPTIMIZERS))
    report.figures["weave_total_total_over_bound_mean"] = round(fmean(over_bound[Preference.TOTAL]), 4)
    report.figures["weave_balance_max_over_bound_mean"] = round(fmean(over_bound[Preference.BALANCE]), 4)
    at_bound = sum(ratio < 1 + 1e-9 for ratio in over_bound[Preference.BALANCE]) / len(done)
    report.figures["weave_balance_at_bound_fraction"] = round(at_bound, 4)
    report.figures["weave_least_total_known_fraction"] = round(len(over_least) / len(done), 4)
    if over_least:
        report.figures["weave_total_total_over_least_mean"] = round(fmean(over_least), 5)
        report.figures["weave_total_total_over_least_most"] = round(max(over_least), 5)
        report.figures[LEAST_TOTAL] = round(fmean(least_over_best), 4)


def _claim(report: Report, claim: str, goal: float, ours: float, holds: bool, why_not: str) -> None:
    report.claims.append(Claim(claim, "goal", goal, ours, holds, "" if holds else why_not))
