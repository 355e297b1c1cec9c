"""Waiting for what must come: a bound for tests that would hang."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails if it does not come true within two minutes."""
    waiting = Event()
    assert any(condition() or waiting.wait(0.1) for _ in range(1200))
