"""Trees on nodes while they are being improved: what each holds, and what any change to them would cost.

A tree holds **parts**: items of one edge set each. What a tree costs hangs on which edge sets it has parts
of, and on its overlap: λ + E·Ω. So taking a whole part out of a tree changes both, taking some items of a
part out of it only the overlap.

Everything is in arrays by the **place** of a tree, so that all changes of one kind are compared at once.
Place 0 is a tree that is always empty: what is moved to it becomes a new tree. Of a tree are kept its edges
together with each edge set, and without each of its own. These are counted once for a tree of the same edge
sets. Of trees of more than `MOST_LEAVING` edge sets, only so many at a time can be taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from plait.planners.weaving.plan import GrowingTree, WeavingPlan, finished
from plait.planners.weaving.problem import WeavingProblem
from plait.planners.weaving.ties import descending, first_least
from plait.windows.edge_classes import Integers, Numbers

MOST_LEAVING = 64

EMPTY = 0


class Arrangement:
    """`place_…` have an entry for each place, `part_…` one for each edge set of each place."""

    def __init__(self, problem: WeavingProblem, speeds: Numbers, random: Random) -> None:
        self.problem = problem
        self.rate = problem.rate_rows_per_s
        self.inverse_speeds = 1.0 / speeds
        self.node_costs = np.zeros(len(speeds))
        self.total_cost = 0.0
        self._unions = problem.unions
        self._random = random
        self._overlaps = [item.overlap for item in problem.items]
        edge_sets = len(problem.edge_sets)
        self.is_tree = np.zeros(1, dtype=bool)
        self.place_node = np.zeros(1, dtype=np.int64)
        self.place_union = np.zeros(1, dtype=np.int64)
        self.place_edges = np.zeros(1)
        self.place_overlap = np.zeros(1)
        self.part_sizes = np.zeros((1, edge_sets), dtype=np.int64)
        self.part_overlap = np.zeros((1, edge_sets))
        self.edges_with = np.array(problem.edge_set_rates_per_s, dtype=np.float64)[None, :]
        self.edges_without = np.full((1, edge_sets), np.inf)
        # Items of each part, of great overlap first. Never changed, only replaced: copies share them.
        self._parts: dict[tuple[int, int], tuple[int, ...]] = {}
        self._leaving: dict[int, tuple[Integers, Numbers]] = {}

    @staticmethod
    def of(plan: WeavingPlan, problem: WeavingProblem, speeds: Numbers, random: Random) -> Arrangement:
        """On as many nodes as there are speeds; if these are fewer than the plan's, all on the first."""
        made = Arrangement(problem, speeds, random)
        item_of = {item.queries[0]: number for number, item in enumerate(problem.items)}
        edge_set_of = [item.edge_set for item in problem.items]
        for tree in plan.trees:
            place = made._new_place(tree.node if plan.nodes == len(speeds) else 0)
            own: dict[int, list[int]] = {}
            for query in tree.queries:
                item = item_of.get(query)
                if item is not None:
                    own.setdefault(edge_set_of[item], []).append(item)
            for edge_set, items in own.items():
                made._put(place, edge_set, items)
            made._count_edges(place)
        made.count_costs()
        return made

    def copy(self) -> Arrangement:
        made = Arrangement.__new__(Arrangement)
        made.__dict__.update(self.__dict__)
        for name in (
            "is_tree",
            "place_node",
            "place_union",
            "place_edges",
            "place_overlap",
            "part_sizes",
            "part_overlap",
            "edges_with",
            "edges_without",
        ):
            setattr(made, name, getattr(self, name).copy())
        made._parts = dict(self._parts)
        return made

    def plan(self) -> WeavingPlan:
        """Costs are computed afresh."""
        nodes: list[list[GrowingTree]] = [[] for _ in range(self.problem.nodes)]
        for place in self.trees():
            union = int(self.place_union[place])
            own = np.flatnonzero(self.part_sizes[place]).tolist()
            numbers = sorted(number for edge_set in own for number in self._parts[int(place), edge_set])
            items = [self.problem.items[number] for number in numbers]
            overlap = sum(item.overlap for item in items)
            nodes[self.place_node[place]].append(
                GrowingTree(union, self._unions.rate_per_s(union), overlap, items)
            )
        return finished(self.problem, nodes)

    def trees(self) -> Integers:
        return np.flatnonzero(self.is_tree)

    def work(self, places: Integers) -> Numbers:
        """E·Ω: what trees cost beyond the rate."""
        work: Numbers = self.place_edges[places] * self.place_overlap[places]
        return work

    def edges_of_merged(self, place: int, others: Integers) -> Numbers:
        return self._unions.rates_with(int(self.place_union[place]), self.place_union[others])

    def count_costs(self) -> None:
        trees = self.trees()
        costs = self.work(trees) + self.rate
        on_nodes = np.bincount(self.place_node[trees], costs, minlength=len(self.node_costs))
        self.node_costs = on_nodes * self.inverse_speeds
        self.total_cost = float(costs.sum())

    # Changes

    def shift(self, place: int, edge_set: int, into: int, node: int, overlap: float) -> int:
        """Move a part, or items of it whose overlap is about what is given. Into `EMPTY` is into a new tree
        on the node. What it went into is given back."""
        items = self._parts[place, edge_set]
        if overlap >= self.part_overlap[place, edge_set]:
            taken: Sequence[int] = items
            left: Sequence[int] = ()
        else:
            taken, left = self._about(items, overlap)
        if into == EMPTY:
            into = self._new_place(node)
        self._take(place, edge_set, left)
        joins = not self.part_sizes[into, edge_set]
        self._put(into, edge_set, taken)
        if joins:
            self._count_edges(into)
        return into

    def merge(self, place: int, into: int) -> None:
        for edge_set in np.flatnonzero(self.part_sizes[place]).tolist():
            self._put(into, edge_set, self._parts[place, edge_set])
            self._take(place, edge_set, [], counts_edges=False)
        self._count_edges(into)

    def _about(self, items: Sequence[int], overlap: float) -> tuple[list[int], list[int]]:
        """At least one item is taken and at least one is left. There are several."""
        taken, left = [], []
        for item in items:
            if self._overlaps[item] <= overlap:
                taken.append(item)
                overlap -= self._overlaps[item]
            else:
                left.append(item)
        if not left:
            left.append(taken.pop())
        elif not taken or (len(left) > 1 and self._overlaps[left[-1]] < 2 * overlap):
            taken.append(left.pop())
        return taken, left

    def _put(self, place: int, edge_set: int, items: Sequence[int]) -> None:
        together = (*self._parts.get((place, edge_set), ()), *items)
        overlaps = self._overlaps
        self._parts[place, edge_set] = tuple(sorted(together, key=lambda item: (-overlaps[item], item)))
        added = sum(overlaps[item] for item in items)
        self.part_sizes[place, edge_set] = len(together)
        self.part_overlap[place, edge_set] += added
        self.place_overlap[place] += added

    def _take(self, place: int, edge_set: int, left: Sequence[int], counts_edges: bool = True) -> None:
        """What is left is part of what there was, in its order."""
        overlap = sum(self._overlaps[item] for item in left)
        self.place_overlap[place] += overlap - self.part_overlap[place, edge_set]
        self.part_overlap[place, edge_set] = overlap
        self.part_sizes[place, edge_set] = len(left)
        if left:
            self._parts[place, edge_set] = tuple(left)
            return
        del self._parts[place, edge_set]
        if not self.part_sizes[place].any():
            self.is_tree[place] = False
        elif counts_edges:
            self._count_edges(place)

    def _count_edges(self, place: int) -> None:
        own = np.flatnonzero(self.part_sizes[place])
        union = self._unions.of(sum(1 << edge_set for edge_set in own.tolist()))
        self.place_union[place] = union
        self.place_edges[place] = self._unions.rate_per_s(union)
        self.edges_with[place] = self._unions.rates_with_each_edge_set(union)
        if len(own) > MOST_LEAVING:
            own = np.array(self._random.sample(own.tolist(), MOST_LEAVING))
            without = self._unions.rates_without(union, own)
        elif union in self._leaving:
            own, without = self._leaving[union]
        else:
            without = self._unions.rates_without(union, own)
            self._leaving[union] = own, without
        self.edges_without[place] = np.inf
        self.edges_without[place, own] = without

    def _new_place(self, node: int) -> int:
        free = np.flatnonzero(~self.is_tree[1:])
        place = int(free[0]) + 1 if len(free) else self._grow()
        self.is_tree[place] = True
        self.place_node[place] = node
        self.place_edges[place] = self.place_overlap[place] = 0.0
        self.part_sizes[place] = 0
        self.part_overlap[place] = 0.0
        return place

    def _grow(self) -> int:
        places = len(self.is_tree)
        more = max(16, places)

        def grown(values: Numbers) -> Numbers:
            return np.concatenate([values, np.zeros((more, *values.shape[1:]), dtype=values.dtype)])

        self.is_tree = np.concatenate([self.is_tree, np.zeros(more, dtype=bool)])
        self.place_node = np.concatenate([self.place_node, np.zeros(more, dtype=np.int64)])
        self.place_union = np.concatenate([self.place_union, np.zeros(more, dtype=np.int64)])
        self.place_edges, self.place_overlap = grown(self.place_edges), grown(self.place_overlap)
        sizes = np.zeros((more, self.part_sizes.shape[1]), dtype=np.int64)
        self.part_sizes = np.concatenate([self.part_sizes, sizes])
        self.part_overlap = grown(self.part_overlap)
        self.edges_with, self.edges_without = grown(self.edges_with), grown(self.edges_without)
        return places


def placed_by_cost(costs: Sequence[float], speeds: Numbers) -> list[int]:
    """A node for each tree: the dearest first, each where it is done soonest."""
    nodes, loads = [0] * len(costs), np.zeros(len(speeds))
    for tree in descending(costs):
        node = first_least((loads + costs[tree]) / speeds)
        nodes[tree] = node
        loads[node] += costs[tree]
    return nodes
