"""The optimizers of the aggregates paper once more, as plainly as they can be said.

Rational numbers, a bit set over the common multiple of all slides, every pair looked at in every step, and
no query put together with an equal one beforehand. Far too slow for anything but comparing plans.

And what plans are checked by: problems, all plans of a small one, and that a plan is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import lcm
from random import Random

import pytest
from hypothesis import strategies as st
from tests.workloads.windows import US_PER_S, in_seconds, tick_windows

from plait.plan.nodes import TickWindow
from plait.planners.weaving import WeavingPlan, WeavingProblem
from plait.windows.edge_rate import edge_rate_per_s
from plait.windows.tree_cost import plan_cost, tree_cost

TOLERANCE = Fraction(1, 10**9)

# Few slides, so that many windows have edges in common, and gains are equal. Rates in and out of proportion
# to edges.
SECONDS = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12]).map(lambda slide: slide * 1_000_000)
WINDOWS = st.lists(
    st.one_of(
        st.builds(lambda slide, times: TickWindow(slide * times, slide), SECONDS, st.integers(1, 4)),
        tick_windows(st.sampled_from([1, 2, 3, 4, 6, 8, 12])).map(
            lambda w: in_seconds(w.range_us, w.slide_us, w.offset_us)
        ),
    ),
    min_size=1,
    max_size=10,
)
PROBLEMS = st.builds(
    WeavingProblem,
    WINDOWS.map(tuple),
    nodes=st.integers(1, 5),
    rate_rows_per_s=st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 10.0, 1_000.0]),
)

Tree = list[int]  # queries
Node = list[Tree]


def is_less(one: Fraction, other: Fraction, scale: Fraction = Fraction(0)) -> bool:
    return other - one > TOLERANCE * max(abs(one), abs(other), scale)


def first_least(values: Sequence[Fraction]) -> int:
    return next(place for place, value in enumerate(values) if not is_less(min(values), value))


def first_greatest(values: Sequence[Fraction], scale: Fraction = Fraction(0)) -> int:
    return next(place for place, value in enumerate(values) if not is_less(value, max(values), scale))


@dataclass
class Reference:
    """One problem. Each optimizer gives, for each node, its trees."""

    windows: Sequence[TickWindow]
    nodes: int
    rate: Fraction
    seed: int = 0
    _edges: dict[frozenset[int], Fraction] = field(default_factory=dict)

    @cached_property
    def _cycle(self) -> int:
        return lcm(*(window.slide_us for window in self.windows))

    @cached_property
    def _bits(self) -> list[int]:
        bits = []
        for window in self.windows:
            ends = range(window.offset_us, self._cycle, window.slide_us)
            begins = range(
                (window.offset_us - window.range_us) % window.slide_us, self._cycle, window.slide_us
            )
            bits.append(sum(1 << edge for edge in {*ends, *begins}))
        return bits

    def edges(self, tree: Tree) -> Fraction:
        key = frozenset(tree)
        if key not in self._edges:
            united = 0
            for query in key:
                united |= self._bits[query]
            self._edges[key] = Fraction(united.bit_count() * US_PER_S, self._cycle)
        return self._edges[key]

    def overlap(self, tree: Tree) -> Fraction:
        return sum((Fraction(self.windows[q].range_us, self.windows[q].slide_us) for q in tree), Fraction(0))

    def cost(self, tree: Tree) -> Fraction:
        return self.rate + self.edges(tree) * self.overlap(tree)

    def node_cost(self, node: Node) -> Fraction:
        return sum(map(self.cost, node), Fraction(0))

    def total_cost(self, nodes: Sequence[Node]) -> Fraction:
        return sum(map(self.node_cost, nodes), Fraction(0))

    @property
    def queries(self) -> range:
        return range(len(self.windows))

    # §5

    def at_random(self, category: str) -> list[Node]:
        random = Random(self.seed)
        nodes: list[Node] = [[] for _ in range(self.nodes)]
        for query in self.queries:
            node = nodes[random.randrange(self.nodes)]
            if category == "g" or not node:
                if category == "wg":
                    random.random()
                node.append([query])
            elif category == "w":
                node[0].append(query)
            elif random.random() < 0.5:
                node[random.randrange(len(node))].append(query)
            else:
                node.append([query])
        return nodes

    def in_turn(self, category: str) -> list[Node]:
        nodes: list[Node] = [[] for _ in range(self.nodes)]
        for query in self.queries:
            node, round_number = nodes[query % self.nodes], query // self.nodes
            if category == "g" or not node or (category == "wg" and round_number % 2 == 0):
                node.append([query])
            elif category == "w":
                node[0].append(query)
            else:
                # The trees that it has had by turns: one, then two …
                node[_turn(round_number // 2)].append(query)
        return nodes

    # §6.1, Algorithm 1

    def to_lowest(self, category: str) -> list[Node]:
        nodes = self._first_to_nodes([[query] for query in self.queries])
        for tree in self._expensive_first([[query] for query in self.queries])[self.nodes :]:
            node = nodes[first_least(list(map(self.node_cost, nodes)))]
            if category == "g":
                node.append(tree)
            elif category == "w":
                node[0] += tree
            else:
                least = node[first_least(list(map(self.cost, node)))]
                grouped = self.node_cost([*node, tree])
                woven = self.node_cost(node) - self.cost(least) + self.cost(least + tree)
                if is_less(grouped, woven):
                    node.append(tree)
                else:
                    least += tree
        return nodes

    # §6.2, Algorithm 2

    def to_nodes(self, category: str, stops_at_nodes: bool = False) -> list[Node]:
        trees = [[query] for query in self.queries]
        while len(trees) > 1:
            if stops_at_nodes and len(trees) <= self.nodes:
                break
            pairs = list(combinations(range(len(trees)), 2))
            gains = [
                self.cost(trees[i]) + self.cost(trees[j]) - self.cost(trees[i] + trees[j]) for i, j in pairs
            ]
            chosen = first_greatest(gains, self.rate)
            if not is_less(Fraction(0), max(gains), self.rate) and (
                category == "wg" or len(trees) <= self.nodes
            ):
                break
            i, j = pairs[chosen]
            trees[i] += trees.pop(j)
        if category == "w":
            return [*([tree] for tree in trees), *([] for _ in range(self.nodes - len(trees)))]
        nodes = self._first_to_nodes(trees)
        for tree in self._expensive_first(trees)[self.nodes :]:
            nodes[first_least(list(map(self.node_cost, nodes)))].append(tree)
        return nodes

    # §6.3, Algorithm 3

    def inserted(self, category: str, measure: str = "text", start: str = "first") -> list[Node]:
        queries = list(self.queries)
        if start == "random" and len(queries) > self.nodes:
            chosen = Random(self.seed).sample(queries, self.nodes)
            queries = [*chosen, *(query for query in queries if query not in chosen)]
        nodes: list[Node] = [[] for _ in range(self.nodes)]
        for node, query in zip(nodes, queries, strict=False):
            node.append([query])
        for query in queries[self.nodes :]:
            places = [(node, tree) for node in nodes for tree in node]
            increases = [self.cost([*tree, query]) - self.cost(tree) for _, tree in places]
            total = self.total_cost(nodes)
            costs = [
                increase + (total if measure == "plan" else self.node_cost(node))
                for increase, (node, _) in zip(increases, places, strict=True)
            ]
            place = first_least(costs)
            least = nodes[first_least(list(map(self.node_cost, nodes)))]
            own = self.cost([query])
            grouped = {"text": own, "plan": total + own, "node": self.node_cost(least) + own}[measure]
            woven = increases[place] if measure == "text" else costs[place]
            scale = self.rate if measure == "text" else Fraction(0)
            if category == "wg" and is_less(grouped, woven, scale):
                least.append([query])
            else:
                places[place][1].append(query)
        return nodes

    def _expensive_first(self, trees: Sequence[Tree]) -> list[Tree]:
        left, ordered = list(trees), []
        while left:
            ordered.append(left.pop(first_greatest(list(map(self.cost, left)))))
        return ordered

    def _first_to_nodes(self, trees: Sequence[Tree]) -> list[Node]:
        ordered = self._expensive_first(trees)
        return [ordered[number : number + 1] for number in range(self.nodes)]


def _turn(number: int) -> int:
    """Which tree the n-th weaving on a node goes to, where before each there is one tree more."""
    following = 0
    for weaving in range(number + 1):
        chosen = following % (weaving + 1)
        following = chosen + 1
    return chosen


REFERENCES: dict[str, Callable[[Reference], list[Node]]] = {
    "g-rand": lambda reference: reference.at_random("g"),
    "g-rr": lambda reference: reference.in_turn("g"),
    "g-tl": lambda reference: reference.to_lowest("g"),
    "w-rand": lambda reference: reference.at_random("w"),
    "w-rr": lambda reference: reference.in_turn("w"),
    "w-tl": lambda reference: reference.to_lowest("w"),
    "w-tn": lambda reference: reference.to_nodes("w"),
    "w-i": lambda reference: reference.inserted("w"),
    "wg-rand": lambda reference: reference.at_random("wg"),
    "wg-rr": lambda reference: reference.in_turn("wg"),
    "wg-tl": lambda reference: reference.to_lowest("wg"),
    "wg-tn": lambda reference: reference.to_nodes("wg"),
    "wg-i": lambda reference: reference.inserted("wg"),
    "w-tn:text": lambda reference: reference.to_nodes("w", stops_at_nodes=True),
    "wg-tn:text": lambda reference: reference.to_nodes("wg", stops_at_nodes=True),
    "w-i:plan-cost": lambda reference: reference.inserted("w", "plan"),
    "wg-i:plan-cost": lambda reference: reference.inserted("wg", "plan"),
    "wg-i:node-cost": lambda reference: reference.inserted("wg", "node"),
    "w-i:random-start": lambda reference: reference.inserted("w", start="random"),
    "wg-i:random-start": lambda reference: reference.inserted("wg", start="random"),
}


def check_plan(plan: WeavingPlan, problem: WeavingProblem) -> None:
    """A partition of the queries on nodes that there are; numbers that follow from it."""
    assert sorted(query for tree in plan.trees for query in tree.queries) == list(range(len(problem.windows)))
    assert all(tree.queries and 0 <= tree.node < problem.nodes for tree in plan.trees)
    windows = [[problem.windows[query] for query in tree.queries] for tree in plan.trees]
    for tree, own in zip(plan.trees, windows, strict=True):
        assert tree.edges_per_s == pytest.approx(float(edge_rate_per_s(own)), rel=1e-12)
        assert tree.cost == pytest.approx(float(tree_cost(own, problem.rate_rows_per_s)), rel=1e-12)
    total = float(plan_cost(windows, problem.rate_rows_per_s))
    assert plan.total_cost == pytest.approx(total, rel=1e-12)
    assert plan.max_cost == max(plan.node_costs)


def all_node_costs(problem: WeavingProblem, speeds: Sequence[float]) -> Iterator[list[float]]:
    """What nodes cost in each plan that there is. Of nodes of equal speed that have nothing yet, only the
    first is tried for a tree."""
    known: dict[tuple[int, ...], float] = {}

    def cost(tree: tuple[int, ...]) -> float:
        if tree not in known:
            known[tree] = float(tree_cost([problem.windows[q] for q in tree], problem.rate_rows_per_s))
        return known[tree]

    def placed(costs: Sequence[float], nodes: list[float]) -> Iterator[list[float]]:
        if not costs:
            yield nodes
            return
        empty_of: set[float] = set()
        for node, load in enumerate(nodes):
            if load == 0.0:
                if speeds[node] in empty_of:
                    continue
                empty_of.add(speeds[node])
            yield from placed(costs[1:], [*nodes[:node], load + costs[0], *nodes[node + 1 :]])

    for trees in _partitions(list(range(len(problem.windows)))):
        yield from placed([cost(tree) for tree in trees], [0.0] * problem.nodes)


def _partitions(queries: list[int]) -> Iterator[list[tuple[int, ...]]]:
    if not queries:
        yield []
        return
    first, rest = queries[0], queries[1:]
    for trees in _partitions(rest):
        yield [(first,), *trees]
        for place, tree in enumerate(trees):
            yield [*trees[:place], (first, *tree), *trees[place + 1 :]]
