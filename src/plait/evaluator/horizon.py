"""Which part of a query's result is settled when the streams have not ended, or the query started late.

Without a horizon the evaluator computes everything: the streams have ended and the query was there from the
beginning. A horizon cuts off at one or both ends:

- **watermark W** (least over the streams read): rows to come have event times ≥ W. A row of the result is
  settled if no such rows can take it away: ticks τ ≤ W, row windows of rows before W, unmatched rows of outer
  joins whose windows lie before W. Combinations of inner joins are settled as soon as they exist.
- **start T0** (a query added to a running system): rows at or before T0 are not seen, and a tick counts only
  if all windows it is computed from start after T0.

Both travel up the plan as a `Settled` interval of event times: inside it a node's rows are all there and
final.

| node | from | until |
|---|---|---|
| stream | T0 + 1 µs | W |
| tick window, range r | (first tick ≥ from + r) − slide | the input's |
| join, union | the latest of the inputs' | the earliest of the inputs' |
| join of windowed streams with ranges rᵢ | the latest fromᵢ + rᵢ − 1 µs | the earliest of the inputs' |
| outer join, unmatched side with ranges rᵢ | | also the other side's − the greatest rᵢ |

A tick τ stands for event time τ − 1 µs, so exactly the ticks with from < τ ≤ until are settled.

A join of windowed streams goes by the streams, however its joins are nested, so that a range counts once:
fromᵢ is stream i's own. Only an outer join changes it for those above: whether a row of the kept side has a
partner is known once all partners that it can have would have been seen, which is a matter of their ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowWindow,
    StreamScan,
    TableScan,
    TickWindow,
    Top,
    Union,
    Window,
    Windowed,
)

# Beyond every event time, and far enough from the ends of 64 bits to add ranges.
BEGINNING_US = -(2**61)
END_US = 2**61


@dataclass(frozen=True)
class Settled:
    """`streams_from_us`: of a `Windowed` node, for each of its ranges. A combination whose rows are all that
    late or later is there if and only if it belongs there."""

    from_us: int = BEGINNING_US
    until_us: int = END_US
    streams_from_us: tuple[int, ...] = ()


@dataclass(frozen=True)
class Horizon:
    """`start_us` is T0, `watermark_us` is W; None does not cut off."""

    start_us: int | None = None
    watermark_us: int | None = None
    _known: dict[Node, Settled] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_everything(self) -> bool:
        return self.start_us is None and self.watermark_us is None

    def settled(self, node: Node) -> Settled:
        if node not in self._known:
            self._known[node] = self._settled(node)
        return self._known[node]

    def _settled(self, node: Node) -> Settled:
        match node:
            case StreamScan():
                return Settled(
                    BEGINNING_US if self.start_us is None else self.start_us + 1,
                    END_US if self.watermark_us is None else self.watermark_us,
                )
            case TableScan():
                return Settled()
            case Window(source, window):
                settled = self.settled(source)
                match window:
                    case TickWindow():
                        return Settled(_before_first_tick(window, settled.from_us), settled.until_us)
                    case RangeWindow():
                        return Settled(settled.from_us, settled.until_us, (settled.from_us,))
                    case RowWindow():
                        return Settled(settled.from_us, settled.until_us)
                    case _:
                        assert_never(window)
            case Filter() | Project() | Aggregate() | Top():
                return self.settled(node.input)
            case Union(inputs):
                return self._common(inputs)
            case Join():
                return self._joined(node)
            case OuterJoin():
                return self._outer_joined(node)
            case _:
                assert_never(node)

    def _common(self, inputs: tuple[Node, ...]) -> Settled:
        settled = [self.settled(source) for source in inputs]
        return Settled(max(s.from_us for s in settled), min(s.until_us for s in settled))

    def _joined(self, node: Join | OuterJoin) -> Settled:
        settled = self._common(node.inputs)
        if not isinstance(node.timing, Windowed):
            return settled
        moving = [self.settled(source) for source in node.inputs if isinstance(source.timing, Windowed)]
        streams = tuple(us for source in moving for us in source.streams_from_us)
        # Only from then on can a combination not hold a row that was not seen, or miss one.
        from_us = settled.from_us if len(moving) == 1 else _seen_from_us(streams, node.timing.ranges_us)
        return Settled(from_us, settled.until_us, streams)

    def _outer_joined(self, node: OuterJoin) -> Settled:
        settled = self._joined(node)
        until_us = settled.until_us
        streams: list[int] = []
        for side, other, without in (
            (node.left, node.right, OuterKind.RIGHT),
            (node.right, node.left, OuterKind.LEFT),
        ):
            from_us = self.settled(side).streams_from_us
            if node.outer is not without and isinstance(side.timing, Windowed):
                until_us = min(until_us, self.settled(other).until_us - max(side.timing.ranges_us))
                if isinstance(other.timing, Windowed):
                    partners_us = _seen_from_us(self.settled(other).streams_from_us, other.timing.ranges_us)
                    from_us = tuple(max(us, partners_us) for us in from_us)
            streams += from_us
        return Settled(settled.from_us, until_us, tuple(streams))


def _seen_from_us(streams_from_us: Sequence[int], ranges_us: Sequence[int]) -> int:
    """From when on every row that is in its window was seen."""
    return max(from_us + range_us - 1 for from_us, range_us in zip(streams_from_us, ranges_us, strict=True))


def _before_first_tick(window: TickWindow, from_us: int) -> int:
    """One slide before the first tick whose window starts no earlier than `from_us`."""
    earliest = from_us + window.range_us
    first = earliest + (window.offset_us - earliest) % window.slide_us
    return first - window.slide_us
