"""The optimizers of the aggregates paper as planners of SQL queries.

Window aggregates that could share a tree (one stream, one grouping, one pattern of predicates:
`plait.sharing.trees`) are a problem of their own. The sites are the nodes, the estimated rate of the stream
is λ, and Eq. 1 as it stands is the cost. Each tree is computed at the site of its node: the rows of the
stream flow there, and the results from there to whoever wants them, which the paper leaves out. A site that
lacks cores for a query refuses it; the optimizers know of no limits.

Aggregates that have no partials (`count(DISTINCT …)` …) share no tree, and are computed where the stream is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from plait.cost.network import Network
from plait.deployment.weaving import whole_scans, woven
from plait.planners.base import PlannerFeature, PlanningContext, PlanningResult
from plait.planners.one_by_one import TreePlace, plan_one_by_one
from plait.sharing.families import families
from plait.sharing.parts import part_name
from plait.space import stream_of
from plait.workload import Workload

# `weaving.OPTIMIZERS` has them; that loads numpy, which who asks for other planners does not wait for.
OPTIMIZERS = (
    "g-rand",
    "g-rr",
    "g-tl",
    "w-rand",
    "w-rr",
    "w-tl",
    "w-tn",
    "w-i",
    "wg-rand",
    "wg-rr",
    "wg-tl",
    "wg-tn",
    "wg-i",
)


@dataclass(frozen=True)
class WindowTreePlanner:
    """One of the optimizers, by its name in the paper."""

    shares: ClassVar[bool] = True
    features: ClassVar[frozenset[PlannerFeature]] = frozenset(
        {PlannerFeature.AGGREGATES, PlannerFeature.SEVERAL_SITES}
    )

    name: str

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult:
        places = dict(self._places(workload, context))
        result = plan_one_by_one(workload, context, share=True, places=places)
        parts = {query: place.part for query, place in places.items()}
        return replace(result, deployment=woven(result.deployment, context.catalog, context.cost, parts))

    def _places(self, workload: Workload, context: PlanningContext) -> Iterator[tuple[str, TreePlace]]:
        from plait.planners import weaving

        optimizer = weaving.OPTIMIZERS[self.name]
        sites = [*Network(context.catalog).sites]
        plans = {query.name: stream_of(query.plan) for query in workload.queries.values()}
        for members in families(plans.items(), whole_scans(plans.values(), context.catalog)).aggregates:
            rate = context.cost.source_size(members[0].key.scan).rate_rows_per_s
            windows = tuple(member.window for member in members)
            plan = optimizer(weaving.WeavingProblem(windows, len(sites), rate), context.seed)
            for tree in plan.trees:
                own = [members[query] for query in tree.queries]
                part = part_name(own) if len(plan.trees) > 1 else ""
                yield from ((member.query, TreePlace(part, sites[tree.node])) for member in own)
