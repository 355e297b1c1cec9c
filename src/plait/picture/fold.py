"""Fewer boxes, until a picture can be read.

Nothing is folded while there are at most `LEGIBLE_BOXES`. Then, one after the other until that holds:

1. an operator that only rearranges columns goes into the box that it reads from;
2. operators that serve one query alone go into the box of that query, since what is shared is what one
   looks for; queries that then take their rows from the same boxes become one box (`37 queries`);
3. boxes of the same kind, at the same site, over the same inputs become one box (`12 joins`), from the
   sources on;
4. boxes of the same kind, at the same site, equally far from the sources become one box.

The names of all that was folded are in the tooltip.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from plait.picture.diagram import Box, BoxKind, Diagram, predecessors, sorted_by_flow, successors

LEGIBLE_BOXES = 64
NAMES_SHOWN = 2


def folded(diagram: Diagram) -> Diagram:
    """The first of the diagram and its foldings that is small enough, or else the smallest."""
    for fold in (_fold_minor_operators, _fold_private_operators, _fold_alike, _fold_by_distance):
        if len(diagram.boxes) <= LEGIBLE_BOXES:
            break
        diagram = fold(diagram)
    return diagram


def _fold_minor_operators(diagram: Diagram) -> Diagram:
    boxes = {box.id: box for box in diagram.boxes}
    before = predecessors(diagram.arrows)
    home: dict[str, str] = {}
    for id_ in sorted_by_flow(list(boxes), diagram.arrows):
        source = before[id_][0] if boxes[id_].minor and before.get(id_) else id_
        home[id_] = id_ if boxes[source].kind is BoxKind.FLOW else home.get(source, id_)
    return _merged(diagram, home, _with_minor_operators)


def _fold_private_operators(diagram: Diagram) -> Diagram:
    boxes = {box.id: box for box in diagram.boxes}
    after = successors(diagram.arrows)
    home: dict[str, str] = {}
    for id_ in reversed(sorted_by_flow(list(boxes), diagram.arrows)):
        targets = {home[target] for target in after.get(id_, ())}
        private = boxes[id_].kind is BoxKind.OPERATOR and len(targets) == 1
        target = next(iter(targets)) if private else id_
        home[id_] = target if private and boxes[target].kind is BoxKind.QUERY else id_
    return _fold_queries(_merged(diagram, home, _query_with_its_operators))


def _fold_queries(diagram: Diagram) -> Diagram:
    before = predecessors(diagram.arrows)
    groups: defaultdict[Hashable, list[Box]] = defaultdict(list)
    for box in diagram.boxes:
        if box.kind is BoxKind.QUERY:
            groups[(box.mark, box.site, frozenset(before.get(box.id, ())))].append(box)
    home = {box.id: group[0].id for group in groups.values() for box in group}
    return _merged(diagram, home, _several)


def _fold_alike(diagram: Diagram) -> Diagram:
    boxes = {box.id: box for box in diagram.boxes}
    before = predecessors(diagram.arrows)
    home: dict[str, str] = {}
    first_of: dict[Hashable, str] = {}
    for id_ in sorted_by_flow(list(boxes), diagram.arrows):
        box = boxes[id_]
        inputs = frozenset(home[source] for source in before.get(id_, ()))
        # Sources stay apart: each of them has a name that the reader knows.
        alike: Hashable = (box.mark, box.kind, _noun(box), box.site, inputs) if inputs else id_
        home[id_] = first_of.setdefault(alike, id_)
    return _merged(diagram, home, _several)


def _fold_by_distance(diagram: Diagram) -> Diagram:
    boxes = {box.id: box for box in diagram.boxes}
    before = predecessors(diagram.arrows)
    distance: dict[str, int] = {}
    home: dict[str, str] = {}
    first_of: dict[Hashable, str] = {}
    for id_ in sorted_by_flow(list(boxes), diagram.arrows):
        box = boxes[id_]
        distance[id_] = max((distance[source] + 1 for source in before.get(id_, ())), default=0)
        alike: Hashable = (box.mark, box.kind, _noun(box), box.site, distance[id_]) if distance[id_] else id_
        home[id_] = first_of.setdefault(alike, id_)
    return _merged(diagram, home, _several)


def _merged(diagram: Diagram, home: Mapping[str, str], merge: Callable[[Sequence[Box]], Box]) -> Diagram:
    """The diagram with each box put into the box that is its home."""
    members: defaultdict[str, list[Box]] = defaultdict(list)
    for box in diagram.boxes:
        members[home.get(box.id, box.id)].append(box)
    arrows = dict.fromkeys((home.get(a, a), home.get(b, b)) for a, b in diagram.arrows)
    return replace(
        diagram,
        boxes=tuple(
            replace(merge(group), id=id_) if len(group) > 1 else group[0] for id_, group in members.items()
        ),
        arrows=tuple((source, target) for source, target in arrows if source != target),
    )


def _with_minor_operators(group: Sequence[Box]) -> Box:
    main, *minor = group  # rows flow from the first to the others
    details = "\n".join(": ".join((box.title, "; ".join(box.lines[:1]))) for box in minor)
    return replace(main, tooltip=f"{main.tooltip or main.title}\n{details}")


def _query_with_its_operators(group: Sequence[Box]) -> Box:
    query = next(box for box in group if box.kind is BoxKind.QUERY)
    own = [box for box in group if box is not query]
    nouns = Counter(_noun(box) for box in own)
    work = ", ".join(noun if count == 1 else f"{count} {_plural(noun)}" for noun, count in nouns.items())
    details = "\n".join(
        ": ".join((box.title, "; ".join(box.lines))) if box.lines else box.title for box in own
    )
    return replace(query, lines=(work, *query.lines), tooltip=f"{query.tooltip or query.title}\n{details}")


def _several(group: Sequence[Box]) -> Box:
    first = group[0]
    members = tuple(name for box in group for name in box.members or (box.title,))
    queries = frozenset(name for box in group for name in box.queries)
    if first.kind is BoxKind.FLOW:
        lines = tuple(dict.fromkeys(box.title for box in group))
    elif first.kind is BoxKind.QUERY:
        more = f" and {len(members) - NAMES_SHOWN:,} more" if len(members) > NAMES_SHOWN else ""
        lines = (", ".join(members[:NAMES_SHOWN]) + more,)
    else:
        lines = (f"for {len(queries):,} {'query' if len(queries) == 1 else 'queries'}",)
    return replace(
        first,
        title=f"{len(members):,} {_plural(_noun(first))}",
        lines=lines,
        tooltip="\n".join(members),
        queries=queries,
        shared=all(box.shared for box in group),
        members=members,
    )


def _noun(box: Box) -> str:
    """What a box is one of, by its title: `join`, `12 joins`."""
    if box.kind is BoxKind.QUERY:
        return "query"
    if box.kind is BoxKind.FLOW:
        return "flow"
    return box.title.split(" ", 1)[1].removesuffix("s") if box.members else box.title


def _plural(noun: str) -> str:
    """
    >>> _plural("query"), _plural("join")
    ('queries', 'joins')
    """
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
