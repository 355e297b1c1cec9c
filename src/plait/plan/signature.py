"""Signatures: a short name for what a plan computes.

**The guarantee.** Over one catalog, two plans with equal signatures give the same rows: as bags, column by
column, with the same event times, at the same ticks, once the streams have ended. (While they flow, a plan
may hold rows back longer than another with the same rows, by the ranges of its joins: docs/semantics.md.)
Names of queries, aliases and output columns never enter a signature; names of sources, and of the columns
read from them, do.

Why it holds: a signature is SHA-256 over the structure of the plan, from the scans up. Equal signatures
mean equal structures (a collision of SHA-256 aside), and a structure has one meaning. For *canonical* plans
(`plait.rewrite.canonicalise`) the converse is what the rewrite rules are for: queries that differ in
aliases, in the order of predicates and inputs, or in spelling get equal plans, hence equal signatures. The
converse is a service, not a guarantee: queries may mean the same and have different signatures, and are
then merely not shared.

A signature is computed once per node and kept on it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import assert_never

from plait.expressions.keeping import kept
from plait.expressions.nodes import Call, Expression
from plait.plan.format import call_text, format_expression
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


@kept
def signature(plan: Node) -> str:
    """The signature, as 64 hexadecimal digits.

    >>> from plait.plan.format import parse_plans
    >>> scan = "r0 := scan s [x INT]\\n"
    >>> plans = parse_plans(f"{scan}r1 := filter r0: (x#0 = 1)\\na = r1\\nc = r0")
    >>> plans |= parse_plans(f"{scan}r1 := filter r0: (renamed#0 = 1)\\nb = r1")
    >>> signature(plans["a"]) == signature(plans["b"]) != signature(plans["c"])
    True
    """
    parts = [*_parts(plan), *map(signature, plan.inputs)]
    return sha256("\0".join(parts).encode()).hexdigest()


def expression_text(expression: Expression) -> str:
    """The expression by column positions alone; over equal inputs, equal texts are equal."""
    return _text(expression) if isinstance(expression, Call) else format_expression(expression)


@kept
def _text(call: Call) -> str:
    return call_text(call, [expression_text(argument) for argument in call.arguments])


def _parts(node: Node) -> list[str]:
    """What a node adds to its inputs, as a list of texts without NUL characters."""
    match node:
        case StreamScan(source, columns) | TableScan(source, columns):
            return [node.kind, repr(source), *(f"{column.name!r} {column.type}" for column in columns)]
        case Window(_, window):
            return [node.kind, repr(window)]
        case Filter(_, predicate) | Join(_, predicate):
            return [node.kind, expression_text(predicate)]
        case OuterJoin(outer, _, _, predicate):
            return [node.kind, outer.value, expression_text(predicate)]
        case Project(_, expressions):
            return [node.kind, *map(expression_text, expressions)]
        case Aggregate(_, keys, aggregates):
            calls = [
                f"{call.function}({', '.join(map(expression_text, call.arguments))})"
                + (f" where {expression_text(call.filter)}" if call.filter is not None else "")
                for call in aggregates
            ]
            return [node.kind, str(len(keys)), *map(expression_text, keys), *calls]
        case Top(_, order, count):
            keys_text = [f"{expression_text(k.expression)} {k.descending} {k.nulls_first}" for k in order]
            return [node.kind, str(count), *keys_text]
        case Union():
            return [node.kind]
        case _:
            assert_never(node)
