"""Looks after the results of a run while it goes on, beside its micro-batches, and when it is asked to.

A thread of its own does a little now and then. It rests twenty times as long as it has worked, so that it
takes a twentieth of a core at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, time_ns

from plait.catalog import Keeping
from plait.errors import UserError
from plait.runtime.lock import FolderLock
from plait.runtime.outlets import Outlet, find, recorded
from plait.runtime.state import state_id
from plait.runtime.state_key import LOCK
from plait.runtime.tended import Tended
from plait.runtime.upkeep import Tending, Wish

LEAST_REST_SECONDS = 10.0
_REST_PER_WORK = 20.0


class Caretaker:
    """`outlets` gives those of all queries that there ever were, as they are now."""

    def __init__(
        self, state: Path, state_id: str, outlets: Callable[[], Iterable[Outlet]], for_all: Keeping
    ) -> None:
        self.done = Tended()  # so far
        self._outlets = outlets
        self._wish = Wish(for_all)
        self._tending = Tending(state, state_id)
        self._one_at_a_time = Lock()
        self._stop = Event()
        self._tending.clear(outlets())
        self._thread = Thread(target=self._work, name="plait upkeep", daemon=True)
        self._thread.start()

    def at_once(self, wish: Wish) -> Tended:
        """Do all that is asked for. What queries and the run ask for anyway holds, too."""
        with self._one_at_a_time:
            wish = replace(wish, for_all=wish.for_all.or_else(self._wish.for_all))
            done = all_of(self._tending, self._outlets, wish, self._stop)
            if not wish.is_dry:
                self.done.add(done)
        return done

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        rest_seconds = 0.0
        while not self._stop.wait(rest_seconds):
            began = monotonic()
            with self._one_at_a_time:
                try:
                    self.done.add(self._tending.once(self._outlets(), self._wish, _now_us(), self._stop))
                except Exception as error:  # whatever it is, results are looked after again later
                    self.done.trouble = {"upkeep": f"{type(error).__name__}: {error}"}
            rest_seconds = max(LEAST_REST_SECONDS, _REST_PER_WORK * (monotonic() - began))


def tend_stopped(state: Path, queries: Iterable[str], wish: Wish, results: Path | None = None) -> Tended:
    """Do all that is asked for, of a state that no run uses."""
    wish = replace(wish, queries=resolved(state, queries))
    lock = FolderLock(state / LOCK)
    try:
        tending = Tending(state.absolute(), state_id(state))
        outlets = recorded(state, results).values()
        if not wish.is_dry:
            tending.clear(outlets)
        return all_of(tending, lambda: outlets, wish, Event())
    finally:
        lock.release()


def resolved(state: Path, queries: Iterable[str]) -> frozenset[str] | None:
    """The queries that are meant; None for all."""
    found = [find(state, query) for query in queries]
    for outlet in found:
        if outlet.folder is None:
            raise UserError(
                "results-elsewhere",
                f"the rows of `{outlet.query}` go to {outlet.destination}",
                hint="Plait looks after results that are files of its own",
            )
    return frozenset(outlet.query for outlet in found) or None


def _now_us() -> int:
    return time_ns() // 1000


def all_of(
    tending: Tending,
    outlets: Callable[[], Iterable[Outlet]],
    wish: Wish,
    stop: Event,
    clock_us: Callable[[], int] = _now_us,
) -> Tended:
    """Until there is nothing left to do. A dry one shows the next steps."""
    total = Tended()
    while not stop.is_set():
        done = tending.once(outlets(), wish, clock_us(), stop)
        total.add(done)
        if wish.is_dry or not done.is_something:
            break
    return total
