"""Edge rates and costs, exactly: held against edges counted one by one, and against formulas where these
would be too many to count."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import gcd, lcm, prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.windows import US_PER_S, counted_rate_per_s, in_seconds, tick_windows

from plait.plan.nodes import TickWindow
from plait.windows.edge_rate import edge_rate_per_s, progression_rate_per_s
from plait.windows.edges import Progression, edge_set_of, edges_of
from plait.windows.residues import coprime_factors
from plait.windows.tree_cost import overlap_of, plan_cost, tree_cost


def test_example_1_of_the_paper() -> None:
    """Slide 2 s, range 6 s, and slide 4 s, range 8 s: a partial every 2 s serves both."""
    first, second = in_seconds(6, 2), in_seconds(8, 4)
    assert edge_rate_per_s([first, second]) == edge_rate_per_s([first]) == Fraction(1, 2)
    assert edge_rate_per_s([second]) == Fraction(1, 4)
    assert overlap_of(first) == 3
    assert overlap_of(second) == 2
    rate = 10
    assert plan_cost([[first], [second]], rate) == 2 * rate + Fraction(3, 2) + Fraction(2, 4)
    assert plan_cost([[first, second]], rate) == rate + Fraction(5, 2)


def test_paired_windows_have_two_edges_a_slide() -> None:
    """The introduction's example: slide 3 s, range 5 s."""
    assert edge_rate_per_s([in_seconds(5, 3)]) == Fraction(2, 3)
    assert tree_cost([in_seconds(5, 3)], 1.5) == Fraction(3, 2) + Fraction(2, 3) * Fraction(5, 3)


def test_offsets_move_edges() -> None:
    assert edge_rate_per_s([in_seconds(4, 4), in_seconds(4, 4, offset_s=1)]) == Fraction(1, 2)


def test_nothing_has_no_edges() -> None:
    assert edge_rate_per_s([]) == plan_cost([], 10) == 0


@settings(max_examples=200, deadline=None)
@given(st.lists(tick_windows(), min_size=1, max_size=4))
def test_rates_are_those_of_the_bit_set(windows: list[TickWindow]) -> None:
    assert edge_rate_per_s(windows) == counted_rate_per_s(windows)


@given(st.lists(tick_windows(st.sampled_from([1, 2, 3, 4, 6, 8, 9, 12, 18, 27, 36, 54, 72])), max_size=8))
def test_powers_of_few_primes(windows: list[TickWindow]) -> None:
    assert edge_rate_per_s(windows) == (counted_rate_per_s(windows) if windows else 0)


@given(tick_windows(), tick_windows())
def test_windows_of_the_same_edges_have_the_same_edge_set(one: TickWindow, other: TickWindow) -> None:
    rates = {edge_rate_per_s(windows) for windows in ([one], [other], [one, other])}
    assert (len(rates) == 1) == (edge_set_of(one) == edge_set_of(other))
    assert progression_rate_per_s(edge_set_of(one)) == progression_rate_per_s(edges_of(one))


@settings(deadline=None)
@given(st.lists(tick_windows(st.integers(2, 1_000)), min_size=1, max_size=5))
def test_rates_of_long_slides_are_those_of_inclusion_and_exclusion(windows: list[TickWindow]) -> None:
    progressions = sorted({edge for window in windows for edge in edges_of(window)})
    assert edge_rate_per_s(windows) == _inclusion_exclusion(progressions)


def test_slides_that_repeat_together_after_more_than_can_be_counted() -> None:
    primes = [n for n in range(2, 1_000) if all(n % m for m in range(2, n))]
    share_outside = prod((Fraction(n - 2, n) for n in primes if n > 2), start=Fraction(1, 2))
    windows = [in_seconds(n, 2) if n == 2 else in_seconds(n + 1, n) for n in primes]
    assert edge_rate_per_s(windows) == 1 - share_outside
    assert lcm(*primes) > 10**400


def test_a_hundred_entangled_slides() -> None:
    """Rates go up with each window by what it has that none before it has: counted by a second way, which
    takes all edges of the new window and asks which of them are in others."""
    random = Random(3)
    windows = [
        in_seconds(slide * random.randint(1, 9), slide) for slide in random.sample(range(100, 1_000), 40)
    ]
    total = Fraction(0)
    for number, window in enumerate(windows):
        # Among the multiples of s, those that are multiples of t are every t / gcd(s, t)-th.
        slide_s = window.slide_us // US_PER_S
        before = {other.slide_us // US_PER_S for other in windows[:number]}
        met = {Progression(US_PER_S * other // gcd(slide_s, other), 0) for other in before}
        total += (1 - progression_rate_per_s(met)) / slide_s
    assert edge_rate_per_s(windows) == total


def test_microseconds_make_no_difference() -> None:
    windows = [TickWindow(1_500_000, 1_000_000, 1), TickWindow(7_000_000, 3_000_000, 1)]
    assert edge_rate_per_s(windows) == Fraction(2 * 3 + 2 - 1 - 1, 3)
    apart = [TickWindow(1_000_000, 1_000_000, phase) for phase in (0, 1, 777_777)]
    assert edge_rate_per_s(apart) == 3


@pytest.mark.parametrize("numbers", [[12, 18, 35], [8, 4, 6], [7], [1], [49, 7, 343], [30, 42, 70, 105]])
def test_factors_are_coprime_and_make_up_all_numbers(numbers: list[int]) -> None:
    factors = coprime_factors(numbers)
    assert all(gcd(one, other) == 1 for one, other in combinations(factors, 2))
    for number in numbers:
        for factor in factors:
            while number % factor == 0:
                number //= factor
        assert number == 1


def _inclusion_exclusion(progressions: list[Progression]) -> Fraction:
    """Adds the rates of all intersections, each found by its congruences."""
    total = Fraction(0)
    for size in range(1, len(progressions) + 1):
        for chosen in combinations(progressions, size):
            step, phase = 1, 0
            for each in chosen:
                shared = gcd(step, each.step_us)
                if (each.phase_us - phase) % shared:
                    break
                inverse = pow(step // shared, -1, each.step_us // shared)
                phase += step * ((each.phase_us - phase) // shared * inverse % (each.step_us // shared))
                step = lcm(step, each.step_us)
            else:
                total += Fraction((-1) ** (size + 1) * US_PER_S, step)
    return total
