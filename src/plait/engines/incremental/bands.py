"""Which part of every node a micro-batch has to compute: bands of event times.

After a micro-batch the query's watermark is W: rows to come have event times of at least W. A node's rows are
then complete and final up to W less a constant of the node, what it is **held back** by: nothing, except
that a row without partner of an outer join of rows has to wait until no partner can come any more, for the
greatest range of its side.

So what a node gives in a micro-batch is a **band** of event times: from where it was final after the batch
before, up to where it is now. To compute a band of a node, its inputs are needed in bands of their own:

| node | needs of an input, for the band [a, b) |
|---|---|
| filter, projection, aggregate, top, union, join of ticks or with a table | [a, b) |
| tick window of range r | from the first tick after a, less r, up to the last tick not after b |
| join of rows | from a less the greatest range of the input, up to b |
| outer join of rows, the side where partners are looked for | also up to b plus the other's greatest range |

A tick τ has the event time τ − 1 µs. Whatever lies below all bands to come is not needed any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.expressions.keeping import kept
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RangeWindow,
    RowWindow,
    Static,
    StreamScan,
    TableScan,
    TickWindow,
    Top,
    Union,
    Window,
    Windowed,
    WindowSpecification,
)

# Beyond every event time and tick, and far enough from the ends of 64 bits to add ranges.
BEGINNING_US = -(2**61)
END_US = 2**61


@dataclass(frozen=True)
class Band:
    """Event times from `from_us` up to, but not including, `until_us`."""

    from_us: int
    until_us: int

    @property
    def is_empty(self) -> bool:
        return self.from_us >= self.until_us

    def widened(self, before_us: int = 0, after_us: int = 0) -> Band:
        return Band(self.from_us - before_us, self.until_us + after_us)


NOTHING = Band(END_US, END_US)


def closed_us(watermark_us: int | None) -> int:
    """Up to where rows are complete. Beyond the last event time that can be, nothing is to come at all."""
    if watermark_us is None:
        return BEGINNING_US
    return END_US if watermark_us > LAST_EVENT_TIME_US else watermark_us


@dataclass(frozen=True)
class Ticks:
    """The ticks from `first_us` to `last_us`, both included; none if they are the wrong way round."""

    first_us: int
    last_us: int
    slide_us: int

    @property
    def count(self) -> int:
        return max(0, (self.last_us - self.first_us) // self.slide_us + 1)


def hull(bands: Iterable[Band]) -> Band:
    """The least band that covers all of them.

    >>> hull([Band(1, 3), NOTHING, Band(5, 6)])
    Band(from_us=1, until_us=6)
    """
    filled = [band for band in bands if not band.is_empty]
    if not filled:
        return NOTHING
    return Band(min(band.from_us for band in filled), max(band.until_us for band in filled))


def ticks_within(window: TickWindow, band: Band) -> Ticks:
    """The ticks whose event times lie in the band.

    >>> ticks_within(TickWindow(range_us=10, slide_us=5), Band(9, 20))
    Ticks(first_us=10, last_us=20, slide_us=5)
    """
    first_us = band.from_us + 1 + (window.offset_us - band.from_us - 1) % window.slide_us
    last_us = band.until_us - (band.until_us - window.offset_us) % window.slide_us
    return Ticks(first_us, last_us, window.slide_us)


@kept
def held_back_us(node: Node) -> int:
    """How far behind the watermark a node's rows are final. For a stored table nothing has to wait."""
    waits = [held_back_us(source) for source in node.inputs if not isinstance(source.timing, Static)]
    if isinstance(node, OuterJoin):
        for position in node.kept:
            timing, other = node.inputs[position].timing, node.inputs[1 - position]
            if isinstance(timing, Windowed) and not isinstance(other.timing, Static):
                waits.append(held_back_us(other) + max(timing.ranges_us))
    return max(waits, default=0)


def needed_of_inputs(node: Node, band: Band) -> tuple[Band, ...]:
    """What a node needs of each of its inputs to give its rows of a band. Tables are needed as a whole."""
    if band.is_empty:
        return (NOTHING,) * len(node.inputs)
    match node:
        case StreamScan() | TableScan():
            return ()
        case Filter() | Project() | Aggregate() | Top() | Union():
            return (band,) * len(node.inputs)
        case Window(_, window):
            return (_needed_by_window(window, band),)
        case Join() | OuterJoin():
            return tuple(_needed_by_join(node, position, band) for position in range(len(node.inputs)))
        case _:
            assert_never(node)


def _needed_by_window(window: WindowSpecification, band: Band) -> Band:
    match window:
        case TickWindow(range_us):
            ticks = ticks_within(window, band)
            return Band(ticks.first_us - range_us, ticks.last_us) if ticks.count else NOTHING
        case RangeWindow():
            return band
        case RowWindow():
            raise ValueError("a row window reads rows that were numbered, not its input")
        case _:
            assert_never(window)


def is_join_of_rows(node: Join | OuterJoin) -> bool:
    """Whether rows of the inputs meet by their event times: not at ticks, and not one input with tables."""
    return sum(isinstance(source.timing, Windowed) for source in node.inputs) > 1


def combined_band(node: Join | OuterJoin, source: Node, band: Band) -> Band:
    """Where an input has rows that are part of combinations in the band."""
    if is_join_of_rows(node) and isinstance(source.timing, Windowed):
        return band.widened(before_us=max(source.timing.ranges_us) - 1)
    return band


def partners_band(node: OuterJoin, kept_input: int, band: Band) -> Band:
    """Where the other input has partners of the rows that a kept input has in the band."""
    partners = combined_band(node, node.inputs[1 - kept_input], band)
    timing = node.inputs[kept_input].timing
    if is_join_of_rows(node) and isinstance(timing, Windowed):
        return partners.widened(after_us=max(timing.ranges_us))
    return partners


def _needed_by_join(node: Join | OuterJoin, position: int, band: Band) -> Band:
    needed = [combined_band(node, node.inputs[position], band)]
    if isinstance(node, OuterJoin) and 1 - position in node.kept:
        needed.append(partners_band(node, 1 - position, band))
    return hull(needed)
