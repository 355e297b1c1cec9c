"""Rule: write out what follows from equalities (`plait.rewrite.algebra.equalities`).

Algebra: in a filter or an inner join a row counts if all terms are TRUE, so equality is transitive there, and
equals may stand for each other. The same holds of the condition of an outer join, which says which pairs
match; what it implies is written into that condition and nowhere else, since it holds of matched rows only.

Inputs of an inner join that tick are at the same tick, so that a condition on the tick that one input is
known to fulfil (`window_end > …`) holds of all.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT, z INT]
    ... r1 := window r0: range 1 min
    ... r2 := scan b [y INT]
    ... r3 := window r2: range 1 min
    ... r4 := join r1, r3: ((x#0 = y#2) and (y#2 = 17) and (z#1 > 3))
    ... q = r4'''[1:])["q"]
    >>> print(format_plans({"q": derive_equalities(plan)}), end="")
    r0 := scan a [x INT, z INT]
    r1 := window r0: range 1 min
    r2 := scan b [y INT]
    r3 := window r2: range 1 min
    r4 := join r1, r3: ((x#0 = y#2) and (x#0 = 17) and (z#1 >= 4) and (y#2 = 17))
    q = r4
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.expressions.nodes import Expression, conjunction, conjuncts
from plait.plan.nodes import Filter, Join, Node, OuterJoin
from plait.rewrite.algebra.equalities import closed_predicate
from plait.rewrite.algebra.facts import facts
from plait.rewrite.algebra.simplify import simplify_predicate
from plait.rewrite.building import bottom_up, filtered, is_of_tick, ticks


def derive_equalities(plan: Node) -> Node:
    return bottom_up(plan, _closed, frozenset({Filter, Join, OuterJoin}))


def _closed(node: Node) -> Node:
    match node:
        case Filter(input_, predicate):
            closed = closed_predicate([input_], predicate)
            return node if closed == predicate else filtered(input_, [closed])
        case Join(inputs, predicate):
            of_tick = _of_tick(inputs)
            terms = (
                simplify_predicate(conjunction([*conjuncts(predicate), *of_tick])) if of_tick else predicate
            )
            closed = closed_predicate(inputs, terms)
            return node if closed == predicate else Join(inputs, closed)
        case OuterJoin(outer, left, right, predicate):
            closed = closed_predicate([left, right], predicate)
            return node if closed == predicate else OuterJoin(outer, left, right, closed)
        case _:
            return node


def _of_tick(inputs: Sequence[Node]) -> list[Expression]:
    """Conditions on the tick that some input is known to fulfil, and another is not."""
    known = [facts(child) for child in inputs if ticks(child)]
    conditions = dict.fromkeys(term for terms in known for term in terms if is_of_tick(term))
    return [term for term in conditions if not all(term in terms for terms in known)]
