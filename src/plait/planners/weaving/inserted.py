"""Category "Inserted" (§6.3, Algorithm 3): query by query, into the tree where it costs least.

| paper | here |
|---|---|
| q_i, t_k, n_j | an item, a tree, a node |
| TempCost, WeaveCost | what weaving the item into a tree costs, and the least of that |
| GroupCost | what a tree of its own costs, on MinNode |
| MinNode | the first node of least cost, before |

The listing cannot be followed as it stands, and it and the text differ.

- WeaveCost is set to infinity once. Costs grow, so hardly any later query would find a tree; it is set for
  each query.
- The switch stands inside the loops over nodes and trees, and would weave a query as often as there are
  trees; it comes after them. `ToWeave` is a query and a tree of some node, not the tree "t_j".
- The first queries are "the first N" in the listing and random ones in the text. The listing is followed:
  queries come in no particular order, and plans then hang on no seed. `w-i:random-start`,
  `wg-i:random-start` are the other way.
- What is compared, `Measure`: by the text, weaving goes to the tree whose **node** then costs least, and
  between this and a tree of its own the increase of the **total** cost decides. The listing's comments say
  "plan cost" of weaving, and "cost of MinNode" of grouping. Taken as they stand, grouping would always win,
  since a node costs less than the plan. Two readings of them make sense, the plan's cost for both
  (`w-i:plan-cost`, `wg-i:plan-cost`) and the node's cost for both (`wg-i:node-cost`; for `w-i` that is the
  text). The **text** is the default: what the paper concludes of `wg-i`, balance first and a total cost
  that is not far off, is said of a method that looks at both.

Where both cost the same, weaving is chosen, as in the listing. Trees are scanned node by node.
"""

from __future__ import annotations

from enum import StrEnum
from random import Random

import numpy as np

from plait.planners.weaving.category import Category
from plait.planners.weaving.plan import GrowingTree, WeavingPlan, finished
from plait.planners.weaving.problem import Item, WeavingProblem
from plait.planners.weaving.ties import all_least, first_least, is_less


class Measure(StrEnum):
    """What is compared: where to weave; and whether to."""

    TEXT = "cost of the node; increase of the total cost"
    PLAN_COST = "cost of the plan; cost of the plan"
    NODE_COST = "cost of the node; cost of the node"


class Start(StrEnum):
    """Which queries are the first on their nodes."""

    FIRST = "the first"
    RANDOM = "random ones"


def plan_inserted(
    problem: WeavingProblem,
    seed: int,
    category: Category,
    measure: Measure = Measure.TEXT,
    start: Start = Start.FIRST,
) -> WeavingPlan:
    items = _in_order(problem, seed, start)
    insertion = _Insertion(problem, measure)
    for node, item in enumerate(items[: problem.nodes]):
        insertion.group(item, node)
    for item in items[problem.nodes :]:
        if category is Category.WEAVE_ONLY:
            insertion.weave(item)
        else:
            insertion.weave_or_group(item)
    return insertion.plan()


def _in_order(problem: WeavingProblem, seed: int, start: Start) -> list[Item]:
    items = list(problem.items)
    if start is Start.FIRST or len(items) <= problem.nodes:
        return items
    chosen = Random(seed).sample(range(len(items)), problem.nodes)
    others = sorted(set(range(len(items))) - set(chosen))
    return [items[place] for place in (*chosen, *others)]


class _Insertion:
    """Trees in the order in which they were made, so those of one node are in the order of their scan."""

    def __init__(self, problem: WeavingProblem, measure: Measure) -> None:
        self._problem = problem
        self._unions = problem.unions
        self._rate = problem.rate_rows_per_s
        self._measure = measure
        self._trees: list[GrowingTree] = []
        self._node_costs = np.zeros(problem.nodes)
        self._node = np.empty(16, dtype=np.int64)
        self._cost = np.empty(16)
        self._overlap = np.empty(16)
        # For each tree and edge set, the edges that the tree has with it. Edge sets are what is looked up by.
        self._edges_with = np.empty((len(problem.edge_sets), 16))

    def group(self, item: Item, node: int) -> None:
        place = len(self._trees)
        if place == len(self._node):
            self._grow()
        self._trees.append(GrowingTree.of(item, self._problem))
        self._node[place] = node
        self._cost[place] = 0.0
        self._renew(place)

    def weave(self, item: Item) -> None:
        place, _ = self._cheapest_to_weave(item)
        self._weave(place, item)

    def weave_or_group(self, item: Item) -> None:
        place, woven = self._cheapest_to_weave(item)
        node = first_least(self._node_costs)
        own = self._problem.cost_of(item)
        match self._measure:
            case Measure.TEXT:
                grouped, scale = own, self._rate
                woven -= float(self._node_costs[self._node[place]])
            case Measure.PLAN_COST:
                grouped, scale = float(self._node_costs.sum()) + own, 0.0
            case Measure.NODE_COST:
                grouped, scale = float(self._node_costs[node]) + own, 0.0
        if is_less(grouped, woven, scale):
            self.group(item, node)
        else:
            self._weave(place, item)

    def plan(self) -> WeavingPlan:
        nodes: list[list[GrowingTree]] = [[] for _ in range(self._problem.nodes)]
        for tree, node in zip(self._trees, self._node.tolist(), strict=False):
            nodes[node].append(tree)
        return finished(self._problem, nodes)

    def _cheapest_to_weave(self, item: Item) -> tuple[int, float]:
        """The tree, and what its node or the plan costs then."""
        trees = len(self._trees)
        costs = self._edges_with[item.edge_set, :trees] * (self._overlap[:trees] + item.overlap)
        costs += self._rate
        costs -= self._cost[:trees]
        if self._measure is Measure.PLAN_COST:
            costs += self._node_costs.sum()
        else:
            costs += self._node_costs[self._node[:trees]]
        least = all_least(costs)
        place = int(least[0] if len(least) == 1 else least[self._node[least].argmin()])
        return place, float(costs[place])

    def _weave(self, place: int, item: Item) -> None:
        self._trees[place].weave(item, self._problem)
        self._renew(place)

    def _renew(self, place: int) -> None:
        tree = self._trees[place]
        cost = tree.cost(self._rate)
        self._node_costs[self._node[place]] += cost - self._cost[place]
        self._cost[place] = cost
        self._overlap[place] = tree.overlap
        self._edges_with[:, place] = self._unions.rates_with_each_edge_set(tree.union)

    def _grow(self) -> None:
        self._node = np.concatenate([self._node, np.empty_like(self._node)])
        self._cost = np.concatenate([self._cost, np.empty_like(self._cost)])
        self._overlap = np.concatenate([self._overlap, np.empty_like(self._overlap)])
        self._edges_with = np.concatenate([self._edges_with, np.empty_like(self._edges_with)], axis=1)
