"""Edge rates for searches are the exact ones, to the last digits of a float, however they are asked for."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.windows import in_seconds, tick_windows

from plait.plan.nodes import TickWindow
from plait.windows import edge_classes
from plait.windows.edge_rate import edge_rate_per_s
from plait.windows.edge_unions import EdgeUnions
from plait.windows.edges import edge_set_of

SLIDES = st.one_of(st.integers(1, 24), st.integers(2, 1_000))


@settings(max_examples=100, deadline=None)
@given(st.lists(tick_windows(SLIDES), min_size=1, max_size=7), st.data())
def test_rates_of_unions_are_exact(windows: list[TickWindow], data: st.DataObject) -> None:
    unions = EdgeUnions(list(map(edge_set_of, windows)))
    _check(unions, windows, data)


@settings(max_examples=30, deadline=None)
@given(st.lists(tick_windows(SLIDES), min_size=1, max_size=5), st.data())
def test_rates_are_the_same_without_classes(windows: list[TickWindow], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_classes, "MOST_WORDS", 0)
        unions = EdgeUnions(list(map(edge_set_of, windows)))
    _check(unions, windows, data)


def test_factors_of_more_residues_than_a_word_has() -> None:
    random = Random(1)
    windows = [
        in_seconds(random.randrange(1, 400), slide) for slide in (101, 202, 404, 512) for _ in range(60)
    ]
    windows += [in_seconds(2, 2), in_seconds(4, 4)]
    edge_sets = list(dict.fromkeys(map(edge_set_of, windows)))
    unions = EdgeUnions(edge_sets)
    some = random.sample(range(len(edge_sets)), 40)
    union = unions.of(sum(1 << edge_set for edge_set in some))
    exact = edge_rate_per_s([w for w in windows if edge_sets.index(edge_set_of(w)) in some])
    assert unions.rate_per_s(union) == pytest.approx(float(exact), rel=1e-12)
    singles = np.arange(len(edge_sets))
    np.testing.assert_allclose(
        unions.rates_with_each_edge_set(union), unions.rates_with(union, singles), rtol=1e-12
    )


def test_a_union_is_the_same_number_however_it_is_made() -> None:
    unions = EdgeUnions([edge_set_of(in_seconds(slide, slide)) for slide in (4, 6, 9, 10)])
    made = unions.added(unions.added(0, 1), 3)
    assert made == unions.of(0b1011) == unions.joined(unions.added(0, 3), 1) == unions.added(made, 1)
    assert unions.members(made) == 0b1011
    assert unions.rate_per_s(unions.of(0)) == 0


def test_there_may_be_no_edge_sets() -> None:
    unions = EdgeUnions([])
    assert unions.rate_per_s(unions.of(0)) == 0


def _check(unions: EdgeUnions, windows: list[TickWindow], data: st.DataObject) -> None:
    subsets = st.sets(st.integers(0, len(windows) - 1))
    one, other = data.draw(subsets), data.draw(subsets)
    first, second = (unions.of(sum(1 << number for number in subset)) for subset in (one, other))

    def exact(members: set[int]) -> float:
        return float(edge_rate_per_s([windows[number] for number in members]))

    def close(rate_per_s: float) -> object:
        return pytest.approx(rate_per_s, rel=1e-12, abs=1e-9)

    assert unions.rate_per_s(first) == close(exact(one))
    assert unions.rate_per_s(unions.joined(first, second)) == close(exact(one | other))
    assert unions.rates_with(first, np.array([second, first])).tolist() == close(
        [exact(one | other), exact(one)]  # type: ignore[arg-type]
    )
    with_each = unions.rates_with_each_edge_set(first)
    assert with_each.tolist() == close([exact(one | {n}) for n in range(len(windows))])  # type: ignore[arg-type]
    for number in range(len(windows)):
        assert unions.rate_per_s(unions.added(first, number)) == close(exact(one | {number}))
    if one:
        members = sorted(one)
        without = unions.rates_without(first, np.array(members))
        assert without.tolist() == close([exact(one - {n}) for n in members])  # type: ignore[arg-type]
