"""How memory is shared out."""

from __future__ import annotations

import pytest

from plait.machine import GIB, memory_bytes, memory_shares


@pytest.mark.parametrize("total", [2 * GIB, 8 * GIB, 24 * GIB, 512 * GIB])
def test_neither_starves_the_other(total: int) -> None:
    shares = memory_shares(total)
    assert GIB <= shares.java_heap_bytes <= 8 * GIB
    assert shares.databases_bytes >= GIB // 2
    assert shares.java_heap_bytes + shares.databases_bytes <= total * 3 // 4


def test_there_is_memory() -> None:
    assert memory_bytes() > GIB // 2
