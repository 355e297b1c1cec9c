"""One order of expressions, so that operands of what commutes stand in one way only."""

from __future__ import annotations

from collections.abc import Iterable

from plait.expressions.nodes import Call, Column, Expression, Literal, WindowEdge
from plait.plan.signature import expression_text

_RANKS = {Column: 0, Call: 1, WindowEdge: 2, Literal: 3}


def sort_key(expression: Expression) -> tuple[int, int, str]:
    """Columns by position, then calls, then window edges, then literals, by their text."""
    if isinstance(expression, Column):
        return 0, expression.index, ""
    return _RANKS[type(expression)], 0, expression_text(expression)


def in_order(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    """Without duplicates, sorted."""
    return tuple(sorted(dict.fromkeys(expressions), key=sort_key))
