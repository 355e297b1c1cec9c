"""Immutable logical nodes that cannot be built illegal.

A node is a function from its inputs to rows. How those rows relate to time is its `timing`:

| timing | the node is | event time of a row, when used as a stream |
|---|---|---|
| `Static` | a stored table | none |
| `Flowing` | a stream | its own |
| `Windowed` | combinations of a row (an outer join: or none) of each windowed stream | the greatest of them |
| `Ticking` | one relation per tick τ (a multiple of the slide, plus the offset) | τ − 1 µs |
| `RowTicking` | one relation per m-th row of a row window | the closing row's |

`Window` makes a stream into a relation (S2R of CQL); everything else maps relations to relations. A node
whose timing is not `Static` is used as a stream by putting a `Window` on it, or by being a query's root.

In a join of `Windowed` inputs, rows l and r meet if `r.ts − l.ts < range_l and l.ts − r.ts < range_r` for
every pair of windowed streams of different inputs that are both present; this is part of the node, not of its
predicate. A join of `Ticking` inputs joins the relations of the same tick.

Columns are positions. Names are for display only and never part of a node, except where a source is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, TypeAlias

from plait.expressions.aggregates import AggregateCall
from plait.expressions.keeping import kept
from plait.expressions.nodes import Column, Edge, Expression, WindowEdge, walk
from plait.expressions.types import BOOLEAN, INTERVAL, Type


class IllegalPlanError(ValueError):
    """A node that would have no meaning. Reaching a user, it is a bug: the binder checks first."""


@dataclass(frozen=True)
class Static:
    pass


@dataclass(frozen=True)
class Flowing:
    pass


@dataclass(frozen=True)
class Windowed:
    """One range for each windowed stream, in the order of the columns."""

    ranges_us: tuple[int, ...]


@dataclass(frozen=True)
class Ticking:
    slide_us: int
    offset_us: int


@dataclass(frozen=True)
class RowTicking:
    pass


Timing: TypeAlias = Static | Flowing | Windowed | Ticking | RowTicking


@dataclass(frozen=True)
class RangeWindow:
    """`[RANGE r]` of a select-project-join query: a row is there from its time on, for `range_us`."""

    range_us: int

    def __post_init__(self) -> None:
        _require(self.range_us > 0, "a window's range is positive")


@dataclass(frozen=True)
class TickWindow:
    """At every tick τ ≡ offset (mod slide): the rows with event time in [τ − range, τ)."""

    range_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        _require(self.range_us > 0, "a window's range is positive")
        _require(self.slide_us > 0, "a window's slide is positive")
        _require(0 <= self.offset_us < self.slide_us, "a window's offset is below its slide")


@dataclass(frozen=True)
class RowWindow:
    """At every `slide_rows`-th row (by event time, then all columns; per partition): the last `rows` rows."""

    rows: int
    slide_rows: int
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(self.rows > 0, "a row window holds at least one row")
        _require(self.slide_rows > 0, "a row window's slide is positive")


WindowSpecification: TypeAlias = RangeWindow | TickWindow | RowWindow


@dataclass(frozen=True)
class Field:
    """A column of a source."""

    name: str
    type: Type


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool
    nulls_first: bool


class OuterKind(Enum):
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


class _Node:
    """What all nodes have in common: a kind for display, and equality by a hash that is computed once."""

    kind: ClassVar[str]

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self._content))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, _Node) or type(self) is not type(other) or self._hash != other._hash:
            return False
        return self._content == other._content


class _Unary(_Node):
    """A node with one input. Its columns and timing are the input's, unless the node says otherwise."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return self.input.types

    @cached_property
    def timing(self) -> Timing:
        return self.input.timing


class _Joining(_Node):
    """A node whose columns are those of all its inputs, one after the other."""

    inputs: tuple[Node, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the columns of each input begin."""
        return tuple(accumulate((len(node.types) for node in self.inputs[:-1]), initial=0))

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return tuple(type_ for node in self.inputs for type_ in node.types)

    @cached_property
    def timing(self) -> Timing:
        return _joined_timing(tuple(node.timing for node in self.inputs))


@dataclass(frozen=True, eq=False)
class StreamScan(_Node):
    """Some columns of a stream, in the order of its declaration; its event time is there in any case."""

    stream: str
    columns: tuple[Field, ...]

    kind = "scan"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return tuple(field.type for field in self.columns)

    @cached_property
    def timing(self) -> Timing:
        return Flowing()


@dataclass(frozen=True, eq=False)
class TableScan(_Node):
    """Some columns of a stored table, as of the micro-batch that joins it."""

    table: str
    columns: tuple[Field, ...]

    kind = "table"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return tuple(field.type for field in self.columns)

    @cached_property
    def timing(self) -> Timing:
        return Static()


@dataclass(frozen=True, eq=False)
class Window(_Unary):
    """A stream as a time-varying relation."""

    input: Node
    window: WindowSpecification

    kind = "window"

    def __post_init__(self) -> None:
        _require(not isinstance(self.input.timing, Static), "a table has no window")
        if isinstance(self.window, RowWindow):
            partition = self.window.partition
            _require(
                all(0 <= index < len(self.input.types) for index in partition), "no such partition column"
            )
            _require(len(set(partition)) == len(partition), "a partition names a column once")

    @cached_property
    def timing(self) -> Timing:
        match self.window:
            case RangeWindow(range_us):
                return Windowed((range_us,))
            case TickWindow(_, slide_us, offset_us):
                return Ticking(slide_us, offset_us)
            case RowWindow():
                return RowTicking()


@dataclass(frozen=True, eq=False)
class Filter(_Unary):
    """The rows for which the predicate is true."""

    input: Node
    predicate: Expression

    kind = "filter"

    def __post_init__(self) -> None:
        _require(self.predicate.type == BOOLEAN, "a filter's predicate is boolean")
        _check_expression(self.predicate, self.input.types, self.timing)


@dataclass(frozen=True, eq=False)
class Project(_Unary):
    """One expression a column. Event times stay."""

    input: Node
    expressions: tuple[Expression, ...]

    kind = "project"

    def __post_init__(self) -> None:
        for expression in self.expressions:
            _check_expression(expression, self.input.types, self.timing)
            _require(expression.type != INTERVAL, "an interval is no column")

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return tuple(expression.type for expression in self.expressions)


@dataclass(frozen=True, eq=False)
class Join(_Joining):
    """Inner join of two or more inputs; the columns of all, one after the other."""

    inputs: tuple[Node, ...]
    predicate: Expression

    kind = "join"

    def __post_init__(self) -> None:
        _require(len(self.inputs) >= 2, "a join has two inputs or more")
        _require(self.predicate.type == BOOLEAN, "a join's predicate is boolean")
        _check_expression(self.predicate, self.types, self.timing)


@dataclass(frozen=True, eq=False)
class OuterJoin(_Joining):
    """Left, right or full outer join. A stored table is never on a side whose unmatched rows are kept."""

    outer: OuterKind
    left: Node
    right: Node
    predicate: Expression

    kind = "outer join"

    def __post_init__(self) -> None:
        _require(self.predicate.type == BOOLEAN, "a join's predicate is boolean")
        _require(
            not any(isinstance(self.inputs[position].timing, Static) for position in self.kept),
            "the kept side of an outer join is no table",
        )
        _check_expression(self.predicate, self.types, self.timing)

    @property
    def inputs(self) -> tuple[Node, ...]:  # type: ignore[override]
        return (self.left, self.right)

    @property
    def kept(self) -> tuple[int, ...]:
        """Which of the two inputs' rows are given without partner, too."""
        return {OuterKind.LEFT: (0,), OuterKind.RIGHT: (1,), OuterKind.FULL: (0, 1)}[self.outer]


@dataclass(frozen=True, eq=False)
class Aggregate(_Unary):
    """One row per tick and group that has rows: the keys, then the aggregates."""

    input: Node
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]

    kind = "aggregate"

    def __post_init__(self) -> None:
        _require(
            isinstance(self.input.timing, Ticking | RowTicking),
            "an aggregate is taken of a window with ticks",
        )
        for expression in (*self.keys, *(e for call in self.aggregates for e in call.expressions)):
            _check_expression(expression, self.input.types, self.timing)
            _require(expression.type != INTERVAL, "an interval is neither key nor argument")

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return (*(key.type for key in self.keys), *(call.type for call in self.aggregates))


@dataclass(frozen=True, eq=False)
class Top(_Unary):
    """The first `count` rows of every tick by `order`, then by all columns ascending, NULLs first."""

    input: Node
    order: tuple[SortKey, ...]
    count: int

    kind = "top"

    def __post_init__(self) -> None:
        _require(isinstance(self.input.timing, Ticking | RowTicking), "rows are limited within ticks")
        _require(self.count > 0, "a limit is positive")
        _require(bool(self.order), "a limit needs an order")
        for key in self.order:
            _check_expression(key.expression, self.input.types, self.timing)


@dataclass(frozen=True, eq=False)
class Union(_Node):
    """All rows of all inputs. Inputs that tick alike tick on; anything else is a stream."""

    inputs: tuple[Node, ...]

    kind = "union"

    def __post_init__(self) -> None:
        _require(len(self.inputs) >= 2, "a union has two inputs or more")
        _require(len({node.types for node in self.inputs}) == 1, "a union's inputs have the same types")
        _require(not any(isinstance(node.timing, Static) for node in self.inputs), "a union is of streams")

    @cached_property
    def types(self) -> tuple[Type, ...]:
        return self.inputs[0].types

    @cached_property
    def timing(self) -> Timing:
        timings = {node.timing for node in self.inputs}
        first = self.inputs[0].timing
        return first if len(timings) == 1 and isinstance(first, Ticking) else Flowing()


Node: TypeAlias = (
    StreamScan | TableScan | Window | Filter | Project | Join | OuterJoin | Aggregate | Top | Union
)


def walk_plan(node: Node) -> Iterator[Node]:
    """Every distinct node once, inputs before what uses them."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        if current in seen:
            continue
        if expanded:
            seen.add(current)
            yield current
        else:
            stack.append((current, True))
            stack.extend((child, False) for child in reversed(current.inputs))


@kept
def sources_of(node: Node) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the streams and of the tables that a plan reads."""
    below = [sources_of(child) for child in node.inputs]
    streams = frozenset({node.stream}) if isinstance(node, StreamScan) else frozenset[str]()
    tables = frozenset({node.table}) if isinstance(node, TableScan) else frozenset[str]()
    return streams.union(*(s for s, _ in below)), tables.union(*(t for _, t in below))


@kept
def scans_of(plan: Node) -> tuple[StreamScan, ...]:
    """The scans of streams in a plan, each once."""
    return tuple(node for node in walk_plan(plan) if isinstance(node, StreamScan))


def _joined_timing(timings: tuple[Timing, ...]) -> Timing:
    moving = [timing for timing in timings if not isinstance(timing, Static)]
    _require(bool(moving), "a join needs a stream")
    first = moving[0]
    if all(isinstance(timing, Windowed) for timing in moving):
        return Windowed(tuple(r for t in moving if isinstance(t, Windowed) for r in t.ranges_us))
    if isinstance(first, Ticking) and all(timing == first for timing in moving):
        return first
    _require(len(moving) == 1, f"windows do not fit together: {', '.join(map(str, moving))}")
    return first


def _check_expression(expression: Expression, types: tuple[Type, ...], timing: Timing) -> None:
    parts = (expression,) if isinstance(expression, Column) else _references(expression)
    for part in parts:
        if isinstance(part, Column):
            if part.index >= len(types):
                raise IllegalPlanError(f"there is no column {part.index}")
            if types[part.index] != part.type:
                raise IllegalPlanError(f"column {part.index} is {types[part.index]}, not {part.type}")
        else:
            allowed = (RowTicking,) if part.edge is Edge.START else (RowTicking, Ticking)
            if not isinstance(timing, allowed):
                raise IllegalPlanError(f"{part.edge.value} needs a window that ticks")


@kept
def _references(expression: Expression) -> tuple[Column | WindowEdge, ...]:
    return tuple(part for part in walk(expression) if isinstance(part, Column | WindowEdge))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise IllegalPlanError(message)
