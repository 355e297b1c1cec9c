"""Which window aggregates share their partials.

A query can be woven into a tree if it aggregates, over ticks, the rows of one stream, each row by itself:
filters and projections below the window, filters and projections above the aggregate. Queries share a
**tree** if they group the same stream by the same keys and their predicates have one pattern. Their windows,
aggregates, HAVING and constants may differ:

- time is cut at the edges of all windows (`plait.windows.edges`);
- a partial, of one cut and one group, holds all that any query's aggregates need;
- predicates are told apart by a part of the partial's key: in the database the number of the predicate, on
  Spark the looked-up values, or the cell.

A tree that groups the same rows by fewer keys can have its partials made of the finer tree's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Expression, WindowEdge, substitute, substitute_columns, walk
from plait.plan.nodes import Aggregate, Node, StreamScan, TickWindow, Window
from plait.sharing.chains import chain_above
from plait.sharing.patterns import Pattern, Selection, selection_of
from plait.sharing.shapes import Shaped, shaped
from plait.windows.partials import has_partials


@dataclass(frozen=True)
class TreeKey:
    """What all queries of a tree have in common. Columns are those of the scan."""

    scan: StreamScan
    pattern: Pattern
    keys: tuple[Expression, ...]


def finest(key: TreeKey, others: Iterable[TreeKey]) -> TreeKey | None:
    """A grouping of the same rows by more keys, if there is one, that none is finer than."""
    finer = [
        other
        for other in others
        if (other.scan, other.pattern) == (key.scan, key.pattern) and {*key.keys} < {*other.keys}
    ]
    return max(finer, key=lambda other: len(other.keys), default=None)


@dataclass(frozen=True)
class WovenAggregate:
    """A query that can share a tree. `shaped` is over the keys and the aggregates."""

    query: str
    key: TreeKey
    selection: Selection
    window: TickWindow
    aggregates: tuple[AggregateCall, ...]
    shaped: Shaped


def woven_aggregate(
    query: str, plan: Node, scans: Mapping[str, StreamScan], *, tagged: bool = True
) -> WovenAggregate | None:
    """How a canonical plan is woven, over the given scan of its stream; None if it cannot be."""
    above = chain_above(plan)
    aggregate = above.base
    if not isinstance(aggregate, Aggregate) or not isinstance(aggregate.input, Window):
        return None
    window = aggregate.input.window
    below = chain_above(aggregate.input.input)
    if not isinstance(window, TickWindow) or not isinstance(below.base, StreamScan):
        return None
    if not all(map(has_partials, aggregate.aggregates)):
        return None
    inside = [*aggregate.keys, *(e for call in aggregate.aggregates for e in call.expressions)]
    if any(isinstance(node, WindowEdge) for expression in inside for node in walk(expression)):
        return None
    scan = scans[below.base.stream.lower()]
    places = {field.name: index for index, field in enumerate(scan.columns)}
    positions = [places[field.name] for field in below.base.columns]

    def over_scan(expression: Expression) -> Expression:
        computed = substitute(expression, below.expressions.__getitem__)
        return substitute_columns(computed, positions.__getitem__)

    terms = [substitute_columns(term, positions.__getitem__) for term in below.terms]
    selection = selection_of(terms, len(scan.columns), tagged=tagged)
    calls = tuple(
        AggregateCall(
            call.function,
            tuple(map(over_scan, call.arguments)),
            None if call.filter is None else over_scan(call.filter),
        )
        for call in aggregate.aggregates
    )
    key = TreeKey(scan, selection.pattern, tuple(map(over_scan, aggregate.keys)))
    return WovenAggregate(
        query,
        key,
        selection,
        window,
        calls,
        shaped(len(aggregate.types), above.terms, above.expressions),
    )
