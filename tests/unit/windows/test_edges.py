"""Edges of windows, held against windows as they are defined."""

from __future__ import annotations

from math import lcm

from hypothesis import given
from hypothesis import strategies as st

from plait.plan.nodes import TickWindow
from plait.windows.edges import Progression, edges_of, edges_per_s, united


@st.composite
def windows(draw: st.DrawFn) -> TickWindow:
    slide = draw(st.integers(1, 12))
    return TickWindow(draw(st.integers(1, 30)), slide, draw(st.integers(0, slide - 1)))


def times(progressions: tuple[Progression, ...], until: int) -> set[int]:
    return {t for t in range(until) for each in progressions if t % each.step_us == each.phase_us}


@given(windows())
def test_windows_begin_and_end_at_edges(window: TickWindow) -> None:
    ticks = range(window.offset_us + 10 * window.slide_us, 200, window.slide_us)
    edges = times(edges_of(window), 200)
    starts = {tick - window.range_us for tick in ticks if tick >= window.range_us}
    assert {*ticks} | starts <= edges


@given(st.lists(windows(), min_size=1, max_size=5))
def test_united_edges_are_those_of_all(given_windows: list[TickWindow]) -> None:
    all_of_them = {time for window in given_windows for time in times(edges_of(window), 300)}
    assert times(united(given_windows), 300) == all_of_them


@given(st.lists(windows(), min_size=1, max_size=3))
def test_the_rate_counts_each_edge_once(given_windows: list[TickWindow]) -> None:
    progressions = united(given_windows)
    period = lcm(*(each.step_us for each in progressions))
    exact = len(times(progressions, period)) / period * 1e6
    assert abs(edges_per_s(progressions) - exact) < 1e-6 * exact


def test_a_rate_of_very_many_edges_is_a_bound() -> None:
    apart = [TickWindow(1_000_003, 1_000_003), TickWindow(999_983, 999_983)]
    progressions = [edge for window in apart for edge in edges_of(window)]
    assert edges_per_s(progressions) == 1e6 / 1_000_003 + 1e6 / 999_983
