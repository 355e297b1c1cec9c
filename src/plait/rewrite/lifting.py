"""Projects moved above the node that uses them: `pull_up_projects` says why and how far.

Other rules lift the projects that they build below others themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.expressions.nodes import (
    Call,
    Column,
    Edge,
    Expression,
    Literal,
    WindowEdge,
    columns_of,
    conjuncts,
    shift,
    transform,
    walk,
)
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RowWindow,
    Window,
)
from plait.rewrite.algebra.order import in_order
from plait.rewrite.algebra.simplify import simplify, with_nulls
from plait.rewrite.building import (
    columns,
    filtered,
    fits,
    projected,
    replaced,
    replaced_call,
    replaced_predicate,
)


def lift_projects(node: Node) -> Node:
    """The node with the projects directly below it moved above it, as far as they may."""
    match node:
        case Project(input_, expressions):
            lifted = projected(input_, expressions)
            return node if lifted == node else lifted
        case Filter(Project(input_, expressions), predicate) if fits([predicate], expressions):
            terms = [replaced_predicate(term, expressions) for term in conjuncts(predicate)]
            return projected(filtered(input_, terms), expressions)
        case Window(Project(), window) if not isinstance(window, RowWindow):
            return _through_window(node)
        case Join(inputs) if any(isinstance(child, Project) for child in inputs):
            return _through_join(node)
        case OuterJoin(_, left, right) if isinstance(left, Project) or isinstance(right, Project):
            return _through_outer_join(node)
        case Aggregate(Project(input_, expressions), keys, aggregates) if fits(
            (*keys, *(e for call in aggregates for e in call.expressions)), expressions
        ):
            return Aggregate(
                input_,
                tuple(replaced(key, expressions) for key in keys),
                tuple(replaced_call(call, expressions) for call in aggregates),
            )
        case _:
            return node


def _through_window(window: Window) -> Node:
    assert isinstance(window.input, Project)
    expressions = window.input.expressions
    edges = {part.edge for e in expressions for part in walk(e) if isinstance(part, WindowEdge)}
    if not edges:
        return projected(Window(window.input.input, window.window), expressions)
    kept = [*_columns_used(expressions, window.input), *(WindowEdge(edge) for edge in Edge if edge in edges)]
    if kept == list(expressions):
        return window
    below = Window(projected(window.input.input, kept), window.window)
    return projected(below, _built_from(kept, expressions))


def _through_join(join: Join) -> Node:
    inputs: list[Node] = []
    above: list[Expression] = []
    width = 0
    for child in join.inputs:
        below, expressions = _taken_apart(child)
        inputs.append(below)
        above += [shift(expression, width) for expression in expressions]
        width += len(below.types)
    if not fits([join.predicate], above):
        return join
    return projected(Join(tuple(inputs), replaced_predicate(join.predicate, above)), above)


def _through_outer_join(join: OuterJoin) -> Node:
    left, left_above = _taken_apart(join.left, filled=join.outer is not OuterKind.LEFT)
    right, right_above = _taken_apart(join.right, filled=join.outer is not OuterKind.RIGHT)
    above = [*left_above, *(shift(expression, len(left.types)) for expression in right_above)]
    if (left is join.left and right is join.right) or not fits([join.predicate], above):
        return join
    return projected(OuterJoin(join.outer, left, right, replaced_predicate(join.predicate, above)), above)


def _taken_apart(node: Node, filled: bool = False) -> tuple[Node, list[Expression]]:
    """What stays below a join, and the node's columns as expressions over that.

    `filled`: rows of the join may have NULL instead of all of the node's columns.
    """
    if not isinstance(node, Project):
        return node, columns(node)
    expressions = node.expressions
    staying = [e for e in expressions if filled and not _is_null_with_its_columns(e)]
    if not staying:
        return node.input, list(expressions)
    moving = [e for e in expressions if e not in staying]
    kept = [*_columns_used(moving, node), *in_order(staying)]
    if kept == list(expressions):
        return node, columns(node)
    return projected(node.input, kept), _built_from(kept, expressions)


def _is_null_with_its_columns(expression: Expression) -> bool:
    used = columns_of(expression)
    nulled = with_nulls(expression, used)
    return bool(used) and isinstance(nulled, Literal) and nulled.value is None


def _columns_used(expressions: Sequence[Expression], project: Project) -> list[Expression]:
    used = sorted({index for expression in expressions for index in columns_of(expression)})
    return [Column(index, project.input.types[index]) for index in used]


def _built_from(kept: Sequence[Expression], expressions: Sequence[Expression]) -> list[Expression]:
    """The expressions over a node whose columns are `kept`."""
    places: dict[Expression, Expression] = {e: Column(place, e.type) for place, e in enumerate(kept)}
    return [
        places[expression]
        if expression in places
        else simplify(
            transform(expression, lambda part: part if isinstance(part, Call) else places.get(part, part))
        )
        for expression in expressions
    ]
