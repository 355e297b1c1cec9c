"""Computes a query from its definition over stored data: what every other way to run it is compared with.

It starts from the bound, unrewritten plan and shares nothing with rewriting, planning or execution except the
printing of expressions for DuckDB, so that a mistake there cannot hide. Simple comes before fast. Only where
expressions fail is counted by the canonical plan: that is how these counts are defined.
`docs/semantics.md` states what it computes, with examples that are run through it.
"""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType

from plait.engines.duckdb import quoted
from plait.engines.event_times import microseconds
from plait.errors import InfeasibleError, InternalError
from plait.evaluator.failed_rows import failed_rows
from plait.evaluator.horizon import Horizon
from plait.evaluator.relations import Definition, event_time
from plait.evaluator.result import Result, difference, only_in_one, same_rows
from plait.evaluator.stored_data import StoredData
from plait.expressions.duckdb import type_to_duckdb
from plait.plan.nodes import RowWindow, TickWindow, Window, sources_of, walk_plan
from plait.workload import Query

__all__ = ["Result", "StoredData", "difference", "evaluate", "only_in_one", "same_rows"]

# Rows that one window may write out over its ticks before the evaluator gives up.
MAX_WINDOW_ROWS = 50_000_000


def evaluate(
    query: Query, data: StoredData, *, closed_only: bool = False, start: datetime | None = None
) -> Result:
    """All rows of a query over stored data.

    The streams count as ended unless `closed_only`: then what the final watermark has not closed is left
    out. `start` is the T0 of a query added to a running system: what came before is not seen.
    """
    definition = _definition(query, data, closed_only, start)
    timed_rows = data.database.fetch(_sorted_statement(query, definition))
    streams, _ = sources_of(query.plan)
    bad_records = {source.relation.name: source.bad_records for source in map(data.stream, sorted(streams))}
    failed = MappingProxyType(failed_rows(query, data, start))
    return Result(
        query.columns,
        query.plan.types,
        tuple(row[:-1] for row in timed_rows),
        MappingProxyType(bad_records),
        failed,
        tuple(row[-1] for row in timed_rows),
    )


def _definition(query: Query, data: StoredData, closed_only: bool, start: datetime | None) -> Definition:
    streams, _ = sources_of(query.plan)
    horizon = Horizon(
        start_us=None if start is None else microseconds(start),
        watermark_us=data.watermark_us(streams) if closed_only else None,
    )
    definition = Definition(query.plan, data, horizon)
    _refuse_explosion(query, data, definition)
    return definition


def _sorted_statement(query: Query, definition: Definition) -> str:
    """The rows, and after their columns the event time of each."""
    if not query.columns:
        raise InternalError("no-columns", f"query `{query.name}` has no columns")
    items = [
        f"result.c{k}::{type_to_duckdb(type_)} AS {quoted(name)}"
        for k, (name, type_) in enumerate(zip(query.columns, query.plan.types, strict=True))
    ]
    order = [f"result.c{k} NULLS FIRST" for k in range(len(items))]
    time = f"{event_time(query.plan.timing)} AS event_time_us"
    statement = definition.statement(query.plan, f"SELECT {', '.join([*items, time])}")
    return f"{statement} ORDER BY {', '.join(order)}"


def _refuse_explosion(query: Query, data: StoredData, definition: Definition) -> None:
    """A window writes every row once for each of its ticks: better refused than out of memory."""
    for node in walk_plan(query.plan):
        if not isinstance(node, Window):
            continue
        match node.window:
            case TickWindow(range_us, slide_us):
                ticks_a_row = -(-range_us // slide_us)
            case RowWindow(rows, slide_rows):
                ticks_a_row = -(-rows // slide_rows)
            case _:
                continue
        if ticks_a_row == 1:
            continue
        ((input_rows,),) = data.database.fetch(definition.statement(node.input, "SELECT count(*)"))
        if input_rows * ticks_a_row > MAX_WINDOW_ROWS:
            raise InfeasibleError(
                "too-many-ticks",
                f"query `{query.name}` is too large to evaluate from its definition",
                detail=f"a window holds each of {input_rows:,} rows at {ticks_a_row:,} ticks: "
                f"{input_rows * ticks_a_row:,} rows, more than {MAX_WINDOW_ROWS:,}",
                hint="evaluate over less data, or with a longer slide",
            ).at(query.span)
