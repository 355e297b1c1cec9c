"""Rule: make nested inner joins one join, and a filter on a join part of its predicate.

Algebra: inner joins are associative, for bags and with NULLs, since a combination counts if the conjunction
of all predicates is TRUE. Window conditions are pairwise between the streams of different inputs: those
inside the inner join and those between it and the rest are together all pairs, which is the condition of
the flat join. Joins of relations at one tick, and joins with tables, have no such condition at all.

A window between two joins is a boundary: what lies below it is a stream of its own, whose rows have one
event time.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT]
    ... r1 := window r0: range 1 min
    ... r2 := join r1, r1: (x#0 = x#1)
    ... r3 := filter r2: (x#0 > 3)
    ... r4 := join r3, r1: (x#1 = x#2)
    ... q = r4'''[1:])["q"]
    >>> print(format_plans({"q": flatten_joins(plan)}), end="")
    r0 := scan a [x INT]
    r1 := window r0: range 1 min
    r2 := join r1, r1, r1: ((x#0 = x#1) and (x#0 >= 4) and (x#1 = x#2))
    q = r2
"""

from __future__ import annotations

from plait.expressions.nodes import conjunction, conjuncts, shift
from plait.plan.nodes import Filter, Join, Node
from plait.rewrite.algebra.simplify import simplify_predicate
from plait.rewrite.building import bottom_up


def flatten_joins(plan: Node) -> Node:
    return bottom_up(plan, _flattened, frozenset({Join}))


def _flattened(node: Node) -> Node:
    match node:
        case Filter(Join(inputs, inner), predicate):
            terms = [*conjuncts(inner), *conjuncts(predicate)]
            return Join(inputs, simplify_predicate(conjunction(terms)))
        case Join(inputs, predicate) if any(isinstance(child, Join) for child in inputs):
            flat: list[Node] = []
            terms = list(conjuncts(predicate))
            for child, start in zip(inputs, node.starts, strict=True):
                if isinstance(child, Join):
                    flat += child.inputs
                    terms += [shift(term, start) for term in conjuncts(child.predicate)]
                else:
                    flat.append(child)
            return Join(tuple(flat), simplify_predicate(conjunction(terms)))
        case _:
            return node
