"""`plait`, the default: equal work exists once.

Sub-plans of equal signature become one operator, whichever queries they come from. Queries are admitted in
the order of their declaration. Each is planned as `independent` does, less what exists already at the same
site. Two other ways are taken only in these cases:

- to use what exists anywhere: streams of other sites, and sub-joins that the join's own order would not make,
  if that takes fewer cores and neither more network nor more state;
- to compute everything at the site that wants the query, if it fits no other way.

Beyond equal operators, window aggregates share trees, joins that differ in constants and ranges are one, and
so are filters of one stream (`deployment.weaving`): the deployment says which, and which engine computes
each. Where sites have limits, a query is charged what it adds to the family that it is in. Families are
those of all queries that are asked for; if without the refused ones they come out in other parts, and those
do not fit, the admitted queries are planned again, by themselves.

So, as long as both fit near their inputs and no family goes to Spark to save time, a deployment never costs
more than the one of `independent` that admits the same queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from plait.deployment.weaving import family_members, has_cores, woven
from plait.planners.base import ALL_FEATURES, PlannerFeature, PlanningContext, PlanningResult
from plait.planners.one_by_one import NO_FAMILIES, plan_one_by_one
from plait.space import stream_of
from plait.workload import Workload


class PlaitPlanner:
    """All queries share."""

    name: ClassVar[str] = "plait"
    shares: ClassVar[bool] = True
    features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES - {PlannerFeature.REPLANNING}

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        has_limits = any(site.cores is not None for site in context.catalog.sites.values())
        plans = {query.name: stream_of(query.plan) for query in workload.queries.values()}
        refused: dict[str, str] = {}
        while True:
            asked = {name: plan for name, plan in plans.items() if name not in refused}
            families = family_members(asked, context.catalog, context.cost) if has_limits else NO_FAMILIES
            result = plan_one_by_one(workload, context, share=True, families=families, refused=refused)
            result = replace(result, deployment=woven(result.deployment, context.catalog, context.cost))
            is_final = len(result.deployment.refused) == len(refused)
            if is_final or has_cores(result.deployment):
                return result
            refused = {query.name: query.reason for query in result.deployment.refused}
