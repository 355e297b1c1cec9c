"""Mistakes that somebody could make, planted one at a time to show that the comparison finds them.

Each fault changes one thing of the product, by name: if that is renamed or moved, the fault says so. `kinds`
are the classes of queries that it shows in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plait.batches import Batch, Outcome
from plait.engines.duckdb import Database
from plait.engines.incremental import increments, statements
from plait.engines.incremental.bands import Band
from plait.engines.incremental.increments import Increments
from plait.engines.incremental.layout import Numbered, Stage
from plait.engines.incremental.numbering import number_rows
from plait.engines.incremental.state import Progress, State
from plait.engines.incremental.statements import StageStatement
from plait.engines.shared.trunk import Trunk
from plait.expressions.aggregates import AggregateCall
from plait.expressions.duckdb import aggregate_to_duckdb
from plait.plan.nodes import Aggregate, Node, Ticking, TickWindow, Timing, Union


@dataclass(frozen=True)
class Fault:
    name: str
    kinds: tuple[str, ...]
    plant: Callable[[pytest.MonkeyPatch], None]


JOINS = ("join", "self join", "left join", "full join")
OUTER_JOINS = ("left join", "full join", "chain of outer joins")
TICKS = ("aggregate", "count distinct", "fine window", "many panes")


def _in_statements(pattern: str, replacement: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Change the SQL of a stage."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        correct = StageStatement.__str__

        def faulty(statement: StageStatement) -> str:
            return re.sub(pattern, replacement, correct(statement))

        patch.setattr(StageStatement, "__str__", faulty)

    return plant


def _in_bounds(change: Callable[[str, str], tuple[str, str]]) -> Callable[[pytest.MonkeyPatch], None]:
    """Change the first and the last tick whose window holds a row."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        correct = statements.tick_bounds
        patch.setattr(statements, "tick_bounds", lambda window, band: change(*correct(window, band)))

    return plant


def _ignore_offset(patch: pytest.MonkeyPatch) -> None:
    correct = statements.tick_bounds

    def faulty(window: TickWindow, band: Band) -> tuple[str, str]:
        return correct(replace(window, offset_us=0), band)

    patch.setattr(statements, "tick_bounds", faulty)


def _in_meeting(old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Change the condition under which rows join."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        correct = statements._meeting
        patch.setattr(statements, "_meeting", lambda node: re.sub(old, new, correct(node)))

    return plant


def _in_aggregates(
    change_call: Callable[[AggregateCall], AggregateCall] = lambda call: call,
    change_text: Callable[[str], str] = lambda text: text,
) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:

        def faulty(call: AggregateCall, *rest: Any) -> str:
            return change_text(aggregate_to_duckdb(change_call(call), *rest))

        patch.setattr(statements, "aggregate_to_duckdb", faulty)

    return plant


def _drop_having(patch: pytest.MonkeyPatch) -> None:
    correct = statements._printed

    def faulty(expression: Any, source: Node, table: str = "i") -> str:
        having = isinstance(source, Aggregate) and expression.type.kind.name == "BOOLEAN"
        return "true" if having else correct(expression, source, table)

    patch.setattr(statements, "_printed", faulty)


def _reverse_ties(patch: pytest.MonkeyPatch) -> None:
    correct = statements._order
    ties = re.compile(r"i\.c(\d+) ASC NULLS FIRST")
    patch.setattr(statements, "_order", lambda order, source: ties.sub(r"i.c\1 DESC", correct(order, source)))


def _lose_a_part(patch: pytest.MonkeyPatch) -> None:
    correct = statements._Writer._union

    def faulty(writer: statements._Writer, node: Union) -> str:
        return correct(writer, node).rpartition("\nUNION ALL\n")[0]

    patch.setattr(statements._Writer, "_union", faulty)


def _drop_null_groups(patch: pytest.MonkeyPatch) -> None:
    correct = statements._Writer._aggregate

    def faulty(writer: statements._Writer, node: Aggregate) -> str:
        return correct(writer, node).replace("\nGROUP BY g.k0", "\nWHERE g.k0 IS NOT NULL\nGROUP BY g.k0")

    patch.setattr(statements._Writer, "_aggregate", faulty)


def _count_from_one_more(patch: pytest.MonkeyPatch) -> None:
    correct = Database.execute

    def faulty(database: Database, sql: str, parameters: Sequence[object] | None = None) -> None:
        correct(database, sql.replace("coalesce(k.last, 0)", "coalesce(k.last, 1)"), parameters)

    patch.setattr(Database, "execute", faulty)


def _ignore_partition(patch: pytest.MonkeyPatch) -> None:

    def faulty(database: Database, store: Numbered, statement: str) -> None:
        number_rows(database, replace(store, window=replace(store.window, partition=())), statement)

    patch.setattr(increments, "number_rows", faulty)


def _forget_batches(patch: pytest.MonkeyPatch) -> None:
    """A batch that was done before is done again."""
    correct = State.progress

    def faulty(state: State) -> Progress:
        return replace(correct(state), batch=-1)

    patch.setattr(State, "progress", faulty)


def _skip_what_was_begun(patch: pytest.MonkeyPatch) -> None:
    """A batch that was begun counts as done: what a crash interrupted is never done again."""
    correct = Trunk.apply
    begun: set[tuple[str, int]] = set()

    def faulty(trunk: Trunk, batch: Batch, *rest: Any) -> Mapping[str, Outcome]:
        known = (str(trunk._state._path), batch.id)
        if known in begun:
            return trunk._state.outcomes(batch.id)
        begun.add(known)
        return correct(trunk, batch, *rest)

    patch.setattr(Trunk, "apply", faulty)


def _commit_anyway(patch: pytest.MonkeyPatch) -> None:
    """What an interrupted batch has stored stays, although the batch will be done again."""

    @contextmanager
    def faulty(database: Database) -> Iterator[None]:
        database.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            database.execute("COMMIT")

    patch.setattr(Database, "transaction", faulty)


def _truncate_times(patch: pytest.MonkeyPatch) -> None:
    correct = Trunk.apply

    def faulty(trunk: Trunk, batch: Batch, rows: Mapping[str, pa.Table], *rest: Any) -> Mapping[str, Outcome]:
        return correct(trunk, batch, {key: _in_milliseconds(t) for key, t in rows.items()}, *rest)

    patch.setattr(Trunk, "apply", faulty)


def _in_milliseconds(rows: pa.Table) -> pa.Table:
    position = rows.schema.get_field_index("t")
    times = pc.multiply(pc.divide(rows.column(position), 1000), 1000)
    return rows.set_column(position, "t", times)


def _in_results(change: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> Callable[[pytest.MonkeyPatch], None]:
    """Change the columns of what is published."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        correct = Increments._fetched

        def faulty(
            database: Database, stage: Stage, statement: StageStatement
        ) -> tuple[pa.Table, pa.ChunkedArray]:
            table, times_us = correct(database, stage, statement)
            changed = [change(column) for column in table.columns]
            return pa.Table.from_arrays(changed, schema=table.schema), times_us

        patch.setattr(Increments, "_fetched", staticmethod(faulty))

    return plant


def _empty_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != pa.string():
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _rounded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.round(column, 1).cast(column.type) if pa.types.is_decimal(column.type) else column


def _less_delay(patch: pytest.MonkeyPatch) -> None:
    correct = Trunk._watermark_us

    def faulty(trunk: Trunk, *rest: Any) -> int | None:
        watermark_us = correct(trunk, *rest)
        return None if watermark_us is None else watermark_us + 1

    patch.setattr(Trunk, "_watermark_us", faulty)


def _wait_for_no_partner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(increments, "held_back_us", lambda _: 0)


def _forget_early(patch: pytest.MonkeyPatch) -> None:
    correct = Increments.forget

    def faulty(plans: Increments, database: Database, watermark_us: int) -> None:
        correct(plans, database, watermark_us + 4_000_000)

    patch.setattr(Increments, "forget", faulty)


def _tick_at_its_end(patch: pytest.MonkeyPatch) -> None:
    correct = statements._event_time

    def faulty(timing: Timing) -> str:
        return "tick" if isinstance(timing, Ticking) else correct(timing)

    patch.setattr(statements, "_event_time", faulty)


def _earliest_time(patch: pytest.MonkeyPatch) -> None:
    correct = statements._event_time
    patch.setattr(statements, "_event_time", lambda timing: correct(timing).replace("greatest", "least"))


FAULTS = (
    Fault("rows exactly a range apart meet", JOINS, _in_meeting(r"(t\d) < (i\d)", r"\1 <= \2")),
    Fault(
        "the end of a window belongs to it",
        TICKS,
        _in_bounds(lambda first, last: (first.replace("t -", "t - 1 -").replace("(t +", "(t - 1 +"), last)),
    ),
    Fault(
        "the start of a window does not belong to it",
        TICKS,
        _in_bounds(lambda first, last: (first, last.replace("least(t", "least(t - 1"))),
    ),
    Fault("a window's offset is ignored", TICKS, _ignore_offset),
    Fault("NULL keys meet in joins", JOINS, _in_meeting(r"(c\d+\)?) = ", r"\1 IS NOT DISTINCT FROM ")),
    Fault("a NULL group is dropped", TICKS, _drop_null_groups),
    Fault(
        "DISTINCT is ignored",
        ("count distinct",),
        _in_aggregates(change_text=lambda text: text.replace("(DISTINCT ", "(")),
    ),
    Fault("FILTER is ignored", TICKS, _in_aggregates(change_call=lambda call: replace(call, filter=None))),
    Fault(
        "count(*) skips NULLs",
        TICKS,
        _in_aggregates(change_text=lambda text: text.replace("count(*)", "count(g.c0)")),
    ),
    Fault("HAVING is dropped", TICKS, _drop_having),
    Fault("ties are ordered the other way round", ("top",), _reverse_ties),
    Fault(
        "each tick has a row too many",
        ("top",),
        _in_statements(r"QUALIFY (.*) <= (\d+)", r"QUALIFY \1 <= 1 + \2"),
    ),
    Fault("row numbers are off by one", ("row window",), _count_from_one_more),
    Fault("rows are numbered across partitions", ("row window",), _ignore_partition),
    Fault("a part of a union is lost", ("union", "union of ticks"), _lose_a_part),
    Fault(
        "ticks are not compared in joins",
        ("aggregate of a join", "aggregates side by side"),
        _in_meeting(r"i0\.tick = i1\.tick", "true"),
    ),
    Fault("a tick happens at its end", ("roll-up of an aggregate",), _tick_at_its_end),
    Fault("a combination happens at its first row", ("roll-up of a join",), _earliest_time),
    Fault("the delay is a microsecond short", (*TICKS, *JOINS), _less_delay),
    Fault("a row without partner is given too early", OUTER_JOINS, _wait_for_no_partner),
    Fault("rows are forgotten too early", (*JOINS, *TICKS), _forget_early),
    Fault("a batch is counted twice", TICKS, _forget_batches),
    Fault("an interrupted batch is lost", TICKS, _skip_what_was_begun),
    Fault("an interrupted batch is half stored", TICKS, _commit_anyway),
    Fault("times are cut to milliseconds", TICKS, _truncate_times),
    Fault("the empty string becomes NULL", ("filter", "union"), _in_results(_empty_as_null)),
    Fault("decimals are rounded", ("filter", "aggregate", "join"), _in_results(_rounded)),
)
