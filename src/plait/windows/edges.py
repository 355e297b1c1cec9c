"""Where time is cut so that every window of several queries is a union of the pieces.

A window of range r and slide d begins and ends at times that form two arithmetic progressions of step d: its
ticks, and its ticks less r. They are one progression if d divides r. These are the edges of the paper's
paired windows (aggregates paper, §2): between two of them no window begins or ends, so rows there are always
in the same windows, and one partial aggregate stands for them.

| paper | here |
|---|---|
| r, s | `TickWindow.range_us`, `slide_us` |
| edge | a time of a `Progression` |
| fragment, slice | the time from one edge to the next |
| E, edge rate | `edges_per_s`, an estimate where edges are very many; exact: `windows.edge_rate` |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from plait.plan.nodes import TickWindow

_MOST_COUNTED = 100_000


@dataclass(frozen=True, order=True)
class Progression:
    """The times that leave `phase_us` when divided by `step_us`."""

    step_us: int
    phase_us: int

    def __post_init__(self) -> None:
        if not 0 <= self.phase_us < self.step_us:
            raise ValueError("a phase is not negative and below its step")

    def holds(self, other: Progression) -> bool:
        """Whether all times of the other are times of this.

        >>> Progression(5, 2).holds(Progression(10, 7)), Progression(10, 7).holds(Progression(5, 2))
        (True, False)
        """
        return other.step_us % self.step_us == 0 and other.phase_us % self.step_us == self.phase_us


def edges_of(window: TickWindow) -> tuple[Progression, ...]:
    """Where windows end, and where they begin.

    >>> edges_of(TickWindow(range_us=7, slide_us=3))
    (Progression(step_us=3, phase_us=0), Progression(step_us=3, phase_us=2))
    """
    ends = Progression(window.slide_us, window.offset_us)
    begins = Progression(window.slide_us, (window.offset_us - window.range_us) % window.slide_us)
    return (ends,) if begins == ends else (ends, begins)


def edge_set_of(window: TickWindow) -> tuple[Progression, ...]:
    """The edges of a window, written alike for all windows that have the same.

    Where windows end half a slide after others begin, all edges are one progression of half the step.

    >>> edge_set_of(TickWindow(range_us=2, slide_us=4)) == edge_set_of(TickWindow(range_us=8, slide_us=2))
    True
    """
    ends, *begins = edges_of(window)
    if not begins:
        return (ends,)
    if 2 * abs(begins[0].phase_us - ends.phase_us) == ends.step_us:
        return (Progression(ends.step_us // 2, min(begins[0], ends).phase_us),)
    return (ends, begins[0]) if ends < begins[0] else (begins[0], ends)


def united(windows: Iterable[TickWindow]) -> tuple[Progression, ...]:
    """The edges of all windows, without progressions whose times others have.

    >>> united([TickWindow(60, 10), TickWindow(20, 20), TickWindow(15, 10)])
    (Progression(step_us=10, phase_us=0), Progression(step_us=10, phase_us=5))
    """
    return _least({edges for window in windows for edges in edges_of(window)})


def edges_per_s(progressions: Iterable[Progression]) -> float:
    """How many different edges there are in a second, on average.

    They are counted over the time after which all repeats; where that are very many, as if no two
    progressions had one in common.

    >>> edges_per_s([Progression(2_000_000, 0), Progression(3_000_000, 0)])
    0.6666666666666666
    """
    given = set(progressions)
    cycle_us = lcm(*(each.step_us for each in given))
    if sum(cycle_us // each.step_us for each in given) > _MOST_COUNTED:
        return sum(1e6 / each.step_us for each in given)
    edges = {time for each in _least(given) for time in range(each.phase_us, cycle_us, each.step_us)}
    return len(edges) * 1e6 / cycle_us


def _least(progressions: set[Progression]) -> tuple[Progression, ...]:
    """Those that have the times of all."""
    kept: list[Progression] = []
    for progression in sorted(progressions):
        if not any(other.holds(progression) for other in kept):
            kept.append(progression)
    return tuple(kept)
