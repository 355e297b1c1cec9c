"""What the columns of a relation are called in a DataFrame: `c0`, `c1`, …; below a join `l_c0`, `r_c0`."""

from __future__ import annotations

from plait.plan.nodes import Join, Node, OuterJoin, OuterKind

_JOIN_TYPES = {OuterKind.LEFT: "left_outer", OuterKind.RIGHT: "right_outer", OuterKind.FULL: "full_outer"}


def column_names(node: Node) -> list[str]:
    return [f"c{k}" for k in range(len(node.types))]


def joined_names(node: Join | OuterJoin) -> list[str]:
    """The columns of a join of two, as its inputs have them."""
    return [
        f"{side}_{name}"
        for side, source in zip("lr", node.inputs, strict=True)
        for name in column_names(source)
    ]


def join_type(node: Join | OuterJoin) -> str:
    """As `DataFrame.join` takes it."""
    return _JOIN_TYPES[node.outer] if isinstance(node, OuterJoin) else "inner"
