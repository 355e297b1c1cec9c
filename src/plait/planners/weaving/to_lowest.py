"""Category "To Lowest" (§6.1, Algorithm 1): the most expensive first, each to the node that costs least.

| paper | here |
|---|---|
| t_i, c_i | an item as a tree of its own, `WeavingProblem.cost_of` |
| MinNode, findMinNode | the first node of least cost |
| MinTree, findMinTree | the first tree of least cost on it |
| Cost_1, Cost_2 | what the node would cost with the item grouped, woven |

Listing and text agree. The listing's `for i = 0 to T` is read as: over the T trees that are left. Weaving is
chosen where both cost the same, as the listing has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plait.planners.weaving.category import Category
from plait.planners.weaving.plan import GrowingTree, WeavingPlan, finished
from plait.planners.weaving.problem import Item, WeavingProblem
from plait.planners.weaving.ties import GrowingCosts, descending, first_least, is_less


def plan_to_lowest(problem: WeavingProblem, category: Category) -> WeavingPlan:
    match category:
        case Category.GROUP_ONLY:
            trees = [GrowingTree.of(item, problem) for item in problem.items]
            return finished(problem, grouped_to_lowest(trees, problem))
        case Category.WEAVE_ONLY:
            return _woven_to_lowest(problem)
        case Category.WEAVE_AND_GROUP:
            return _woven_or_grouped_to_lowest(problem)


def grouped_to_lowest(trees: Sequence[GrowingTree], problem: WeavingProblem) -> list[list[GrowingTree]]:
    """`g-tl`, for any trees: what each node gets."""
    costs = [tree.cost(problem.rate_rows_per_s) for tree in trees]
    order = descending(costs)
    nodes: list[list[GrowingTree]] = [[] for _ in range(problem.nodes)]
    node_costs = np.zeros(problem.nodes)
    for rank, place in enumerate(order):
        node = rank if rank < problem.nodes else first_least(node_costs)
        nodes[node].append(trees[place])
        node_costs[node] += costs[place]
    return nodes


def _woven_to_lowest(problem: WeavingProblem) -> WeavingPlan:
    items = _most_expensive_first(problem)
    trees = [GrowingTree.of(item, problem) for item in items[: problem.nodes]]
    costs = np.array([tree.cost(problem.rate_rows_per_s) for tree in trees])
    for item in items[problem.nodes :]:
        node = first_least(costs)
        trees[node].weave(item, problem)
        costs[node] = trees[node].cost(problem.rate_rows_per_s)
    return finished(problem, [[tree] for tree in trees])


def _woven_or_grouped_to_lowest(problem: WeavingProblem) -> WeavingPlan:
    rate, unions = problem.rate_rows_per_s, problem.unions
    items = _most_expensive_first(problem)
    nodes = [[GrowingTree.of(item, problem)] for item in items[: problem.nodes]]
    node_costs = np.array([node[0].cost(rate) for node in nodes])
    tree_costs = [GrowingCosts() for _ in nodes]
    for own, cost in zip(tree_costs, node_costs, strict=True):
        own.append(float(cost))
    for item in items[problem.nodes :]:
        node = first_least(node_costs)
        own, before = tree_costs[node], float(node_costs[node])
        least = own.first_least()
        tree = nodes[node][least]
        woven = unions.rate_per_s(unions.added(tree.union, item.edge_set)) * (tree.overlap + item.overlap)
        as_tree_of_its_own = before + problem.cost_of(item)
        as_woven = before - own[least] + rate + woven
        if is_less(as_tree_of_its_own, as_woven):
            nodes[node].append(GrowingTree.of(item, problem))
            own.append(problem.cost_of(item))
            node_costs[node] = as_tree_of_its_own
        else:
            tree.weave(item, problem)
            own[least] = tree.cost(rate)
            node_costs[node] = as_woven
    return finished(problem, nodes)


def _most_expensive_first(problem: WeavingProblem) -> list[Item]:
    items = problem.items
    return [items[place] for place in descending([problem.cost_of(item) for item in items])]
