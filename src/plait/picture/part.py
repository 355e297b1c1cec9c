"""The part of a diagram that some queries need."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from plait.picture.diagram import Diagram


def part_of(diagram: Diagram, queries: Set[str]) -> Diagram:
    """The boxes that one of the queries needs, and the arrows between them."""
    boxes = tuple(box for box in diagram.boxes if queries & {*box.queries})
    kept = {box.id for box in boxes}
    arrows = tuple((source, target) for source, target in diagram.arrows if {source, target} <= kept)
    return replace(diagram, boxes=boxes, arrows=arrows)
