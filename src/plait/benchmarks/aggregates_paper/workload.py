"""The workloads of the aggregates paper (§7.1, Table 2), made from a seed.

| paper | here |
|---|---|
| Q_num, N_num, λ | `queries`, `nodes`, `rate_rows_per_s` |
| S_max | `longest_slide_s`; the shortest is one second, or in diverse workloads two: the least prime |
| Z_skew | `skew`: the k-th longest slide is drawn in proportion to 1 / k^skew |
| Ω_max | `greatest_overlap`: overlaps are whole numbers from 1 to it, all equally likely |
| Gen: Nrm, Div | `Slides.ANY`, `Slides.PRIME` |

The paper does not say whether overlaps are whole numbers. They are here: its examples are, ranges then are
multiples of slides, and it speaks of identical slides as weaving perfectly, which is true of such windows
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from random import Random

from plait.errors import UserError
from plait.plan.nodes import TickWindow
from plait.planners.weaving import WeavingProblem
from plait.windows.edge_rate import US_PER_S


class Slides(StrEnum):
    ANY = "any"
    PRIME = "prime"


@dataclass(frozen=True)
class Configuration:
    """One experiment."""

    queries: int
    nodes: int
    rate_rows_per_s: float
    longest_slide_s: int
    skew: float
    greatest_overlap: int
    slides: Slides

    def __post_init__(self) -> None:
        shortest = 1 if self.slides is Slides.ANY else 2
        if self.longest_slide_s < shortest:
            raise UserError("workload", f"there is no slide from {shortest} s to {self.longest_slide_s} s")
        if self.greatest_overlap < 1 or self.queries < 0 or not self.skew >= 0:
            raise UserError(
                "workload", "overlaps are at least 1, and neither queries nor the skew are less than none"
            )


def configurations() -> Iterator[Configuration]:
    """The 256 of Table 2."""
    for values in product((250, 500), (4, 8, 16, 32), (10.0, 100.0), (25, 50), (0.0, 1.0), (10, 100), Slides):
        yield Configuration(*values)


# Experiment 2 (§7.2).
LOAD_BALANCING = Configuration(250, 4, 100.0, 25, 1.0, 100, Slides.ANY)


def windows(configuration: Configuration, seed: int) -> tuple[TickWindow, ...]:
    """The same for the same seed. Nodes and rate make no difference.

    >>> windows(Configuration(1, 4, 10.0, 25, 0.0, 10, Slides.PRIME), seed=1)
    (TickWindow(range_us=38000000, slide_us=19000000, offset_us=0),)
    """
    random = Random(seed)
    slides_s = _slides_s(configuration)
    shares = [1 / rank**configuration.skew for rank in range(1, len(slides_s) + 1)]
    drawn = random.choices(slides_s, shares, k=configuration.queries)
    return tuple(
        TickWindow(random.randint(1, configuration.greatest_overlap) * slide_s * US_PER_S, slide_s * US_PER_S)
        for slide_s in drawn
    )


def problem(configuration: Configuration, seed: int) -> WeavingProblem:
    return WeavingProblem(windows(configuration, seed), configuration.nodes, configuration.rate_rows_per_s)


def _slides_s(configuration: Configuration) -> list[int]:
    """From the longest to the shortest."""
    longest = configuration.longest_slide_s
    if configuration.slides is Slides.ANY:
        return list(range(longest, 0, -1))
    return [n for n in range(longest, 1, -1) if all(n % divisor for divisor in range(2, n))]
