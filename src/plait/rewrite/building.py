"""Nodes built in normal form, and plans rebuilt from the bottom up.

Rules build their nodes here, so that each leaves the plan as the others expect it: no filter that is TRUE,
no project that does nothing, no filter on a filter, no project on a project, expressions simplified.
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
    Expression,
    WindowEdge,
    columns_of,
    conjunction,
    conjuncts,
    shift,
    substitute,
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
    StreamScan,
    TableScan,
    Ticking,
    Top,
    Union,
    Window,
)
from plait.rewrite.algebra.simplify import simplify, simplify_predicate

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
