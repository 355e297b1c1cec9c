"""Rule: write every expression in its normal form (`plait.rewrite.algebra`).

Algebra: value-preserving laws of three-valued logic, of a total order and of exact arithmetic. Conditions of
filters, joins (outer joins too: a pair matches if the condition is TRUE), FILTER clauses and CASE branches
are also simplified by what only conditions allow, NULL as good as FALSE. Nothing else about the plan
changes, so bags, outer joins and windows are not touched.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := filter r0: (not((gate#1 <> 'A')) and (17 < num#0) and ((num#0 = 20) or (num#0 = 18)))
    ... q = r1'''[1:])["q"]
    >>> print(format_plans({"q": normalise_expressions(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := filter r0: ((gate#1 = 'A') and in(num#0, 18, 20))
    q = r1
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE
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
from plait.rewrite.algebra.simplify import simplify, simplify_predicate
from plait.rewrite.building import bottom_up


def normalise_expressions(plan: Node) -> Node:
    return bottom_up(plan, _normalised)


def _normalised(node: Node) -> Node:
    match node:
        case StreamScan() | TableScan() | Window() | Union():
            return node
        case Filter(input_, predicate):
            simple = simplify_predicate(predicate)
            if simple == TRUE:
                return input_
            return node if simple == predicate else Filter(input_, simple)
        case Project(input_, expressions):
            values = tuple(map(simplify, expressions))
            return node if values == expressions else Project(input_, values)
        case Join(inputs, predicate):
            simple = simplify_predicate(predicate)
            return node if simple == predicate else Join(inputs, simple)
        case OuterJoin(outer, left, right, predicate):
            simple = simplify_predicate(predicate)
            return node if simple == predicate else OuterJoin(outer, left, right, simple)
        case Aggregate(input_, keys, aggregates):
            new_keys = tuple(map(simplify, keys))
            calls = tuple(map(_normalised_call, aggregates))
            return node if (new_keys, calls) == (keys, aggregates) else Aggregate(input_, new_keys, calls)
        case Top(input_, order, count):
            sort_keys = tuple(replace(key, expression=simplify(key.expression)) for key in order)
            return node if sort_keys == order else Top(input_, sort_keys, count)
        case _:
            assert_never(node)


def _normalised_call(call: AggregateCall) -> AggregateCall:
    condition = None if call.filter is None else simplify_predicate(call.filter)
    return AggregateCall(
        call.function, tuple(map(simplify, call.arguments)), None if condition == TRUE else condition
    )
