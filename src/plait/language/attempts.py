"""Going on after an error, so that one run reports all of them and none twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from plait.errors import PlaitError

P = ParamSpec("P")
T = TypeVar("T")


class Reported(Exception):  # noqa: N818 - a signal, not an error: the errors are recorded
    """Something cannot be bound, and why is recorded already."""


class Attempts:
    """The steps of one piece of work. Errors go to a list that others share; `failed` is this work's own."""

    def __init__(self, errors: list[PlaitError]) -> None:
        self._errors = errors
        self.failed = False

    def run(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What the step gives; None if it failed, which is then recorded."""
        try:
            return step(*args, **kwargs)
        except Reported:
            self.failed = True
        except PlaitError as error:
            self._errors.append(error)
            self.failed = True
        return None

    def record(self, error: PlaitError) -> None:
        self._errors.append(error)
        self.failed = True

    def check(self) -> None:
        """Stop here if any step has failed."""
        if self.failed:
            raise Reported
