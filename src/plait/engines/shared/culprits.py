"""Which queries a micro-batch fails by: found by trying it with fewer and fewer of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from plait.errors import PlaitError

# Where more fail, the reason is most likely not theirs.
_MOST = 8

_Query = TypeVar("_Query")
_Tried = Callable[[Sequence[_Query]], PlaitError | None]


def culprits(queries: Sequence[_Query], tried: _Tried[_Query]) -> list[tuple[_Query, PlaitError]]:
    """The queries that fail by themselves, and how; the others together do not. `tried` gives the error of a
    batch with some of them.

    None is found if it takes several to fail, or if very many do.

    >>> culprits([1, 2, 3], lambda some: PlaitError("two", "two") if 2 in some else None)[0][0]
    2
    """
    found: list[tuple[_Query, PlaitError]] = []
    rest = list(queries)
    while rest and tried(rest) is not None:
        one = _one(rest, tried) if len(found) < _MOST else None
        if one is None:
            return []
        found.append(one)
        rest.remove(one[0])
    return found


def _one(queries: Sequence[_Query], tried: _Tried[_Query]) -> tuple[_Query, PlaitError] | None:
    """A query that fails by itself, among some that fail."""
    while len(queries) > 1:
        half = len(queries) // 2
        failing = (part for part in (queries[:half], queries[half:]) if tried(part) is not None)
        smaller = next(failing, None)
        if smaller is None:
            return None
        queries = smaller
    error = tried(queries)
    return None if error is None else (queries[0], error)
