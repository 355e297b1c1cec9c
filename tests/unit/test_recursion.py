"""The limit of recursion is raised while anybody needs it, and then what it was."""

import sys

from plait.recursion import RECURSION_LIMIT, deeper_recursion


def test_the_last_to_leave_restores_the_limit() -> None:
    before = sys.getrecursionlimit()
    first, second = deeper_recursion(), deeper_recursion()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # as when another thread is still inside
    assert sys.getrecursionlimit() >= RECURSION_LIMIT
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before
