"""Rule: make nested unions one union, and move a project of a union into its inputs where it stands for a
result.

Algebra: UNION ALL adds bags, which is associative, and a project distributes over it row by row. Event
times stay with the rows, so it does not matter to time either: inputs that tick alike tick on, at any
depth; if not all do, rows of ticks count as a stream with the same event times.

Elsewhere projects move up (`pull_up_projects`); they go down here only at the root, below another union, a
top or a row window, where columns are bound to their positions and nothing above can take them.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT, y INT]
    ... r1 := scan b [x INT, y INT]
    ... r2 := union r0, r1
    ... r3 := project r2: y#1
    ... r4 := scan c [y INT]
    ... r5 := union r3, r4
    ... q = r5'''[1:])["q"]
    >>> print(format_plans({"q": flatten_unions(plan)}), end="")
    r0 := scan a [x INT, y INT]
    r1 := project r0: y#1
    r2 := scan b [x INT, y INT]
    r3 := project r2: y#1
    r4 := scan c [y INT]
    r5 := union r1, r3, r4
    q = r5
"""

from __future__ import annotations

from plait.plan.nodes import Node, Project, RowWindow, Top, Union, Window
from plait.rewrite.building import bottom_up, projected, with_inputs


def flatten_unions(plan: Node) -> Node:
    return _distributed(bottom_up(plan, _flattened, frozenset({Union})))


def _flattened(node: Node) -> Node:
    match node:
        case Union(inputs):
            flat: list[Node] = []
            for child in map(_distributed, inputs):
                flat += child.inputs if isinstance(child, Union) else (child,)
            return node if flat == list(inputs) else Union(tuple(flat))
        case Window(input_, RowWindow()) | Top(input_):
            return with_inputs(node, [_distributed(input_)])
        case _:
            return node


def _distributed(node: Node) -> Node:
    match node:
        case Project(Union(inputs), expressions):
            return Union(tuple(projected(child, expressions) for child in inputs))
        case _:
            return node
