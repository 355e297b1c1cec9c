"""What the optimizers of the aggregates paper are given: windows over one stream, nodes, and a rate.

A query is its position in `windows`; equal windows are different queries. The order matters: it is the scan
order by which ties are decided, and the order in which queries are inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import NamedTuple

from plait.errors import UserError
from plait.plan.nodes import TickWindow
from plait.windows.edge_rate import US_PER_S
from plait.windows.edge_unions import EdgeUnions
from plait.windows.edges import Progression, edge_set_of


class Item(NamedTuple):
    """What an optimizer puts into trees: a query, or several that are one from the beginning.

    `edge_set` is a position in the problem's `edge_sets`.
    """

    edge_set: int
    overlap: float
    queries: tuple[int, ...]


@dataclass(frozen=True)
class WeavingProblem:
    """`weave_equal_edges_first` is the paper's preprocessing (§6.3, Note): queries that weave perfectly are
    one item. The paper says identical slides, of which that is true where ranges are multiples of slides;
    in general it is true of equal edges, and these are taken."""

    windows: tuple[TickWindow, ...]
    nodes: int
    rate_rows_per_s: float
    weave_equal_edges_first: bool = False

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise UserError(
                "weaving-nodes", f"trees cannot be placed on {self.nodes} nodes", hint="there is at least one"
            )
        if not (isfinite(self.rate_rows_per_s) and self.rate_rows_per_s >= 0):
            raise UserError(
                "weaving-rate",
                f"a stream cannot have a rate of {self.rate_rows_per_s} rows a second",
                hint="a rate is a number that is not negative",
            )

    @cached_property
    def edge_sets(self) -> tuple[tuple[Progression, ...], ...]:
        """Those that there are, in the order of the first queries that have them."""
        return tuple(self._edge_set_numbers[0])

    @cached_property
    def edge_set_rates_per_s(self) -> tuple[float, ...]:
        """A window's begins and ends, where they differ, are never at the same time."""
        return tuple(sum(US_PER_S / edge.step_us for edge in edges) for edges in self.edge_sets)

    @cached_property
    def items(self) -> Sequence[Item]:
        edge_sets = self._edge_set_numbers[1]
        overlaps = {window: window.range_us / window.slide_us for window in set(self.windows)}
        apart = [
            Item(edge_set, overlaps[window], (query,))
            for query, (edge_set, window) in enumerate(zip(edge_sets, self.windows, strict=True))
        ]
        return _woven_by_edges(apart) if self.weave_equal_edges_first else apart

    @cached_property
    def unions(self) -> EdgeUnions:
        return EdgeUnions(self.edge_sets)

    def cost_of(self, item: Item) -> float:
        """Of a tree for it alone."""
        return self.rate_rows_per_s + self.edge_set_rates_per_s[item.edge_set] * item.overlap

    @cached_property
    def _edge_set_numbers(self) -> tuple[dict[tuple[Progression, ...], int], list[int]]:
        numbers: dict[tuple[Progression, ...], int] = {}
        of_window: dict[TickWindow, int] = {}
        of_query = []
        for window in self.windows:
            number = of_window.get(window)
            if number is None:
                number = numbers.setdefault(edge_set_of(window), len(numbers))
                of_window[window] = number
            of_query.append(number)
        return numbers, of_query


def checked_window(range_us: int, slide_us: int, offset_us: int = 0) -> TickWindow:
    """A window from numbers that somebody has given.

    >>> checked_window(6_000_000, 2_000_000, 5_000_000)
    TickWindow(range_us=6000000, slide_us=2000000, offset_us=1000000)
    """
    for name, value_us in (("slide", slide_us), ("range", range_us)):
        if value_us <= 0:
            raise UserError(
                "weaving-window",
                f"a window cannot have a {name} of {value_us} µs",
                hint=f"a {name} is positive",
            )
    return TickWindow(range_us, slide_us, offset_us % slide_us)


def _woven_by_edges(items: Sequence[Item]) -> Sequence[Item]:
    together: dict[int, list[Item]] = {}
    for item in items:
        together.setdefault(item.edge_set, []).append(item)
    return [
        Item(edge_set, sum(own.overlap for own in members), tuple(q for own in members for q in own.queries))
        for edge_set, members in together.items()
    ]
