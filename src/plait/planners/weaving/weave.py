"""`weave`: the best plans of the paper's optimizers, made better by search.

| preference | what is least | in the paper |
|---|---|---|
| `total` | cost of all trees | TotalCost |
| `balance` | cost of the dearest node | MaxCost |
| `both` | the mean of both, each over the least that one of the paper's optimizers reaches | |

**Never worse.** All thirteen plan first, which takes some 0.03 s for the paper's workloads, and the best of
their plans by the preference is one that the search (`improvement`) starts from. For problems that are too
large for that (`MOST_FOR_ALL`) some of them plan, or one: the plan is never worse than those.

**Total.** Nodes make no difference, so the search has only one. Queries of equal edges are never apart: of
two trees that have them, the one of fewer edges takes those of the other at no more cost. Trees are then
placed on nodes by cost, and moved and exchanged while that helps.

**Balance.** Queries of equal edges may well be apart. The search also looks at the total a little: what is
saved on cheap nodes makes room for what is on dear ones.

**Nodes of different speed.** A node's cost counts divided by its speed. The thirteen know nothing of speeds;
their plans are compared with them.

The search starts from the best plan, from that of `wg-tn` and from that of `wg-tn:text`, which has as many
trees as nodes if it can; each gets a sixth of the steps, and the best of the three what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import isfinite
from random import Random
from types import MappingProxyType

import numpy as np

from plait.errors import UserError
from plait.planners.weaving.arrangement import Arrangement, placed_by_cost
from plait.planners.weaving.improvement import Goal, Improvement
from plait.planners.weaving.optimizers import OPTIMIZERS, OTHER_READINGS, Optimizer
from plait.planners.weaving.plan import WeavingPlan
from plait.planners.weaving.problem import WeavingProblem
from plait.planners.weaving.ties import is_less
from plait.windows.edge_classes import Numbers

DEFAULT_STEPS = 800

# Items times edge sets up to which all thirteen plan, and up to which some do.
MOST_FOR_ALL = 300_000
MOST_FOR_SOME = 3_000_000
SOME = ("w-i", "wg-tn", "wg-i")
ONE = ("wg-tn",)

# What the total counts for in the search, where the dearest node is what matters.
TOTAL_FOR_BALANCE = 0.02

# Where slides are so entangled that an edge rate takes very long, steps and sizes count so many times.
ENTANGLED = 40


class Preference(StrEnum):
    TOTAL = "total"
    BALANCE = "balance"
    BOTH = "both"


@dataclass(frozen=True)
class Reached:
    """The least Total and Max Cost that some plans have, not necessarily one of them both."""

    total_cost: float
    max_cost: float

    def goal(self, preference: Preference) -> Goal:
        of_total, of_max = 1 / self.total_cost, 1 / self.max_cost
        match preference:
            case Preference.TOTAL:
                return Goal(of_total, 0.0, of_total)
            case Preference.BALANCE:
                return Goal(0.0, of_max, TOTAL_FOR_BALANCE * of_total)
            case Preference.BOTH:
                return Goal(of_total / 2, of_max / 2, of_total / 2)


def plan_weave(
    problem: WeavingProblem,
    seed: int,
    preference: Preference = Preference.BOTH,
    steps: int = DEFAULT_STEPS,
    speeds: Sequence[float] | None = None,
) -> WeavingPlan:
    """The same plan for the same of all these. More steps, better plans: 0.5 ms each or so."""
    node_speeds = _checked_speeds(problem, speeds)
    if not problem.windows:
        return WeavingPlan(problem.nodes, ())
    planned = {name: OPTIMIZERS[name](problem, seed) for name in _first_planned(problem)}
    reached = Reached(
        min(plan.total_cost for plan in planned.values()),
        min(max_cost_at(plan, node_speeds) for plan in planned.values()),
    )
    goal = reached.goal(preference)

    def value(plan: WeavingPlan) -> float:
        return goal.value(plan.total_cost, max_cost_at(plan, node_speeds))

    best = min(planned.values(), key=value)
    if not problem.unions.are_quick:
        steps //= ENTANGLED
    if steps:
        random = Random(seed)
        if preference is Preference.TOTAL:
            found = _of_least_total(best, problem, goal, node_speeds, steps, random)
        else:
            starts = [best, planned["wg-tn"], OTHER_READINGS["wg-tn:text"](problem, seed)]
            found = _searched(starts, problem, goal, node_speeds, steps, random)
        if not is_less(value(best), value(found)):
            best = found
    return best


def max_cost_at(plan: WeavingPlan, speeds: Sequence[float] | Numbers) -> float:
    """The cost of the dearest node, each divided by the node's speed."""
    return max(cost / float(speed) for cost, speed in zip(plan.node_costs, speeds, strict=True))


def _first_planned(problem: WeavingProblem) -> Sequence[str]:
    size = len(problem.items) * len(problem.edge_sets) * (1 if problem.unions.are_quick else ENTANGLED)
    if size <= MOST_FOR_ALL:
        return tuple(OPTIMIZERS)
    return SOME if size <= MOST_FOR_SOME else ONE


def _searched(
    starts: Sequence[WeavingPlan],
    problem: WeavingProblem,
    goal: Goal,
    speeds: Numbers,
    steps: int,
    random: Random,
) -> WeavingPlan:
    searches = []
    for number, start in enumerate(starts):
        if start not in starts[:number]:
            search = Improvement(Arrangement.of(start, problem, speeds, random), goal, random)
            search.run(steps // 6)
            searches.append(search)
    best = searches[0]
    for search in searches[1:]:
        if is_less(search.best_value, best.best_value):
            best = search
    best.run(steps - len(searches) * (steps // 6))
    return best.best.plan()


def _of_least_total(
    start: WeavingPlan, problem: WeavingProblem, goal: Goal, speeds: Numbers, steps: int, random: Random
) -> WeavingPlan:
    search = Improvement(Arrangement.of(start, problem, np.ones(1), random), goal, random)
    search.run(steps)
    trees = search.best.plan().trees
    nodes = placed_by_cost([tree.cost for tree in trees], speeds)
    placed = WeavingPlan(
        problem.nodes,
        tuple(replace(tree, node=node) for node, tree in zip(nodes, trees, strict=True)),
    )
    level = Improvement(Arrangement.of(placed, problem, speeds, random), Goal(0.0, 1.0, 0.0), random)
    level.run_trees()
    return level.best.plan()


def _checked_speeds(problem: WeavingProblem, speeds: Sequence[float] | None) -> Numbers:
    if speeds is None:
        return np.ones(problem.nodes)
    if len(speeds) != problem.nodes or not all(isfinite(speed) and speed > 0 for speed in speeds):
        raise UserError(
            "weaving-speeds",
            f"{problem.nodes} nodes cannot have the speeds {', '.join(map(str, speeds)) or 'of none'}",
            hint="there is one for each node, and it is positive",
        )
    return np.array(speeds, dtype=np.float64)


def _preferring(preference: Preference) -> Optimizer:
    return partial(plan_weave, preference=preference)


# Names for where all optimizers are compared.
OWN_OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {f"weave-{preference}": _preferring(preference) for preference in Preference}
)
