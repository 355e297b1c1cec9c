"""Rule: give aggregates their keys and calls once and in one order.

Algebra: grouping depends on the set of keys, and each result on its own call, so order and repetition only
matter to where the results stand, which a project restores. A key without columns (a constant,
`window_end`) is the same for all rows of a tick: it splits no group, and since a tick without rows gives no
group with or without keys, it can be computed above. `count(1)` counts rows, as `count(*)` does;
`count(DISTINCT a, b)` counts combinations, in whichever order they are written.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := window r0: range 5 min slide 1 min
    ... r2 := aggregate r1 by gate#1, 'x', num#0, gate#1: sum(num#0), count(1)
    ... q = r2'''[1:])["q"]
    >>> print(format_plans({"q": normalise_aggregates(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := window r0: range 5 min slide 1 min
    r2 := aggregate r1 by num#0, gate#1: count(), sum(num#0)
    r3 := project r2: gate#1, 'x', num#0, gate#1, sum#3, count#2
    q = r3
"""

from __future__ import annotations

from plait.plan.nodes import Aggregate, Node
from plait.rewrite.building import bottom_up, lift_projects, normalised_aggregate


def normalise_aggregates(plan: Node) -> Node:
    return bottom_up(plan, lambda node: normalised_aggregate(lift_projects(node)), frozenset({Aggregate}))
