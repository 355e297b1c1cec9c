"""Plans of any kind that are equal but for constants, as one plan: it computes the rows of all of them.

Sub-plans that differ in constants alone have one **outline**, of which each is a **variant**. One node stands
for all variants of an outline: its rows have a further column, the **tag**, with the number of the variant
that a row is of.

- Where a stream is read, a row is there once for every variant that wants it.
- Above, tags travel with the rows and keep them apart: an aggregate groups by them, a row window counts for
  each.
- Where variants differ by more than those of the input, in a constant of a HAVING, or as a join of two inputs
  with variants of their own, a table of variants is joined: it says which variant comes of which ones below,
  and has the constants.

What has no constants has no variants and no tags, and is computed once:

    join x.k = y.k where x.s > 7 (or 8, …)      join x.k = y.k and x.tag = v.below where x.s > v.constant
      aggregate by k                   becomes    variants v
        a where g = 1 (or 2, …)                   aggregate by k, tag
      aggregate by k                                a, tagged by who wants its g
        b                                         aggregate by k
                                                    b

The first rows of ticks (`Top`) are taken for each plan by itself, from what is below them for all. How plans
are put together depends on each of them alone, so that others may come and go beside it; numbers are digests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import accumulate

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    substitute,
)
from plait.expressions.types import BIGINT, Type
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
    Static,
    StreamScan,
    TableScan,
    Top,
    Union,
    Window,
)
from plait.plan.signature import signature
from plait.rewrite.building import with_inputs
from plait.sharing import identity
from plait.sharing.chains import chain_above
from plait.sharing.selects import WovenSelect, woven_select
from plait.sharing.shapes import Shaped, shaped


@dataclass(frozen=True)
class TaggedInput:
    """Rows of a stream for variants, by their numbers; `node` stands for them in the plan. It has a column
    for each expression of their shape, then the tag."""

    node: StreamScan
    variants: dict[int, WovenSelect]


@dataclass(frozen=True)
class VariantTable:
    """`scan` reads its rows: for tagged inputs the variants below, then the variant, then its constants."""

    scan: TableScan
    rows: tuple[tuple[Literal, ...], ...]


class TaggedPlans:
    """Different plans. `results` says for each plan to be computed whose rows it gives: those of one plan, or
    of several by their tags, which are in its last column."""

    def __init__(self, plans: Iterable[Node]) -> None:
        self.results: dict[Node, Node | dict[int, Node]] = {}
        self.inputs: dict[StreamScan, TaggedInput] = {}
        self.tables: dict[str, VariantTable] = {}
        self._outlines: dict[Node, _Outline] = {}
        self._variants: dict[Hashable, dict[Node, None]] = {}
        self._merged: dict[Hashable, Node] = {}
        self.plans = tuple(dict.fromkeys(plans))
        for plan in self.plans:
            self._note(plan)
        for plan in self.plans:
            outline = self._outlines[plan]
            if outline.kind is _Kind.TAGGED:
                of_tags = self.results.setdefault(self._node(plan), {})
                assert isinstance(of_tags, dict)
                of_tags[self._number(plan)] = plan
            else:
                self.results[self._by_itself(plan)] = plan

    def input_of(self, node: Node) -> tuple[Node, int]:
        """What stands for a plan's input, and its number there; 0 if it has no variants."""
        if self._outlines[node].kind is _Kind.TAGGED:
            return self._node(node), self._number(node)
        return node, 0

    # Outlines

    def _note(self, plan: Node) -> None:
        for node in _down_to_inputs(plan):
            if node not in self._outlines:
                outline = self._outlines[node] = self._outline(node)
                if outline.kind is _Kind.TAGGED:
                    self._variants.setdefault(outline.text, {})[node] = None

    def _outline(self, node: Node) -> _Outline:
        if isinstance(node.timing, Static):
            return _Outline(node, _Kind.PLAIN)
        if _is_input(node):
            select = read(node)
            kind = _Kind.TAGGED if _has_constants(select) else _Kind.PLAIN
            return _Outline((select.key, select.shaped.shape), kind, select.shaped.constants)
        below = [self._outlines[source] for source in node.inputs]
        kinds = {each.kind for each in below}
        lifted = _lifted(node)
        if _Kind.APART in kinds or (isinstance(node, Top) and _Kind.TAGGED in kinds):
            return _Outline(node, _Kind.APART)
        kind = _Kind.TAGGED if _Kind.TAGGED in kinds or lifted.constants else _Kind.PLAIN
        text = (node.kind, _fixed(node), lifted.shape, *(each.text for each in below))
        return _Outline(text, kind, lifted.constants)

    def _number(self, node: Node) -> int:
        position = self._inherited(node)
        return identity.number(signature(node)) if position is None else self._number(node.inputs[position])

    def _inherited(self, node: Node) -> int | None:
        """The input whose variants are those of the node, if there is one."""
        if _is_input(node) or isinstance(node, Union) or self._outlines[node].constants:
            return None
        tagged = self._tagged_inputs(node)
        if len(tagged) != 1 or (isinstance(node, OuterJoin) and node.kept != tuple(tagged)):
            return None
        return tagged[0]

    def _tagged_inputs(self, node: Node) -> list[int]:
        kinds = [self._outlines[source].kind for source in node.inputs]
        return [position for position, kind in enumerate(kinds) if kind is _Kind.TAGGED]

    # Nodes

    def _by_itself(self, node: Node) -> Node:
        """A node that is computed for one plan, over what is below it for all."""
        match self._outlines[node].kind:
            case _Kind.PLAIN:
                return node
            case _Kind.APART:
                return with_inputs(node, [self._by_itself(source) for source in node.inputs])
            case _Kind.TAGGED:
                columns = _columns(node.types)
                is_own = Call("eq", (_tag(len(columns)), Literal(self._number(node), BIGINT)))
                return Project(Filter(self._node(node), is_own), tuple(columns))

    def _node(self, variant: Node) -> Node:
        """What stands for all variants of an outline; for a plain node, itself."""
        outline = self._outlines[variant]
        if outline.kind is not _Kind.TAGGED:
            return variant
        if outline.text not in self._merged:
            self._merged[outline.text] = self._built(outline.text, tuple(self._variants[outline.text]))
        return self._merged[outline.text]

    def _built(self, text: Hashable, variants: tuple[Node, ...]) -> Node:
        first = variants[0]
        if _is_input(first):
            return self._input(text, variants)
        match first:
            case Join():
                return self._joined(text, variants, first)
            case OuterJoin():
                return self._outer_joined(text, variants, first)
            case Union(inputs):
                return Union(tuple(self._expanded(text, variants, p).node for p in range(len(inputs))))
        has_own = bool(self._outlines[first].constants)
        source = (
            self._expanded(text, variants, 0)
            if has_own
            else _Tagged(self._node(first.inputs[0]), len(first.inputs[0].types))
        )
        return self._above(first, source)

    def _input(self, text: Hashable, variants: Sequence[Node]) -> Node:
        selects = {self._number(node): read(node) for node in variants}
        types = [*(each.type for each in read(variants[0]).shaped.shape.expressions), BIGINT]
        fields = tuple(Field(f"c{k}", type_) for k, type_ in enumerate(types))
        node = StreamScan(f"tagged {identity.short(repr(text))}", fields)
        self.inputs[node] = TaggedInput(node, selects)
        return node

    @staticmethod
    def _above(first: Node, source: _Tagged) -> Node:
        """A node with one input, for all its variants."""
        own = [substitute(each, source.columns.__getitem__) for each in _expressions(_lifted(first))]
        match first:
            case Window(_, RowWindow() as window):
                partition = (*window.partition, source.tag.index)
                return Window(source.node, replace(window, partition=partition))
            case Window(_, window):
                return Window(source.node, window)
            case Filter():
                kept = Filter(source.node, own[0])
                return Project(kept, tuple(_columns(kept.types)[: source.width + 1]))
            case Project():
                return Project(source.node, (*own, source.tag))
            case Aggregate(_, keys, calls):
                rest = iter(own[len(keys) :])
                own_calls = tuple(
                    AggregateCall(
                        call.function,
                        tuple(next(rest) for _ in call.arguments),
                        None if call.filter is None else next(rest),
                    )
                    for call in calls
                )
                aggregate = Aggregate(source.node, (*own[: len(keys)], source.tag), own_calls)
                columns = _columns(aggregate.types)
                tag = columns.pop(len(keys))
                return Project(aggregate, (*columns, tag))
            case _:
                raise AssertionError(f"a {first.kind} has no variants")

    def _joined(self, text: Hashable, variants: Sequence[Node], first: Join) -> Node:
        inputs = [self._node(source) for source in first.inputs]
        tagged = self._tagged_inputs(first)
        inherited = self._inherited(first)
        if inherited is None:
            table = self._table(text, variants, tagged)
            inputs.append(table)
        starts = [*accumulate((len(node.types) for node in inputs), initial=0)]
        columns = [
            column for k, each in enumerate(first.inputs) for column in _columns(each.types, starts[k])
        ]
        tags = [_tag(starts[p] + len(first.inputs[p].types)) for p in tagged]
        if inherited is not None:
            joined = Join(tuple(inputs), _over(columns, first))
            return Project(joined, (*columns, tags[0]))
        below, tag, constants = _split(_columns(table.types, starts[-2]), len(tagged))
        terms = [*conjuncts(_over([*columns, *constants], first))]
        terms += [Call("eq", (own, of)) for own, of in zip(tags, below, strict=True)]
        return Project(Join(tuple(inputs), conjunction(terms)), (*columns, tag))

    def _outer_joined(self, text: Hashable, variants: Sequence[Node], first: OuterJoin) -> Node:
        tagged, inherited = self._tagged_inputs(first), self._inherited(first)
        sides: list[_Tagged | None] = []
        for position, source in enumerate(first.inputs):
            if inherited is not None:
                is_it = position == inherited
                sides.append(_Tagged(self._node(source), len(source.types)) if is_it else None)
            elif position in tagged or position in first.kept:
                sides.append(self._expanded(text, variants, position))
            else:
                sides.append(None)
        nodes = [
            source if side is None else side.node for side, source in zip(sides, first.inputs, strict=True)
        ]
        start = len(nodes[0].types)
        columns = [*_columns(first.left.types), *_columns(first.right.types, start)]
        placed = [
            None if side is None else side.moved(by) for side, by in zip(sides, (0, start), strict=True)
        ]
        both = [side for side in placed if side is not None]
        terms = [*conjuncts(_over([*columns, *both[0].constants], first))]
        terms += [Call("eq", (both[0].tag, other.tag)) for other in both[1:]]
        joined = OuterJoin(first.outer, nodes[0], nodes[1], conjunction(terms))
        kept = [side for position in first.kept if (side := placed[position]) is not None]
        tag: Expression = kept[0].tag
        if first.outer is OuterKind.FULL:
            tag = Call("coalesce", tuple(side.tag for side in kept))
        return Project(joined, (*columns, tag))

    def _expanded(self, text: Hashable, variants: Sequence[Node], position: int) -> _Tagged:
        """An input for all variants of a node, with their constants."""
        source = variants[0].inputs[position]
        width = len(source.types)
        is_tagged = self._outlines[source].kind is _Kind.TAGGED
        table = self._table((text, position), variants, [position] if is_tagged else [])
        node = self._node(source)
        below, tag, constants = _split(_columns(table.types, len(node.types)), int(is_tagged))
        joined = Join((node, table), conjunction([*(Call("eq", (_tag(width), of)) for of in below)]))
        return _Tagged(Project(joined, (*_columns(source.types), tag, *constants)), width, len(constants))

    def _table(self, text: Hashable, variants: Sequence[Node], positions: Sequence[int]) -> TableScan:
        """Which variants of a node come of which of its inputs."""
        first = variants[0]
        constants = self._outlines[first].constants
        types = [BIGINT] * (len(positions) + 1) + [each.type for each in constants]
        fields = tuple(Field(f"c{k}", type_) for k, type_ in enumerate(types))
        scan = TableScan(f"variants {identity.short(repr(text))}", fields)
        rows = tuple(
            (
                *(Literal(self._number(node.inputs[position]), BIGINT) for position in positions),
                Literal(self._number(node), BIGINT),
                *self._outlines[node].constants,
            )
            for node in variants
        )
        self.tables[scan.table] = VariantTable(scan, rows)
        return scan


class _Kind(Enum):
    PLAIN = auto()  # has no variants
    TAGGED = auto()
    APART = auto()  # is computed for each plan by itself


@dataclass(frozen=True)
class _Outline:
    """What variants have in common, and the constants of a node itself."""

    text: Hashable
    kind: _Kind
    constants: tuple[Literal, ...] = ()


@dataclass(frozen=True)
class _Tagged:
    """A node with so many columns, the tag, and constants."""

    node: Node
    width: int
    count: int = 0
    start: int = 0  # where its columns begin, in a join

    @property
    def tag(self) -> Column:
        return _tag(self.start + self.width)

    @property
    def constants(self) -> list[Column]:
        return _columns(self.node.types, self.start)[self.width + 1 :][: self.count]

    @property
    def columns(self) -> list[Column]:
        """What its expressions are over: the columns, then the constants."""
        return [*_columns(self.node.types, self.start)[: self.width], *self.constants]

    def moved(self, by: int) -> _Tagged:
        return replace(self, start=by)


def read(node: Node) -> WovenSelect:
    """How an input's rows are those of its stream, over the columns that it reads."""
    base = chain_above(node).base
    assert isinstance(base, StreamScan), node.kind
    select = woven_select("", node, {base.stream.lower(): base})
    assert select is not None, node.kind
    return select


def _has_constants(select: WovenSelect) -> bool:
    pattern = select.key.pattern
    own = pattern.looked_up or pattern.bounded or pattern.parameters or pattern.has_written
    return bool(own or select.shaped.shape.constants)


def _is_input(node: Node) -> bool:
    return isinstance(chain_above(node).base, StreamScan)


def _lifted(node: Node) -> Shaped:
    """The expressions of a node, over its inputs' columns and then over its constants."""
    width = sum(len(source.types) for source in node.inputs)
    match node:
        case Filter(_, predicate) | Join(_, predicate) | OuterJoin(_, _, _, predicate):
            return shaped(width, [predicate], [])
        case Project(_, expressions):
            return shaped(width, [], expressions)
        case Aggregate(_, keys, calls):
            return shaped(width, [*keys, *(each for call in calls for each in call.expressions)], [])
        case _:
            return shaped(width, [], [])


def _expressions(lifted: Shaped) -> tuple[Expression, ...]:
    return (*lifted.shape.terms, *lifted.shape.expressions)


def _over(columns: Sequence[Expression], join: Join | OuterJoin) -> Expression:
    """The predicate of a join, over columns for those of its inputs and for its constants."""
    (predicate,) = _lifted(join).shape.terms
    return substitute(predicate, columns.__getitem__)


def _fixed(node: Node) -> Hashable:
    """What variants of a node have in common beside the shape of its expressions."""
    match node:
        case Window(_, window):
            return window
        case OuterJoin(outer):
            return outer
        case Aggregate(_, keys, calls):
            called = [(call.function, len(call.arguments), call.filter is None) for call in calls]
            return len(keys), *called
        case Top(_, order, count):
            return order, count
        case _:
            return ()


def _split(columns: Sequence[Column], below: int) -> tuple[Sequence[Column], Column, Sequence[Column]]:
    """The columns of a table of variants."""
    return columns[:below], columns[below], columns[below + 1 :]


def _columns(types: Sequence[Type], start: int = 0) -> list[Column]:
    return [Column(start + index, type_) for index, type_ in enumerate(types)]


def _tag(index: int) -> Column:
    return Column(index, BIGINT)


def _down_to_inputs(plan: Node) -> Iterator[Node]:
    """The nodes of a plan down to those that read streams, inputs before what uses them."""
    stack = [(plan, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded or _is_input(node):
            yield node
        else:
            stack.append((node, True))
            stack.extend((source, False) for source in node.inputs)
