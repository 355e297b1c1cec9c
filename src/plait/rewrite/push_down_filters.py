"""Rule: apply each term of a filter as early as it may be.

Algebra: a row passes if every term is TRUE, so terms move one by one.

- Project: all terms, with the expressions put in; expressions are total, so that no error appears or
  vanishes.
- Range and tick windows: terms without `window_end`; which rows a window holds depends on event times alone.
- Inner join: terms of one input, into it; a combination passes if each of its parts does. Terms of the tick
  alone (`window_end > …`), into every input that ticks, since all are at the same tick.
- Left join: terms of the kept side, into it, since each kept row is matched for itself; and terms of ON that
  speak of the filled side alone, into that, since a row that can never match may as well be absent.
- Aggregate: terms of group keys alone, since they drop whole groups, and a group without rows gives none in
  any case. Not those of a DOUBLE key: a group may hold both zeros.
- Union: all terms, into each input.

A filter never crosses a row window or a top (a dropped row makes room for another) and never enters the
filled side of an outer join from above.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := window r0: range 5 min slide 1 min
    ... r2 := aggregate r1 by gate#1: count()
    ... r3 := filter r2: ((gate#0 = 'A') and (count#1 >= 3:BIGINT))
    ... q = r3'''[1:])["q"]
    >>> print(format_plans({"q": push_down_filters(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := filter r0: (gate#1 = 'A')
    r2 := window r1: range 5 min slide 1 min
    r3 := aggregate r2 by gate#1: count()
    r4 := filter r3: (count#1 >= 3:BIGINT)
    q = r4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from plait.expressions.nodes import Expression, columns_of, conjunction, conjuncts, shift
from plait.expressions.types import DOUBLE
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
)
from plait.rewrite.algebra.simplify import simplify_predicate
from plait.rewrite.building import (
    filtered,
    fits,
    has_window_edge,
    is_of_tick,
    projected,
    replaced_predicate,
    ticks,
    with_inputs,
)

_NO_TERMS: tuple[Expression, ...] = ()


def push_down_filters(plan: Node) -> Node:
    return _pushed(plan, _NO_TERMS)


def _pushed(node: Node, terms: Sequence[Expression]) -> Node:
    """The node filtered by the terms, with them and all filters below as far down as they may be."""
    match node:
        case StreamScan() | TableScan():
            return filtered(node, terms)
        case Filter(input_, predicate):
            result = _pushed(input_, [*terms, *conjuncts(predicate)])
            return node if result == node else result
        case Project(input_, expressions):
            if not terms:
                return with_inputs(node, [_pushed(input_, terms)])
            if not fits(terms, expressions):
                return filtered(with_inputs(node, [_pushed(input_, _NO_TERMS)]), terms)
            return projected(
                _pushed(input_, [replaced_predicate(term, expressions) for term in terms]), expressions
            )
        case Window(input_, RowWindow()) | Top(input_):
            return filtered(with_inputs(node, [_pushed(input_, _NO_TERMS)]), terms)
        case Window(input_):
            below, above = _parted(terms, [not has_window_edge(term) for term in terms])
            return filtered(with_inputs(node, [_pushed(input_, below)]), above)
        case Join():
            return _pushed_join(node, terms)
        case OuterJoin():
            return _pushed_outer_join(node, terms)
        case Aggregate(input_, keys):
            below, above = _parted(terms, [_is_of_keys(term, keys) for term in terms])
            below = [replaced_predicate(term, keys) for term in below]
            return filtered(with_inputs(node, [_pushed(input_, below)]), above)
        case Union(inputs):
            return with_inputs(node, [_pushed(child, terms) for child in inputs])
        case _:
            assert_never(node)


def _pushed_join(join: Join, terms: Sequence[Expression]) -> Node:
    predicate = simplify_predicate(conjunction([*terms, *conjuncts(join.predicate)]))
    terms = conjuncts(predicate)
    of_tick, staying = _parted(terms, [is_of_tick(term) for term in terms])
    inputs: list[Node] = []
    for child, start in zip(join.inputs, join.starts, strict=True):
        entering, staying = _parted(staying, [_may_enter(term, child, start) for term in staying])
        entering = [shift(term, -start) for term in entering]
        inputs.append(_pushed(child, entering + of_tick if ticks(child) else entering))
    predicate = simplify_predicate(conjunction(staying))
    return with_inputs(join if predicate == join.predicate else Join(join.inputs, predicate), inputs)


def _pushed_outer_join(join: OuterJoin, terms: Sequence[Expression]) -> Node:
    if join.outer is not OuterKind.LEFT:
        sides = [_pushed(join.left, _NO_TERMS), _pushed(join.right, _NO_TERMS)]
        return filtered(with_inputs(join, sides), terms)
    width = len(join.left.types)
    kept_side, above = _parted(terms, [all(i < width for i in columns_of(term)) for term in terms])
    conditions = conjuncts(join.predicate)
    filled_side, on = _parted(conditions, [_may_enter(term, join.right, width) for term in conditions])
    left = _pushed(join.left, kept_side)
    right = _pushed(join.right, [shift(term, -width) for term in filled_side])
    if filled_side:
        join = OuterJoin(join.outer, join.left, join.right, simplify_predicate(conjunction(on)))
    return filtered(with_inputs(join, [left, right]), above)


def _may_enter(term: Expression, child: Node, start: int) -> bool:
    """Whether the term is of this input's columns alone; one without columns belongs to no input."""
    used = columns_of(term)
    end = start + len(child.types)
    return (
        bool(used)
        and all(start <= index < end for index in used)
        and (ticks(child) or not has_window_edge(term))
    )


def _is_of_keys(term: Expression, keys: Sequence[Expression]) -> bool:
    used = columns_of(term)
    return all(index < len(keys) and keys[index].type != DOUBLE for index in used) and fits([term], keys)


def _parted(terms: Sequence[Expression], chosen: Sequence[bool]) -> tuple[list[Expression], list[Expression]]:
    """The chosen terms and the others."""
    pairs = list(zip(terms, chosen, strict=True))
    return [term for term, is_chosen in pairs if is_chosen], [
        term for term, is_chosen in pairs if not is_chosen
    ]
