"""What a picture shows, before anything has a place: boxes, arrows between them, the sites they are at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class BoxKind(Enum):
    STREAM = "stream"
    TABLE = "table"
    OPERATOR = "operator"
    FLOW = "flow"  # a stream on its way from one site to another
    QUERY = "query"


@dataclass(frozen=True)
class Box:
    """`queries` are the names of those that need what is in the box; `members` what was folded into it.
    `mark` says what a change would do to it: it `starts`, or `stops`."""

    id: str
    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()
    tooltip: str = ""
    site: str = ""
    queries: frozenset[str] = frozenset()
    shared: bool = False  # computed once for several queries
    minor: bool = False  # only rearranges the columns of what it reads
    members: tuple[str, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class SiteFrame:
    """A site as it is drawn around its boxes."""

    name: str
    caption: str


@dataclass(frozen=True)
class Refusal:
    query: str
    reason: str


@dataclass(frozen=True)
class Diagram:
    """Arrows are pairs of box ids, from what makes rows to what takes them; together they have no cycle."""

    title: str
    caption: str
    boxes: tuple[Box, ...]
    arrows: tuple[tuple[str, str], ...]
    sites: tuple[SiteFrame, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def __post_init__(self) -> None:
        ids = {box.id for box in self.boxes}
        if len(ids) != len(self.boxes):
            raise ValueError("two boxes have the same id")
        if not all(source in ids and target in ids for source, target in self.arrows):
            raise ValueError("an arrow leads nowhere")


def predecessors(arrows: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    """For each box the boxes with an arrow to it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for source, target in arrows:
        found[target].append(source)
    return found


def successors(arrows: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    """For each box the boxes with an arrow from it."""
    return predecessors([(target, source) for source, target in arrows])


def sorted_by_flow(ids: Sequence[str], arrows: Sequence[tuple[str, str]]) -> list[str]:
    """Every box after all that it takes rows from, otherwise in the order given."""
    before, after = predecessors(arrows), successors(arrows)
    waiting = {box: len(before.get(box, ())) for box in ids}
    ready = [box for box in ids if not waiting[box]]
    order: list[str] = []
    for box in ready:  # grows while it is walked
        order.append(box)
        for target in after.get(box, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(order) != len(waiting):
        raise ValueError("rows cannot flow in a circle")
    return order
