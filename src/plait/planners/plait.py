"""`plait`, the default: equal work exists once.

Sub-plans of equal signature become one operator, whichever queries they come from. Queries are admitted in
the order of their declaration. Each is planned as `independent` does, less what exists already at the same
site. Two other ways are taken only in these cases:

- to use what exists anywhere: streams of other sites, and sub-joins that the join's own order would not make,
  if that takes fewer cores and neither more network nor more state;
- to compute everything at the site that wants the query, if it fits no other way.

Beyond equal operators, window aggregates share trees, and joins that differ in constants and ranges are one
(`deployment.weaving`): the deployment says which, and which engine computes each.

So, as long as both fit near their inputs, a deployment never costs more than the one of `independent` that
admits the same queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from plait.deployment.weaving import woven
from plait.planners.base import ALL_FEATURES, PlannerFeature, PlanningContext, PlanningResult
from plait.planners.one_by_one import plan_one_by_one
from plait.workload import Workload


class PlaitPlanner:
    """All queries share."""

    name: ClassVar[str] = "plait"
    shares: ClassVar[bool] = True
    features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES - {PlannerFeature.REPLANNING}

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        result = plan_one_by_one(workload, context, share=True)
        return replace(result, deployment=woven(result.deployment, context.catalog))
