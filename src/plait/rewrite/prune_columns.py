"""Rule: read and carry only the columns that something above uses.

Algebra: no operator looks at a column that it does not name, with three exceptions that keep all of theirs:
a row window and a top order rows by all columns, and an aggregate's keys decide what a group is. Dropping a
column never drops or merges rows, since results are bags. The inputs of a union give up the same columns.
Scans keep the order of their declaration; event times travel with the rows even where their column is
dropped.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING, dest STRING]
    ... r1 := filter r0: (num#0 = 17)
    ... r2 := project r1: dest#2
    ... q = r2'''[1:])["q"]
    >>> print(format_plans({"q": prune_columns(plan)}), end="")
    r0 := scan flights [num INT, dest STRING]
    r1 := filter r0: (num#0 = 17)
    r2 := project r1: dest#1
    q = r2
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, assert_never

from plait.expressions.nodes import Column, Expression, columns_of
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RowWindow,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.rewrite.building import (
    projected,
    replaced,
    replaced_call,
    replaced_predicate,
    with_inputs,
)

# A pruned node, and which of the original's columns it has, in order.
Pruned: TypeAlias = tuple[Node, tuple[int, ...]]


def prune_columns(plan: Node) -> Node:
    return _whole(plan)


def _whole(node: Node) -> Node:
    """The node with all its columns, pruned inside."""
    everything = range(len(node.types))
    pruned, kept = _pruned(node, frozenset(everything))
    assert kept == tuple(everything)
    return pruned


def _pruned(node: Node, needed: frozenset[int]) -> Pruned:
    """The node with the needed columns, and maybe more; the node itself if it has nothing to drop."""
    match node:
        case StreamScan(stream, fields):
            if len(needed) == len(fields):
                return node, tuple(range(len(fields)))
            return StreamScan(stream, tuple(fields[i] for i in sorted(needed))), tuple(sorted(needed))
        case TableScan(table, fields):
            if len(needed) == len(fields):
                return node, tuple(range(len(fields)))
            return TableScan(table, tuple(fields[i] for i in sorted(needed))), tuple(sorted(needed))
        case Filter(input_, predicate):
            child, kept = _pruned(input_, needed | columns_of(predicate))
            if child is input_:
                return node, kept
            return Filter(child, replaced_predicate(predicate, _places(input_, kept))), kept
        case Project():
            return _pruned_project(node, needed)
        case Window(input_, RowWindow()) | Top(input_):
            return with_inputs(node, [_whole(input_)]), tuple(range(len(node.types)))
        case Window(input_):
            child, kept = _pruned(input_, needed)
            return with_inputs(node, [child]), kept
        case Join() | OuterJoin():
            return _pruned_join(node, needed)
        case Aggregate():
            return _pruned_aggregate(node, needed)
        case Union(inputs):
            kept = tuple(sorted(needed))
            return with_inputs(node, [_exactly(child, kept) for child in inputs]), kept
        case _:
            assert_never(node)


def _pruned_project(project: Project, needed: frozenset[int]) -> Pruned:
    expressions = [project.expressions[i] for i in sorted(needed)]
    child, kept = _pruned(project.input, _used(expressions))
    if child is project.input and len(expressions) == len(project.expressions):
        return project, tuple(sorted(needed))
    places = _places(project.input, kept)
    return Project(child, tuple(replaced(e, places) for e in expressions)), tuple(sorted(needed))


def _pruned_join(join: Join | OuterJoin, needed: frozenset[int]) -> Pruned:
    needed |= columns_of(join.predicate)
    inputs: list[Node] = []
    all_kept: list[int] = []
    for child, start in zip(join.inputs, join.starts, strict=True):
        end = start + len(child.types)
        pruned, kept = _pruned(child, frozenset(i - start for i in needed if start <= i < end))
        inputs.append(pruned)
        all_kept += [start + index for index in kept]
    if all(new is old for new, old in zip(inputs, join.inputs, strict=True)):
        return join, tuple(all_kept)
    predicate = replaced_predicate(join.predicate, _places(join, all_kept))
    if isinstance(join, Join):
        return Join(tuple(inputs), predicate), tuple(all_kept)
    return OuterJoin(join.outer, inputs[0], inputs[1], predicate), tuple(all_kept)


def _pruned_aggregate(aggregate: Aggregate, needed: frozenset[int]) -> Pruned:
    key_count = len(aggregate.keys)
    kept_calls = [i for i in range(len(aggregate.aggregates)) if key_count + i in needed]
    kept = (*range(key_count), *(key_count + i for i in kept_calls))
    calls = tuple(aggregate.aggregates[i] for i in kept_calls)
    used = _used((*aggregate.keys, *(e for call in calls for e in call.expressions)))
    child, child_kept = _pruned(aggregate.input, used)
    if child is aggregate.input and len(calls) == len(aggregate.aggregates):
        return aggregate, kept
    places = _places(aggregate.input, child_kept)
    keys = tuple(replaced(key, places) for key in aggregate.keys)
    return Aggregate(child, keys, tuple(replaced_call(call, places) for call in calls)), kept


def _exactly(node: Node, wanted: Sequence[int]) -> Node:
    pruned, kept = _pruned(node, frozenset(wanted))
    places = _places(node, kept)
    return projected(pruned, [places[index] for index in wanted])


def _used(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(index for expression in expressions for index in columns_of(expression))


def _places(original: Node, kept: Sequence[int]) -> list[Expression]:
    """Where each column of the original is now; a dropped one is not asked for and stands for itself."""
    new_place = {old: new for new, old in enumerate(kept)}
    return [Column(new_place.get(old, old), type_) for old, type_ in enumerate(original.types)]
