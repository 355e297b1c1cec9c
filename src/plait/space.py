"""Which operators can produce a derived stream: the space that planners choose from.

A canonical plan says *what* is computed. A `Step` is one operator that computes the rows of `output` from
the rows of its inputs. Every logical node is one operator, with these exceptions:

- A window is no operator: it is folded into the operator that reads through it. (Only a window with ticks
  that nothing reads through becomes one, since it repeats rows.)
- A join of n inputs is a chain of binary joins, in any order. What such a join has computed after some
  inputs is a derived stream of its own, `Space.subjoin(join, members)`: the canonical join of these inputs
  with every predicate that is about them alone, so that two queries which join the same inputs meet in it
  whatever else they join.
- A scan reads the whole stream; leaving out columns is a projection.

Partial and final aggregates are one operator `aggregate` until windows are woven into trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from plait.catalog import Catalog, Relation
from plait.expressions.nodes import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    substitute_columns,
)
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RangeWindow,
    RowTicking,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    Top,
    Union,
    Window,
    WindowSpecification,
)
from plait.rewrite import canonicalise
from plait.rewrite.algebra.equalities import equality_classes


class OperatorKind(StrEnum):
    SCAN = "scan"
    SELECT = "select"
    PROJECT = "project"
    WINDOW = "window"
    WINDOW_JOIN = "window join"
    TABLE_JOIN = "table join"
    TICK_JOIN = "tick join"
    AGGREGATE = "aggregate"
    TOP = "top"
    UNION = "union"


@dataclass(frozen=True)
class Input:
    """A stream that an operator reads, through a window if there is one."""

    stream: Node
    window: WindowSpecification | None = None

    @property
    def as_read(self) -> Node:
        return self.stream if self.window is None else Window(self.stream, self.window)


@dataclass(frozen=True)
class Step:
    """An operator that computes `output`.

    Of a join, `covers` says for each input which of the output's inputs it has joined already.
    """

    kind: OperatorKind
    output: Node
    inputs: tuple[Input, ...]
    covers: tuple[tuple[int, ...], ...] = ()


def relation_of(scan: StreamScan | TableScan, catalog: Catalog) -> Relation:
    """The stream or table that a scan reads."""
    return catalog.stream(scan.stream) if isinstance(scan, StreamScan) else catalog.table(scan.table)


def whole_scan(scan: StreamScan | TableScan, catalog: Catalog) -> StreamScan | TableScan:
    """The scan of all columns."""
    relation = relation_of(scan, catalog)
    return type(scan)(relation.name, tuple(Field(column.name, column.type) for column in relation.columns))


def stream_of(plan: Node) -> Node:
    """The stream that carries a plan's rows: a range window says how long they are kept, not which."""
    while isinstance(plan, Window) and isinstance(plan.window, RangeWindow):
        plan = plan.input
    return plan


def input_of(node: Node) -> Input:
    """How an operator reads `node`: windows fold into the reader."""
    if isinstance(node, Window):
        return Input(stream_of(node.input), node.window)
    return Input(node)


def kind_of(node: Node) -> OperatorKind:
    """The operator that computes the node itself."""
    match node:
        case StreamScan() | TableScan() | Project():
            return OperatorKind.PROJECT
        case Window():
            return OperatorKind.WINDOW
        case Filter():
            return OperatorKind.SELECT
        case Join() | OuterJoin():
            return _kind_of_join(node)
        case Aggregate():
            return OperatorKind.AGGREGATE
        case Top():
            return OperatorKind.TOP
        case Union():
            return OperatorKind.UNION


def _kind_of_join(node: Join | OuterJoin) -> OperatorKind:
    if isinstance(node.timing, Ticking | RowTicking):
        return OperatorKind.TICK_JOIN
    moving = sum(not isinstance(each.timing, Static) for each in node.inputs)
    return OperatorKind.TABLE_JOIN if moving == 1 else OperatorKind.WINDOW_JOIN


def step_of(node: Node) -> Step:
    """The one operator that computes a node which is neither a scan nor an inner join of several inputs."""
    if isinstance(node, StreamScan | TableScan):
        raise ValueError("a scan is computed from a source, not from a derived stream")
    covers: tuple[tuple[int, ...], ...] = ()
    if isinstance(node, Join):
        if len(node.inputs) > 2:
            raise ValueError("a join of several inputs is computed by `Space.join_step`")
        covers = ((0,), (1,))
    return Step(kind_of(node), node, tuple(input_of(each) for each in node.inputs), covers)


class Space:
    """The sub-joins that planners choose from. They recur from query to query: each is brought into canonical
    form once in the life of a space, which is a planning run."""

    def __init__(self) -> None:
        self._subjoins: dict[tuple[Join, tuple[int, ...]], tuple[Join, tuple[int, ...]]] = {}

    def subjoin(self, join: Join, members: tuple[int, ...]) -> Node:
        """What a join has computed after some of its inputs: one is itself, all are the join itself."""
        return join.inputs[members[0]] if len(members) == 1 else self.members_joined(join, members)[0]

    def join_step(self, join: Join, left: Iterable[int], right: Iterable[int]) -> Step:
        """The binary join that computes `subjoin(join, left + right)` from the sub-joins of both sides."""
        sides = (tuple(sorted(left)), tuple(sorted(right)))
        output, members = self.members_joined(join, tuple(sorted(sides[0] + sides[1])))
        return Step(
            kind_of(output),
            output,
            tuple(input_of(self.subjoin(join, side)) for side in sides),
            tuple(tuple(sorted(members.index(member) for member in side)) for side in sides),
        )

    def members_joined(self, join: Join, members: tuple[int, ...]) -> tuple[Join, tuple[int, ...]]:
        """The sub-join of two members or more, and the members in the order of its inputs."""
        if len(members) == len(join.inputs):
            return join, members
        known = self._subjoins.get((join, members))
        if known is None:
            known = self._subjoins[join, members] = _canonical_subjoin(join, members)
        return known


def _canonical_subjoin(join: Join, members: tuple[int, ...]) -> tuple[Join, tuple[int, ...]]:
    """The canonical join of two members or more, and the members in the order of its inputs."""
    plain = restricted(join, members)
    canonical = canonicalise(plain)
    columns: tuple[Expression, ...] = tuple(Column(index, type_) for index, type_ in enumerate(plain.types))
    # Canonical joins have their inputs in an order of their own; a projection above restores the given one.
    if isinstance(canonical, Project):
        columns, canonical = canonical.expressions, canonical.input
    if isinstance(canonical, Join):
        places = _places(plain, canonical, columns)
        if places is not None:
            return canonical, tuple(members[place] for place in places)
    return plain, members


def _places(plain: Join, canonical: Join, columns: tuple[Expression, ...]) -> tuple[int, ...] | None:
    """For each input of the canonical join its place in the plain one, whose columns `columns` gives.

    Equal inputs (a stream joined with itself) are told apart by where their columns have gone. None if the
    canonical join has other inputs.
    """
    if len(plain.inputs) != len(canonical.inputs):
        return None
    plain_columns, canonical_columns = _column_ranges(plain), _column_ranges(canonical)
    places: list[int] = []
    for index, each in enumerate(canonical.inputs):
        candidates = [p for p, other in enumerate(plain.inputs) if p not in places and other == each]
        if not candidates:
            return None
        own = {Column(column, canonical.types[column]) for column in canonical_columns[index]}
        places.append(max(candidates, key=lambda p: sum(columns[c] in own for c in plain_columns[p])))
    return tuple(places)


def _column_ranges(join: Join) -> list[range]:
    """Which columns of a join come from each input."""
    return [
        range(start, start + len(each.types)) for start, each in zip(join.starts, join.inputs, strict=True)
    ]


def restricted(join: Join, members: tuple[int, ...]) -> Join:
    """The join of some inputs, with all that the predicate says about them alone.

    `a = b AND a = c` says `b = c` about the inputs of b and c.
    """
    columns = _column_ranges(join)
    kept = [index for member in members for index in columns[member]]
    position = {index: place for place, index in enumerate(kept)}

    def is_kept(expression: Expression) -> bool:
        return columns_of(expression) <= position.keys()

    classes, others = equality_classes(conjuncts(join.predicate))
    terms = [term for term in others if is_kept(term)]
    for equal in classes:
        inside = [member for member in equal if is_kept(member)]
        terms += [Call("eq", (inside[0], other)) for other in inside[1:]]
    moved = tuple(substitute_columns(term, position.__getitem__) for term in terms)
    return Join(tuple(join.inputs[member] for member in members), conjunction(moved))
