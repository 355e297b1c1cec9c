"""Several fragments are kept between two micro-batches while a change is made."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from plait.runtime.fragment_run import busy
from plait.runtime.live_queries import _entered

if TYPE_CHECKING:
    from collections.abc import Iterator


class MadeUpRun:
    """One whose batch ends after so many seconds of waiting."""

    def __init__(self, needs_seconds: float) -> None:
        self.label = f"{needs_seconds:g}"
        self.is_held = False
        self._needs_seconds = needs_seconds

    @contextmanager
    def between_batches(self, limit_seconds: float) -> Iterator[None]:
        if limit_seconds < self._needs_seconds:
            raise busy(self.label, limit_seconds)
        self.is_held = True
        yield
        self.is_held = False


def entered(moment_seconds: float, *runs: MadeUpRun, limit_seconds: float = 60.0) -> tuple[Any, list[bool]]:
    with ExitStack() as held:
        slow = _entered(held, cast(Any, runs), monotonic() + limit_seconds, moment_seconds)
        return slow, [run.is_held for run in runs]


def test_whoever_is_busy_is_waited_for_while_the_others_go_on() -> None:
    quick, slow = MadeUpRun(0.0), MadeUpRun(10.0)
    assert entered(0.05, quick, slow) == (slow, [True, False])
    assert not quick.is_held
    assert entered(0.05, slow, quick) == (None, [True, True])


def test_if_all_are_busy_each_is_waited_for_in_turn() -> None:
    runs = MadeUpRun(10.0), MadeUpRun(20.0)
    assert entered(0.05, *runs)[0] is runs[1]
    assert entered(inf, *runs) == (None, [True, True])


def test_what_is_not_done_in_time_is_returned() -> None:
    never = MadeUpRun(100.0)
    assert entered(inf, never) == (never, [False])
