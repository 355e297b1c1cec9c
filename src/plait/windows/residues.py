"""Progressions as conditions on residues that do not depend on each other.

A time of the progression `phase mod step` is one whose residues modulo the powers of primes in `step` are
those of `phase` (Chinese remainder theorem), and residues modulo powers of different primes are
independent: of all times, a share 1/q has a given residue modulo q, whatever its other residues are. So a
set of progressions is a set of conditions, and the share of times that meets none of them is the share that
is no edge, without ever going through a common multiple of the steps.

Nothing here needs primes, only factors that are coprime to each other. `coprime_factors` finds them by
greatest common divisors, so no number is ever factorised, and what always comes together (the 10^6 of
seconds in microseconds) stays together.

| paper | here |
|---|---|
| slide, composite slide (LCM) | a step; no common multiple is ever formed |
| edges of a slide, marked in the composite slide | a `Condition` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import TypeAlias

from plait.windows.edges import Progression

# (factor, a power of it, residue modulo that power), with ascending factors that are coprime to each other.
# The empty condition is met by every time.
Condition: TypeAlias = tuple[tuple[int, int, int], ...]


def common_unit_us(progressions: Sequence[Progression]) -> int:
    """The longest time that all steps, and all distances between phases, are multiples of.

    >>> common_unit_us([Progression(4_000_000, 500), Progression(6_000_000, 2_000_500)])
    2000000
    """
    first = progressions[0]
    return gcd(
        *(number for each in progressions for number in (each.step_us, each.phase_us - first.phase_us))
    )


def conditions_of(progressions: Sequence[Progression]) -> tuple[Condition, ...]:
    """One for each progression, in units of `common_unit_us` and since the phase of the first.

    >>> conditions_of([Progression(10, 0), Progression(12, 6)])
    (((5, 5, 0),), ((6, 6, 3),))
    """
    unit_us, origin_us = common_unit_us(progressions), progressions[0].phase_us
    steps = {each.step_us // unit_us for each in progressions}
    factors = coprime_factors(steps)
    powers = {step: _powers(step, factors) for step in steps}
    return tuple(
        tuple(
            (factor, power, (each.phase_us - origin_us) // unit_us % power)
            for factor, power in powers[each.step_us // unit_us]
        )
        for each in progressions
    )


def coprime_factors(numbers: Iterable[int]) -> tuple[int, ...]:
    """Factors above 1, coprime to each other, of which every number is a product; the coarsest such.

    >>> coprime_factors([12, 18, 35]), coprime_factors([60, 300, 77 * 60])
    ((2, 3, 35), (5, 12, 77))
    """
    found: list[int] = []
    waiting = sorted(numbers, reverse=True)
    while waiting:
        number = waiting.pop()
        for place, factor in enumerate(found):
            shared = gcd(number, factor)
            if shared == factor:
                number //= factor
                waiting.append(number)
                break
            if shared > 1:
                del found[place]
                waiting += [factor // shared, shared, number]
                break
        else:
            if number > 1:
                found.append(number)
    return tuple(sorted(found))


def after_digit(condition: Condition, factor: int) -> tuple[int, Condition] | None:
    """Which residue modulo a factor the condition asks for, and what else it asks of a time that has it;
    nothing if the condition does not speak of that factor.

    >>> after_digit(((2, 8, 5), (3, 3, 2)), 2), after_digit(((5, 5, 4),), 5), after_digit(((5, 5, 4),), 2)
    ((1, ((2, 4, 2), (3, 3, 2))), (4, ()), None)
    """
    for place, (own, power, residue) in enumerate(condition):
        if own == factor:
            left = power // factor
            rest = ((factor, left, residue // factor),) if left > 1 else ()
            return residue % factor, condition[:place] + rest + condition[place + 1 :]
    return None


def deciding_factor(conditions: Iterable[Condition]) -> int | None:
    """The factor to decide on first: many conditions on several factors speak of it, and it has few cases
    (residues that are named, and all others as one). The least of equally good ones; nothing if there is no
    condition on several factors: then what one factor covers does not depend on the others.

    >>> deciding_factor([((2, 2, 0), (3, 3, 0)), ((2, 2, 1), (5, 5, 0)), ((3, 3, 1),)])
    2
    """
    entangled: dict[int, int] = {}
    named: dict[int, set[int]] = {}
    for condition in conditions:
        for factor, _, residue in condition:
            named.setdefault(factor, set()).add(residue % factor)
            if len(condition) > 1:
                entangled[factor] = entangled.get(factor, 0) + 1

    def merit(factor: int) -> tuple[float, int]:
        return entangled[factor] / min(len(named[factor]) + 1, factor), -factor

    return max(entangled, key=merit, default=None)


def _powers(number: int, factors: Sequence[int]) -> tuple[tuple[int, int], ...]:
    powers = []
    for factor in factors:
        power = 1
        while number % (power * factor) == 0:
            power *= factor
        if power > 1:
            powers.append((factor, power))
    return tuple(powers)
