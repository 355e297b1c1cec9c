"""WeaveShare (§2): the pair of trees that gains most is woven, again and again.

| paper | here |
|---|---|
| CostRed of weaving t_i and t_j | a gain: λ − (E_ij − E_i)·Ω_i − (E_ij − E_j)·Ω_j |
| MaxReduction, ToWeave | the greatest gain, the first pair that has it |
| T | how many trees there are |

Pairs are scanned as (i, j) with i < j, row by row; the woven tree stands where t_i stood. The listing's
bounds (i from 0, j from 1) also name pairs of a tree with itself and every other pair twice, which changes
nothing that makes sense.

**Equal edges first.** E_ij is at least E_i and E_j, so no gain exceeds λ, and it is λ exactly where all
three are equal, that is, where both trees have the same edges. While there are such pairs, one of them is
the best, and weaving it leaves a tree of the same edges: so greedy first makes one tree of all queries with
equal edges (of identical queries first of all), in the order of the first of each. That is done here
without looking at pairs, and greedy begins with as many trees as there are different edges. It may have to
stop on the way, when there are few enough trees, and then the last ones are left out, as greedy would leave
them. (A pair of different edges whose gain is within 1e-9 of λ is equal by the tie rule and could come
first. That takes millions of rows a second, or ranges of thousandths of a slide.)

**Pairs that are not looked at.** What a tree makes with another has at least the edges of what its parts
made with it. So after weaving, gains are known not to exceed some number, and edges are counted only of
pairs that could be the best by that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait.planners.weaving.plan import GrowingTree
from plait.planners.weaving.problem import WeavingProblem
from plait.planners.weaving.ties import equal_to_greatest, is_less
from plait.windows.edge_classes import Integers, Numbers

NO_MATTER_HOW_MANY = 10**18

# So many pairs of a tree are counted at once, those that may gain most: it takes two or three times as long
# as one.
COUNTED_AT_ONCE = 32


@dataclass(frozen=True)
class Extent:
    """How far weaving goes: never to fewer than `fewest_trees`; and while there are more than
    `forced_above`, also where nothing gains."""

    fewest_trees: int
    forced_above: int = NO_MATTER_HOW_MANY

    def goes_on(self, trees: int, gains: bool) -> bool:
        return trees > max(1, self.fewest_trees) and (gains or trees > self.forced_above)


def weave_share(problem: WeavingProblem, extent: Extent) -> list[GrowingTree]:
    trees = _woven_by_edges(problem, extent)
    gains = problem.rate_rows_per_s > 0
    if not extent.goes_on(len(trees), gains):
        return trees
    return _Pairs(trees, problem).woven(extent)


def _woven_by_edges(problem: WeavingProblem, extent: Extent) -> list[GrowingTree]:
    """One tree for all queries of equal edges, or as far as weaving goes."""
    gains, left = problem.rate_rows_per_s > 0, len(problem.items)
    items_of: dict[int, list[int]] = {}
    for place, item in enumerate(problem.items):
        items_of.setdefault(item.edge_set, []).append(place)
    trees: dict[int, GrowingTree] = {}
    for first, *others in items_of.values():
        tree = trees[first] = GrowingTree.of(problem.items[first], problem)
        for place in others:
            item = problem.items[place]
            if extent.goes_on(left, gains):
                tree.overlap += item.overlap
                tree.items.append(item)
                left -= 1
            else:
                trees[place] = GrowingTree.of(item, problem)
    return [trees[place] for place in sorted(trees)]


class _Pairs:
    """The gains of all pairs of trees. A tree is known by its place, which never changes; where one has been
    woven into an earlier one, its gains are minus infinity.

    Each tree has the edges of its place in the problem's `edge_sets`, at first.
    """

    def __init__(self, trees: list[GrowingTree], problem: WeavingProblem) -> None:
        self._trees = trees
        self._unions = problem.unions
        self._rate = problem.rate_rows_per_s
        self._alive = np.ones(len(trees), dtype=bool)
        self._union = np.array([tree.union for tree in trees])
        self._edges = np.array([tree.edges_per_s for tree in trees])
        self._overlap = np.array([tree.overlap for tree in trees])
        # Edges of a pair woven together, or a number that they are not below; and what it gains, or a
        # number that this does not exceed.
        self._pair_edges = np.stack([self._unions.rates_with_each_edge_set(tree.union) for tree in trees])
        self._is_counted = np.ones((len(trees), len(trees)), dtype=bool)
        places = np.arange(len(trees))
        self._gains = self._gains_of(places[:, None], places, self._pair_edges)
        np.fill_diagonal(self._gains, -np.inf)
        self._best = self._gains.max(axis=1)

    def woven(self, extent: Extent) -> list[GrowingTree]:
        left = len(self._trees)
        while left > 1:
            one, other, gain = self._first_of_greatest_gain()
            if not extent.goes_on(left, is_less(0.0, gain, self._rate)):
                break
            self._weave(one, other)
            left -= 1
        return [tree for tree, alive in zip(self._trees, self._alive, strict=True) if alive]

    def _first_of_greatest_gain(self) -> tuple[int, int, float]:
        """The first tree that is in a pair of the greatest gain is the first of that pair, and the first of
        those that it is in such a pair with is the other."""
        while True:
            greatest = float(self._best.max())
            enough = equal_to_greatest(greatest, self._rate)
            uncounted = self._first_uncounted(enough)
            if uncounted is None:
                one = int((self._best >= enough).argmax())
                return one, int((self._gains[one] >= enough).argmax()), greatest
            self._count(uncounted, enough)

    def _first_uncounted(self, enough: float) -> int | None:
        """A tree that is in a pair that may have the greatest gain, but whose edges are not counted."""
        for place in np.flatnonzero(self._best >= enough):
            others = np.flatnonzero((self._gains[place] >= enough) & ~self._is_counted[place])
            if len(others):
                both = [int(place), int(others[0])]
                return max(both, key=lambda tree: int((~self._is_counted[tree]).sum()))
        return None

    def _count(self, one: int, enough: float) -> None:
        """Count the edges of all pairs of a tree that may gain enough, and of some more."""
        others = np.flatnonzero(~self._is_counted[one])
        if len(others) > COUNTED_AT_ONCE:
            gains = self._gains[one, others]
            enough = min(enough, float(np.partition(gains, -COUNTED_AT_ONCE)[-COUNTED_AT_ONCE]))
            others = others[gains >= enough]
        self._set(one, others, self._unions.rates_with(int(self._union[one]), self._union[others]))
        self._is_counted[one, others] = self._is_counted[others, one] = True

    def _weave(self, one: int, other: int) -> None:
        into, woven = self._trees[one], self._trees[other]
        into.union = self._unions.joined(into.union, woven.union)
        into.edges_per_s = self._unions.rate_per_s(into.union)
        into.overlap += woven.overlap
        into.items += woven.items
        self._union[one], self._edges[one], self._overlap[one] = into.union, into.edges_per_s, into.overlap
        self._alive[other] = False
        others = np.flatnonzero(self._alive)
        others = others[others != one]

        had_best = others[self._gains[others, other] >= self._best[others]]
        self._gains[other] = self._gains[:, other] = self._best[other] = -np.inf
        self._is_counted[other] = self._is_counted[:, other] = True
        self._best[had_best] = self._gains[had_best].max(axis=1)
        pair_edges = np.maximum(self._pair_edges[one, others], self._pair_edges[other, others])
        self._is_counted[one, others] = self._is_counted[others, one] = False
        self._set(one, others, np.maximum(pair_edges, self._edges[one]))

    def _set(self, one: int, others: Integers, pair_edges: Numbers) -> None:
        before, gains = self._gains[others, one], self._gains_of(one, others, pair_edges)
        self._pair_edges[one, others] = self._pair_edges[others, one] = pair_edges
        self._gains[one, others] = self._gains[others, one] = gains
        had_best = others[(before >= self._best[others]) & (gains < before)]
        self._best[others] = np.maximum(self._best[others], gains)
        self._best[had_best] = self._gains[had_best].max(axis=1)
        self._best[one] = self._gains[one].max()

    def _gains_of(self, one: int | Integers, others: Integers, pair_edges: Numbers) -> Numbers:
        gains: Numbers = (
            self._rate
            - (pair_edges - self._edges[one]) * self._overlap[one]
            - (pair_edges - self._edges[others]) * self._overlap[others]
        )
        return gains
