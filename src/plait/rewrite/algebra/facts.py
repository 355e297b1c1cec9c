"""What is certainly TRUE of every row of a node, from the filters and joins below it.

Facts are terms over the node's columns. They are never applied again: rules use them to see what a
predicate further up implies, or is implied by. Terms about a window's edges end at the next window, which
has edges of its own; columns of type DOUBLE lose theirs at an aggregate, whose groups may hold both zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from plait.expressions.keeping import kept
from plait.expressions.nodes import (
    FALSE,
    Column,
    Expression,
    WindowEdge,
    columns_of,
    conjuncts,
    shift,
    substitute_columns,
    walk,
)
from plait.expressions.types import DOUBLE
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.rewrite.algebra.simplify import simplify


@kept
def facts(node: Node) -> tuple[Expression, ...]:
    """Terms that hold of every row."""
    return tuple(dict.fromkeys(_collected(node)))


def _collected(node: Node) -> Sequence[Expression]:
    match node:
        case StreamScan() | TableScan():
            return ()
        case Union(inputs):
            first, *rest = map(facts, inputs)
            common = set(first).intersection(*rest)
            return [term for term in first if term in common]
        case Filter(input_, predicate):
            return (*conjuncts(predicate), *facts(input_))
        case Top(input_):
            return facts(input_)
        case Window(input_):
            return [term for term in facts(input_) if not any(isinstance(e, WindowEdge) for e in walk(term))]
        case Project(input_, expressions):
            return _renumbered(facts(input_), _plain_columns(expressions))
        case Aggregate(input_, keys):
            plain = _plain_columns(keys)
            exact = {old: new for old, new in plain.items() if keys[new].type != DOUBLE}
            return _renumbered(facts(input_), exact)
        case Join(inputs, predicate):
            terms = list(conjuncts(predicate))
            for child, start in zip(inputs, node.starts, strict=True):
                terms += [simplify(shift(term, start)) for term in facts(child)]
            return terms
        case OuterJoin(outer, left, right):
            if outer is OuterKind.LEFT:
                return facts(left)
            return (FALSE,) if FALSE in facts(left) and FALSE in facts(right) else ()
        case _:
            assert_never(node)


def _plain_columns(expressions: Sequence[Expression]) -> dict[int, int]:
    """Where each column of the input stands first, if it stands there as it is."""
    places: dict[int, int] = {}
    for place, expression in enumerate(expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, place)
    return places


def _renumbered(terms: Sequence[Expression], places: Mapping[int, int]) -> list[Expression]:
    return [
        simplify(substitute_columns(term, places.__getitem__))
        for term in terms
        if all(index in places for index in columns_of(term))
    ]
