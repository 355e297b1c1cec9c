"""Rule: put the inputs of joins and unions in an order that does not depend on how they were written.

Algebra: inner joins, full outer joins and unions commute, for bags and with NULLs, and so do the columns of a
union if they do so in all its inputs; window conditions are
pairwise and symmetric. The columns of a join change places, which a project restores.

Inputs are ordered by the names of their sources, then by signature. Inputs that are equal (a stream joined
with itself) are told apart by what the predicate says of each: colours are refined from the terms each
takes part in, until they settle. Inputs still alike are tried in every order, up to `MAX_ORDERS` of them,
and the least predicate wins; where even that is equal the inputs are interchangeable, and the order is
chosen that makes what is computed from them least. Beyond the limit the written order decides among the
last ones: sound, and merely shared less.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan b [y INT]
    ... r1 := window r0: range 1 min
    ... r2 := scan a [x INT]
    ... r3 := window r2: range 1 min
    ... r4 := join r1, r3: (y#0 < x#1)
    ... q = r4'''[1:])["q"]
    >>> print(format_plans({"q": order_inputs(plan)}), end="")
    r0 := scan a [x INT]
    r1 := window r0: range 1 min
    r2 := scan b [y INT]
    r3 := window r2: range 1 min
    r4 := join r1, r3: (y#1 < x#0)
    r5 := project r4: y#1, x#0
    q = r5
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, permutations, product
from math import factorial, prod
from typing import TypeAlias, assert_never

from plait.expressions.nodes import Column, Expression, shift
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RowWindow,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
    sources_of,
)
from plait.plan.signature import expression_text, signature
from plait.rewrite.algebra.colours import ranks, refined
from plait.rewrite.algebra.equalities import closed_predicate, first_equals
from plait.rewrite.building import (
    columns,
    lift_projects,
    normalised_aggregate,
    projected,
    replaced,
    replaced_predicate,
    turned,
    with_inputs,
)

MAX_ORDERS = 120

# What is computed from a node's columns, as texts, if the columns are replaced by these.
Use: TypeAlias = Callable[[Sequence[Expression]], tuple[str, ...]]


def order_inputs(plan: Node) -> Node:
    return _ordered(plan, _in_order)


def _in_order(replacements: Sequence[Expression]) -> tuple[str, ...]:
    return tuple(map(expression_text, replacements))


def _ordered(node: Node, use: Use) -> Node:
    """The node, and all below it, in order; its columns stay, maybe by a project above it."""
    inputs = [
        _ordered(child, child_use) for child, child_use in zip(node.inputs, _uses(node, use), strict=True)
    ]
    node = normalised_aggregate(lift_projects(with_inputs(node, inputs)))
    match node:
        case Project(input_, expressions):
            return projected(_arranged_inputs(input_, _projected_use(expressions, use)), expressions)
        case _:
            return _arranged_inputs(node, use)


def _arranged_inputs(node: Node, use: Use) -> Node:
    match node:
        case Join():
            return _ordered_join(node, use)
        case OuterJoin(OuterKind.FULL):
            return _ordered_full_join(node, use)
        case Union():
            return _ordered_union(node, are_columns_bound=use is _in_order)
        case _:
            return node


def _projected_use(expressions: Sequence[Expression], use: Use) -> Use:
    return lambda replacements: use([replaced(expression, replacements) for expression in expressions])


def _uses(node: Node, use: Use) -> list[Use]:
    """What is computed from the columns of each input of the node."""
    match node:
        case StreamScan() | TableScan():
            return []
        case Window(_, RowWindow()) | Top() | Union():
            return [_in_order for _ in node.inputs]
        case Window():
            return [use]
        case Filter(_, predicate):
            return [lambda r: (expression_text(replaced_predicate(predicate, r)), *use(r))]
        case Project(_, expressions):
            return [_projected_use(expressions, use)]
        case Aggregate(_, keys, aggregates):
            return [
                lambda r: (
                    *sorted(expression_text(replaced(key, r)) for key in keys),
                    *sorted(
                        " ".join(
                            [call.function, *(expression_text(replaced(e, r)) for e in call.expressions)]
                        )
                        for call in aggregates
                    ),
                )
            ]
        case Join(_, predicate) | OuterJoin(_, _, _, predicate):
            return [_part_use(node, start, predicate, use) for start in node.starts]
        case _:
            assert_never(node)


def _part_use(node: Node, start: int, predicate: Expression, use: Use) -> Use:
    """What is computed from the columns of one input of a join, which begin at `start`."""

    def of_part(replacements: Sequence[Expression]) -> tuple[str, ...]:
        whole = columns(node)
        whole[start : start + len(replacements)] = [shift(r, start) for r in replacements]
        return (expression_text(replaced_predicate(predicate, whole)), *use(whole))

    return of_part


def _input_key(node: Node) -> tuple[list[str], list[str], str]:
    streams, tables = sources_of(node)
    return sorted(streams), sorted(tables), signature(node)


def _ordered_union(union: Union, are_columns_bound: bool) -> Node:
    """The union with its inputs in order, and its columns too unless their positions are the result's."""
    parts = [
        (part.input, part.expressions) if isinstance(part, Project) else (part, columns(part))
        for part in union.inputs
    ]
    order = list(range(len(union.types)))
    if not are_columns_bound:
        # A column is what it is in each input; what lies below the inputs' projects is in order already.
        order.sort(key=lambda i: sorted((signature(below), expression_text(es[i])) for below, es in parts))
    inputs = [projected(below, [es[i] for i in order]) for below, es in parts]
    restored = [Column(order.index(i), type_) for i, type_ in enumerate(union.types)]
    inputs.sort(key=_input_key)
    return union if tuple(inputs) == union.inputs else projected(Union(tuple(inputs)), restored)


def _ordered_full_join(join: OuterJoin, use: Use) -> Node:
    def key(arranged: tuple[OuterJoin, list[Expression]]) -> tuple[object, ...]:
        candidate, restored = arranged
        return _input_key(candidate.left), expression_text(candidate.predicate), use(restored)

    as_is, turned_round = (join, columns(join)), turned(join, OuterKind.FULL)
    return projected(*turned_round) if key(turned_round) < key(as_is) else join


def _ordered_join(join: Join, use: Use) -> Node:
    colours = ranks([_input_key(child) for child in join.inputs])
    if colours == list(range(len(colours))):
        return join
    if len(set(colours)) < len(colours):
        colours = refined(join, colours)
    arrangements = {order: _arranged(join, order) for order in _orders(colours)}
    order, (best, restored) = min(
        arrangements.items(),
        key=lambda item: (expression_text(item[1][0].predicate), use(item[1][1])),
    )
    if order == tuple(range(len(order))):
        return join if best == join else best  # the same object if nothing changed
    return projected(best, restored)


def _orders(colours: Sequence[int]) -> Iterable[tuple[int, ...]]:
    """The orders of the inputs to choose from: by colour, and in any order within one."""
    groups = [
        list(group)
        for _, group in groupby(sorted(range(len(colours)), key=colours.__getitem__), colours.__getitem__)
    ]
    if prod(factorial(len(group)) for group in groups) > MAX_ORDERS:
        return [tuple(index for group in groups for index in group)]
    choices = product(*(permutations(group) for group in groups))
    return (tuple(index for group in choice for index in group) for choice in choices)


def _arranged(join: Join, order: Sequence[int]) -> tuple[Join, list[Expression]]:
    """The join with its inputs in another order, and from where to take its former columns."""
    restored = columns(join)
    place = 0
    for number in order:
        for offset, type_ in enumerate(join.inputs[number].types):
            restored[join.starts[number] + offset] = Column(place, type_)
            place += 1
    inputs = tuple(join.inputs[number] for number in order)
    arranged = Join(inputs, closed_predicate(inputs, replaced_predicate(join.predicate, restored)))
    firsts = first_equals(arranged)
    return arranged, [replaced(column, firsts) for column in restored]
