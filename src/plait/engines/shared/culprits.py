"""Which queries a micro-batch fails by: found by trying it with fewer and fewer of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from plait.errors import InfeasibleError, PlaitError

# Where more fail, the reason is most likely not theirs. What each needs too much of is its own.
_MOST = 8
_MOST_NEEDING_TOO_MUCH = 64

_Query = TypeVar("_Query")
_Tried = Callable[[Sequence[_Query]], PlaitError | None]


def culprits(queries: Sequence[_Query], tried: _Tried[_Query]) -> list[tuple[_Query, PlaitError]]:
    """The queries that fail, by themselves or a few together, and how; without them the others do not.
    `tried` gives the error of a batch with some of them.

    None is found if very many fail.

    >>> culprits([1, 2, 3], lambda some: PlaitError("two", "two") if 2 in some else None)[0][0]
    2
    """
    found: list[tuple[_Query, PlaitError]] = []
    rest = list(queries)
    while rest and tried(rest) is not None:
        together = _fewest([], rest, tried)
        error = tried(together)
        if error is None:
            return []  # it fails now and then
        found += [(query, error) for query in together]
        if len(found) > (_MOST_NEEDING_TOO_MUCH if isinstance(error, InfeasibleError) else _MOST):
            return []
        rest = [query for query in rest if query not in together]
    return found


def _fewest(others: Sequence[_Query], queries: Sequence[_Query], tried: _Tried[_Query]) -> list[_Query]:
    """As few of these queries as fail with the others, of which none can be left out; all of both do. One
    half after the other is reduced to what it takes (Junker's QuickXplain)."""
    if len(queries) == 1:
        return [*queries]
    half = len(queries) // 2
    first, second = queries[:half], queries[half:]
    needed = [] if tried([*others, *first]) is not None else _fewest([*others, *first], second, tried)
    is_enough = bool(others or needed) and tried([*others, *needed]) is not None
    return needed if is_enough else [*_fewest([*others, *needed], first, tried), *needed]
