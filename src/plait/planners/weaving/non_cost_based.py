"""The non-cost-based optimizers (§5): queries go to nodes at random, or in turn.

Queries are taken in their order. On its node a query becomes

- `g-rand`, `g-rr`: a tree of its own;
- `w-rand`, `w-rr`: part of the node's one tree;
- `wg-rand`, `wg-rr`: a tree of its own, or part of one of the node's trees, at random or in turn.

The paper leaves open what the choice of the last two is among. Here the first choice is between a tree of
its own and weaving, evenly; then, between the node's trees. The other way, a tree of its own as one of the
node's trees and so an ever rarer choice, would make few trees of many queries, whose plans would not take
0.01 to 0.02 s to make where `w-rand` takes 2.3 (Table 4, with costs of a tree that go by the common
multiple of its slides).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from plait.planners.weaving.category import Category
from plait.planners.weaving.plan import GrowingTree, WeavingPlan, finished
from plait.planners.weaving.problem import WeavingProblem


def plan_at_random(problem: WeavingProblem, seed: int, category: Category) -> WeavingPlan:
    random = Random(seed)

    def is_woven(_node: int) -> bool:
        return random.random() < 0.5

    def tree_of(_node: int, trees: int) -> int:
        return random.randrange(trees)

    return _plan(problem, category, lambda _: random.randrange(problem.nodes), is_woven, tree_of)


def plan_in_turn(problem: WeavingProblem, category: Category) -> WeavingPlan:
    """On each node, by turns a tree of its own and weaving; and weaving goes through the node's trees."""
    has_woven = [True] * problem.nodes
    next_tree = [0] * problem.nodes

    def is_woven(node: int) -> bool:
        has_woven[node] = not has_woven[node]
        return has_woven[node]

    def tree_of(node: int, trees: int) -> int:
        chosen = next_tree[node] % trees
        next_tree[node] = chosen + 1
        return chosen

    return _plan(problem, category, lambda number: number % problem.nodes, is_woven, tree_of)


def _plan(
    problem: WeavingProblem,
    category: Category,
    node_of: Callable[[int], int],
    is_woven: Callable[[int], bool],
    tree_of: Callable[[int, int], int],
) -> WeavingPlan:
    nodes: list[list[GrowingTree]] = [[] for _ in range(problem.nodes)]
    for number, item in enumerate(problem.items):
        node = node_of(number)
        trees = nodes[node]
        match category:
            case Category.GROUP_ONLY:
                chosen = None
            case Category.WEAVE_ONLY:
                chosen = 0 if trees else None
            case Category.WEAVE_AND_GROUP:
                weaves = is_woven(node)
                chosen = tree_of(node, len(trees)) if weaves and trees else None
        if chosen is None:
            trees.append(GrowingTree.of(item, problem))
        else:
            trees[chosen].weave(item, problem)
    return finished(problem, nodes)
