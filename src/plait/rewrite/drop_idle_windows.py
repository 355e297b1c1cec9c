"""Rule: drop windows that hold nothing back.

Algebra: a range window decides which rows *meet* in a join of streams. Where a plan, or what another window
is put on, has one windowed stream only (alone, or joined with stored tables), nothing meets anything: the
rows and their event times are those of the stream itself, and the window goes.

A tick window over a node that already ticks, with range = slide = that node's slide and the same offset,
holds at tick τ the rows with event time in [τ − slide, τ). The node's rows of tick τ′ have event time τ′ −
1 µs, so that is its tick τ and no other: the window goes.

Filters, projects, joins with tables and outer joins with tables treat each row of the stream for itself, so
the argument passes through them; unions make streams of their inputs, so it starts again at each.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT]
    ... r1 := window r0: range 5 min
    ... r2 := filter r1: (num#0 = 17)
    ... q = r2'''[1:])["q"]
    >>> print(format_plans({"q": drop_idle_windows(plan)}), end="")
    r0 := scan flights [num INT]
    r1 := filter r0: (num#0 = 17)
    q = r1
"""

from __future__ import annotations

from typing import assert_never

from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RangeWindow,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
)
from plait.rewrite.building import with_inputs


def drop_idle_windows(plan: Node) -> Node:
    return _visited(plan, True, {})


def _visited(node: Node, is_stream: bool, done: dict[tuple[int, bool], Node]) -> Node:
    """`is_stream`: of the node's rows only the values and the event time of each are used."""
    known = done.get((id(node), is_stream))
    if known is not None:
        return known
    match node:
        case StreamScan() | TableScan():
            result: Node = node
        case Window(input_, window):
            inner = _visited(input_, True, done)
            is_idle = (is_stream and isinstance(window, RangeWindow)) or _repeats_ticks(input_, window)
            result = inner if is_idle else with_inputs(node, [inner])
        case Filter(input_) | Project(input_):
            result = with_inputs(node, [_visited(input_, is_stream, done)])
        case Aggregate(input_) | Top(input_):
            result = with_inputs(node, [_visited(input_, False, done)])
        case Join() | OuterJoin():
            alone = sum(not isinstance(child.timing, Static) for child in node.inputs) == 1
            result = with_inputs(node, [_visited(child, is_stream and alone, done) for child in node.inputs])
        case Union(inputs):
            result = with_inputs(node, [_visited(child, True, done) for child in inputs])
        case _:
            assert_never(node)
    done[id(node), is_stream] = result
    return result


def _repeats_ticks(node: Node, window: object) -> bool:
    match node.timing, window:
        case Ticking(slide_us, offset_us), TickWindow():
            return window == TickWindow(slide_us, slide_us, offset_us)
        case _:
            return False
