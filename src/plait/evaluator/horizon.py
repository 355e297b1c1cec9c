"""Which part of a query's result is settled when the streams have not ended, or the query started late.

Without a horizon the evaluator computes everything: the streams have ended (`--drain`) and the query was
there from the beginning. A horizon cuts off at one or both ends:

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
| join of several windowed streams | also + the greatest range − 1 µs | |
| outer join, unmatched side with ranges rᵢ | | also the other side's − the greatest rᵢ |

A tick τ stands for event time τ − 1 µs, so exactly the ticks with from < τ ≤ until are settled.
"""

from __future__ import annotations

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
    from_us: int = BEGINNING_US
    until_us: int = END_US


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
                if isinstance(window, TickWindow):
                    return Settled(_before_first_tick(window, settled.from_us), settled.until_us)
                return settled
            case Filter() | Project() | Aggregate() | Top():
                return self.settled(node.input)
            case Union(inputs):
                return self._common(inputs)
            case Join(inputs):
                return self._joined(node, inputs)
            case OuterJoin():
                settled = self._joined(node, node.inputs)
                return Settled(settled.from_us, min(settled.until_us, *self._unmatched_until_us(node)))
            case _:
                assert_never(node)

    def _common(self, inputs: tuple[Node, ...]) -> Settled:
        settled = [self.settled(source) for source in inputs]
        return Settled(max(s.from_us for s in settled), min(s.until_us for s in settled))

    def _joined(self, node: Join | OuterJoin, inputs: tuple[Node, ...]) -> Settled:
        settled = self._common(inputs)
        timing = node.timing
        if isinstance(timing, Windowed) and len(timing.ranges_us) > 1:
            # Only from then on can a combination not hold a row that was not seen.
            return Settled(settled.from_us + max(timing.ranges_us) - 1, settled.until_us)
        return settled

    def _unmatched_until_us(self, node: OuterJoin) -> list[int]:
        limits = [END_US]
        kept_and_other = {
            OuterKind.LEFT: [(node.left, node.right)],
            OuterKind.RIGHT: [(node.right, node.left)],
            OuterKind.FULL: [(node.left, node.right), (node.right, node.left)],
        }
        for kept, other in kept_and_other[node.outer]:
            if isinstance(kept.timing, Windowed):
                limits.append(self.settled(other).until_us - max(kept.timing.ranges_us))
        return limits


def _before_first_tick(window: TickWindow, from_us: int) -> int:
    """One slide before the first tick whose window starts no earlier than `from_us`."""
    earliest = from_us + window.range_us
    first = earliest + (window.offset_us - earliest) % window.slide_us
    return first - window.slide_us
