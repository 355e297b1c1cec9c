"""Estimates are finite.

The rows of a join are a product over its inputs, which leaves the range of floating-point numbers from about
twenty large inputs on; with infinities, nothing could be compared or summed up any more. No estimate of a
stream exceeds `LARGEST`, which is far beyond anything that runs.
"""

from __future__ import annotations

from collections.abc import Iterable

LARGEST = 1e100


def bounded(quantity: float) -> float:
    return min(float(quantity), LARGEST)


def product(factors: Iterable[float]) -> float:
    """The product, or `LARGEST` squared if that is less: what shares of it can still be told apart.

    >>> product([2.0, 3.0]), product([1e90] * 9), product([*[1e90] * 9, 0.0])
    (6.0, 1e+200, 0.0)
    """
    result = 1.0
    for factor in factors:
        result = min(result * factor, LARGEST * LARGEST)
    return result
