"""Tabu search over arrangements of trees: in every step the best of many changes, also where it makes things
worse, and what left a tree does not come back to it for some steps.

Changes are

- a part of a tree to another tree, or to a new one on one of the cheapest nodes;
- so many of its items that both nodes then cost the same;
- a tree to another node, or two trees of different nodes exchanged, where that is an improvement;
- a tree woven with another one.

All of one kind are compared at once. At most `MOST_PARTS` parts, drawn anew in every step, are looked at, and
one tree is tried for weaving with all others: so a step costs about the same however many edge sets there
are.

**What is compared.** The cost of the dearest node alone would tell nothing of most changes. In its place
stands a norm of all nodes' costs, the 32nd root of the sum of their 32nd powers, which is little more than
the dearest and gains by every relief of a dear node; `Goal` weighs it against the total. What is kept is the
best by the dearest node itself.

After `PATIENCE` steps without anything better the search returns to the best and leaves it another way.

A step takes 0.3 to 0.6 ms for workloads of the aggregates paper. Only steps are counted, equal values are
decided by the rule for ties, and the random numbers are Python's: the same seed makes the same plan anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.planners.weaving.arrangement import EMPTY, Arrangement
from plait.planners.weaving.ties import first_least, is_less
from plait.windows.edge_classes import Integers, Numbers

MOST_PARTS = 64
NEW_TREES = 3
PATIENCE = 150
TENURE = 8
TENURE_WHEN_LEAVING = 20
SHIFTS_WHEN_LEAVING = 3

# Of the norm: 2^5 = 32.
DOUBLINGS = 5


@dataclass(frozen=True)
class Goal:
    """What a unit of the total, and of the dearest node, counts for: when arrangements are compared with the
    best so far, and, if the search shall look at the total more than that, in the search."""

    of_total: float
    of_max: float
    of_total_in_search: float

    def value(self, total_cost: float, max_cost: float) -> float:
        return self.of_total * total_cost + self.of_max * max_cost


class _Shift(NamedTuple):
    place: int
    edge_set: int
    into: int
    node: int
    overlap: float


class _Relocation(NamedTuple):
    place: int
    node: int


class _Exchange(NamedTuple):
    place: int
    other: int


class _Merge(NamedTuple):
    place: int
    into: int


_Change = _Shift | _Relocation | _Exchange | _Merge
_Proposal = tuple[float, _Change]

_Truths = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Shifts:
    """All that are looked at in one step: parts are rows, what they may go into are columns.

    `entry` is what it costs there to have the part's edges, before any of its items come.
    """

    places: Integers
    edge_sets: Integers
    into: Integers
    node: Integers
    into_node: Integers
    is_whole_tree: _Truths
    edges_there: Numbers
    entry: Numbers
    is_open: _Truths


class Improvement:
    """The search. `best` only ever gets better."""

    def __init__(self, start: Arrangement, goal: Goal, random: Random) -> None:
        self._now = start
        self._goal = goal
        self._random = random
        self._step = 0
        self._step_of_best = 0
        # Until which step an edge set does not come back to a tree.
        self._closed_until = np.zeros(start.part_sizes.shape, dtype=np.int64)
        self.best = start.copy()
        self.best_value = self._value()
        self._look()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._step += 1
            proposals = [*self._shifts(), *self._tree_moves(), *self._merges()]
            if not proposals:
                return
            self._apply(_best_of(proposals))
            self._keep()
            if self._step - self._step_of_best > PATIENCE:
                self._leave_best()

    def run_trees(self) -> None:
        """Only move whole trees, while that is an improvement."""
        while proposals := self._tree_moves():
            self._apply(_best_of(proposals))
            self._keep()

    def _keep(self) -> None:
        value = self._value()
        if is_less(value, self.best_value):
            self.best, self.best_value, self._step_of_best = self._now.copy(), value, self._step

    def _leave_best(self) -> None:
        self._now = self.best.copy()
        self._step_of_best = self._step
        self._closed_until = np.zeros(self._now.part_sizes.shape, dtype=np.int64)
        for _ in range(SHIFTS_WHEN_LEAVING):
            trees = self._now.trees().tolist()
            if len(trees) < 2:
                break
            place, into = self._random.sample(trees, 2)
            edge_set = self._random.choice(np.flatnonzero(self._now.part_sizes[place]).tolist())
            self._shift(_Shift(place, edge_set, into, 0, np.inf), TENURE_WHEN_LEAVING)
        self._look()

    def _value(self) -> float:
        return self._goal.value(self._now.total_cost, float(self._now.node_costs.max()))

    # What changes would make of the arrangement

    def _look(self) -> None:
        """Before changes are compared: powers of the nodes' costs, relative to the dearest."""
        self._now.count_costs()
        self._dearest = float(self._now.node_costs.max())
        self._powers = self._power(self._now.node_costs)
        self._sum = float(self._powers.sum())
        self._smooth = float(self._smooth_value(self._now.total_cost, np.array(self._sum)))

    def _power(self, node_costs: Numbers) -> Numbers:
        power = node_costs / self._dearest
        for _ in range(DOUBLINGS):
            power = power * power
        return power

    def _smooth_value(self, total_cost: float | Numbers, sums: Numbers) -> Numbers:
        norm = sums
        for _ in range(DOUBLINGS):
            norm = np.sqrt(norm)
        value: Numbers = self._goal.of_total_in_search * total_cost + self._goal.of_max * self._dearest * norm
        return value

    def _values(self, one: Integers, other: Integers, of_one: Numbers, of_other: Numbers) -> Numbers:
        """If a tree on node `one` came to cost so much more, and one on node `other`."""
        now = self._now
        total: Numbers = now.total_cost + of_one + of_other
        if not self._goal.of_max:
            return self._goal.of_total_in_search * total
        cost_of_one, cost_of_other = now.node_costs[one], now.node_costs[other]
        speed_of_one = now.inverse_speeds[one]
        more = (
            self._power(cost_of_one + of_one * speed_of_one)
            + self._power(cost_of_other + of_other * now.inverse_speeds[other])
            - self._powers[one]
            - self._powers[other]
        )
        same = one == other
        if same.any():
            alone = self._power(cost_of_one + (of_one + of_other) * speed_of_one) - self._powers[one]
            more = np.where(same, alone, more)
        return self._smooth_value(total, np.maximum(self._sum + more, 0.0))

    def _shifts(self) -> list[_Proposal]:
        now = self._now
        shifts = self._all_shifts()
        if shifts is None:
            return []
        proposals: list[_Proposal] = []
        whole = np.full(shifts.entry.shape, np.inf)
        compared = [(whole, self._values_of_whole_parts(shifts))]
        if self._goal.of_max and len(now.node_costs) > 1:
            compared.append(self._values_of_some_items(shifts))
        for overlaps, values in compared:
            row, column = divmod(first_least(values.ravel()), len(shifts.into))
            if np.isfinite(values[row, column]):
                shift = _Shift(
                    int(shifts.places[row]),
                    int(shifts.edge_sets[row]),
                    int(shifts.into[column]),
                    int(shifts.into_node[0, column]),
                    float(overlaps[row, column]),
                )
                proposals.append((float(values[row, column]), shift))
        return proposals

    def _all_shifts(self) -> _Shifts | None:
        now, trees = self._now, self._now.trees()
        places, edge_sets = self._some_parts(trees)
        if not len(places):
            return None
        cheapest = np.argsort(now.node_costs, kind="stable")[:NEW_TREES]
        into = np.concatenate([trees, np.full(len(cheapest), EMPTY)])
        node = now.place_node[places][:, None]
        into_node = np.concatenate([now.place_node[trees], cheapest])[None, :]
        is_whole_tree = (np.count_nonzero(now.part_sizes[places], axis=1) == 1)[:, None]
        edges_there = now.edges_with[into][:, edge_sets].T
        entry = edges_there * now.place_overlap[into] - now.work(into)
        entry += np.where(into == EMPTY, now.rate, 0.0)
        is_open = self._step >= self._closed_until[into][:, edge_sets].T
        is_open &= places[:, None] != into
        is_open &= ~(is_whole_tree & (into == EMPTY) & (node == into_node))
        return _Shifts(places, edge_sets, into, node, into_node, is_whole_tree, edges_there, entry, is_open)

    def _values_of_whole_parts(self, shifts: _Shifts) -> Numbers:
        now, places = self._now, shifts.places
        overlap = now.part_overlap[places, shifts.edge_sets][:, None]
        overlap_left = now.place_overlap[places][:, None] - overlap
        left = now.edges_without[places, shifts.edge_sets][:, None] * overlap_left
        less = left - now.work(places)[:, None] - np.where(shifts.is_whole_tree, now.rate, 0.0)
        more = shifts.entry + shifts.edges_there * overlap
        values = self._values(shifts.node, shifts.into_node, less, more)
        values[~shifts.is_open] = np.inf
        return values

    def _values_of_some_items(self, shifts: _Shifts) -> tuple[Numbers, Numbers]:
        """For how much overlap both nodes would cost the same, and the values of that."""
        now, places = self._now, shifts.places
        node, into_node, entry, edges_there = shifts.node, shifts.into_node, shifts.entry, shifts.edges_there
        edges_here = now.place_edges[places][:, None]
        slower, slower_there = now.inverse_speeds[node], now.inverse_speeds[into_node]
        apart = now.node_costs[node] - now.node_costs[into_node] - entry * slower_there
        some: Numbers = apart / (edges_here * slower + edges_there * slower_there)
        is_open = shifts.is_open & (node != into_node)
        is_open &= (now.part_sizes[places, shifts.edge_sets] > 1)[:, None]
        is_open &= (some > 0) & (some < now.part_overlap[places, shifts.edge_sets][:, None])
        rows, columns = np.nonzero(is_open)
        overlap = some[rows, columns]
        values = np.full(entry.shape, np.inf)
        values[rows, columns] = self._values(
            node[rows, 0],
            into_node[0, columns],
            -edges_here[rows, 0] * overlap,
            entry[rows, columns] + edges_there[rows, columns] * overlap,
        )
        return some, values

    def _some_parts(self, trees: Integers) -> tuple[Integers, Integers]:
        """Places and edge sets of parts that can leave."""
        now = self._now
        rows, edge_sets = np.nonzero((now.part_sizes[trees] > 0) & np.isfinite(now.edges_without[trees]))
        if len(rows) > MOST_PARTS:
            chosen = np.array(self._random.sample(range(len(rows)), MOST_PARTS))
            rows, edge_sets = rows[chosen], edge_sets[chosen]
        return trees[rows], edge_sets

    def _tree_moves(self) -> list[_Proposal]:
        """Improvements only."""
        now, trees = self._now, self._now.trees()
        nodes = np.arange(len(now.node_costs))
        if len(nodes) == 1 or not self._goal.of_max:
            return []
        on = now.place_node[trees]
        costs = now.work(trees) + now.rate
        best: list[_Proposal] = []

        values = self._values(on[:, None], nodes[None, :], -costs[:, None], costs[:, None])
        values[on[:, None] == nodes] = np.inf
        tree, node = divmod(first_least(values.ravel()), len(nodes))
        if is_less(float(values[tree, node]), self._smooth):
            best.append((float(values[tree, node]), _Relocation(int(trees[tree]), node)))

        apart = costs[:, None] - costs
        values = self._values(on[:, None], on[None, :], -apart, apart)
        values[on[:, None] == on] = np.inf
        tree, other = divmod(first_least(values.ravel()), len(trees))
        if is_less(float(values[tree, other]), self._smooth):
            best.append((float(values[tree, other]), _Exchange(int(trees[tree]), int(trees[other]))))
        return best

    def _merges(self) -> list[_Proposal]:
        now, trees = self._now, self._now.trees()
        if len(trees) < 2:
            return []
        place = self._random.choice(trees.tolist())
        others = trees[trees != place]
        own = np.array([place])
        overlap = now.place_overlap[place] + now.place_overlap[others]
        more = now.edges_of_merged(place, others) * overlap - now.work(others)
        less = -(now.work(own) + now.rate)
        values = self._values(now.place_node[own], now.place_node[others], less, more)
        at = first_least(values)
        return [(float(values[at]), _Merge(place, int(others[at])))]

    # Changing it

    def _apply(self, change: _Change) -> None:
        now = self._now
        match change:
            case _Shift():
                self._shift(change, TENURE)
            case _Relocation(place, node):
                now.place_node[place] = node
            case _Exchange(place, other):
                now.place_node[[place, other]] = now.place_node[[other, place]]
            case _Merge(place, into):
                now.merge(place, into)
        self._look()

    def _shift(self, shift: _Shift, tenure: int) -> None:
        into = self._now.shift(*shift)
        if len(self._closed_until) < len(self._now.is_tree):
            more = len(self._now.is_tree) - len(self._closed_until)
            self._closed_until = np.pad(self._closed_until, ((0, more), (0, 0)))
        if shift.into == EMPTY:
            self._closed_until[into] = 0
        self._closed_until[shift.place, shift.edge_set] = self._step + tenure + self._random.randrange(tenure)


def _best_of(proposals: list[_Proposal]) -> _Change:
    return proposals[first_least(np.array([value for value, _ in proposals]))][1]
