"""Rule: let equal sub-plans be one object.

Algebra: a node is a function of its inputs, so that equal nodes give equal rows; merging them changes
nothing but how often they stand in memory. Over many queries that is what makes thousands of them cheap: a
`Merger` shared by all keeps one copy of each sub-plan, with its signature and normal forms computed once.

    >>> from plait.plan.nodes import StreamScan, Union
    >>> plan = merge_equal_subplans(Union((StreamScan("s", ()), StreamScan("s", ()))))
    >>> plan.inputs[0] is plan.inputs[1]
    True
"""

from __future__ import annotations

from plait.plan.nodes import Node
from plait.rewrite.building import bottom_up


class Merger:
    """Keeps the first of all equal nodes it is shown."""

    def __init__(self) -> None:
        self._nodes: dict[Node, Node] = {}

    def merge(self, plan: Node) -> Node:
        """The plan made of nodes that were seen before, where equal ones were."""
        return bottom_up(plan, lambda node: self._nodes.setdefault(node, node))


def merge_equal_subplans(plan: Node) -> Node:
    return Merger().merge(plan)
