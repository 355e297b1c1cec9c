"""Random plans, built node by node, and random data for them.

They reach shapes that no query text leads to, such as outer joins of unions of tops, so that a rule cannot
rely on what the binder happens to produce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from plait.catalog import Catalog, ColumnDefinition, Stream, Table
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import FALSE, TRUE, Call, Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowTicking,
    RowWindow,
    SortKey,
    Static,
    StreamScan,
    TableScan,
    Ticking,
    TickWindow,
    Top,
    Union,
    Window,
)

SECOND_US = 1_000_000
START = datetime(2026, 3, 2, 6, 0, 0)
START_US = 1_772_431_200 * SECOND_US
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
FIELDS = (
    Field("i", INT),
    Field("j", INT),
    Field("s", STRING),
    Field("b", BOOLEAN),
    Field("d", DOUBLE),
    Field("ts", TIMESTAMP),
)
VALUES: dict[Type, Sequence[object]] = {
    INT: (None, 0, 1, 2, 2_147_483_647),
    BIGINT: (None, 0, 1, 2),
    STRING: (None, "", "a", "b"),
    BOOLEAN: (None, True, False),
    DOUBLE: (None, 0.0, 1.5, float("nan")),
    TIMESTAMP: (None, START_US, START_US + 20 * SECOND_US),
}

T = TypeVar("T")


def catalog() -> Catalog:
    definitions = tuple(ColumnDefinition(field.name, field.type) for field in FIELDS)
    streams = {name: Stream(name, definitions, "files", event_time="ts") for name in ("p", "q")}
    return Catalog(streams=streams, tables={"t": Table("t", definitions[:5], "files")})


@st.composite
def rows(draw: DrawFn) -> dict[str, list[tuple[object, ...]]]:
    """Few rows of few values at few moments, so that they meet, repeat and tie."""

    def row(time: datetime | None) -> tuple[object, ...]:
        values = [draw(st.sampled_from(VALUES[field.type])) for field in FIELDS[:5]]
        return (*values, time) if time is not None else tuple(values)

    moments = st.integers(0, 6).map(lambda number: START + timedelta(seconds=10 * number))
    streams = {name: [row(time) for time in draw(st.lists(moments, max_size=6))] for name in ("p", "q")}
    return {**streams, "t": [row(None) for _ in range(draw(st.integers(0, 3)))]}


@st.composite
def plans(draw: DrawFn) -> Node:
    return PlanBuilder(draw).stream(draw(st.integers(1, 4)))


class PlanBuilder:
    """Draws nodes by the timing that is wanted; `depth` bounds how many are stacked."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw

    def chosen(self, *choices: Callable[[], T]) -> T:
        return self.draw(st.sampled_from(choices))()

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    # --- nodes

    def stream(self, depth: int) -> Node:
        """Anything that can be a root, or lie below a window."""
        if depth <= 0:
            return self.scan()
        return self.chosen(
            self.scan,
            lambda: self.windowed(depth),
            lambda: self.ticking(depth, Ticking(20 * SECOND_US, 0)),
            lambda: self.ticking(depth, Ticking(20 * SECOND_US, 5 * SECOND_US)),
            lambda: self.row_ticking(depth),
            lambda: self.filter(self.stream(depth - 1)),
            lambda: self.project(self.stream(depth - 1)),
            lambda: self.union(lambda: self.stream(depth - 1)),
            lambda: self.join(self.stream_with_table(depth), self.table()),
        )

    def stream_with_table(self, depth: int) -> Node:
        return self.filter(self.scan()) if self.flag() else self.windowed(depth - 1)

    def scan(self) -> Node:
        kept = tuple(field for field in FIELDS if self.flag())
        return StreamScan(self.draw(st.sampled_from(("p", "q"))), kept)

    def table(self) -> Node:
        table = TableScan("t", tuple(field for field in FIELDS[:5] if self.flag()))
        return self.filter(table) if self.flag() else table

    def windowed(self, depth: int) -> Node:
        if depth <= 1:
            return Window(self.stream(depth - 1), RangeWindow(self.number(1, 4) * 10 * SECOND_US))
        return self.chosen(
            lambda: self.windowed(1),
            lambda: Window(self.stream(depth - 1), RangeWindow(15 * SECOND_US)),
            lambda: self.filter(self.windowed(depth - 1)),
            lambda: self.project(self.windowed(depth - 1)),
            lambda: self.join(self.windowed(depth - 1), self.windowed(depth - 2)),
            lambda: self.join(self.windowed(1), self.windowed(1), self.windowed(1)),
            lambda: self.outer_join(self.windowed(depth - 1), self.windowed(depth - 2)),
            lambda: self.join(self.windowed(depth - 1), self.table()),
        )

    def ticking(self, depth: int, timing: Ticking) -> Node:
        window = TickWindow(self.number(1, 4) * 10 * SECOND_US, timing.slide_us, timing.offset_us)
        if depth <= 1:
            return Window(self.stream(depth - 1), window)

        def below() -> Node:
            return self.ticking(depth - 1, timing)

        return self.chosen(
            lambda: Window(self.stream(depth - 1), window),
            lambda: self.filter(below()),
            lambda: self.project(below()),
            lambda: self.aggregate(below()),
            lambda: self.aggregate(below()),
            lambda: self.top(below()),
            lambda: self.join(below(), self.ticking(1, timing)),
            lambda: self.join(self.table(), below()),
            lambda: self.outer_join(below(), self.ticking(1, timing)),
            lambda: self.union(below),
        )

    def row_ticking(self, depth: int) -> Node:
        content = self.stream(depth - 1)
        partition = tuple(index for index in range(len(content.types)) if self.number(0, 3) == 0)
        window: Node = Window(content, RowWindow(self.number(1, 3), self.number(1, 2), partition))
        if self.flag():
            window = self.filter(window)
        aggregate = self.aggregate(window)
        return self.filter(aggregate) if self.flag() else aggregate

    def filter(self, node: Node) -> Node:
        return Filter(node, self.predicate(node.types, node))

    def project(self, node: Node) -> Node:
        wanted = self.draw(st.lists(st.sampled_from(tuple(VALUES)), max_size=4))
        return Project(node, tuple(self.expression(type_, node.types, node) for type_ in wanted))

    def join(self, *inputs: Node) -> Node:
        cross = Join(inputs, TRUE)
        return Join(inputs, self.predicate(cross.types, cross))

    def outer_join(self, left: Node, right: Node) -> Node:
        outer = self.draw(st.sampled_from(OuterKind))
        if isinstance(right.timing, Static):
            outer = OuterKind.LEFT
        types = (*left.types, *right.types)
        return OuterJoin(outer, left, right, self.predicate(types, left))

    def aggregate(self, node: Node) -> Node:
        keys = [self.expression(self.of(INT, STRING), node.types, node) for _ in range(self.number(0, 2))]
        calls = []
        for _ in range(self.number(0, 2)):
            function = self.draw(st.sampled_from(("count", "sum", "min", "max", "count_distinct")))
            argument = self.expression(INT, node.types, node)
            arguments = () if function == "count" and self.flag() else (argument,)
            condition = self.predicate(node.types, node) if self.flag() else None
            calls.append(AggregateCall(function, arguments, condition))
        return Aggregate(node, tuple(keys), tuple(calls))

    def top(self, node: Node) -> Node:
        keys = [self.expression(self.of(INT, STRING), node.types, node) for _ in range(self.number(1, 2))]
        order = tuple(SortKey(key, self.flag(), self.flag()) for key in keys)
        return Top(node, order, self.number(1, 3))

    def union(self, part: Callable[[], Node]) -> Node:
        first, second = part(), part()
        selection = tuple(self.expression(type_, second.types, second) for type_ in first.types)
        return Union((first, Project(second, selection)))

    # --- expressions

    def of(self, *types: Type) -> Type:
        return self.draw(st.sampled_from(types))

    def predicate(self, types: Sequence[Type], node: Node) -> Expression:
        return self.expression(BOOLEAN, types, node, depth=3)

    def expression(self, type_: Type, types: Sequence[Type], node: Node, depth: int = 2) -> Expression:
        found = [Column(index, t) for index, t in enumerate(types) if t == type_]
        choices: list[Callable[[], Expression]] = [lambda: self.literal(type_)]
        if found:
            choices += [lambda: self.draw(st.sampled_from(found))] * 4
        if type_ == TIMESTAMP and isinstance(node.timing, Ticking | RowTicking):
            edges = [Edge.END] if isinstance(node.timing, Ticking) else list(Edge)
            choices.append(lambda: WindowEdge(self.draw(st.sampled_from(edges))))
        if depth > 0:

            def part(wanted: Type) -> Expression:
                return self.expression(wanted, types, node, depth - 1)

            choices.append(lambda: Call("coalesce", (part(type_), part(type_))))
            choices.append(lambda: Call("case", (part(BOOLEAN), part(type_), part(type_))))
            if type_ == BOOLEAN:
                choices += [lambda: self.logic(part)] * 6
            if type_ in (INT, BIGINT, DOUBLE):
                choices.append(lambda: Call(self.of_name("add", "multiply"), (part(type_), part(type_))))
            if type_ in (BIGINT, DOUBLE):
                choices.append(lambda: Call("cast", (part(INT),), type_))
        return self.chosen(*choices)

    def logic(self, part: Callable[[Type], Expression]) -> Expression:
        type_ = self.of(*VALUES)
        choices: tuple[Callable[[], Expression], ...] = (
            lambda: Call(self.of_name(*COMPARISONS), (part(type_), part(type_))),
            lambda: Call("eq", (part(type_), part(type_))),
            lambda: Call(self.of_name("and", "or"), tuple(part(BOOLEAN) for _ in range(self.number(2, 3)))),
            lambda: Call("not", (part(BOOLEAN),)),
            lambda: Call("is_null", (part(type_),)),
            lambda: Call("null_safe_eq", (part(type_), part(type_))),
            lambda: Call("in", (part(type_), *(self.literal(type_) for _ in range(self.number(1, 3))))),
            lambda: TRUE,
            lambda: FALSE,
        )
        return self.chosen(*choices)

    def of_name(self, *names: str) -> str:
        return self.draw(st.sampled_from(names))

    def literal(self, type_: Type) -> Literal:
        value = self.draw(st.sampled_from(VALUES[type_]))
        assert value is None or isinstance(value, bool | int | float | str)
        return Literal(value, type_)
