"""The edge rate of windows, exactly, however large the least common multiple of their slides is.

The share of times that are no edge is computed by what residues make independent (`windows.residues`):

- conditions that have no factor in common exclude times independently: shares multiply;
- conditions on powers of one factor are nested or disjoint: their shares are added;
- otherwise one factor decides: for each residue modulo it that some condition names, and once for all that
  none names, what is left to ask is smaller, and each of these cases has its share of the times.

The last step is taken only where conditions hang together, and equal remainders are computed once. So cost
goes by how slides are entangled and not by their size: a hundred windows with random ranges and slides to
1,000, whose slides repeat together after 10^90, take 0.2 s; aligned ones (range a multiple of the slide) 10
ms. It is meant for checking and for small sets; a search that asks for thousands of rates uses
`windows.edge_unions`.

| paper | here |
|---|---|
| E, edge rate | `edge_rate_per_s` |
| Bit Set, Formula F1 | neither: both go through the composite slide |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from plait.plan.nodes import TickWindow
from plait.windows.edges import Progression, edge_set_of
from plait.windows.residues import (
    Condition,
    after_digit,
    common_unit_us,
    conditions_of,
    deciding_factor,
)

US_PER_S = 1_000_000

_Known: TypeAlias = dict[frozenset[Condition], Fraction]


def edge_rate_per_s(windows: Iterable[TickWindow]) -> Fraction:
    """How many different edges the windows have in a second, on average: E of a tree of them.

    >>> edge_rate_per_s([TickWindow(6_000_000, 2_000_000), TickWindow(8_000_000, 4_000_000)])
    Fraction(1, 2)
    """
    return progression_rate_per_s({edge for window in windows for edge in edge_set_of(window)})


def progression_rate_per_s(progressions: Iterable[Progression]) -> Fraction:
    """How many different times the progressions have in a second, on average.

    >>> progression_rate_per_s([Progression(2_000_000, 0), Progression(3_000_000, 0)])
    Fraction(2, 3)
    """
    given = sorted(progressions)
    if not given:
        return Fraction(0)
    share = 1 - _share_outside(frozenset(conditions_of(given)), {})
    return share * US_PER_S / common_unit_us(given)


def _share_outside(conditions: frozenset[Condition], known: _Known) -> Fraction:
    """The share of times that meet no condition."""
    if () in conditions:
        return Fraction(0)
    share = Fraction(1)
    for part in _independent(conditions):
        if part not in known:
            known[part] = _share_outside_part(part, known)
        share *= known[part]
        if not share:
            break
    return share


def _share_outside_part(part: frozenset[Condition], known: _Known) -> Fraction:
    factor = deciding_factor(part)
    if factor is None:
        return 1 - _share_of_one_factor([condition[0] for condition in part])
    unconcerned: list[Condition] = []
    by_residue: dict[int, list[Condition]] = defaultdict(list)
    for condition in part:
        split = after_digit(condition, factor)
        if split is None:
            unconcerned.append(condition)
        else:
            by_residue[split[0]].append(split[1])
    outside = sum(
        (_share_outside(frozenset([*unconcerned, *rest]), known) for rest in by_residue.values()), Fraction(0)
    )
    unnamed = factor - len(by_residue)
    if unnamed:
        outside += unnamed * _share_outside(frozenset(unconcerned), known)
    return outside / factor


def _share_of_one_factor(residues: Sequence[tuple[int, int, int]]) -> Fraction:
    """Of times with one of the residues modulo powers of one factor: sets that are nested or disjoint."""
    kept: list[tuple[int, int]] = []
    for _, power, residue in sorted(residues):
        if not any(residue % wider == own for wider, own in kept):
            kept.append((power, residue))
    return sum((Fraction(1, power) for power, _ in kept), Fraction(0))


def _independent(conditions: Iterable[Condition]) -> list[frozenset[Condition]]:
    """Parts that have no factor in common."""
    parts: list[tuple[set[int], list[Condition]]] = []
    for condition in conditions:
        factors = {factor for factor, _, _ in condition}
        together, apart = [condition], []
        for part in parts:
            if factors.isdisjoint(part[0]):
                apart.append(part)
            else:
                factors |= part[0]
                together += part[1]
        parts = [*apart, (factors, together)]
    return [frozenset(members) for _, members in parts]
