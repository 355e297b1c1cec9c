"""The optimizers of the aggregates paper once more, as plainly as they can be said.

Rational numbers, a bit set over the common multiple of all slides, every pair looked at in every step, and
no query put together with an equal one beforehand. Far too slow for anything but comparing plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import lcm
from random import Random

from tests.workloads.windows import US_PER_S

from plait.plan.nodes import TickWindow

TOLERANCE = Fraction(1, 10**9)

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
