"""Rule: give aggregates their keys and calls once and in one order.

Algebra: grouping depends on the set of keys, and each result on its own call, so order and repetition only
matter to where the results stand, which a project restores. A key without columns (a constant,
`window_end`) is the same for all rows of a tick: it splits no group, and since a tick without rows gives no
group with or without keys, it can be computed above. `count(1)` counts rows, as `count(*)` does;
`count(DISTINCT a, b)` counts combinations, in whichever order they are written.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := window r0: range 5 min slide 1 min
    ... r2 := aggregate r1 by gate#1, 'x', num#0, gate#1: sum(num#0), count(1)
    ... q = r2'''[1:])["q"]
    >>> print(format_plans({"q": normalise_aggregates(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := window r0: range 5 min slide 1 min
    r2 := aggregate r1 by num#0, gate#1: count(), sum(num#0)
    r3 := project r2: gate#1, 'x', num#0, gate#1, sum#3, count#2
    q = r3
"""

from __future__ import annotations

from plait.expressions.nodes import TRUE, Column, Expression, Literal, columns_of
from plait.plan.nodes import Aggregate, AggregateCall, Node
from plait.plan.signature import expression_text
from plait.rewrite.algebra.order import in_order
from plait.rewrite.building import bottom_up, projected
from plait.rewrite.pull_up_projects import lift_projects


def normalise_aggregates(plan: Node) -> Node:
    return bottom_up(plan, lambda node: normalised_aggregate(lift_projects(node)), frozenset({Aggregate}))


def normalised_aggregate(node: Node) -> Node:
    """An aggregate in normal form, below a project that restores its columns; any other node as it is."""
    if not isinstance(node, Aggregate):
        return node
    constant = [not columns_of(key) for key in node.keys]
    keys = in_order(key for key, is_constant in zip(node.keys, constant, strict=True) if not is_constant)
    simple_calls = [_normalised_call(call) for call in node.aggregates]
    calls = tuple(sorted(dict.fromkeys(simple_calls), key=_call_key))
    if keys == node.keys and calls == node.aggregates:
        return node
    restored: list[Expression] = [
        key if is_constant else Column(keys.index(key), key.type)
        for key, is_constant in zip(node.keys, constant, strict=True)
    ]
    restored += [Column(len(keys) + calls.index(call), call.type) for call in simple_calls]
    return projected(Aggregate(node.input, keys, calls), restored)


def _normalised_call(call: AggregateCall) -> AggregateCall:
    arguments = call.arguments
    if call.function == "count" and any(isinstance(a, Literal) and a.value is not None for a in arguments):
        arguments = ()
    if call.function == "count_distinct":
        arguments = in_order(arguments)
    condition = None if call.filter == TRUE else call.filter
    if (arguments, condition) == (call.arguments, call.filter):
        return call
    return AggregateCall(call.function, arguments, condition)


def _call_key(call: AggregateCall) -> tuple[str, tuple[str, ...], str]:
    condition = "" if call.filter is None else expression_text(call.filter)
    return call.function, tuple(map(expression_text, call.arguments)), condition
