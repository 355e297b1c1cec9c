"""Aggregates in normal form: `normalise_aggregates` says why it is one."""

from __future__ import annotations

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE, Column, Expression, Literal, columns_of
from plait.plan.nodes import Aggregate, Node
from plait.plan.signature import expression_text
from plait.rewrite.algebra.order import in_order
from plait.rewrite.building import projected


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
