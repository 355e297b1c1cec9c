"""Which rows of a query one place gives that computes it, if another gives the others.

A query that is handed over from one place to another is computed in both for a while. Each row has an event
time, of a tick a microsecond before it, and by that it is given in one of both: the new place sees the rows
of streams after a moment T1, so it has all rows of the result from some event time on
(`plait.windows.beginnings`); the old place gives those before. So none is missing and none is there twice,
whatever the plan is made of, as long as completeness is a matter of event times.
"""

from __future__ import annotations

from dataclasses import dataclass

# Beyond every event time.
_BEGINNING_US = -(2**61)
_END_US = 2**61


@dataclass(frozen=True)
class Stretch:
    """Event times of rows of a result, from `from_us` up to, but not including, `until_us`."""

    from_us: int = _BEGINNING_US
    until_us: int = _END_US

    @property
    def has_end(self) -> bool:
        return self.until_us < _END_US


ALWAYS = Stretch()
