"""Which of several equal numbers is taken: the one rule that all optimizers follow.

Gains and costs are often equal, and floats of equal numbers differ in their last digits: without a rule,
noise would choose plans. Two numbers are **equal** if they differ by no more than 1e-9 of the greater;
among those equal to the best, the first in scan order is taken.

Gains are what is left of the input rate after losses, and can be small where both are large; they are equal
if they differ by no more than 1e-9 of the rate, which is the `scale` that is given for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plait.windows.edge_classes import Integers, Numbers

TOLERANCE = 1e-9


def is_less(one: float, other: float, scale: float = 0.0) -> bool:
    """Whether the first is less, and not equal.

    >>> is_less(1.0, 1.0 + 1e-12), is_less(1.0, 1.1), is_less(0.0, 1e-5, scale=1e6)
    (False, True, False)
    """
    return other - one > TOLERANCE * max(abs(one), abs(other), scale)


def first_least(values: Numbers) -> int:
    """
    >>> first_least(np.array([2.0, 1.0 + 1e-12, 1.0]))
    1
    """
    least = float(values.min())
    return int((values <= least + TOLERANCE * abs(least)).argmax())


def all_least(values: Numbers) -> Integers:
    """The places of all that are equal to the least, in their order."""
    least = float(values.min())
    return np.flatnonzero(values <= least + TOLERANCE * abs(least))


def equal_to_greatest(greatest: float, scale: float) -> float:
    """The number from which on others are equal to the greatest of them."""
    return greatest - TOLERANCE * max(abs(greatest), scale)


def descending(values: Sequence[float]) -> list[int]:
    """Places of values from the greatest to the least; of equal ones, in their order.

    >>> descending([1.0, 3.0, 2.0, 3.0 + 1e-12])
    [1, 3, 2, 0]
    """
    places: list[int] = sorted(range(len(values)), key=lambda place: -values[place])
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or is_less(values[places[end]], values[places[start]]):
            places[start:end] = sorted(places[start:end])
            start = end
    return places


class GrowingCosts:
    """Costs of trees of one node: they change, and more come, and the least is asked for again and again."""

    def __init__(self) -> None:
        self._values = np.empty(8)
        self._size = 0

    def append(self, cost: float) -> None:
        if self._size == len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._values[self._size] = cost
        self._size += 1

    def __setitem__(self, place: int, cost: float) -> None:
        self._values[place] = cost

    def __getitem__(self, place: int) -> float:
        return float(self._values[place])

    def first_least(self) -> int:
        return first_least(self._values[: self._size])
