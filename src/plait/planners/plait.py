"""`plait`, the default: equal work exists once.

Sub-plans of equal signature become one operator, whichever queries they come from. Joins of several
inputs are ordered so that a sub-join which exists already is used again, if that is cheaper than the
order the join would have alone.

For each query the alternative with the least additional cost is taken, and planning it as `independent`
does, less what exists already, is always among them. So a deployment never costs more than the one of
`independent` that admits the same queries.
"""

from __future__ import annotations

from typing import ClassVar

from plait.planners.base import ALL_FEATURES, PlannerFeature, PlanningContext, PlanningResult
from plait.planners.one_by_one import plan_one_by_one
from plait.workload import Workload


class PlaitPlanner:
    """All queries share."""

    name: ClassVar[str] = "plait"
    features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES - {PlannerFeature.REPLANNING}

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        return plan_one_by_one(workload, context, share=True)
