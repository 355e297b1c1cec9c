"""What no plan can cost less than; and for few edge sets, the least Total Cost that there is.

Let e be the edge rate of an edge set alone and w the overlap of all queries that have it. A tree has at least
the edges of each of its edge sets, so it costs no less than λ + (greatest e in it)·Ω. Let **D(m)** be the
least Σ (greatest e of a tree)·(Ω of the tree) over all ways to put the queries into at most m trees.

- In a best such way queries of equal e are in one tree, and trees are intervals in the order of e: given the
  greatest e of each tree, a query goes to the tree of the least of these that is not below its own. So D(m)
  is a partition of a sequence into at most m intervals, found interval by interval; and D(m) does not grow
  with m.
- **Total.** A plan of m trees costs at least m·λ + D(m). So any plan costs at least the least of this over
  m, from 1 to as many as there are different e: beyond that D(m) is constant and m·λ is not less.
- **Max.** A plan of m trees is on k ≤ min(m, nodes) nodes that have any. Let s(k) be the sum of the k
  greatest speeds. Were each of these nodes done within M, the plan would cost at most M·s(k). So
  M ≥ (m·λ + D(m)) / s(k) ≥ (m·λ + D(m)) / s(min(m, nodes)). From as many m on as there are different e and
  nodes, numerator and denominator do the same as for the total. And some node has the query that costs most
  by itself.

Where more than `MOST_RATES` different e occur, some are taken for the next lower one, which only lowers D.
Bounds are lowered by 1e-12 of themselves, more than the noise of the floats that they are sums of.

How far bounds are from plans is mostly that trees have more edges than their greatest e says.

**Exactly.** For the least Total Cost no two trees need to have an edge set in common: of two that have, the
one of fewer edges takes the other's queries of it at no more cost. So it is that of a best partition of the
edge sets, and the best partition of a set is a tree with its first member, and a best partition of the rest.
That looks at 3^n pairs of sets: 15 edge sets, such as all primes to 50, take a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plait.planners.weaving.problem import WeavingProblem
from plait.windows.edge_classes import Numbers

MOST_RATES = 200
MOST_EDGE_SETS_FOR_EXACT = 15

_SAFE = 1.0 - 1e-12


def total_cost_bound(problem: WeavingProblem) -> float:
    if not problem.windows:
        return 0.0
    work = _least_work(problem)
    trees = np.arange(1, len(work) + 1)
    return float((trees * problem.rate_rows_per_s + work).min()) * _SAFE


def least_total_cost(problem: WeavingProblem) -> float | None:
    """Nothing, if there are more than `MOST_EDGE_SETS_FOR_EXACT`."""
    count = len(problem.edge_sets)
    if count > MOST_EDGE_SETS_FOR_EXACT:
        return None
    costs = _costs_of_trees(problem)
    least = np.zeros(1 << count)
    for members in range(1, 1 << count):
        trees = np.array([members & -members])
        rest = members & (members - 1)
        while rest:
            trees = np.concatenate([trees, trees | (rest & -rest)])
            rest &= rest - 1
        least[members] = (costs[trees] + least[members ^ trees]).min()
    return float(least[-1])


def max_cost_bound(problem: WeavingProblem, speeds: Sequence[float] | None = None) -> float:
    """Of a node's cost divided by its speed, if speeds are given."""
    if not problem.windows:
        return 0.0
    fastest = np.sort(np.ones(problem.nodes) if speeds is None else np.array(speeds, dtype=np.float64))[::-1]
    work = _least_work(problem)
    trees = np.arange(1, max(len(work), problem.nodes) + 1)
    costs = trees * problem.rate_rows_per_s + work[np.minimum(trees, len(work)) - 1]
    together = costs / np.cumsum(fastest)[np.minimum(trees, problem.nodes) - 1]
    alone = max(problem.cost_of(item) for item in problem.items) / fastest[0]
    return max(float(together.min()), float(alone)) * _SAFE


def _costs_of_trees(problem: WeavingProblem) -> Numbers:
    """Of each set of edge sets, by its bits, if all their queries are one tree. Nothing costs nothing."""
    unions, count = problem.unions, len(problem.edge_sets)
    overlaps = np.zeros(1 << count)
    made = [unions.of(0)]
    for edge_set in range(count):
        overlap = sum(item.overlap for item in problem.items if item.edge_set == edge_set)
        overlaps[1 << edge_set : 2 << edge_set] = overlaps[: 1 << edge_set] + overlap
        made += [unions.added(union, edge_set) for union in made]
    costs: Numbers = np.array([unions.rate_per_s(union) for union in made]) * overlaps
    costs[1:] += problem.rate_rows_per_s
    return costs


def _least_work(problem: WeavingProblem) -> Numbers:
    """D(1), D(2) … until it is constant."""
    rates, overlaps = _by_rate(problem)
    # Of an interval from the first to before the last: its greatest rate is that of its last.
    upto = np.concatenate([[0.0], np.cumsum(overlaps)])
    interval = rates[None, :] * (upto[None, 1:] - upto[:-1, None])
    interval[np.tril_indices(len(rates), -1)] = np.inf
    least = interval[0]
    works = [least[-1]]
    for _ in range(1, len(rates)):
        before = np.concatenate([[0.0], least[:-1]])
        least = np.minimum(least, (before[:, None] + interval).min(axis=0))
        works.append(least[-1])
    return np.array(works)


def _by_rate(problem: WeavingProblem) -> tuple[Numbers, Numbers]:
    """Different rates, from the least, and the overlap of all queries of each."""
    overlap_of: dict[float, float] = {}
    for item in problem.items:
        rate = problem.edge_set_rates_per_s[item.edge_set]
        overlap_of[rate] = overlap_of.get(rate, 0.0) + item.overlap
    rates = np.array(sorted(overlap_of))
    overlaps = np.array([overlap_of[rate] for rate in rates.tolist()])
    if len(rates) > MOST_RATES:
        kept = np.unique(np.linspace(0, len(rates) - 1, MOST_RATES).astype(np.int64))
        rates, overlaps = rates[kept], np.add.reduceat(overlaps, kept)
    return rates, overlaps
