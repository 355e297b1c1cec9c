"""The same queries as somebody would write them for plain Spark, over all the data at once.

A second opinion that shares nothing with Plait but the generator's model of a query: no binder, no plan, no
printer of expressions. Windows are Spark's `window()`, joins of rows are joins with a condition on the times,
and what would stop Spark with an error is written with its `try_` functions.

Each relation is a subquery with its columns and its time: `_t`, the event time of a row, or `_e`, the end of
the window that a row of a tick belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any, assert_never

from pyspark.sql import SparkSession
from tests.differential.arrivals import Row
from tests.differential.workloads import RandomWorkload, arrow_table

from plait.benchmarks.planning.model import (
    Aggregation,
    AllOf,
    Among,
    AnyOf,
    Apply,
    Between,
    Block,
    BlockItem,
    Case,
    Column,
    Comparison,
    Constant,
    Equality,
    Expression,
    InstantWindow,
    IsNull,
    Item,
    Like,
    Negation,
    Predicate,
    Relation,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    Window,
    WindowEdge,
)

NO_EDGES: Mapping[str, str] = {}
TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


class NotPlainSparkError(Exception):
    """Plain Spark cannot say this, or not in a few lines."""


def can_say(block: Block) -> bool:
    try:
        _block(block)
    except NotPlainSparkError:
        return False
    return True


def rows_of(block: Block, spark: SparkSession) -> list[Row]:
    """All rows of a query over the data that was stored last."""
    outputs = ", ".join(output.name for output in block.outputs)
    collected = spark.sql(f"SELECT {outputs} FROM ({_block(block)[0]})").collect()
    return [tuple(_value(value) for value in row) for row in collected]


def store(workload: RandomWorkload, spark: SparkSession) -> None:
    """The data of all streams and tables, as views."""
    for stored in workload.relations:
        relation = stored.relation
        frame = spark.createDataFrame(arrow_table(relation, stored.rows))
        items = [
            f"{name} + 0.0D AS {name}" if type_ == "DOUBLE" else name for name, type_ in relation.columns
        ]
        condition = (
            f"{relation.event_time} > TIMESTAMP '1970-01-01 00:00:00'" if relation.event_time else "true"
        )
        frame.selectExpr(*items).where(condition).createOrReplaceTempView(relation.name)


def _value(value: Any) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


# Blocks: the SQL, and the name of the time in it.


def _block(block: Block) -> tuple[str, str]:
    if isinstance(block, Select):
        return _select(block)
    parts = [_block(branch) for branch in block.branches]
    if len({time for _, time in parts}) > 1:
        raise NotPlainSparkError("a union of ticks and rows")
    if parts[0][1] == "_e" and len({_slide(branch) for branch in block.branches}) > 1:
        raise NotPlainSparkError("a union of different ticks")
    return " UNION ALL ".join(f"({sql})" for sql, _ in parts), parts[0][1]


def _slide(select: Select) -> tuple[int, int] | None:
    for item in select.all_items:
        if isinstance(item.window, TickWindow):
            return item.window.slide_s, item.window.offset_s
    return None


def _select(select: Select) -> tuple[str, str]:
    texts, times = {}, {}
    for item in select.all_items:
        texts[item.key], times[item.key] = _item(item)
    ranges = {i.key: i.window.range_s for i in select.all_items if isinstance(i.window, InstantWindow)}
    clause, where = _from(select, texts, times, ranges)
    time, value = _time(times)
    edges = {"end": value, "start": ""}
    if isinstance(window := select.items[0].window, TickWindow):
        edges["start"] = f"{value} - INTERVAL {window.range_s} SECONDS"
    items = [f"{_expression(output.expression, edges)} AS {output.name}" for output in select.outputs]
    sql = f"SELECT {', '.join([*items, f'{value} AS {time}'])} FROM {clause}"
    if where:
        sql += f" WHERE {' AND '.join(where)}"
    if select.aggregates:
        sql += f" GROUP BY {', '.join([*(_expression(key, edges) for key in select.keys), value])}"
    if select.having:
        sql += f" HAVING {_conjunction(select.having, edges)}"
    if select.limit is None:
        return sql, time
    order = [f"{key.output} {'DESC' if key.descending else 'ASC'}" for key in select.order]
    order += [output.name for output in select.outputs]
    place = f"row_number() OVER (PARTITION BY {time} ORDER BY {', '.join(order)})"
    return f"SELECT * FROM (SELECT *, {place} AS _place FROM ({sql})) WHERE _place <= {select.limit}", time


def _from(
    select: Select, texts: Mapping[str, str], times: Mapping[str, str], ranges: Mapping[str, int]
) -> tuple[str, list[str]]:
    inner = [item.key for item in select.items]
    # After the outer joins: with several items before them they are left joins, which change none of these.
    meeting = [_meeting(left, right, times, ranges) for left, right in combinations(inner, 2)]
    where = [*filter(None, meeting), *(_predicate(condition) for condition in select.conditions)]
    clause = " CROSS JOIN ".join(f"({texts[key]}) {key}" for key in inner)
    before = list(inner)
    for step in select.outer:
        on_terms = [_meeting(left, step.item.key, times, ranges) for left in before]
        on_terms += [_predicate(term) for term in step.on]
        on_text = " AND ".join(filter(None, on_terms))
        clause += f" {step.kind} JOIN ({texts[step.item.key]}) {step.item.key} ON {on_text}"
        before.append(step.item.key)
    return clause, where


def _meeting(left: str, right: str, times: Mapping[str, str], ranges: Mapping[str, int]) -> str:
    """The condition that rows of two items are there at one moment; empty where one is a table."""
    match times[left], times[right]:
        case "_e", "_e":
            return f"{left}._e = {right}._e"
        case "_t", "_t":
            later = f"unix_micros({right}._t) - unix_micros({left}._t)"
            both = f"{later} < {ranges[left]}000000 AND -({later}) < {ranges[right]}000000"
            return f"({left}._t IS NULL OR {right}._t IS NULL OR ({both}))"
        case _:
            return ""


def _time(times: Mapping[str, str]) -> tuple[str, str]:
    """The name of a block's time, and how to compute it from those of its items."""
    ticks = [f"{key}._e" for key, time in times.items() if time == "_e"]
    if ticks:
        return "_e", ticks[0] if len(ticks) == 1 else f"coalesce({', '.join(ticks)})"
    rows = [f"{key}._t" for key, time in times.items() if time == "_t"]
    return "_t", rows[0] if len(rows) == 1 else f"greatest({', '.join(rows)})"


def _item(item: Item) -> tuple[str, str]:
    match item:
        case RelationItem(_, Relation(name, _, None), _):
            return f"SELECT * FROM {name}", ""
        case RelationItem(_, relation, window):
            return _windowed(f"SELECT *, {relation.event_time} AS _t FROM {relation.name}", window)
        case BlockItem(_, block, window, _):
            sql, time = _block(block)
            if window is None:
                return sql, time
            names = ", ".join(output.name for output in block.outputs)
            moment = "_t" if time == "_t" else "_e - INTERVAL 1 MICROSECOND"
            return _windowed(f"SELECT {names}, {moment} AS _t FROM ({sql})", window)
        case _:
            assert_never(item)


def _windowed(sql: str, window: Window | None) -> tuple[str, str]:
    match window:
        case None | InstantWindow():
            return sql, "_t"
        case TickWindow(range_s, slide_s, offset_s):
            if range_s < slide_s:
                raise NotPlainSparkError("window() knows no gaps")
            start_s = (offset_s - range_s) % slide_s
            sizes = f"'{range_s} seconds', '{slide_s} seconds', '{start_s} seconds'"
            windows = f"SELECT *, window(_t, {sizes}) AS _w FROM ({sql})"
            return f"SELECT * EXCEPT (_w, _t), _w.end AS _e FROM ({windows})", "_e"
        case RowWindow():
            raise NotPlainSparkError("row windows")
        case _:
            assert_never(window)


# Expressions and predicates. `edges` says how the ends of the block's window are written.


def _expression(expression: Expression, edges: Mapping[str, str] = NO_EDGES) -> str:
    match expression:
        case Column(item, name, _):
            return f"{item}.{name}"
        case Constant(sql, _):
            return sql
        case WindowEdge(edge, _):
            return edges[edge]
        case Apply(function, arguments, type_):
            return _apply(function, [_expression(argument, edges) for argument in arguments], type_)
        case Case(branches, otherwise, _):
            whens = [f"WHEN {_predicate(p, edges)} THEN {_expression(e, edges)}" for p, e in branches]
            rest = "" if otherwise is None else f" ELSE {_expression(otherwise, edges)}"
            return f"CASE {' '.join(whens)}{rest} END"
        case Aggregation():
            return _aggregation(expression, edges)
        case _:
            assert_never(expression)


def _apply(function: str, arguments: Sequence[str], type_: str) -> str:
    if function in TRIED and type_ != "TIMESTAMP":
        return f"{TRIED[function]}({', '.join(arguments)})"
    if function == "||" or function in TRIED:
        return f"({f' {function} '.join(arguments)})"
    if function.startswith("cast "):
        return f"CAST({arguments[0]} AS {function.removeprefix('cast ')})"
    return f"{function}({', '.join(arguments)})"


def _aggregation(call: Aggregation, edges: Mapping[str, str]) -> str:
    argument = "*" if call.argument is None else _expression(call.argument, edges)
    condition = "" if call.filter is None else f" FILTER (WHERE {_predicate(call.filter, edges)})"
    match call.function:
        case "avg":
            # Exact for integers and decimals, as the definition is: Spark's adds doubles, or gives a decimal.
            total, number = f"sum({argument}){condition}", f"count({argument}){condition}"
            return f"try_divide(CAST({total} AS DOUBLE), {number})"
        case "count_distinct":
            return f"count(DISTINCT {argument}){condition}"
        case function:
            return f"{function}({argument}){condition}"


def _conjunction(terms: Sequence[Predicate], edges: Mapping[str, str]) -> str:
    return " AND ".join(_predicate(term, edges) for term in terms)


def _predicate(predicate: Predicate, edges: Mapping[str, str] = NO_EDGES) -> str:
    def text(expression: Expression) -> str:
        return _expression(expression, edges)

    match predicate:
        case Comparison(operator, left, right):
            return f"({text(left)} {operator} {text(right)})"
        case Equality(members):
            first, *others = members
            return "(" + " AND ".join(f"{text(first)} = {text(other)}" for other in others) + ")"
        case Between(value, low, high):
            return f"({text(low)} <= {text(value)} AND {text(value)} <= {text(high)})"
        case Among(value, constants):
            return f"{text(value)} IN ({', '.join(map(text, constants))})"
        case IsNull(value):
            return f"{text(value)} IS NULL"
        case Like(value, pattern):
            return f"{text(value)} LIKE {text(pattern)}"
        case Negation(term):
            return f"NOT ({_predicate(term, edges)})"
        case AllOf(terms):
            return f"({_conjunction(terms, edges)})"
        case AnyOf(terms):
            return "(" + " OR ".join(_predicate(term, edges) for term in terms) + ")"
        case _:
            assert_never(predicate)
