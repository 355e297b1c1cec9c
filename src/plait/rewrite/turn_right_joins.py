"""Rule: write a right outer join as a left one.

Algebra: `l RIGHT JOIN r ON p` keeps every row of r and fills l with NULLs; so does `r LEFT JOIN l ON p`,
with the columns the other way round, which a project restores. Window conditions are pairwise and symmetric.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan a [x INT]
    ... r1 := window r0: range 1 min
    ... r2 := scan b [y INT]
    ... r3 := window r2: range 1 min
    ... r4 := right join r1, r3: (x#0 = y#1)
    ... q = r4'''[1:])["q"]
    >>> print(format_plans({"q": turn_right_joins(plan)}), end="")
    r0 := scan b [y INT]
    r1 := window r0: range 1 min
    r2 := scan a [x INT]
    r3 := window r2: range 1 min
    r4 := left join r1, r3: (y#0 = x#1)
    r5 := project r4: x#1, y#0
    q = r5
"""

from __future__ import annotations

from plait.plan.nodes import Node, OuterJoin, OuterKind
from plait.rewrite.building import bottom_up, projected, turned


def turn_right_joins(plan: Node) -> Node:
    return bottom_up(plan, _turned_left, frozenset({OuterJoin}))


def _turned_left(node: Node) -> Node:
    match node:
        case OuterJoin(OuterKind.RIGHT):
            return projected(*turned(node, OuterKind.LEFT))
        case _:
            return node
