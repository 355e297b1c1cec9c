"""Nodes built in normal form, and plans rebuilt from the bottom up.

Rules build their nodes here, so that each leaves the plan as the others expect it: no filter that is TRUE,
no project that does nothing, no filter on a filter, no project on a project, expressions simplified. What
several rules do to a node is here too: lifting projects above it, and ordering an aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import assert_never

from plait.expressions.aggregates import AggregateCall
from plait.expressions.keeping import kept
from plait.expressions.nodes import (
    TRUE,
    Call,
    Column,
    Edge,
    Expression,
    Literal,
    WindowEdge,
    columns_of,
    conjunction,
    conjuncts,
    shift,
    substitute,
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
    RowTicking,
    RowWindow,
    StreamScan,
    TableScan,
    Ticking,
    Top,
    Union,
    Window,
)
from plait.plan.signature import expression_text
from plait.rewrite.algebra.order import in_order
from plait.rewrite.algebra.simplify import simplify, simplify_predicate, with_nulls

# Substituting doubles an expression at every level of `SELECT x + x AS x FROM (SELECT x + x AS x FROM …)`.
# Beyond these bounds projects stay where they are: the plan is as right, and merely shared less. The depth is
# what a text may have without any substitution.
MAX_EXPRESSION_SIZE = 2_000
MAX_EXPRESSION_DEPTH = 100


def bottom_up(plan: Node, change: Callable[[Node], Node], where: frozenset[type] | None = None) -> Node:
    """Rebuild the plan, applying `change` to every node once its inputs are done; shared nodes once.

    Sub-plans in which there is none of the nodes or windows `where` are left alone.
    """
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        result = done.get(id(node))
        if result is None:
            if where is not None and where.isdisjoint(_kinds(node)):
                return node
            inputs = node.inputs
            result = change(with_inputs(node, [visit(child) for child in inputs]) if inputs else node)
            done[id(node)] = result
        return result

    return visit(plan)


@kept
def _kinds(node: Node) -> frozenset[type]:
    """The kinds of nodes and windows in a plan."""
    own = {type(node), type(node.window)} if isinstance(node, Window) else {type(node)}
    return frozenset[type](own).union(*map(_kinds, node.inputs))


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The node over other inputs, which must have the same columns; the node itself if they are the same."""
    if all(map(is_, inputs, node.inputs)):
        return node
    match node:
        case StreamScan() | TableScan():
            return node
        case Window(_, window):
            return Window(inputs[0], window)
        case Filter(_, predicate):
            return Filter(inputs[0], predicate)
        case Project(_, expressions):
            return Project(inputs[0], expressions)
        case Join(_, predicate):
            return Join(tuple(inputs), predicate)
        case OuterJoin(outer, _, _, predicate):
            return OuterJoin(outer, inputs[0], inputs[1], predicate)
        case Aggregate(_, keys, aggregates):
            return Aggregate(inputs[0], keys, aggregates)
        case Top(_, order, count):
            return Top(inputs[0], order, count)
        case Union():
            return Union(tuple(inputs))
        case _:
            assert_never(node)


def filtered(node: Node, terms: Iterable[Expression]) -> Node:
    """The rows of `node` for which all terms are TRUE."""
    terms = list(terms)
    if not terms:
        return node
    if isinstance(node, Filter):
        terms += conjuncts(node.predicate)
        node = node.input
    predicate = simplify_predicate(conjunction(terms))
    return node if predicate == TRUE else Filter(node, predicate)


def projected(node: Node, expressions: Sequence[Expression]) -> Node:
    """The expressions over `node`; `node` itself if they are its columns."""
    if isinstance(node, Project) and fits(expressions, node.expressions):
        expressions = [replaced(expression, node.expressions) for expression in expressions]
        node = node.input
    if is_identity(expressions, len(node.types)):
        return node
    return Project(node, tuple(expressions))


def columns(node: Node) -> list[Expression]:
    """The columns of a node, as expressions over it."""
    return [Column(index, type_) for index, type_ in enumerate(node.types)]


def is_identity(expressions: Sequence[Expression], width: int) -> bool:
    return len(expressions) == width and all(
        isinstance(expression, Column) and expression.index == index
        for index, expression in enumerate(expressions)
    )


def replaced(expression: Expression, replacements: Sequence[Expression]) -> Expression:
    """The expression with replacements for columns, in normal form."""
    return simplify(substitute(expression, replacements.__getitem__))


def replaced_predicate(predicate: Expression, replacements: Sequence[Expression]) -> Expression:
    return simplify_predicate(substitute(predicate, replacements.__getitem__))


def replaced_call(call: AggregateCall, replacements: Sequence[Expression]) -> AggregateCall:
    condition = None if call.filter is None else replaced_predicate(call.filter, replacements)
    arguments = tuple(replaced(argument, replacements) for argument in call.arguments)
    return AggregateCall(call.function, arguments, condition)


def fits(expressions: Iterable[Expression], replacements: Sequence[Expression]) -> bool:
    """Whether the expressions stay within bounds when their columns are replaced."""
    measures = [_measure(replacement) for replacement in replacements]
    deepest = max((depth for _, depth in measures), default=1)
    if deepest == 1:
        return True
    return all(
        _measure(expression)[1] + deepest <= MAX_EXPRESSION_DEPTH
        and sum(measures[part.index][0] if isinstance(part, Column) else 1 for part in walk(expression))
        <= MAX_EXPRESSION_SIZE
        for expression in expressions
    )


def _measure(expression: Expression) -> tuple[int, int]:
    """The number of parts of an expression, and how deep they are nested."""
    return _measure_of_call(expression) if isinstance(expression, Call) else (1, 1)


@kept
def _measure_of_call(call: Call) -> tuple[int, int]:
    measures = [_measure(argument) for argument in call.arguments]
    size = 1 + sum(size for size, _ in measures)
    return size, 1 + max((depth for _, depth in measures), default=0)


def turned(join: OuterJoin, mirrored: OuterKind) -> tuple[OuterJoin, list[Expression]]:
    """The join with its sides swapped, of the kind that means the same then, and its former columns."""
    left, right = columns(join.left), columns(join.right)
    restored = [*(shift(column, len(right)) for column in left), *right]
    predicate = replaced_predicate(join.predicate, restored)
    return OuterJoin(mirrored, join.right, join.left, predicate), restored


def has_window_edge(expression: Expression) -> bool:
    return any(isinstance(part, WindowEdge) for part in walk(expression))


def is_of_tick(term: Expression) -> bool:
    """Whether a term speaks of the window's edges alone: it is the same for all rows of a tick."""
    return not columns_of(term) and has_window_edge(term)


def ticks(node: Node) -> bool:
    return isinstance(node.timing, Ticking | RowTicking)


def normalised_aggregate(node: Node) -> Node:
    """An aggregate in normal form, below a project that restores its columns; any other node as it is.

    `normalise_aggregates` says why this is sound.
    """
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


def lift_projects(node: Node) -> Node:
    """The node with the projects directly below it moved above it, as far as they may.

    `pull_up_projects` says why this is sound. Rules that build projects below others lift them themselves.
    """
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
    lower = [*_columns_used(expressions, window.input), *(WindowEdge(edge) for edge in Edge if edge in edges)]
    if lower == list(expressions):
        return window
    below = Window(projected(window.input.input, lower), window.window)
    return projected(below, _built_from(lower, expressions))


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
    lower = [*_columns_used(moving, node), *in_order(staying)]
    if lower == list(expressions):
        return node, columns(node)
    return projected(node.input, lower), _built_from(lower, expressions)


def _is_null_with_its_columns(expression: Expression) -> bool:
    used = columns_of(expression)
    nulled = with_nulls(expression, used)
    return bool(used) and isinstance(nulled, Literal) and nulled.value is None


def _columns_used(expressions: Sequence[Expression], project: Project) -> list[Expression]:
    used = sorted({index for expression in expressions for index in columns_of(expression)})
    return [Column(index, project.input.types[index]) for index in used]


def _built_from(lower: Sequence[Expression], expressions: Sequence[Expression]) -> list[Expression]:
    """The expressions over a node whose columns are `lower`."""
    places: dict[Expression, Expression] = {e: Column(place, e.type) for place, e in enumerate(lower)}
    return [
        places[expression]
        if expression in places
        else simplify(
            transform(expression, lambda part: part if isinstance(part, Call) else places.get(part, part))
        )
        for expression in expressions
    ]
