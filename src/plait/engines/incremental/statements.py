"""A stage as one SQL statement over the stores, one common table expression a node.

A node's columns are `c0`, `c1`, …; beside them stand its times, in microseconds:

| timing | times |
|---|---|
| `Static` | none |
| `Flowing` | `t` |
| `Windowed` | `t0`, `t1`, …: of the combined rows, NULL for one that an outer join left out |
| `Ticking` | `tick` |
| `RowTicking` | `tick` (the closing row's id), `window_start`, `window_end` |

Every expression holds exactly the rows of the node's band, so stores are read by a range of event times, and
a tick window writes its rows only for ticks of the band. A join of rows combines rows of which one at least
is in the band: each input's new rows with older rows of the inputs before it and all rows of those after it.

The evaluator prints the same nodes, over all rows at once. The two share nothing but the printers of
expressions, since each is what the other is tested against.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from plait.engines.data_errors import literal_path
from plait.engines.duckdb import quoted, text_literal
from plait.engines.incremental.bands import (
    BEGINNING_US,
    END_US,
    Band,
    combined_band,
    is_join_of_rows,
    needed_of_inputs,
    partners_band,
    ticks_within,
)
from plait.engines.incremental.layout import Held, Layout, Numbered, Stage
from plait.errors import InternalError
from plait.expressions.aggregates import AggregateCall
from plait.expressions.duckdb import aggregate_to_duckdb, to_duckdb, type_to_duckdb
from plait.expressions.nodes import Expression
from plait.expressions.types import Kind
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Flowing,
    Join,
    Node,
    OuterJoin,
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
)


@dataclass(frozen=True)
class StageStatement:
    """Selects a stage's rows of one band: `c0`, `c1`, …, and their event time `t`; or, to be held, all of
    their times."""

    layout: Layout
    stage: Stage
    band: Band
    tables: Mapping[str, str]

    def __str__(self) -> str:
        return _Writer(self).statement()


class _Writer:
    def __init__(self, asked: StageStatement) -> None:
        self._layout = asked.layout
        self._tables = asked.tables
        self._stage = asked.stage
        self._plan = asked.stage.plan
        self._nodes = asked.layout.nodes(asked.stage)
        self._bands = asked.layout.bands(asked.stage, asked.band)
        self._names = {node: f"n{number}" for number, node in enumerate(self._nodes)}

    def statement(self) -> str:
        reads: Counter[Node] = Counter()
        for node in self._nodes:
            # Joins of rows and outer joins read their inputs several times.
            repeats = isinstance(node, OuterJoin) or (isinstance(node, Join) and is_join_of_rows(node))
            reads.update(self._inputs(node) * (1 + repeats))
        tables = []
        for node in self._nodes:
            keyword = "MATERIALIZED" if reads[node] > 1 and not self._is_cheap(node) else "NOT MATERIALIZED"
            tables.append(f"{self._names[node]} AS {keyword} (\n{self._body(node)}\n)")
        items = [*_columns(self._plan), f"{_event_time(self._plan.timing)} AS t"]
        if isinstance(self._stage.target, Held):
            items = [*_columns(self._plan), *times_of(self._plan.timing)]
        return f"WITH {', '.join(tables)}\nSELECT {', '.join(items)} FROM {self._names[self._plan]}"

    def _is_cheap(self, node: Node) -> bool:
        """Whether a node is read from a store row by row, which is better done again than kept."""
        match node:
            case StreamScan() | TableScan() | Filter() | Project() | Union() | Window(_, RangeWindow()):
                return all(self._is_cheap(source) for source in self._inputs(node))
            case Window(_, TickWindow() as window):
                has_one_tick = ticks_within(window, self._bands[node]).count <= 1
                return has_one_tick and all(self._is_cheap(source) for source in self._inputs(node))
            case _:
                return False

    def _inputs(self, node: Node) -> tuple[Node, ...]:
        return self._layout.inputs_in(self._stage, node)

    def _body(self, node: Node) -> str:
        if self._layout.reads_held(self._stage, node):
            held = self._layout.held[node].table
            return f"SELECT * FROM {held} WHERE {within(_event_time(node.timing), self._bands[node])}"
        if node in self._layout.given:
            return self._stored(node, self._layout.given[node].table, self._bands[node])
        match node:
            case StreamScan():
                raise InternalError("no-input", f"no input gives rows of stream `{node.stream}`")
            case TableScan():
                return self._table(node)
            case Window():
                return self._window(node)
            case Filter(source, predicate):
                return f"SELECT * FROM {self._read(node, source)} AS i WHERE {_printed(predicate, source)}"
            case Project(source, expressions):
                items = [f"{_printed(e, source)} AS c{k}" for k, e in enumerate(expressions)]
                return f"{_select([*items, *times_of(source.timing)])} FROM {self._read(node, source)} AS i"
            case Join():
                return self._matched(node)
            case OuterJoin():
                return self._outer_join(node)
            case Aggregate():
                return self._aggregate(node)
            case Top(source, order, count):
                place = f"row_number() OVER (PARTITION BY i.tick ORDER BY {_order(order, source)})"
                return f"SELECT * FROM {self._read(node, source)} AS i QUALIFY {place} <= {count}"
            case Union():
                return self._union(node)
            case _:
                assert_never(node)

    def _read(self, node: Node, source: Node) -> str:
        """What a node needs of an input."""
        needed = needed_of_inputs(node, self._bands[node])[node.inputs.index(source)]
        return self._of_band(source, needed)

    def _of_band(self, source: Node, band: Band) -> str:
        """The rows of a node in a band; the node may have been asked for more by others."""
        name = self._names[source]
        if isinstance(source.timing, Static) or band == self._bands[source]:
            return name
        return f"(SELECT * FROM {name} WHERE {within(_event_time(source.timing), band)})"

    def _stored(self, node: Node, table: str, band: Band) -> str:
        return f"{_select([*_columns(node), 't'])} FROM {table} WHERE {within('t', band)}"

    def _table(self, node: TableScan) -> str:
        relation = self._tables.get(node.table.lower())
        if relation is None:
            raise InternalError("no-table", f"the batch has no table `{node.table}`")
        items = [f"{_table_column(column)} AS c{k}" for k, column in enumerate(node.columns)]
        return f"{_select(items)} FROM {relation}"

    # Windows

    def _window(self, node: Window) -> str:
        match node.window:
            case RowWindow():
                return self._row_window(node, self._layout.numbered[node])
            case TickWindow():
                return self._tick_window(node, node.window)
            case RangeWindow():
                return f"{_select([*_columns(node), 't AS t0'])} FROM {self._stream(node)}"
            case _:
                assert_never(node.window)

    def _stream(self, node: Window) -> str:
        """What a window needs of its input, with its event time as `t`."""
        derived = self._layout.derived.get(node.input)
        if derived is None:
            return self._read(node, node.input)
        (needed,) = needed_of_inputs(node, self._bands[node])
        return f"({self._stored(node.input, derived.table, needed)})"

    def _tick_window(self, node: Window, window: TickWindow) -> str:
        ticks = ticks_within(window, self._bands[node])
        columns, stream = _columns(node), self._stream(node)
        if ticks.count <= 1:  # the usual case while running, and by far the cheapest
            tick = f"CAST({ticks.last_us} AS BIGINT) AS tick"
            held = within("t", Band(ticks.first_us - window.range_us, ticks.last_us))
            return f"{_select([*columns, tick])} FROM {stream} WHERE {held}"
        next_tick, last_tick = tick_bounds(window, self._bands[node])
        if window.range_us <= window.slide_us:
            only_tick = _select([*columns, f"{next_tick} AS tick"])
            return f"{only_tick} FROM {stream} WHERE {next_tick} <= {last_tick}"
        series = f"generate_series({next_tick}, {last_tick}, {window.slide_us})"
        return f"{_select([*columns, f'unnest({series}) AS tick'])} FROM {stream}"

    def _row_window(self, node: Node, store: Numbered) -> str:
        rows, slide = store.window.rows, store.window.slide_rows
        same = [f"m.c{k} IS NOT DISTINCT FROM z.c{k}" for k in store.window.partition]
        first = f"(number + {slide - 1}) // {slide} * {slide}"
        members = f"(SELECT *, unnest(generate_series({first}, number + {rows - 1}, {slide})) AS closing"
        items = [
            *(f"m.{column}" for column in _columns(node)),
            "z.rowid AS tick",
            "min(m.t) OVER (PARTITION BY z.rowid) AS window_start",
            "z.t + 1 AS window_end",
        ]
        return (
            f"SELECT {', '.join(items)}\nFROM {members} FROM {store.table}) AS m,\n"
            f"  (SELECT *, rowid FROM {store.table} WHERE {within('t', self._bands[node])}) AS z\n"
            f"WHERE {' AND '.join(['z.number = m.closing', *same])}"
        )

    # Joins

    def _matched(self, node: Join | OuterJoin) -> str:
        """The combinations in the node's band."""
        band = self._bands[node]
        items = [f"{reference} AS c{k}" for k, reference in enumerate(_joined_columns(node))]
        select = _select([*items, *_joined_times(node)])
        branches = []
        for bands in _new_and_old(node, band):
            tables = [
                f"{self._of_band(source, part)} AS i{k}"
                for k, (source, part) in enumerate(zip(node.inputs, bands, strict=True))
            ]
            branches.append(f"{select}\nFROM {', '.join(tables)}\nWHERE {_meeting(node)}")
        return "\nUNION ALL\n".join(branches)

    def _outer_join(self, node: OuterJoin) -> str:
        kept_rows, parts = [], [self._matched(node)]
        for kept in node.kept:
            rows = self._of_band(node.inputs[kept], self._bands[node])
            kept_rows.append(f"kept{kept} AS MATERIALIZED (SELECT *, row_number() OVER () AS id FROM {rows})")
            parts.append(self._unmatched(node, kept))
        return f"WITH {', '.join(kept_rows)}\n" + "\nUNION ALL\n".join(parts)

    def _unmatched(self, node: OuterJoin, kept: int) -> str:
        """The kept rows in the node's band that have no partner; NULLs for the other side."""
        partners = self._of_band(node.inputs[1 - kept], partners_band(node, kept, self._bands[node]))
        found = (
            f"SELECT i{kept}.id FROM kept{kept} AS i{kept}, {partners} AS i{1 - kept}\nWHERE {_meeting(node)}"
        )
        items = [
            f"{reference} AS c{k}"
            if reference.startswith(f"i{kept}.")
            else f"NULL::{type_to_duckdb(type_)} AS c{k}"
            for k, (reference, type_) in enumerate(zip(_joined_columns(node), node.types, strict=True))
        ]
        return (
            f"{_select([*items, *_joined_times(node, kept)])}\nFROM kept{kept} AS i{kept}\n"
            f"ANTI JOIN ({found}) AS found ON i{kept}.id = found.id"
        )

    # The rest

    def _aggregate(self, node: Aggregate) -> str:
        source, hidden = node.input, times_of(node.timing)
        # Keys are computed below the grouping: GROUP BY 1 would mean a position.
        keys = [f"{_printed(key, source)} AS k{k}" for k, key in enumerate(node.keys)]
        items = [f"g.k{k} AS c{k}" for k in range(len(keys))]
        for number, call in enumerate(node.aggregates, start=len(keys)):
            items.append(f"{_printed_aggregate(call, source)} AS c{number}")
        groups = [*(f"g.k{k}" for k in range(len(keys))), *(f"g.{time}" for time in hidden)]
        return (
            f"SELECT {', '.join([*items, *(f'g.{time}' for time in hidden)])}\n"
            f"FROM (SELECT {', '.join(['i.*', *keys])} FROM {self._read(node, source)} AS i) AS g\n"
            f"GROUP BY {', '.join(groups)}"
        )

    def _union(self, node: Union) -> str:
        parts = []
        for source in node.inputs:
            time = "tick" if isinstance(node.timing, Ticking) else f"{_event_time(source.timing)} AS t"
            parts.append(f"{_select([*_columns(source), time])} FROM {self._read(node, source)}")
        return "\nUNION ALL\n".join(parts)


def tick_bounds(window: TickWindow, band: Band) -> tuple[str, str]:
    """The first and the last tick of the band whose window holds an event time `t`, as SQL."""
    ticks, slide_us = ticks_within(window, band), window.slide_us
    # Event times are positive, so the dividend is, and the remainder too.
    next_tick = f"t - (t + {slide_us - window.offset_us}) % {slide_us} + {slide_us}"
    return (
        f"greatest({next_tick}, {ticks.first_us})",
        f"least(t + {window.range_us}, {ticks.last_us})",
    )


def _new_and_old(node: Join | OuterJoin, band: Band) -> list[tuple[Band, ...]]:
    """Bands of the inputs that together give each combination of the band once.

    Its latest row is in the band, so the first input whose row is in the band tells combinations apart.
    """
    wide = [combined_band(node, source, band) for source in node.inputs]
    if not is_join_of_rows(node) or band.from_us <= BEGINNING_US:
        return [tuple(wide)]
    windowed = [k for k, source in enumerate(node.inputs) if isinstance(source.timing, Windowed)]
    return [
        tuple(
            band if k == new else Band(part.from_us, band.from_us) if k in windowed and k < new else part
            for k, part in enumerate(wide)
        )
        for new in windowed
    ]


def _meeting(node: Join | OuterJoin) -> str:
    """When rows `i0`, `i1`, … of the inputs join: in time, and by the predicate."""
    moving = [k for k, source in enumerate(node.inputs) if not isinstance(source.timing, Static)]
    conditions = []
    if isinstance(node.timing, Ticking):
        conditions += [f"i{moving[0]}.tick = i{k}.tick" for k in moving[1:]]
    if isinstance(node.timing, Windowed):
        for position, left in enumerate(moving):
            for right in moving[position + 1 :]:
                conditions += _meeting_in_time(node.inputs[left], f"i{left}", node.inputs[right], f"i{right}")
    edges = _edges(node.timing, f"i{moving[0]}")
    return "\n  AND ".join([*conditions, to_duckdb(node.predicate, _joined_columns(node), *edges)])


def _meeting_in_time(left: Node, left_name: str, right: Node, right_name: str) -> list[str]:
    conditions = []
    for left_time, left_range, left_absent in _ranges(left, left_name):
        for right_time, right_range, right_absent in _ranges(right, right_name):
            meet = f"{right_time} < {left_time} + {left_range} AND {left_time} < {right_time} + {right_range}"
            absent = [f"{time} IS NULL" for time in (*left_absent, *right_absent)]
            conditions.append(f"({' OR '.join([*absent, meet])})" if absent else meet)
    return conditions


def _ranges(node: Node, name: str) -> list[tuple[str, int, list[str]]]:
    """Each time of a node, its range, and the time again if it may be absent."""
    assert isinstance(node.timing, Windowed)
    absent = _has_absent_rows(node)
    return [
        (f"{name}.t{k}", range_us, [f"{name}.t{k}"] if absent else [])
        for k, range_us in enumerate(node.timing.ranges_us)
    ]


def _has_absent_rows(node: Node) -> bool:
    if isinstance(node, OuterJoin) and is_join_of_rows(node):
        return True
    return not isinstance(node, Window) and any(_has_absent_rows(source) for source in node.inputs)


def _joined_columns(node: Join | OuterJoin) -> list[str]:
    return [f"i{k}.{column}" for k, source in enumerate(node.inputs) for column in _columns(source)]


def _joined_times(node: Join | OuterJoin, kept: int | None = None) -> list[str]:
    """The joined rows' times; of the rows of input `kept` alone if that is given."""
    moving = [k for k, source in enumerate(node.inputs) if not isinstance(source.timing, Static)]
    if not isinstance(node.timing, Windowed):
        table = moving[0] if kept is None else kept
        return [f"i{table}.{time} AS {time}" for time in times_of(node.timing)]
    references = [
        f"i{k}.{time}" if kept in (None, k) else "NULL::BIGINT"
        for k in moving
        for time in times_of(node.inputs[k].timing)
    ]
    return [f"{reference} AS t{position}" for position, reference in enumerate(references)]


def times_of(timing: Timing) -> tuple[str, ...]:
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


def _event_time(timing: Timing) -> str:
    match timing:
        case Static():
            raise ValueError("a table has no event time")
        case Flowing():
            return "t"
        case Windowed((_,)):
            return "t0"
        case Windowed():
            return f"greatest({', '.join(times_of(timing))})"  # which ignores NULLs
        case Ticking():
            return "tick - 1"
        case RowTicking():
            return "window_end - 1"
        case _:
            assert_never(timing)


def _edges(timing: Timing, table: str) -> tuple[str | None, str | None]:
    """`window_start` and `window_end` as timestamps, where there are such."""
    match timing:
        case Ticking():
            return None, f"make_timestamp({table}.tick)"
        case RowTicking():
            return f"make_timestamp({table}.window_start)", f"make_timestamp({table}.window_end)"
        case _:
            return None, None


def is_in_gap(window: TickWindow) -> str:
    """Whether a time `t` is in no window: the first tick after it is too far."""
    since = f"((t - {window.offset_us}) % {window.slide_us} + {window.slide_us}) % {window.slide_us}"
    return f"{window.slide_us} - {since} > {window.range_us}"


def within(time: str, band: Band) -> str:
    if band.is_empty:
        return "false"
    conditions = []
    if band.from_us > BEGINNING_US:
        conditions.append(f"{time} >= {band.from_us}")
    if band.until_us < END_US:
        conditions.append(f"{time} < {band.until_us}")
    return " AND ".join(conditions) or "true"


def _printed(expression: Expression, source: Node, table: str = "i") -> str:
    references = [f"{table}.{column}" for column in _columns(source)]
    return to_duckdb(expression, references, *_edges(source.timing, table))


def _printed_aggregate(call: AggregateCall, source: Node) -> str:
    references = [f"g.{column}" for column in _columns(source)]
    return aggregate_to_duckdb(call, references, *_edges(source.timing, "g"))


def _order(order: tuple[SortKey, ...], source: Node) -> str:
    keys = [
        f"{_printed(key.expression, source)} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in order
    ]
    return ", ".join([*keys, *(f"i.{column} ASC NULLS FIRST" for column in _columns(source))])


def stored_relations(tables: Mapping[str, Path]) -> dict[str, str]:
    """What to select from, by tables that are stored as Parquet files."""
    return {
        key: f"read_parquet({text_literal(literal_path(path))}, hive_partitioning = false)"
        for key, path in tables.items()
    }


def _table_column(column: Field) -> str:
    value = f"{quoted(column.name)}::{type_to_duckdb(column.type)}"
    # Negative zeros become positive ones wherever a source is read.
    return f"{value} + 0.0::DOUBLE" if column.type.kind is Kind.DOUBLE else value


def _columns(node: Node) -> list[str]:
    return [f"c{index}" for index in range(len(node.types))]


def _select(items: Sequence[str]) -> str:
    # A relation without columns still has rows.
    return f"SELECT {', '.join(items) or '0 AS nothing'}"
