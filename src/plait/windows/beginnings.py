"""What a plan means for a query that was added to a running system: what came up to a moment is not seen.

The moment is T0, the greatest event time that the query's streams had brought by then. Rows at or before it
are left out, and a tick counts only if all windows that it is computed from start after it. Where ticks are
complete travels up the plan, as times from which on a node has all its rows:

| node | is complete from |
|---|---|
| stream | T0 + 1 µs |
| tick window, range r | (first tick not before that of its input + r) less a slide |
| join, union | the latest of the inputs |
| join of windowed streams with ranges rᵢ | the latest fromᵢ + rᵢ − 1 µs |

A tick τ has the event time τ − 1 µs, so the ticks after that time count. A join of windowed streams goes by
the streams, however its joins are nested; an outer join makes those of its kept side wait until all partners
would have been seen. Rows and combinations of them need no more than their streams to be cut: a plan that
ticks is cut where its ticks are used as rows, by a filter on `window_end`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from plait.expressions.nodes import Call, Edge, Literal, WindowEdge
from plait.expressions.types import TIMESTAMP
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
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
    Windowed,
    walk_plan,
)
from plait.rewrite.building import with_inputs

_BEGINNING_US = -(2**61)


@dataclass(frozen=True)
class Complete:
    """From when on a node has all its rows; of a `Windowed` node also for each of its streams."""

    from_us: int
    streams_from_us: tuple[int, ...] = ()


class Beginning:
    """Of plans whose streams are seen after a moment."""

    def __init__(self, after_us: int) -> None:
        self._after_us = after_us
        self._known: dict[Node, Complete] = {}

    def cut(self, plan: Node) -> Node:
        """The plan without the ticks that are not complete. Its streams are left as they are."""
        changed: dict[Node, Node] = {}
        for node in walk_plan(plan):
            as_rows = isinstance(node, Window) or (
                isinstance(node, Union) and not isinstance(node.timing, Ticking)
            )
            inputs = [
                self._without_incomplete(source, changed[source]) if as_rows else changed[source]
                for source in node.inputs
            ]
            changed[node] = with_inputs(node, inputs)
        return self._without_incomplete(plan, changed[plan])

    def complete_from_us(self, node: Node) -> int:
        """The least event time of rows that are all there."""
        return self._complete(node).from_us

    def _without_incomplete(self, node: Node, changed: Node) -> Node:
        if not isinstance(node.timing, Ticking):
            return changed
        from_us = Literal(self.complete_from_us(node), TIMESTAMP)
        return Filter(changed, Call("gt", (WindowEdge(Edge.END), from_us)))

    def _complete(self, node: Node) -> Complete:
        if node not in self._known:
            for each in walk_plan(node):  # inputs first: plans may be deep
                if each not in self._known:
                    self._known[each] = self._found(each)
        return self._known[node]

    def _found(self, node: Node) -> Complete:
        match node:
            case StreamScan():
                return Complete(self._after_us + 1)
            case TableScan():
                return Complete(_BEGINNING_US)
            case Window(source, window):
                from_us = self._known[source].from_us
                match window:
                    case TickWindow():
                        return Complete(_before_first_tick_us(window, from_us))
                    case RangeWindow():
                        return Complete(from_us, (from_us,))
                    case RowWindow():
                        return Complete(from_us)
                    case _:
                        assert_never(window)
            case Filter() | Project() | Aggregate() | Top():
                return self._known[node.input]
            case Union(inputs):
                return Complete(max(self._known[source].from_us for source in inputs))
            case Join():
                return self._joined(node)
            case OuterJoin():
                return self._outer_joined(node)
            case _:
                assert_never(node)

    def _joined(self, node: Join | OuterJoin) -> Complete:
        latest_us = max(self._known[source].from_us for source in node.inputs)
        if not isinstance(node.timing, Windowed):
            return Complete(latest_us)
        moving = [self._known[source] for source in node.inputs if isinstance(source.timing, Windowed)]
        streams = tuple(us for source in moving for us in source.streams_from_us)
        if len(moving) > 1:
            latest_us = _seen_from_us(streams, node.timing.ranges_us)
        return Complete(latest_us, streams)

    def _outer_joined(self, node: OuterJoin) -> Complete:
        joined = self._joined(node)
        streams: list[int] = []
        for side, other, without in (
            (node.left, node.right, OuterKind.RIGHT),
            (node.right, node.left, OuterKind.LEFT),
        ):
            from_us = self._known[side].streams_from_us
            is_kept = node.outer is not without and isinstance(side.timing, Windowed)
            if is_kept and isinstance(other.timing, Windowed):
                partners_us = _seen_from_us(self._known[other].streams_from_us, other.timing.ranges_us)
                from_us = tuple(max(us, partners_us) for us in from_us)
            streams += from_us
        return Complete(joined.from_us, tuple(streams))


def first_tick_us(window: TickWindow, after_us: int) -> int:
    """The first tick whose window starts after a moment.

    >>> first_tick_us(TickWindow(range_us=10, slide_us=5), 20)
    35
    """
    earliest_us = after_us + 1 + window.range_us
    return earliest_us + (window.offset_us - earliest_us) % window.slide_us


def _before_first_tick_us(window: TickWindow, from_us: int) -> int:
    return first_tick_us(window, from_us - 1) - window.slide_us


def _seen_from_us(streams_from_us: Sequence[int], ranges_us: Sequence[int]) -> int:
    """From when on every row that is in its window was seen."""
    return max(from_us + range_us - 1 for from_us, range_us in zip(streams_from_us, ranges_us, strict=True))
