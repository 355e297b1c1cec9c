"""Rule: give tops and row windows the columns they order rows by once, and in one order.

Algebra: both order rows by certain keys and then by all columns, from first to last. A column that repeats
an earlier one decides nothing, and neither does one that is a sort key itself: where it would be asked, the
key was equal. So repetitions go, and a top's sort keys stand after its other columns; a project above
restores what was selected. A sort key that repeats an earlier one decides nothing either. The columns of a
partition are a set.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := window r0: range 5 min slide 1 min
    ... r2 := project r1: num#0, gate#1, num#0
    ... r3 := top r2: 3 by num#2 desc nulls last
    ... q = r3'''[1:])["q"]
    >>> print(format_plans({"q": normalise_orders(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := window r0: range 5 min slide 1 min
    r2 := project r1: gate#1, num#0
    r3 := top r2: 3 by num#1 desc nulls last
    r4 := project r3: num#1, gate#0, num#1
    q = r4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plait.expressions.nodes import Column, Expression
from plait.plan.nodes import Node, Project, RowWindow, SortKey, Top, Window
from plait.rewrite.building import bottom_up, columns, lift_projects, projected, replaced


def normalise_orders(plan: Node) -> Node:
    return bottom_up(plan, lambda node: _normalised(lift_projects(node)), frozenset({Top, RowWindow}))


def _normalised(node: Node) -> Node:
    match node:
        case Top():
            return _normalised_top(node)
        case Window(input_, RowWindow(rows, slide_rows, partition)):
            kept = list(dict.fromkeys(_selection(input_)))
            restored = _places(_selection(input_), kept)
            places = sorted({c.index for c in (restored[i] for i in partition) if isinstance(c, Column)})
            window = RowWindow(rows, slide_rows, tuple(places))
            if window == node.window and len(kept) == len(restored):
                return node
            return projected(Window(_with_columns(input_, kept), window), restored)
        case _:
            return node


def _normalised_top(top: Top) -> Node:
    selection = _selection(top.input)
    first = _places(selection, selection)  # of repeated columns, each as the first
    order: dict[Expression, SortKey] = {}
    for key in top.order:
        expression = replaced(key.expression, first)
        order.setdefault(expression, replace(key, expression=expression))
    keys = [selection[key.index] for key in order if isinstance(key, Column)]
    kept = [*dict.fromkeys(e for e in selection if e not in keys), *keys]
    restored = _places(selection, kept)
    new_order = tuple(replace(key, expression=replaced(key.expression, restored)) for key in order.values())
    if kept == selection and new_order == top.order:
        return top
    return projected(Top(_with_columns(top.input, kept), new_order, top.count), restored)


def _selection(node: Node) -> list[Expression]:
    """The columns of a node, as expressions over what is below a project."""
    return list(node.expressions) if isinstance(node, Project) else columns(node)


def _with_columns(node: Node, selection: Sequence[Expression]) -> Node:
    return projected(node.input if isinstance(node, Project) else node, selection)


def _places(selection: Sequence[Expression], kept: Sequence[Expression]) -> list[Expression]:
    """Where each selected expression stands among those that are kept."""
    places: dict[Expression, Expression] = {}
    for place, expression in enumerate(kept):
        places.setdefault(expression, Column(place, expression.type))
    return [places[expression] for expression in selection]
