"""`independent`: every query for itself, as plain Spark runs them. The upper bound that sharing is
measured against.
"""

from __future__ import annotations

from typing import ClassVar

from plait.planners.base import ALL_FEATURES, PlannerFeature, PlanningContext, PlanningResult
from plait.planners.one_by_one import plan_one_by_one
from plait.workload import Workload


class IndependentPlanner:
    """No operator and no flow serves two queries, even if they are equal."""

    name: ClassVar[str] = "independent"
    shares: ClassVar[bool] = False
    features: ClassVar[frozenset[PlannerFeature]] = ALL_FEATURES - {PlannerFeature.REPLANNING}

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        return plan_one_by_one(workload, context, share=False)
