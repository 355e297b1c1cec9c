"""Rows a second, lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic

SECONDS = 10.0


class RecentRate:
    """The rate over the last ten seconds, or since it began if that is less."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._rows: deque[tuple[float, int]] = deque()
        self._lock = Lock()

    def add(self, rows: int) -> None:
        now = self._clock()
        with self._lock:
            self._forget(now)
            self._rows.append((now, rows))

    @property
    def per_s(self) -> float:
        now = self._clock()
        with self._lock:
            self._forget(now)
            seconds = max(1.0, min(SECONDS, now - self._began))
            return sum(rows for _, rows in self._rows) / seconds

    def _forget(self, now: float) -> None:
        """Also where nobody asks: a run may go on for weeks."""
        while self._rows and self._rows[0][0] < now - SECONDS:
            self._rows.popleft()
