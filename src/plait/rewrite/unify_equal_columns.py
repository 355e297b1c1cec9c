"""Rule: where columns are known to be equal, compute everything from the first of them.

Algebra: below a node, filters and inner joins may guarantee `a.x = b.y` of every row. Whatever the node
computes from one, it may compute from the other: both are there and have the same value. What is grouped,
selected or ordered by either is then one plan. Not for values of type DOUBLE, since both zeros are equal
but not the same, and not across outer joins, where the equality holds of matched rows only.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT]
    ... r1 := window r0: range 1 min slide 1 min
    ... r2 := scan b [y INT]
    ... r3 := window r2: range 1 min slide 1 min
    ... r4 := join r1, r3: (x#0 = y#1)
    ... r5 := aggregate r4 by y#1: count()
    ... q = r5'''[1:])["q"]
    >>> print(format_plans({"q": unify_equal_columns(plan)}), end="")
    r0 := scan a [x INT]
    r1 := window r0: range 1 min slide 1 min
    r2 := scan b [y INT]
    r3 := window r2: range 1 min slide 1 min
    r4 := join r1, r3: (x#0 = y#1)
    r5 := aggregate r4 by x#0: count()
    q = r5
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from plait.expressions.nodes import shift
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RowWindow,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.rewrite.algebra.equalities import first_equals
from plait.rewrite.building import (
    bottom_up,
    is_identity,
    projected,
    replaced,
    replaced_call,
    replaced_predicate,
    with_inputs,
)


def unify_equal_columns(plan: Node) -> Node:
    return _selected(bottom_up(plan, _unified))


def _unified(node: Node) -> Node:
    match node:
        case StreamScan() | TableScan() | Filter() | Join():
            return node  # the conditions of filters and inner joins are for `derive_equalities`
        case Window(input_, RowWindow()) | Top(input_):
            node = with_inputs(node, [_selected(input_)])
            return _unified_top(node) if isinstance(node, Top) else node
        case Window():
            return node
        case Union(inputs):
            return with_inputs(node, [_selected(child) for child in inputs])
        case Project(input_, expressions):
            firsts = first_equals(input_)
            if is_identity(firsts, len(firsts)):
                return node
            return projected(input_, [replaced(expression, firsts) for expression in expressions])
        case Aggregate(input_, keys, aggregates):
            firsts = first_equals(input_)
            if is_identity(firsts, len(firsts)):
                return node
            return Aggregate(
                input_,
                tuple(replaced(key, firsts) for key in keys),
                tuple(replaced_call(call, firsts) for call in aggregates),
            )
        case OuterJoin(outer, left, right, predicate):
            width = len(left.types)
            firsts = [*first_equals(left), *(shift(first, width) for first in first_equals(right))]
            if is_identity(firsts, len(firsts)):
                return node
            return OuterJoin(outer, left, right, replaced_predicate(predicate, firsts))
        case _:
            assert_never(node)


def _unified_top(top: Top) -> Top:
    firsts = first_equals(top.input)
    order = tuple(replace(key, expression=replaced(key.expression, firsts)) for key in top.order)
    return top if order == top.order else Top(top.input, order, top.count)


def _selected(node: Node) -> Node:
    """A node whose columns are bound to their positions, with equal ones taken from the first."""
    if isinstance(node, Project | Union):
        return node
    return projected(node, first_equals(node))
