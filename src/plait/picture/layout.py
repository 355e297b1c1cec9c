"""A place for every box: columns from left to right along the flow of rows, sites as bands below each other.

The classic layered drawing (Sugiyama, Tagawa, Toda 1981) in four steps: columns by longest path; order within
a column by barycentres, swept to and fro; heights by least squares under that order (pool adjacent
violators); arrows as curves that pass other columns through points kept free for them. A box never leaves
its band, so that the frame of a site is a plain rectangle.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plait.picture.diagram import predecessors, sorted_by_flow, successors

COLUMN_GAP = 64.0
ROW_GAP = 14.0
BAND_GAP = 26.0
BAND_PADDING = 16.0
BAND_CAPTION = 34.0
BADGE_HEIGHT = 10.0  # what may stand out above a box
PASSAGE_HEIGHT = 6.0
ORDERING_SWEEPS = 12
HEIGHT_SWEEPS = 8


@dataclass(frozen=True)
class Item:
    """A box to be placed: its size, and the band it must stay in."""

    id: str
    width: float
    height: float
    band: int


@dataclass(frozen=True)
class Rectangle:
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@dataclass(frozen=True)
class Placement:
    """`routes` has for each arrow the points it passes, from the right of one box to the left of another."""

    boxes: Mapping[str, Rectangle]
    routes: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    bands: tuple[Rectangle, ...]
    width: float
    height: float


@dataclass(frozen=True)
class _Graph:
    """Items and, where an arrow passes a column, a thin passage; every arrow leads to the next column."""

    items: Mapping[str, Item]
    columns: list[list[str]]
    column_of: Mapping[str, int]
    before: Mapping[str, list[str]]
    after: Mapping[str, list[str]]
    chains: Mapping[tuple[str, str], list[str]]


def lay_out(items: Sequence[Item], arrows: Sequence[tuple[str, str]], *, framed: bool) -> Placement:
    """Place the items. Bands are numbered from 0 without a gap; `framed` leaves room for their frames."""
    if not items:
        return Placement({}, {}, (), 0.0, 0.0)
    graph = _layered(items, arrows)
    _order(graph)
    return _placed(graph, _heights(graph), framed=framed)


def _layered(items: Sequence[Item], arrows: Sequence[tuple[str, str]]) -> _Graph:
    before, after = predecessors(arrows), successors(arrows)
    flow = sorted_by_flow([item.id for item in items], arrows)
    column: dict[str, int] = {}
    for id_ in flow:
        column[id_] = max((column[source] + 1 for source in before.get(id_, ())), default=0)
    for id_ in reversed(flow):
        if not before.get(id_) and after.get(id_):  # a source stands right before whoever reads it first
            column[id_] = min(column[target] for target in after[id_]) - 1
    nodes = {item.id: item for item in items}
    links: dict[tuple[str, str], None] = {}
    chains: dict[tuple[str, str], list[str]] = {}
    for source, target in arrows:
        # Arrows from one box carry the same rows: they share their passages and part as late as they can.
        passages = {number: f"{source}\0{number}" for number in range(column[source] + 1, column[target])}
        for number, passage in passages.items():
            nodes[passage] = Item(passage, 0.0, PASSAGE_HEIGHT, nodes[source].band)
            column[passage] = number
        chains[source, target] = [source, *passages.values(), target]
        links.update(dict.fromkeys(pairwise(chains[source, target])))
    columns: list[list[str]] = [[] for _ in range(max(column.values()) + 1)]
    for id_ in nodes:
        columns[column[id_]].append(id_)
    return _Graph(nodes, columns, column, predecessors(list(links)), successors(list(links)), chains)


def _order(graph: _Graph) -> None:
    """Order the columns with few crossings, keeping the best of all sweeps."""
    for column in graph.columns:
        column.sort(key=lambda id_: graph.items[id_].band)
    best, fewest = [list(column) for column in graph.columns], _crossings(graph)
    for sweep in range(ORDERING_SWEEPS):
        to_the_right = sweep % 2 == 0
        neighbours = graph.before if to_the_right else graph.after
        for column in graph.columns if to_the_right else reversed(graph.columns):
            _sort_by_neighbours(graph, column, neighbours)
        crossings = _crossings(graph)
        if crossings < fewest:
            best, fewest = [list(column) for column in graph.columns], crossings
        if not fewest:
            break
    for column, order in zip(graph.columns, best, strict=True):
        column[:] = order


def _sort_by_neighbours(graph: _Graph, column: list[str], neighbours: Mapping[str, list[str]]) -> None:
    rank = {id_: index for line in graph.columns for index, id_ in enumerate(line)}
    own = {id_: index for index, id_ in enumerate(column)}

    def key(id_: str) -> tuple[int, float]:
        near = neighbours.get(id_, ())
        barycentre = sum(rank[other] for other in near) / len(near) if near else float(own[id_])
        return graph.items[id_].band, barycentre

    column.sort(key=key)


def _crossings(graph: _Graph) -> int:
    total = 0
    for left, right in pairwise(graph.columns):
        rank = {id_: index for index, id_ in enumerate(right)}
        seen: list[int] = []
        for id_ in left:
            ends = sorted(rank[target] for target in graph.after.get(id_, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _heights(graph: _Graph) -> dict[str, float]:
    """The middle of every node, as measured from the top of its band."""
    groups = [_by_band(graph, column) for column in graph.columns]
    middle: dict[str, float] = {}
    for group in groups:
        for ids in group.values():
            top = 0.0
            for id_ in ids:
                middle[id_] = top + graph.items[id_].height / 2
                top += graph.items[id_].height + ROW_GAP
    for sweep in range(HEIGHT_SWEEPS):
        to_the_right = sweep % 2 == 0
        neighbours = graph.before if to_the_right else graph.after
        for group in groups if to_the_right else reversed(groups):
            for ids in group.values():
                _settle(graph, ids, middle, neighbours)
    return middle


def _by_band(graph: _Graph, column: Sequence[str]) -> dict[int, list[str]]:
    found: defaultdict[int, list[str]] = defaultdict(list)
    for id_ in column:
        found[graph.items[id_].band].append(id_)
    return found


def _settle(
    graph: _Graph, ids: Sequence[str], middle: dict[str, float], neighbours: Mapping[str, list[str]]
) -> None:
    """Bring the nodes of one column and band as close to their neighbours as their order and sizes allow."""
    offsets, offset = [], 0.0
    for index, id_ in enumerate(ids):
        if index:
            offset += (graph.items[ids[index - 1]].height + graph.items[id_].height) / 2 + ROW_GAP
        offsets.append(offset)
    wanted: list[float] = []
    for id_, shift in zip(ids, offsets, strict=True):
        band = graph.items[id_].band
        near = [middle[other] for other in neighbours.get(id_, ()) if graph.items[other].band == band]
        wanted.append((sum(near) / len(near) if near else middle[id_]) - shift)
    for id_, position, shift in zip(ids, _isotonic(wanted), offsets, strict=True):
        middle[id_] = position + shift


def _isotonic(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence closest to the values (least squares, pool adjacent violators).

    >>> _isotonic([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            previous_total, previous_count = pools.pop()
            total, count = total + previous_total, count + previous_count
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def _placed(graph: _Graph, middle: Mapping[str, float], *, framed: bool) -> Placement:
    padding, caption = (BAND_PADDING, BAND_CAPTION) if framed else (0.0, BADGE_HEIGHT)
    widths = [max(graph.items[id_].width for id_ in column) for column in graph.columns]
    lefts = [padding]
    for width in widths:
        lefts.append(lefts[-1] + width + COLUMN_GAP)

    def extent(band: int, edge: Callable[[Item], float]) -> list[float]:
        return [edge(item) for item in graph.items.values() if item.band == band]

    tops: list[float] = []
    frames: list[Rectangle] = []
    y = 0.0
    for band in range(max(item.band for item in graph.items.values()) + 1):
        first = min(extent(band, lambda item: middle[item.id] - item.height / 2))
        last = max(extent(band, lambda item: middle[item.id] + item.height / 2))
        column_numbers = [graph.column_of[id_] for id_, item in graph.items.items() if item.band == band]
        left = lefts[min(column_numbers)] - padding
        right = lefts[max(column_numbers)] + widths[max(column_numbers)] + padding
        height = last - first + caption + padding
        frames.append(Rectangle(left, y, right - left, height))
        tops.append(y + caption - first)
        y += height + BAND_GAP

    boxes: dict[str, Rectangle] = {}
    for id_, item in graph.items.items():
        column = graph.column_of[id_]
        width = item.width or widths[column]  # a passage is as wide as its column
        boxes[id_] = Rectangle(
            lefts[column], tops[item.band] + middle[id_] - item.height / 2, width, item.height
        )
    routes = {}
    for arrow, chain in graph.chains.items():
        column = graph.column_of[arrow[0]]
        routes[arrow] = _route([boxes[id_] for id_ in chain], lefts[column] + widths[column])
    placed = {id_: box for id_, box in boxes.items() if graph.items[id_].width}
    return Placement(placed, routes, tuple(frames), lefts[-1] - COLUMN_GAP + padding, y - BAND_GAP)


def _route(chain: Sequence[Rectangle], column_right: float) -> tuple[tuple[float, float], ...]:
    """Straight out of the column first: beside a narrow box there may be wider ones, above and below."""
    points = [(chain[0].right, chain[0].middle)]
    if chain[0].right < column_right:
        points.append((column_right, chain[0].middle))
    for passage in chain[1:-1]:
        points += [(passage.left, passage.middle), (passage.right, passage.middle)]
    return (*points, (chain[-1].left, chain[-1].middle))
