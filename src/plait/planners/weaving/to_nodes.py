"""Category "To Nodes" (§6.2, Algorithm 2): WeaveShare until there are as many trees as nodes.

| paper | here |
|---|---|
| T ≤ N | `Extent.fewest_trees` |
| weaving without benefit (*WeaveOnly*) | `Extent.forced_above` |
| G_TL(T) | `to_lowest.grouped_to_lowest` |

Text and listing differ. In the listing nothing stops weaving while it gains, and nodes may stay idle; the
text says, of both optimizers, that it stops as soon as there are no more trees than nodes. Plans differ
wherever WeaveShare makes fewer trees than there are nodes. The **listing** is followed by default. These
optimizers are "targeted at minimizing the Total Cost", and stopping while weaving still gains gives much of
that away: on the paper's configurations with 32 nodes, plans by the text cost 1.6 times those by the
listing. What the paper reports of `wg-tn` (seldom the best Max Cost, almost always the best Total Cost) is
closer to the listing, too; and whatever is compared with these optimizers should be compared with the
stronger reading. `w-tn:text` and `wg-tn:text` are the other one.
"""

from __future__ import annotations

from plait.planners.weaving.category import Category
from plait.planners.weaving.plan import WeavingPlan, finished
from plait.planners.weaving.problem import WeavingProblem
from plait.planners.weaving.to_lowest import grouped_to_lowest
from plait.planners.weaving.weave_share import NO_MATTER_HOW_MANY, Extent, weave_share


def plan_to_nodes(problem: WeavingProblem, category: Category, stops_at_nodes: bool = False) -> WeavingPlan:
    """`stops_at_nodes` is the text's reading. Trees of `w-tn` go to nodes in their order."""
    fewest_trees = problem.nodes if stops_at_nodes else 1
    weaves_only = category is Category.WEAVE_ONLY
    trees = weave_share(problem, Extent(fewest_trees, problem.nodes if weaves_only else NO_MATTER_HOW_MANY))
    return finished(problem, [[tree] for tree in trees] if weaves_only else grouped_to_lowest(trees, problem))
