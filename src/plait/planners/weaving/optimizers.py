"""The thirteen optimizers of the paper's Table 1 by their names, and other readings of some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from plait.planners.weaving.category import Category
from plait.planners.weaving.inserted import Measure, Start, plan_inserted
from plait.planners.weaving.non_cost_based import plan_at_random, plan_in_turn
from plait.planners.weaving.plan import WeavingPlan
from plait.planners.weaving.problem import WeavingProblem
from plait.planners.weaving.to_lowest import plan_to_lowest
from plait.planners.weaving.to_nodes import plan_to_nodes

# A problem and a seed; the same plan for the same of both.
Optimizer: TypeAlias = Callable[[WeavingProblem, int], WeavingPlan]

_PlanWithoutSeed: TypeAlias = Callable[[WeavingProblem], WeavingPlan]


def _seedless(plan: _PlanWithoutSeed) -> Optimizer:
    def optimizer(problem: WeavingProblem, _seed: int) -> WeavingPlan:
        return plan(problem)

    return optimizer


_G, _W, _WG = Category.GROUP_ONLY, Category.WEAVE_ONLY, Category.WEAVE_AND_GROUP

OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "g-rand": partial(plan_at_random, category=_G),
        "g-rr": _seedless(partial(plan_in_turn, category=_G)),
        "g-tl": _seedless(partial(plan_to_lowest, category=_G)),
        "w-rand": partial(plan_at_random, category=_W),
        "w-rr": _seedless(partial(plan_in_turn, category=_W)),
        "w-tl": _seedless(partial(plan_to_lowest, category=_W)),
        "w-tn": _seedless(partial(plan_to_nodes, category=_W)),
        "w-i": partial(plan_inserted, category=_W),
        "wg-rand": partial(plan_at_random, category=_WG),
        "wg-rr": _seedless(partial(plan_in_turn, category=_WG)),
        "wg-tl": _seedless(partial(plan_to_lowest, category=_WG)),
        "wg-tn": _seedless(partial(plan_to_nodes, category=_WG)),
        "wg-i": partial(plan_inserted, category=_WG),
    }
)

# Where the paper's text and listings differ: what is not the default. `to_nodes` and `inserted` say why.
OTHER_READINGS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "w-tn:text": _seedless(partial(plan_to_nodes, category=_W, stops_at_nodes=True)),
        "wg-tn:text": _seedless(partial(plan_to_nodes, category=_WG, stops_at_nodes=True)),
        "w-i:plan-cost": partial(plan_inserted, category=_W, measure=Measure.PLAN_COST),
        "wg-i:plan-cost": partial(plan_inserted, category=_WG, measure=Measure.PLAN_COST),
        "wg-i:node-cost": partial(plan_inserted, category=_WG, measure=Measure.NODE_COST),
        "w-i:random-start": partial(plan_inserted, category=_W, start=Start.RANDOM),
        "wg-i:random-start": partial(plan_inserted, category=_WG, start=Start.RANDOM),
    }
)
