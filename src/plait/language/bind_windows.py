"""Which window each FROM item gets, and whether they fit together.

Decides whether rows meet as they come or tick by tick. A block ticks if it aggregates, limits rows, or
reads something that ticks without a window of its own; then every window ticks, and all alike. Otherwise
`[RANGE r]` says how long a row stays there to be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError
from plait.language.attempts import Attempts
from plait.language.bind_items import Origin, WrittenItem, check_aligned, not_event_time
from plait.language.scope import BoundRelation, Scope
from plait.language.spans import span_of
from plait.language.window_spellings import (
    AlignedClause,
    duration_text,
    instant_window,
    read_window_call,
    tick_window,
)
from plait.plan.nodes import Flowing, RowTicking, Static, Ticking, TickWindow, Window, Windowed

_PROVISIONAL_US = 60_000_000


def is_window_call(node: exp.Expr) -> bool:
    """`window(…)` as GROUP BY takes it."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def group_window(
    calls: Sequence[exp.Anonymous], items: Sequence[WrittenItem], source: Source
) -> list[WrittenItem]:
    """The items, the one stream among them with the window that `GROUP BY window(…)` gives it."""
    written = [read_window_call(call, source) for call in calls]
    if any(replace(other, span=written[0].span) != written[0] for other in written):
        raise UserError(
            "second-window", "GROUP BY names two different windows", hint="keep one", span=written[-1].span
        )
    moving = [item for item in items if not item.is_static]
    if len(moving) != 1:
        raise UnsupportedError(
            "window-call",
            "window() is for one stream, perhaps joined with tables",
            hint="give each stream its window: `a [RANGE 5 MINUTES SLIDE 1 MINUTE]`",
            span=written[0].span,
        )
    stream = moving[0]
    check_aligned(stream, written[0])
    for call in calls:
        _check_time(call.expressions[0], stream, items, written[0], source)
    return [replace(item, window=written[0]) if item is stream else item for item in items]


def _check_time(
    node: exp.Expr,
    stream: WrittenItem,
    items: Sequence[WrittenItem],
    written: AlignedClause,
    source: Source,
) -> None:
    scope = Scope(())
    for item in items:
        scope = scope.with_item(item.alias, item.relation)
    visible = scope.items[items.index(stream)]
    event_time = visible.column(visible.positions[str(stream.named.event_time).lower()])
    if not isinstance(node, exp.Column) or scope.resolve(node, source) != event_time:
        raise not_event_time(node, stream, written, source)


def place_windows(
    items: Sequence[WrittenItem], ticks: bool, source: Source, errors: list[PlaitError]
) -> tuple[list[BoundRelation], bool]:
    """Every item with its window, in a block that ticks or does not, and whether the windows make sense.

    If not, that is recorded, and the relations only serve to find further errors.
    """
    attempts = Attempts(errors)
    streams = sum(not item.is_static for item in items)
    tables = len(items) - streams
    relations = [
        attempts.run(_ticking, item, source)
        if ticks
        else attempts.run(_instant, item, streams, tables, source)
        for item in items
    ]
    placed = [relation for relation in relations if relation is not None]
    if not attempts.failed:
        attempts.run(_check_together, items, placed, source)
    if attempts.failed:
        placed = [provisional(item, ticks) for item in items]
    return placed, not attempts.failed


def provisional(item: WrittenItem, ticks: bool) -> BoundRelation:
    """An item whose window is wrong, so that names in the rest of the block still mean something."""
    relation = item.relation
    if not ticks or item.is_static or relation.ticks:
        return relation
    window = Window(relation.plan, TickWindow(_PROVISIONAL_US, _PROVISIONAL_US))
    return replace(relation, plan=window, range_us=_PROVISIONAL_US)


def _ticking(item: WrittenItem, source: Source) -> BoundRelation:
    relation = item.relation
    if item.window is not None:
        _check_windowable(item)
        window = tick_window(item.window)
        range_us = window.range_us if isinstance(window, TickWindow) else None
        return replace(relation, plan=Window(relation.plan, window), range_us=range_us)
    if isinstance(relation.plan.timing, Windowed):
        raise UserError(
            "no-window",
            f"{item.label} needs a window of its own here: this block is evaluated tick by tick",
            detail="the windows inside it only say which rows meet, not when an answer is due",
            hint=f"write `{_with_window(item, 'RANGE 5 MINUTES SLIDE 1 MINUTE')}`",
            span=span_of(item.node, source),
        )
    if isinstance(relation.plan.timing, Flowing):
        raise UserError(
            "no-window",
            f"{item.label} needs a window: this block is evaluated over the rows of a window, tick by tick",
            hint=f"write `{_with_window(item, 'RANGE 5 MINUTES SLIDE 1 MINUTE')}`",
            span=span_of(item.node, source),
        )
    return relation


def _instant(item: WrittenItem, streams: int, tables: int, source: Source) -> BoundRelation:
    relation = item.relation
    if item.window is not None:
        _check_windowable(item)
        window = instant_window(item.window, streams=streams, tables=tables)
        return replace(relation, plan=Window(relation.plan, window), range_us=None)
    # A subquery over windows joins by these; a stream or another query's result has none of its own.
    lacks_window = isinstance(relation.plan.timing, Flowing) or item.named.origin is Origin.QUERY
    if lacks_window and not item.is_static and streams > 1:
        raise UserError(
            "no-window",
            f"{item.label} needs a window: its rows would wait for ever for rows to join",
            hint=f"write `{_with_window(item, 'RANGE 5 MINUTES')}`",
            span=span_of(item.node, source),
        )
    return relation


def _with_window(item: WrittenItem, window: str) -> str:
    """How a FROM item is written with a window."""
    written = item.node.name if isinstance(item.node, exp.Table) else "(SELECT …)"
    return f"{written} [{window}]" + (f" AS {item.alias}" if item.alias not in (None, written) else "")


def _check_windowable(item: WrittenItem) -> None:
    if isinstance(item.relation.plan.timing, Static):
        assert item.window is not None
        raise UserError(
            "table-window",
            f"{item.label} is a table, and only streams have windows",
            hint="leave the window out: a table is joined as it is",
            span=item.window.span,
        )


def _check_together(items: Sequence[WrittenItem], relations: Sequence[BoundRelation], source: Source) -> None:
    timings = [relation.plan.timing for relation in relations]
    for item, timing in zip(items, timings, strict=True):
        if isinstance(timing, RowTicking) and len(items) > 1:
            raise UnsupportedError(
                "row-window-join",
                f"{item.label} has a row window, which cannot be joined",
                hint="use a time window: [RANGE 5 MINUTES SLIDE 1 MINUTE]",
                span=span_of(item.node, source),
            )
    ticking = [(item, t) for item, t in zip(items, timings, strict=True) if isinstance(t, Ticking)]
    for item, timing in ticking[1:]:
        first_item, first = ticking[0]
        if timing != first:
            raise UserError(
                "different-ticks",
                f"{first_item.label} and {item.label} do not tick together",
                detail=f"{first_item.label}: {_tick_text(first)}; {item.label}: {_tick_text(timing)}",
                hint="give all windows of a block the same SLIDE",
                span=span_of(item.node, source),
            )


def _tick_text(timing: Ticking) -> str:
    text = f"every {duration_text(timing.slide_us)}"
    return f"{text}, offset by {duration_text(timing.offset_us)}" if timing.offset_us else text
