"""Numbers for things that many queries have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_Thing = TypeVar("_Thing", bound=Hashable)


def numbered(things: Iterable[_Thing]) -> dict[_Thing, int]:
    """Different things, by the order in which each comes first.

    >>> numbered("abacb")
    {'a': 0, 'b': 1, 'c': 2}
    """
    return {thing: number for number, thing in enumerate(dict.fromkeys(things))}
