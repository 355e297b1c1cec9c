"""Rule: move projects up, into the expressions of what uses them, until only the order of a result needs
them.

Algebra: a project is a function of the row, total and deterministic, and event times travel with the row
whether selected or not. So it commutes with whatever keeps or drops whole rows (filters, range and tick
windows, inner joins) and composes with whatever computes expressions (projects, aggregates); duplicates
stay duplicates.

Where it does not commute, and what stays below:

- `window_start`/`window_end` below another window mean that node's own ticks: the edges stay below as
  columns, the rest of the expression moves up.
- On a side of an outer join that is filled with NULLs, an expression moves up only if it is NULL itself
  when its columns are (`x + 1`, not `coalesce(x, 0)` or `1`).
- Row windows and tops order rows by all columns, unions match columns by position: nothing moves through
  these.

    >>> from plait.plan.format import format_plans, parse_plans
    >>> plan = parse_plans('''
    ... r0 := scan flights [num INT, gate STRING]
    ... r1 := project r0: gate#1, (num#0 + 1)
    ... r2 := filter r1: (_#1 = 17)
    ... r3 := window r2: range 5 min slide 1 min
    ... r4 := aggregate r3 by gate#0: count()
    ... q = r4'''[1:])["q"]
    >>> print(format_plans({"q": pull_up_projects(plan)}), end="")
    r0 := scan flights [num INT, gate STRING]
    r1 := filter r0: ((num#0 + 1) = 17)
    r2 := window r1: range 5 min slide 1 min
    r3 := aggregate r2 by gate#1: count()
    q = r3
"""

from __future__ import annotations

from plait.plan.nodes import Node, Project
from plait.rewrite.building import bottom_up, lift_projects


def pull_up_projects(plan: Node) -> Node:
    return bottom_up(plan, lift_projects, frozenset({Project}))
