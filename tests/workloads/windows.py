"""Windows for tests, and edges counted one by one."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm

from hypothesis import strategies as st

from plait.plan.nodes import TickWindow

US_PER_S = 1_000_000


@st.composite
def tick_windows(draw: st.DrawFn, slides: st.SearchStrategy[int] | None = None) -> TickWindow:
    """Of any range, also shorter than the slide, and any offset; in microseconds."""
    slide = draw(slides if slides is not None else st.integers(1, 24))
    range_us = draw(st.one_of(st.integers(1, 4 * slide), st.integers(1, 5).map(lambda times: times * slide)))
    return TickWindow(range_us, slide, draw(st.one_of(st.just(0), st.integers(0, slide - 1))))


def in_seconds(range_s: int, slide_s: int, offset_s: int = 0) -> TickWindow:
    return TickWindow(range_s * US_PER_S, slide_s * US_PER_S, offset_s * US_PER_S)


def counted_rate_per_s(windows: Iterable[TickWindow]) -> Fraction:
    """The bit set of the paper, over the least common multiple of the slides."""
    given = list(windows)
    cycle = lcm(*(window.slide_us for window in given))
    edges = bytearray(cycle)
    for window in given:
        for edge in (window.offset_us, window.offset_us - window.range_us):
            first = edge % window.slide_us
            edges[first :: window.slide_us] = b"\x01" * len(range(first, cycle, window.slide_us))
    return Fraction(sum(edges) * US_PER_S, cycle)
