"""Room for recursion through the deepest statements and plans that the language lets through."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

RECURSION_LIMIT = 8_000

_lock = Lock()
_users = 0
_before = 0


@contextmanager
def deeper_recursion() -> Iterator[None]:
    """Raise Python's limit of recursion while anybody needs it.

    The limit is the whole process's: of several threads, the last to leave restores it.
    """
    global _users, _before  # noqa: PLW0603 - so is the limit
    with _lock:
        if _users == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, RECURSION_LIMIT))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_before)
