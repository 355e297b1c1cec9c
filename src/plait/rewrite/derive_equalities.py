"""Rule: write out what follows from equalities (`plait.rewrite.algebra.equalities`).

Algebra: in a filter or an inner join a row counts if all terms are TRUE, so equality is transitive there, and
equals may stand for each other. The same holds of the condition of an outer join, which says which pairs
match; what it implies is written into that condition and nowhere else, since it holds of matched rows only.

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

from plait.plan.nodes import Filter, Join, Node, OuterJoin
from plait.rewrite.algebra.equalities import closed_predicate
from plait.rewrite.building import bottom_up, filtered


def derive_equalities(plan: Node) -> Node:
    return bottom_up(plan, _closed)


def _closed(node: Node) -> Node:
    match node:
        case Filter(input_, predicate):
            closed = closed_predicate([input_], predicate)
            return node if closed == predicate else filtered(input_, [closed])
        case Join(inputs, predicate):
            closed = closed_predicate(inputs, predicate)
            return node if closed == predicate else Join(inputs, closed)
        case OuterJoin(outer, left, right, predicate):
            closed = closed_predicate([left, right], predicate)
            return node if closed == predicate else OuterJoin(outer, left, right, closed)
        case _:
            return node
