"""Which expressions of a query can fail, and on which rows of its streams that is counted.

An expression over columns of one stream is counted once for each row of the stream that has what the query
asks of single rows of it, wherever in the query the expression stands: so the count depends neither on
windows nor on partners, nor on who else is there. A term of that condition itself is counted on rows that no
other term excludes. Expressions over several rows (groups, combinations of streams) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.expressions.failing import disjunction, failing
from plait.expressions.keeping import kept
from plait.expressions.nodes import (
    Call,
    Column,
    Expression,
    WindowEdge,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
    substitute_columns,
    walk,
)
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    StreamScan,
    Top,
    Window,
    walk_plan,
)
from plait.sharing.chains import chain_above, inputs_of


@dataclass(frozen=True)
class Check:
    """An expression over columns of a stream that can fail, and the rows on which that is counted. `scan` has
    all columns of the stream that the query reads."""

    scan: StreamScan
    call: Call
    condition: Expression


@kept
def checks(plan: Node) -> tuple[Check, ...]:
    """All that can fail in a canonical plan, each expression once."""
    inputs = [*inputs_of(plan)]
    scans = _whole_scans(inputs)
    found: dict[tuple[StreamScan, Call], list[Expression]] = {}
    for source, call, condition in (*_within(inputs), *_above(plan, inputs)):
        scan = chain_above(source).base
        assert isinstance(scan, StreamScan)
        whole = scans[scan.stream]
        places = [whole.columns.index(field) for field in scan.columns]
        moved = substitute_columns(call, places.__getitem__)
        assert isinstance(moved, Call)
        found.setdefault((whole, moved), []).append(substitute_columns(condition, places.__getitem__))
    return tuple(Check(scan, call, disjunction(each)) for (scan, call), each in found.items())


def _whole_scans(inputs: list[Node]) -> dict[str, StreamScan]:
    columns: dict[str, dict[Field, None]] = {}
    for source in inputs:
        scan = chain_above(source).base
        assert isinstance(scan, StreamScan)
        columns.setdefault(scan.stream, {}).update(dict.fromkeys(scan.columns))
    return {stream: StreamScan(stream, tuple(fields)) for stream, fields in columns.items()}


def _within(inputs: list[Node]) -> Iterator[tuple[Node, Call, Expression]]:
    """What fails in what is asked of single rows, or made of them."""
    for source in inputs:
        chain = chain_above(source)
        for call, condition in failing(conjunction(chain.terms)).items():
            yield source, call, condition
        for expression in chain.expressions:
            yield from _on_wanted(source, expression)


def _above(plan: Node, inputs: list[Node]) -> Iterator[tuple[Node, Call, Expression]]:
    """What fails above, over columns of one row."""
    below = {node for source in inputs for node in walk_plan(source)}
    for node in walk_plan(plan):
        if node in below:
            continue
        columns = [origin for source in node.inputs for origin in _origins(source)]
        for expression in _expressions(node):
            for call, condition in failing(expression).items():
                origin = _traced(condition, columns)
                if origin is not None:
                    traced = _traced(call, columns)
                    assert traced is not None
                    assert isinstance(traced.expression, Call)
                    terms = chain_above(origin.source).terms
                    yield origin.source, traced.expression, conjunction([*terms, origin.expression])


def _on_wanted(source: Node, expression: Expression) -> Iterator[tuple[Node, Call, Expression]]:
    terms = chain_above(source).terms
    for call, condition in failing(expression).items():
        yield source, call, conjunction([*terms, condition])


def _expressions(node: Node) -> tuple[Expression, ...]:
    """What a node computes. The terms of its condition are apart: none excuses another, which may be about
    other rows."""
    match node:
        case Filter(_, predicate) | Join(_, predicate) | OuterJoin(_, _, _, predicate):
            return conjuncts(predicate)
        case Project(_, expressions):
            return expressions
        case Aggregate(_, keys, aggregates):
            return (*keys, *(each for call in aggregates for each in call.expressions))
        case Top(_, order):
            return tuple(key.expression for key in order)
        case _:
            return ()


@dataclass(frozen=True)
class _Origin:
    """An expression over the columns of the scan below an input of a plan."""

    source: Node
    expression: Expression


@kept
def _origins(node: Node) -> tuple[_Origin | None, ...]:
    """What the columns of a node are made of, as far as that is one row of a stream."""
    chain = chain_above(node)
    if isinstance(chain.base, StreamScan):
        return tuple(_Origin(node, expression) for expression in chain.expressions)
    match node:
        case Window(source) | Filter(source) | Top(source):
            return _origins(source)
        case Project(source, expressions):
            below = _origins(source)
            return tuple(_traced(expression, below) for expression in expressions)
        case Join() | OuterJoin():
            return tuple(origin for source in node.inputs for origin in _origins(source))
        case _:
            return (None,) * len(node.types)


def _traced(
    expression: Expression, columns: tuple[_Origin | None, ...] | list[_Origin | None]
) -> _Origin | None:
    used = {columns[index] for index in columns_of(expression)}
    sources = {origin.source for origin in used if origin is not None}
    has_edge = any(isinstance(part, WindowEdge) for part in walk(expression))
    if None in used or len(sources) != 1 or has_edge:
        return None

    def over_scan(index: int) -> Expression:
        origin = columns[index]
        return Column(index, expression.type) if origin is None else origin.expression

    return _Origin(sources.pop(), substitute(expression, over_scan))
