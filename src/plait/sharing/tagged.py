"""Plans of any kind that are equal but for constants, as one plan: it computes the rows of all of them.

Where a stream is read with a filter that the plans have different constants in, the rows that each of them
wants are **tagged** with its number; a row that several want is there for each. Above, tags travel with the
rows as further columns, and keep them apart: an aggregate groups by them, a join demands that they are equal,
a row window counts for each. What is below no such filter is the same for all plans, has no tags, and meets
the rows of each. Other constants that differ travel beside the tag.

    join x.k = y.k                    join x.k = y.k and x.tag = y.tag
      aggregate by k        becomes     aggregate by k, tag
        a where g = 1 (or 2, …)           a, tagged by who wants its g
      aggregate by k                    aggregate by k, tag
        b where g = 1 (or 2, …)           b, tagged by who wants its g
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Call, Column, Expression, Literal, conjunction, conjuncts, substitute
from plait.expressions.types import INT, Type
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RowWindow,
    StreamScan,
    Union,
    Window,
)
from plait.sharing.chains import chain_above
from plait.sharing.numbered import numbered
from plait.sharing.patterns import Selection
from plait.sharing.selects import WovenSelect, woven_select
from plait.sharing.shapes import can_be_column, shaped


@dataclass(frozen=True)
class TaggedInput:
    """Rows of a stream, tagged: `node` stands for them in the plan, and has columns for `expressions`, then
    the tag, then the constants. The expressions are over the columns of the scan, then over the constants.
    Each plan has a selection of rows."""

    node: StreamScan
    scan: StreamScan
    selections: tuple[Selection, ...]
    expressions: tuple[Expression, ...]


@dataclass(frozen=True)
class TaggedPlan:
    """Plans as one. Its columns are theirs, then the tag: the place of a plan among them; then the constants,
    of which each plan has its own."""

    plans: tuple[Node, ...]
    plan: Node
    inputs: tuple[TaggedInput, ...]
    constants: tuple[tuple[Literal, ...], ...]


def tagged_plans(plans: Iterable[Node], scans: Mapping[str, StreamScan]) -> Iterator[TaggedPlan]:
    """Those of different plans that can be computed as one, over scans that have all columns that are
    read."""
    alike: dict[Hashable, list[tuple[Node, tuple[Literal, ...]]]] = {}
    for plan in plans:
        outline = _outline(plan, scans)
        alike.setdefault(outline.text, []).append((plan, outline.constants))
    for number, members in enumerate(alike.values()):
        if len(members) > 1:
            try:
                yield _Merger(members, scans, f"tagged {number}").merged()
            except _ApartError:
                continue


class _ApartError(Exception):
    """Plans differ where no tag says whose rows these are."""


@dataclass(frozen=True)
class _Outline:
    """What plans have in common that differ in constants alone, and the constants that they compare with
    above their streams' filters."""

    text: Hashable
    constants: tuple[Literal, ...] = ()


def _outline(node: Node, scans: Mapping[str, StreamScan]) -> _Outline:
    if isinstance(chain_above(node).base, StreamScan):
        select = _select(node, scans)
        return _Outline((select.key, select.shaped.shape), select.shaped.constants)
    own = (getattr(node, field.name) for field in fields(node) if field.name not in _INPUTS)
    parts = [*map(_outline_of, own), *(_outline(source, scans) for source in node.inputs)]
    return _joined_outline(node.kind, parts)


_INPUTS = frozenset({"input", "inputs", "left", "right"})

# Constants are columns beyond all others.
_BEYOND = 2**31


def _outline_of(value: object) -> _Outline:
    """Of a part of a node."""
    match value:
        case Call():
            lifted = shaped(_BEYOND, [value], [])
            return _Outline(lifted.shape, lifted.constants)
        case AggregateCall(function, arguments, condition):
            return _joined_outline(function, [_outline_of(arguments), _outline_of(condition)])
        case tuple():
            return _joined_outline("", [*map(_outline_of, value)])
        case Hashable():
            return _Outline(value)
    raise TypeError(f"{type(value).__name__} is part of no plan")


def _joined_outline(name: str, parts: Sequence[_Outline]) -> _Outline:
    constants = tuple(constant for part in parts for constant in part.constants)
    return _Outline((name, *(part.text for part in parts)), constants)


def _select(node: Node, scans: Mapping[str, StreamScan]) -> WovenSelect:
    select = woven_select("", node, scans)
    assert select is not None, node.kind
    return select


class _Merger:
    """Merges plans of one outline. `name` begins the names of what stands for inputs."""

    def __init__(
        self,
        members: Sequence[tuple[Node, tuple[Literal, ...]]],
        scans: Mapping[str, StreamScan],
        name: str,
    ) -> None:
        self._plans = tuple(plan for plan, _ in members)
        self._scans = scans
        self._name = name
        self._inputs: dict[tuple[Node, ...], TaggedInput] = {}
        of_all = zip(*(constants for _, constants in members), strict=True)
        self._constants = numbered(each for each in of_all if len({*each}) > 1)

    def merged(self) -> TaggedPlan:
        plan, _ = self._merge(self._plans)
        return TaggedPlan(self._plans, plan, tuple(self._inputs.values()), tuple(self._constants))

    def _merge(self, nodes: tuple[Node, ...]) -> tuple[Node, bool]:
        """What gives the rows of these nodes, one of each plan, and whether they are tagged."""
        first = nodes[0]
        if all(node == first for node in nodes):
            return first, False
        if isinstance(chain_above(first).base, StreamScan):
            return self._input(nodes).node, True
        below = [self._merge(each) for each in zip(*(node.inputs for node in nodes), strict=True)]
        if not any(is_tagged for _, is_tagged in below):
            raise _ApartError
        return self._above(nodes, below), True

    def _input(self, nodes: tuple[Node, ...]) -> TaggedInput:
        if nodes not in self._inputs:
            selects = [_select(node, self._scans) for node in nodes]
            scan, shape = selects[0].key.scan, selects[0].shaped.shape
            own = zip(*(select.shaped.constants for select in selects), strict=True)
            columns = [*_columns(scan.types), *(self._constant(each, len(scan.types)) for each in own)]
            expressions = tuple(substitute(each, columns.__getitem__) for each in shape.expressions)
            types = [*(each.type for each in expressions), *(column.type for column in self._tags(0))]
            node = StreamScan(
                f"{self._name} {len(self._inputs)}",
                tuple(Field(f"c{k}", type_) for k, type_ in enumerate(types)),
            )
            selections = tuple(select.selection for select in selects)
            self._inputs[nodes] = TaggedInput(node, scan, selections, expressions)
        return self._inputs[nodes]

    def _above(self, nodes: tuple[Node, ...], below: Sequence[tuple[Node, bool]]) -> Node:
        """The node above merged inputs, of which some are tagged."""
        source, width = below[0][0], len(nodes[0].inputs[0].types)
        match nodes[0]:
            case Join() | OuterJoin():
                return self._joined(nodes, below)
            case Union() if all(is_tagged for _, is_tagged in below):
                return Union(tuple(node for node, _ in below))
            case Window(_, RowWindow() as window):
                tags = tuple(column.index for column in self._tags(width))
                return Window(source, replace(window, partition=(*window.partition, *tags)))
            case Window(_, window):
                return Window(source, window)
            case Filter():
                return Filter(source, self._over(width + 1, [_of(Filter, each).predicate for each in nodes]))
            case Project():
                parts = zip(*(_of(Project, each).expressions for each in nodes), strict=True)
                own = (self._over(width + 1, each) for each in parts)
                return Project(source, (*own, *self._tags(width)))
            case Aggregate():
                return self._aggregated([_of(Aggregate, each) for each in nodes], source)
            case _:
                raise _ApartError

    def _aggregated(self, nodes: Sequence[Aggregate], source: Node) -> Node:
        width = len(nodes[0].input.types)
        keys = [self._over(width + 1, each) for each in zip(*(node.keys for node in nodes), strict=True)]
        calls = [
            self._call(width + 1, each) for each in zip(*(node.aggregates for node in nodes), strict=True)
        ]
        tags = self._tags(width)
        aggregate = Aggregate(source, (*keys, *tags), tuple(calls))
        columns = _columns(aggregate.types)
        own, of_tags = len(keys), len(tags)
        return Project(aggregate, (*columns[:own], *columns[own + of_tags :], *columns[own : own + of_tags]))

    def _call(self, width: int, calls: Sequence[AggregateCall]) -> AggregateCall:
        arguments = zip(*(call.arguments for call in calls), strict=True)
        filters = [call.filter for call in calls if call.filter is not None]
        return AggregateCall(
            calls[0].function,
            tuple(self._over(width, each) for each in arguments),
            self._over(width, filters) if filters else None,
        )

    def _joined(self, nodes: Sequence[Node], below: Sequence[tuple[Node, bool]]) -> Node:
        """A join that demands that tags are equal, with the columns of the join that it stands for."""
        joins = [_of(Join, node) if isinstance(node, Join) else _of(OuterJoin, node) for node in nodes]
        columns: list[Column] = []
        tags: list[list[Column]] = []
        start = 0
        for source, (node, is_tagged) in zip(joins[0].inputs, below, strict=True):
            own = len(source.types)
            placed = [Column(start + column.index, column.type) for column in _columns(node.types)]
            columns += placed[:own]
            if is_tagged:
                tags.append(placed[own:])
            start += len(placed)
        predicate = self._over(len(columns), [join.predicate for join in joins])
        constants = tags[0][1:]
        terms = [*conjuncts(substitute(predicate, [*columns, *constants].__getitem__))]
        terms += [Call("eq", (tags[0][0], other[0])) for other in tags[1:]]
        inputs = tuple(node for node, _ in below)
        if isinstance(joins[0], Join):
            return Project(Join(inputs, conjunction(terms)), (*columns, *tags[0]))
        outer = joins[0].outer
        if not all(below[position][1] for position in joins[0].kept):
            raise _ApartError  # a row without a tag would have to be kept for some of the plans
        of_kept: Sequence[Expression] = tags[-1 if outer is OuterKind.RIGHT else 0]
        if outer is OuterKind.FULL:
            of_kept = [Call("coalesce", both) for both in zip(*tags, strict=True)]
        return Project(OuterJoin(outer, inputs[0], inputs[1], conjunction(terms)), (*columns, *of_kept))

    def _over(self, width: int, expressions: Sequence[Expression]) -> Expression:
        """What the plans compute in one place, over so many columns and then over the constants."""
        first = expressions[0]
        if all(each == first for each in expressions):
            return first
        calls = [each for each in expressions if isinstance(each, Call)]
        if len(calls) < len(expressions):
            raise _ApartError
        function, to = calls[0].function, calls[0].to
        arguments = []
        for each in zip(*(call.arguments for call in calls), strict=True):
            literals = tuple(part for part in each if isinstance(part, Literal))
            is_own = len(literals) == len(each) and can_be_column(function, literals[0])
            arguments.append(self._constant(literals, width) if is_own else self._over(width, each))
        return Call(function, tuple(arguments), to)

    def _constant(self, literals: tuple[Literal, ...], width: int) -> Expression:
        """A constant of the plans: one for all, or a column after so many others."""
        if all(each == literals[0] for each in literals):
            return literals[0]
        return Column(width + self._constants[literals], literals[0].type)

    def _tags(self, start: int) -> list[Column]:
        """The columns of the tag and the constants, after so many others."""
        types = [INT, *(literals[0].type for literals in self._constants)]
        return [Column(start + k, type_) for k, type_ in enumerate(types)]


_Kind = TypeVar("_Kind")


def _of(kind: type[_Kind], node: Node) -> _Kind:
    assert isinstance(node, kind)
    return node


def _columns(types: Sequence[Type]) -> list[Column]:
    return [Column(index, type_) for index, type_ in enumerate(types)]
