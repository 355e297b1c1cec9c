"""Filters and projections above a node, put into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.expressions.keeping import kept
from plait.expressions.nodes import Column, Expression, conjuncts, substitute
from plait.plan.nodes import (
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Static,
    StreamScan,
    TableScan,
    Union,
)


@dataclass(frozen=True)
class Chain:
    """The rows of `base` for which all `terms` are true, with these expressions as columns."""

    base: Node
    terms: tuple[Expression, ...]
    expressions: tuple[Expression, ...]


@kept
def chain_above(plan: Node) -> Chain:
    """All filters and projections at the top of a plan, over what is below them."""
    match plan:
        case Filter(source, predicate):
            below = chain_above(source)
            terms = (substitute(term, below.expressions.__getitem__) for term in conjuncts(predicate))
            return Chain(below.base, (*below.terms, *terms), below.expressions)
        case Project(source, expressions):
            below = chain_above(source)
            computed = tuple(substitute(each, below.expressions.__getitem__) for each in expressions)
            return Chain(below.base, below.terms, computed)
        case _:
            columns = tuple(Column(index, type_) for index, type_ in enumerate(plan.types))
            return Chain(plan, (), columns)


def comes_at_once(plan: Node) -> bool:
    """Whether each row of a result is made of a single row of a stream: then nothing of it has to wait.

    Rows of streams may be filtered, projected, united, and looked up in tables.
    """
    match plan:
        case StreamScan() | TableScan():
            return True
        case Filter(source) | Project(source):
            return comes_at_once(source)
        case Union(inputs):
            return all(map(comes_at_once, inputs))
        case Join(inputs):
            moving = [source for source in inputs if not isinstance(source.timing, Static)]
            return len(moving) <= 1 and all(map(comes_at_once, inputs))
        case OuterJoin(OuterKind.LEFT, left, right):
            return isinstance(right.timing, Static) and comes_at_once(left)
        case OuterJoin(OuterKind.RIGHT, left, right):
            return isinstance(left.timing, Static) and comes_at_once(right)
        case _:
            return False


def inputs_of(plan: Node) -> Iterator[Node]:
    """The largest sub-plans that take rows of one stream, each row by itself; each once."""
    seen: set[Node] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(chain_above(node).base, StreamScan):
            yield node
        else:
            stack.extend(reversed(node.inputs))
