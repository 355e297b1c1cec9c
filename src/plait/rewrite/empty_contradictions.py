"""Rule: where no row can pass, keep nothing but the operators and sources.

Algebra: a node over which FALSE holds of every row has no rows, and neither has anything that only passes
on, combines or groups its rows: in our semantics a group without rows gives none, with or without GROUP BY.
Of no rows all statements hold, so predicates, keys and expressions can be anything: predicates go, columns
become NULL, and each source is filtered by FALSE. A left join is empty if its kept side is, a full one if
both sides are, a union if all inputs are.

The sources stay: a plan reads what its query names, and a stream that gives nothing still costs nothing.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT]
    ... r1 := window r0: range 1 min slide 1 min
    ... r2 := filter r1: false
    ... r3 := aggregate r2 by x#0: sum(x#0)
    ... q = r3'''[1:])["q"]
    >>> print(format_plans({"q": empty_contradictions(plan)}), end="")
    r0 := scan a [x INT]
    r1 := filter r0: false
    r2 := window r1: range 1 min slide 1 min
    r3 := aggregate r2:
    r4 := project r3: null:INT, null:BIGINT
    q = r4
"""

from __future__ import annotations

from typing import assert_never

from plait.expressions.nodes import FALSE, TRUE, Literal
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.rewrite.algebra.facts import facts
from plait.rewrite.building import with_inputs


def empty_contradictions(plan: Node) -> Node:
    if FALSE not in facts(plan):
        return with_inputs(plan, [empty_contradictions(child) for child in plan.inputs])
    emptied = _emptied(plan)
    return plan if emptied == plan else emptied


def _emptied(node: Node) -> Node:
    """A node with the same columns and timing, and no rows."""
    match node:
        case StreamScan() | TableScan():
            return Filter(node, FALSE)
        case Filter(input_) | Top(input_):
            return _emptied(input_)
        case Window(_, window):
            return Window(_emptied(node.input), window)
        case Join(inputs) | Union(inputs):
            emptied = tuple(map(_emptied, inputs))
            return Join(emptied, TRUE) if isinstance(node, Join) else Union(emptied)
        case OuterJoin(_, left, right):
            return Join((_emptied(left), _emptied(right)), TRUE)
        case Project(input_):
            return Project(_emptied(input_), _nulls(node))
        case Aggregate(input_):
            return Project(Aggregate(_emptied(input_), (), ()), _nulls(node))
        case _:
            assert_never(node)


def _nulls(node: Node) -> tuple[Literal, ...]:
    return tuple(Literal(None, type_) for type_ in node.types)
