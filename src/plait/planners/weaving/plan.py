"""What the optimizers of the aggregates paper give back: trees of queries on nodes, and what they cost.

| paper | here |
|---|---|
| P, T | `WeavingPlan`, `trees` |
| E_i, Ω_i | `WovenTree.edges_per_s`, `overlap` |
| C_i | `WeavingPlan.node_costs` |
| TotalCost(P), MaxCost(P) | `total_cost`, `max_cost` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from plait.planners.weaving.problem import Item, WeavingProblem


@dataclass(frozen=True)
class WovenTree:
    """Queries, by their positions in the problem, that share partials, on one node."""

    node: int
    queries: tuple[int, ...]
    edges_per_s: float
    overlap: float
    cost: float


@dataclass(frozen=True)
class WeavingPlan:
    """Trees stand in the order of their nodes. A node may have none."""

    nodes: int
    trees: tuple[WovenTree, ...]

    @cached_property
    def node_costs(self) -> tuple[float, ...]:
        costs = [0.0] * self.nodes
        for tree in self.trees:
            costs[tree.node] += tree.cost
        return tuple(costs)

    @property
    def total_cost(self) -> float:
        return sum(self.node_costs)

    @property
    def max_cost(self) -> float:
        return max(self.node_costs)


@dataclass
class GrowingTree:
    """A tree while a plan is being made: a union of edge sets, their rate, and the items in it."""

    union: int
    edges_per_s: float
    overlap: float
    items: list[Item] = field(default_factory=list)

    @staticmethod
    def of(item: Item, problem: WeavingProblem) -> GrowingTree:
        # The first unions are the edge sets.
        return GrowingTree(item.edge_set, problem.edge_set_rates_per_s[item.edge_set], item.overlap, [item])

    def weave(self, item: Item, problem: WeavingProblem) -> None:
        self.union = problem.unions.added(self.union, item.edge_set)
        self.edges_per_s = problem.unions.rate_per_s(self.union)
        self.overlap += item.overlap
        self.items.append(item)

    def cost(self, rate_rows_per_s: float) -> float:
        return rate_rows_per_s + self.edges_per_s * self.overlap


def finished(problem: WeavingProblem, nodes: Sequence[Iterable[GrowingTree]]) -> WeavingPlan:
    """The plan that has these trees on each node."""
    trees = tuple(
        WovenTree(
            node,
            tuple(sorted(query for item in tree.items for query in item.queries)),
            tree.edges_per_s,
            tree.overlap,
            tree.cost(problem.rate_rows_per_s),
        )
        for node, growing in enumerate(nodes)
        for tree in growing
    )
    return WeavingPlan(problem.nodes, trees)
