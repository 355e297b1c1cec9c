"""The definition of every plan node, written as SQL over DuckDB, one common table expression a node.

A node's columns are `c0`, `c1`, …; beside them stand the times that its timing demands (microseconds):

| timing | times |
|---|---|
| `Static` | none |
| `Flowing` | `t`, the event time |
| `Windowed` | `t0`, `t1`, …: the event times of the combined rows, NULL for one that an outer join left out |
| `Ticking` | `tick` |
| `RowTicking` | `tick` (the number of the closing row), `window_start`, `window_end` |

Nothing here is clever: a row is written out once for every tick whose window holds it, joins test every pair
of times, outer joins are the inner join plus the rows that have no partner. DuckDB's own optimizer makes that
bearable. Only the printing of expressions is shared with what the product executes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from plait.evaluator.horizon import Horizon
from plait.evaluator.stored_data import SourceTable, StoredData
from plait.expressions.aggregates import AggregateCall
from plait.expressions.duckdb import aggregate_to_duckdb, to_duckdb, type_to_duckdb
from plait.expressions.nodes import Column, Expression
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Flowing,
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
    Timing,
    Top,
    Union,
    Window,
    Windowed,
    WindowSpecification,
    walk_plan,
)


@dataclass(frozen=True)
class CommonTable:
    """`name AS (body)`; materialised where several nodes read it."""

    name: str
    body: str
    materialized: bool

    def __str__(self) -> str:
        return f"{self.name} AS {'' if self.materialized else 'NOT '}MATERIALIZED (\n{self.body}\n)"


class Definition:
    """The common tables of a plan, inputs before what uses them."""

    def __init__(self, plan: Node, data: StoredData, horizon: Horizon) -> None:
        self._data = data
        self._horizon = horizon
        nodes = list(walk_plan(plan))
        self._names = {node: f"n{number}" for number, node in enumerate(nodes)}
        reads: Counter[Node] = Counter()
        for node in nodes:
            # The inner part of an outer join reads both inputs, and so does finding the rows without partner.
            reads.update(node.inputs * 2 if isinstance(node, OuterJoin) else node.inputs)
        self.tables = tuple(
            CommonTable(self._names[node], self._body(node), materialized=reads[node] > 1) for node in nodes
        )

    def statement(self, node: Node, select: str) -> str:
        """`select` with `FROM` the node's relation, which is called `result` there."""
        name = self._names[node]
        last = next(k for k, table in enumerate(self.tables) if table.name == name)
        tables = ",\n".join(str(table) for table in self.tables[: last + 1])
        return f"WITH {tables}\n{select} FROM {name} AS result"

    def _body(self, node: Node) -> str:
        match node:
            case StreamScan(stream, columns):
                start_us = self._horizon.start_us
                seen = "" if start_us is None else f" WHERE t > {start_us}"
                return _scan(self._data.stream(stream), columns, ("t",)) + seen
            case TableScan(table, columns):
                return _scan(self._data.table(table), columns, ())
            case Window(source, window):
                return self._of_settled_ticks(node, self._window(source, window))
            case Filter(source, predicate):
                condition = self._printed(predicate, source)
                return f"SELECT * FROM {self._names[source]} AS i WHERE {condition}"
            case Project(source, expressions):
                items = [f"{self._printed(e, source)} AS c{k}" for k, e in enumerate(expressions)]
                return f"{_select([*items, *times(source.timing)])} FROM {self._names[source]} AS i"
            case Join():
                return self._of_settled_ticks(node, self._matched(node))
            case OuterJoin():
                return self._of_settled_ticks(node, self._outer_join(node))
            case Aggregate(source, keys, aggregates):
                return self._aggregate(source, keys, aggregates)
            case Top(source, order, count):
                return self._top(source, order, count)
            case Union():
                return self._of_settled_ticks(node, self._union(node))
            case _:
                assert_never(node)

    def _window(self, source: Node, window: WindowSpecification) -> str:
        match window:
            case RangeWindow():
                items = [*_columns(source), f"{event_time(source.timing)} AS t0"]
                return f"{_select(items)} FROM {self._names[source]}"
            case TickWindow():
                return self._tick_window(source, window)
            case RowWindow():
                return self._row_window(source, window)
            case _:
                assert_never(window)

    def _tick_window(self, source: Node, window: TickWindow) -> str:
        slide, offset = window.slide_us, window.offset_us
        # The remainder is taken twice because DuckDB's has the sign of the dividend.
        since_tick = f"((event_time - {offset}) % {slide} + {slide}) % {slide}"
        ticks = (
            f"generate_series(event_time - {since_tick} + {slide}, event_time + {window.range_us}, {slide})"
        )
        return (
            f"{_select([*_columns(source), f'unnest({ticks}) AS tick'])}\n"
            f"FROM (SELECT *, {event_time(source.timing)} AS event_time FROM {self._names[source]})"
        )

    def _row_window(self, source: Node, window: RowWindow) -> str:
        partition = [f"c{index}" for index in window.partition]
        order = ", ".join(["event_time", *(f"c{index} NULLS FIRST" for index in range(len(source.types)))])
        group = f"dense_rank() OVER (ORDER BY {', '.join(partition)})" if partition else "1"
        by_group = f"PARTITION BY {', '.join(partition)} " if partition else ""
        settled = self._horizon.settled(source)
        slide = window.slide_rows
        first = f"(number + {slide - 1}) // {slide} * {slide}"
        closings = f"generate_series({first}, number + {window.rows - 1}, {slide})"
        items = [
            *(f"m.c{index}" for index in range(len(source.types))),
            "z.id AS tick",
            "min(m.event_time) OVER (PARTITION BY z.id) AS window_start",
            "z.event_time + 1 AS window_end",
        ]
        return (
            f"WITH numbered AS MATERIALIZED (SELECT *, row_number() OVER () AS id, {group} AS group_id,\n"
            f"  row_number() OVER ({by_group}ORDER BY {order}) AS number\n"
            f"  FROM (SELECT *, {event_time(source.timing)} AS event_time FROM {self._names[source]})\n"
            f"  WHERE event_time >= {settled.from_us} AND event_time < {settled.until_us}),\n"
            f"members AS (SELECT *, unnest({closings}) AS closing FROM numbered)\n"
            f"SELECT {', '.join(items)}\n"
            f"FROM members AS m JOIN numbered AS z ON z.group_id = m.group_id AND z.number = m.closing"
        )

    def _matched(self, node: Join | OuterJoin) -> str:
        """The combinations of rows that meet in time and for which the predicate is true."""
        tables = [f"{self._names[source]} AS i{k}" for k, source in enumerate(node.inputs)]
        items = [f"{reference} AS c{k}" for k, reference in enumerate(_joined_columns(node))]
        select = _select([*items, *_joined_times(node)])
        return f"{select}\nFROM {', '.join(tables)}\nWHERE {self._meeting(node)}"

    def _outer_join(self, node: OuterJoin) -> str:
        parts = [self._matched(node)]
        if node.outer in (OuterKind.LEFT, OuterKind.FULL):
            parts.append(self._unmatched(node, kept=0))
        if node.outer in (OuterKind.RIGHT, OuterKind.FULL):
            parts.append(self._unmatched(node, kept=1))
        return "\nUNION ALL\n".join(parts)

    def _unmatched(self, node: OuterJoin, kept: int) -> str:
        """The rows of one side without partner, once no row to come can be one; NULLs on the other side."""
        kept_input, other_input = node.inputs[kept], node.inputs[1 - kept]
        items = [
            f"{reference} AS c{k}"
            if reference.startswith(f"i{kept}.")
            else f"NULL::{type_to_duckdb(type_)} AS c{k}"
            for k, (reference, type_) in enumerate(zip(_joined_columns(node), node.types, strict=True))
        ]
        partners = f"SELECT 1 FROM {self._names[other_input]} AS i{1 - kept} WHERE {self._meeting(node)}"
        conditions = [f"NOT EXISTS ({partners})"]
        if isinstance(kept_input.timing, Windowed):
            until_us = self._horizon.settled(other_input).until_us
            gone = [f"i{kept}.t{k} + {range_us}" for k, range_us in enumerate(kept_input.timing.ranges_us)]
            conditions.append(f"least({', '.join(gone)}) <= {until_us}")
        return (
            f"{_select([*items, *_joined_times(node, kept)])}\n"
            f"FROM {self._names[kept_input]} AS i{kept}\nWHERE {' AND '.join(conditions)}"
        )

    def _meeting(self, node: Join | OuterJoin) -> str:
        """When rows `i0`, `i1`, … of the inputs join: in time, and by the predicate."""
        conditions = []
        windows: list[tuple[int, str, int]] = []  # input, time, range
        ticks: list[str] = []
        for k, source in enumerate(node.inputs):
            match source.timing:
                case Windowed(ranges_us):
                    windows += [(k, f"i{k}.t{j}", range_us) for j, range_us in enumerate(ranges_us)]
                case Ticking():
                    ticks.append(f"i{k}.tick")
                case _:
                    pass
        conditions += [f"{ticks[0]} = {other}" for other in ticks[1:]]
        for position, (left_input, left, left_range) in enumerate(windows):
            for right_input, right, right_range in windows[position + 1 :]:
                if left_input != right_input:
                    conditions.append(
                        f"({left} IS NULL OR {right} IS NULL OR "
                        f"({right} - {left} < {left_range} AND {left} - {right} < {right_range}))"
                    )
        moving = next(k for k, source in enumerate(node.inputs) if not isinstance(source.timing, Static))
        window_start, window_end = _edges(node.timing, f"i{moving}")
        conditions.append(to_duckdb(node.predicate, _joined_columns(node), window_start, window_end))
        return "\n  AND ".join(conditions)

    def _aggregate(
        self, source: Node, keys: tuple[Expression, ...], aggregates: tuple[AggregateCall, ...]
    ) -> str:
        # Keys and arguments are computed below the grouping: GROUP BY 1 would mean a position.
        computed = [*keys, *(expression for call in aggregates for expression in call.expressions)]
        inner = [f"{self._printed(expression, source)} AS e{k}" for k, expression in enumerate(computed)]
        hidden = times(source.timing)
        references = [f"e{k}" for k in range(len(computed))]
        items = [f"e{k} AS c{k}" for k in range(len(keys))]
        position = len(keys)
        for number, call in enumerate(aggregates):
            arguments = tuple(Column(position + k, e.type) for k, e in enumerate(call.arguments))
            position += len(arguments)
            condition = None if call.filter is None else Column(position, call.filter.type)
            position += condition is not None
            over_columns = AggregateCall(call.function, arguments, condition)
            items.append(f"{aggregate_to_duckdb(over_columns, references)} AS c{len(keys) + number}")
        return (
            f"{_select([*items, *hidden])}\n"
            f"FROM ({_select([*inner, *hidden])} FROM {self._names[source]} AS i)\n"
            f"GROUP BY {', '.join([*references[: len(keys)], *hidden])}"
        )

    def _top(self, source: Node, order: tuple[SortKey, ...], count: int) -> str:
        keys = [
            f"{self._printed(key.expression, source)} {'DESC' if key.descending else 'ASC'} "
            f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in order
        ]
        ties = [f"i.c{index} ASC NULLS FIRST" for index in range(len(source.types))]
        place = f"row_number() OVER (PARTITION BY tick ORDER BY {', '.join([*keys, *ties])})"
        return (
            f"{_select([*_columns(source), *times(source.timing)])}\n"
            f"FROM (SELECT *, {place} AS place FROM {self._names[source]} AS i)\n"
            f"WHERE place <= {count}"
        )

    def _union(self, node: Union) -> str:
        parts = []
        for source in node.inputs:
            time = "tick" if isinstance(node.timing, Ticking) else f"{event_time(source.timing)} AS t"
            parts.append(f"{_select([*_columns(source), time])} FROM {self._names[source]}")
        return "\nUNION ALL\n".join(parts)

    def _of_settled_ticks(self, node: Node, body: str) -> str:
        if self._horizon.is_everything or not isinstance(node.timing, Ticking):
            return body
        settled = self._horizon.settled(node)
        return f"SELECT * FROM (\n{body})\nWHERE tick > {settled.from_us} AND tick <= {settled.until_us}"

    def _printed(self, expression: Expression, source: Node) -> str:
        """An expression over the columns of one input, which is called `i`."""
        references = [f"i.c{index}" for index in range(len(source.types))]
        return to_duckdb(expression, references, *_edges(source.timing, "i"))


def times(timing: Timing) -> tuple[str, ...]:
    """The columns that hold a relation's times."""
    match timing:
        case Static():
            return ()
        case Flowing():
            return ("t",)
        case Windowed(ranges_us):
            return tuple(f"t{k}" for k in range(len(ranges_us)))
        case Ticking():
            return ("tick",)
        case RowTicking():
            return ("tick", "window_start", "window_end")
        case _:
            assert_never(timing)


def event_time(timing: Timing) -> str:
    """The event time of a row when its relation is used as a stream."""
    match timing:
        case Static():
            raise ValueError("a table has no event time")
        case Flowing():
            return "t"
        case Windowed():
            return f"greatest({', '.join(times(timing))})"  # ignores NULLs: absent rows
        case Ticking():
            return "tick - 1"
        case RowTicking():
            return "window_end - 1"
        case _:
            assert_never(timing)


def _edges(timing: Timing, table: str) -> tuple[str | None, str | None]:
    """References to `window_start` and `window_end` as timestamps, where they exist."""
    match timing:
        case Ticking():
            return None, f"make_timestamp({table}.tick)"
        case RowTicking():
            return f"make_timestamp({table}.window_start)", f"make_timestamp({table}.window_end)"
        case _:
            return None, None


def _scan(source: SourceTable, columns: Sequence[Field], hidden: tuple[str, ...]) -> str:
    items = [f"c{source.position(column.name)} AS c{index}" for index, column in enumerate(columns)]
    return f"{_select([*items, *hidden])} FROM {source.name}"


def _columns(node: Node) -> list[str]:
    return [f"c{index}" for index in range(len(node.types))]


def _joined_columns(node: Join | OuterJoin) -> list[str]:
    return [f"i{k}.{column}" for k, source in enumerate(node.inputs) for column in _columns(source)]


def _joined_times(node: Join | OuterJoin, kept: int | None = None) -> list[str]:
    """The joined rows' times; of the rows of input `kept` alone if that is given."""
    moving = [(k, source) for k, source in enumerate(node.inputs) if not isinstance(source.timing, Static)]
    if not isinstance(node.timing, Windowed):
        table = moving[0][0] if kept is None else kept
        return [f"i{table}.{time} AS {time}" for time in times(node.timing)]
    references = [
        f"i{k}.{time}" if kept in (None, k) else "NULL::BIGINT"
        for k, source in moving
        for time in times(source.timing)
    ]
    return [f"{reference} AS t{position}" for position, reference in enumerate(references)]


def _select(items: Sequence[str]) -> str:
    # A relation without columns still has rows.
    return f"SELECT {', '.join(items) or '0 AS nothing'}"
