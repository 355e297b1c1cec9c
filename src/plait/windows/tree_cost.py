"""What a tree of windows and a plan of trees cost, exactly, by the paper's equation as it stands.

| paper | here |
|---|---|
| λ, input rate | `rate_rows_per_s` |
| Ω of a query, of a tree | `overlap_of`, summed over a tree's queries |
| E | `windows.edge_rate.edge_rate_per_s` |
| E · Ω + λ, one tree's part of Eq. 1 | `tree_cost` |
| C, Eq. 1 | `plan_cost` |

Costs are operations a second: every tree takes each row in once (λ), and merges each partial into the finals
that it is part of (E · Ω). Ω is r / s also where the slide does not divide the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from plait.plan.nodes import TickWindow
from plait.windows.edge_rate import edge_rate_per_s


def overlap_of(window: TickWindow) -> Fraction:
    """In how many windows of the query a row is, on average.

    >>> overlap_of(TickWindow(range_us=7, slide_us=2))
    Fraction(7, 2)
    """
    return Fraction(window.range_us, window.slide_us)


def tree_cost(windows: Sequence[TickWindow], rate_rows_per_s: float | Fraction) -> Fraction:
    """Of one tree that serves these windows, one for each query: equal windows count as often as they are
    there.

    >>> tree_cost([TickWindow(6_000_000, 2_000_000), TickWindow(8_000_000, 4_000_000)], 10)
    Fraction(25, 2)
    """
    overlap = sum(map(overlap_of, windows), Fraction(0))
    return Fraction(rate_rows_per_s) + edge_rate_per_s(windows) * overlap


def plan_cost(trees: Iterable[Sequence[TickWindow]], rate_rows_per_s: float | Fraction) -> Fraction:
    """C = m·λ + Σ E·Ω (Eq. 1)."""
    return sum((tree_cost(windows, rate_rows_per_s) for windows in trees), Fraction(0))
