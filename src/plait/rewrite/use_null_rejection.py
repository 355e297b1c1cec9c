"""Rule: where NULL-filled rows are thrown away, an outer join is an inner one, and IS NOT NULL below is
superfluous.

Algebra: an outer join is its inner join and, beside it, the unmatched rows filled up with NULLs. If
something above certainly is not TRUE for a row in which a column of the filled side is NULL, it drops all
those rows, and the rest is the inner join; a full outer join becomes a left one in the same way. A filter
`x IS NOT NULL` below drops what would be dropped anyway. "Certainly" is computed, not guessed: with NULL
for the column, the predicate simplifies to NULL or FALSE. What drops rows, and how the knowledge travels
down:

- filters and the predicates of inner joins; through projects and group keys if NULL in makes NULL out;
  through range and tick windows and unions; into the filled side of an outer join from its own ON (an
  unmatched row of that side is gone in a left join);
- never through a row window or a top, where a dropped row makes room for another.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT]
    ... r1 := window r0: range 1 min
    ... r2 := scan b [y INT]
    ... r3 := window r2: range 1 min
    ... r4 := left join r1, r3: (x#0 = y#1)
    ... r5 := filter r4: (y#1 > 3)
    ... q = r5'''[1:])["q"]
    >>> print(format_plans({"q": use_null_rejection(plan)}), end="")
    r0 := scan a [x INT]
    r1 := window r0: range 1 min
    r2 := scan b [y INT]
    r3 := window r2: range 1 min
    r4 := join r1, r3: (x#0 = y#1)
    r5 := filter r4: (y#1 > 3)
    q = r5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from plait.expressions.nodes import Expression, Literal, columns_of, conjuncts
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RowWindow,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.rewrite.algebra.simplify import null_rejected_columns, present_column, with_nulls
from plait.rewrite.building import filtered, with_inputs

_NOTHING: frozenset[int] = frozenset()


def use_null_rejection(plan: Node) -> Node:
    return _visited(plan, _NOTHING) if _concerns(plan) else plan


def _concerns(node: Node) -> bool:
    """Whether there is anything to do; asked first since it is cheap and mostly false."""
    if isinstance(node, OuterJoin):
        return True
    if isinstance(node, Filter) and any(present_column(t) is not None for t in conjuncts(node.predicate)):
        return True
    return any(map(_concerns, node.inputs))


def _visited(node: Node, present: frozenset[int]) -> Node:
    """`present`: columns that are not NULL in any row that counts."""
    match node:
        case StreamScan() | TableScan():
            return node
        case Filter(input_, predicate):
            child = _visited(input_, present | _rejected(predicate))
            terms = [t for t in conjuncts(predicate) if present_column(t) not in present]
            if len(terms) < len(conjuncts(predicate)):
                return filtered(child, terms)
            return with_inputs(node, [child])
        case Project(input_, expressions):
            return with_inputs(node, [_visited(input_, _needed(expressions, present))])
        case Window(input_, window):
            below = _NOTHING if isinstance(window, RowWindow) else present
            return with_inputs(node, [_visited(input_, below)])
        case Top(input_):
            return with_inputs(node, [_visited(input_, _NOTHING)])
        case Aggregate(input_, keys):
            return with_inputs(node, [_visited(input_, _needed(keys, present))])
        case Union(inputs):
            return with_inputs(node, [_visited(child, present) for child in inputs])
        case Join(_, predicate):
            return with_inputs(node, _visited_inputs(node, present | _rejected(predicate)))
        case OuterJoin():
            return _visited_outer(node, present)
        case _:
            assert_never(node)


def _visited_outer(join: OuterJoin, present: frozenset[int]) -> Node:
    width = len(join.left.types)
    drops_left_filled = any(index < width for index in present)
    drops_right_filled = any(index >= width for index in present)
    keeps_left = join.outer is not OuterKind.RIGHT and not drops_right_filled
    keeps_right = join.outer is not OuterKind.LEFT and not drops_left_filled
    if not keeps_left and not keeps_right:
        return _visited(Join((join.left, join.right), join.predicate), present)
    outer = join.outer
    if keeps_left != keeps_right:
        outer = OuterKind.LEFT if keeps_left else OuterKind.RIGHT
    # A row of a side that is not kept counts only if it matches.
    matching = {
        index for index in _rejected(join.predicate) if not (keeps_left if index < width else keeps_right)
    }
    left, right = _visited_inputs(join, present | matching)
    if outer is join.outer:
        return with_inputs(join, [left, right])
    return OuterJoin(outer, left, right, join.predicate)


def _visited_inputs(join: Join | OuterJoin, present: frozenset[int]) -> list[Node]:
    visited = []
    for child, start in zip(join.inputs, join.starts, strict=True):
        end = start + len(child.types)
        visited.append(_visited(child, frozenset(i - start for i in present if start <= i < end)))
    return visited


def _rejected(predicate: Expression) -> frozenset[int]:
    return frozenset(index for term in conjuncts(predicate) for index in null_rejected_columns(term))


def _needed(expressions: Sequence[Expression], present: frozenset[int]) -> frozenset[int]:
    """The columns that must be there for the expressions at these positions to be."""
    return frozenset(
        index
        for place in present
        if place < len(expressions)  # beyond them are an aggregate's results, which need no single row
        for index in columns_of(expressions[place])
        if isinstance(nulled := with_nulls(expressions[place], {index}), Literal) and nulled.value is None
    )
