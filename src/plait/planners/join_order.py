"""In which order a join of several inputs is computed.

Greedy, and left-deep: first the pair with the smallest result, then whatever keeps the result smallest,
and a cross product only where nothing else is left. The size of a sub-join does not depend on the order
it was computed in (`cost/sizes.py`), so sizes can be compared before anything is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TypeAlias

from plait.cost.model import CostModel
from plait.plan.nodes import Join, Static
from plait.space import is_connected, restricted

Order: TypeAlias = tuple[int, ...]


def smallest_first(join: Join, cost: CostModel, start: Order = ()) -> Order:
    """The greedy order, after `start` if that is given."""
    if len(join.inputs) == 2:
        return (0, 1)
    order = start
    if not order:
        pairs = (pair for pair in combinations(range(len(join.inputs)), 2) if _has_stream(join, pair))
        order = min(pairs, key=lambda pair: _badness(join, pair, cost))
    while len(order) < len(join.inputs):
        rest = (index for index in range(len(join.inputs)) if index not in order)
        order = min(((*order, index) for index in rest), key=lambda longer: _badness(join, longer, cost))
    return order


def longest_existing(join: Join, exists: Callable[[Order], bool]) -> Order:
    """The largest sub-join that exists and can be reached by adding one input after the other; () if none."""

    def found(members: Order) -> bool:
        return _has_stream(join, members) and exists(tuple(sorted(members)))

    longest: Order = ()
    for pair in combinations(range(len(join.inputs)), 2):
        if set(pair) <= set(longest) or not found(pair):
            continue
        order: Order | None = pair
        while order is not None:
            longest = max(longest, order, key=len)
            longer = ((*order, index) for index in range(len(join.inputs)) if index not in order)
            order = next(filter(found, longer), None)
    return longest


def _badness(join: Join, order: Order, cost: CostModel) -> tuple[bool, float, Order]:
    so_far = restricted(join, tuple(sorted(order)))
    return not is_connected(so_far), cost.size(so_far).rate_rows_per_s, order


def _has_stream(join: Join, members: Order) -> bool:
    return any(not isinstance(join.inputs[member].timing, Static) for member in members)
