"""The three spellings of a window, read and checked: what is possible, and what is absurd.

`s [RANGE r SLIDE d]` ends at multiples of the slide. `HOP`, `TUMBLE` and `GROUP BY window(…)` start
there, plus their offset o, so that their ends are ≡ o + r (mod d). Whether a `[RANGE r]` ticks depends on
the block around it, which calls `tick_window` or `instant_window`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from plait.errors import Source, Span, UnsupportedError, UserError, closest
from plait.language.dialect import WindowClause, WindowTable
from plait.language.quantities import QuantityError, parse_duration
from plait.language.scope import BoundRelation
from plait.language.spans import span_of
from plait.plan.nodes import RangeWindow, RowWindow, TickWindow

DAY_US = 86_400_000_000
LONGEST_WINDOW_US = 3_653 * DAY_US
MOST_ROWS = 1_000_000_000
MOST_WINDOWS_OF_A_ROW = 1_000_000

_UNITS_US = (
    ("day", DAY_US),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


@dataclass(frozen=True)
class TimeClause:
    """`[RANGE range SLIDE slide]`."""

    range_us: int
    slide_us: int | None
    span: Span


@dataclass(frozen=True)
class RowClause:
    """`[PARTITION BY … ROWS rows SLIDE slide]`; the partition by position in the relation."""

    rows: int
    slide_rows: int
    partition: tuple[int, ...]
    span: Span


@dataclass(frozen=True)
class AlignedClause:
    """A window that starts at multiples of its slide: HOP, TUMBLE or window(…)."""

    spelling: str
    range_us: int
    slide_us: int
    offset_us: int
    span: Span


WrittenWindow: TypeAlias = TimeClause | RowClause | AlignedClause


def read_clause(
    node: WindowClause, relation: BoundRelation, alias: str | None, source: Source
) -> TimeClause | RowClause:
    """The window in brackets behind a FROM item."""
    span = span_of(node, source)
    slide = node.args.get("slide")
    if node.args["unit"] == "range":
        range_us = duration_us(node.args["size"], source)
        slide_us = None if slide is None else duration_us(slide, source)
        _check_time(range_us, slide_us or range_us, span)
        return TimeClause(range_us, slide_us, span)
    rows = int(node.args["size"].name)
    slide_rows = rows if slide is None else int(slide.name)
    if not (0 < rows <= MOST_ROWS and 0 < slide_rows <= MOST_ROWS):
        raise UserError(
            "window-too-large", f"a row window counts 1 to {MOST_ROWS:,} rows", span=span_of(node, source)
        )
    _check_overlap(rows, slide_rows, span)
    partition = tuple(
        _partition_position(c, relation, alias, source) for c in node.args.get("partition") or ()
    )
    if len(set(partition)) < len(partition):
        raise UserError("window-partition", "PARTITION BY names a column twice", span=span)
    return RowClause(rows, slide_rows, partition, span)


def read_window_table(node: WindowTable, source: Source) -> AlignedClause:
    """HOP or TUMBLE in FROM."""
    size, slide, offset = (node.args.get(part) for part in ("size", "slide", "offset"))
    assert size is not None
    range_us = duration_us(size, source)
    slide_us = range_us if slide is None else duration_us(slide, source)
    offset_us = 0 if offset is None else duration_us(offset, source, signed=True)
    spelling = node.args["function"].upper()
    return _aligned(spelling, range_us, slide_us, offset_us, span_of(node, source))


def read_window_call(node: exp.Anonymous, source: Source) -> AlignedClause:
    """`window(ts, range[, slide[, offset]])` of GROUP BY; the caller looks at the time column."""
    span = span_of(node, source)
    durations = node.expressions[1:]
    if not 1 <= len(durations) <= 3:
        raise UserError(
            "window-call",
            "window() takes a time column, a range and perhaps a slide and an offset",
            hint="for example window(ts, '5 minutes', '1 minute')",
            span=span,
        )
    range_us = duration_us(durations[0], source)
    slide_us = duration_us(durations[1], source) if len(durations) > 1 else range_us
    offset_us = duration_us(durations[2], source, signed=True) if len(durations) > 2 else 0
    if range_us < slide_us:
        raise UserError(
            "window-gaps",
            f"window() slides by {duration_text(slide_us)}, more than its range of {duration_text(range_us)}",
            detail="rows between two windows would belong to none, which Spark's window() refuses",
            hint="if that is meant, write `s [RANGE … SLIDE …]`",
            span=span,
        )
    return _aligned("window()", range_us, slide_us, offset_us, span)


def tick_window(written: WrittenWindow) -> TickWindow | RowWindow:
    """The window in a block that is evaluated tick by tick."""
    match written:
        case TimeClause(range_us, slide_us, _):
            return TickWindow(range_us, slide_us or range_us)
        case RowClause(rows, slide_rows, partition, _):
            return RowWindow(rows, slide_rows, partition)
        case AlignedClause(_, range_us, slide_us, offset_us, _):
            return TickWindow(range_us, slide_us, (offset_us + range_us) % slide_us)


def instant_window(written: WrittenWindow, *, streams: int, tables: int) -> RangeWindow:
    """The window in a block that joins rows as they come, of so many streams and tables."""
    if isinstance(written, TimeClause) and written.slide_us is None:
        return RangeWindow(written.range_us)
    if isinstance(written, RowClause):
        raise UnsupportedError(
            "row-window-without-aggregate",
            "a row window needs aggregates or ORDER BY … LIMIT"
            + (", and cannot be joined" if streams + tables > 1 else ""),
            hint=_instead_of_rows(streams, tables),
            span=written.span,
        )
    spelling = "SLIDE" if isinstance(written, TimeClause) else written.spelling
    raise UnsupportedError(
        "slide-without-aggregate",
        f"{spelling} needs aggregates: this block gives every combination of rows once, not once a tick",
        hint="write [RANGE …] without SLIDE, or aggregate with GROUP BY",
        span=written.span,
    )


def duration_us(node: exp.Expr, source: Source, *, signed: bool = False) -> int:
    """A constant duration: an INTERVAL, or a string such as '5 minutes'. Positive unless it is `signed`."""
    match node:
        case exp.Paren():
            return duration_us(node.this, source, signed=signed)
        case exp.Neg() if signed:
            return -duration_us(node.this, source, signed=True)
        case exp.Add():  # INTERVAL 1 HOUR 30 MINUTES
            return sum(duration_us(part, source, signed=signed) for part in (node.this, node.expression))
        case exp.Interval() if isinstance(node.this, exp.Literal):
            unit = node.args.get("unit")
            text = node.this.name if unit is None else f"{node.this.name} {unit.name}"
        case exp.Literal() if node.is_string:
            text = node.name
        case _:
            raise UserError(
                "duration",
                "expected a constant duration",
                hint="for example '5 minutes' or INTERVAL '5' MINUTES",
                span=span_of(node, source),
            )
    try:
        return parse_duration(text, positive=not signed, signed=signed)
    except QuantityError as error:
        raise UserError("duration", error.message, hint=error.hint, span=span_of(node, source)) from None


def duration_text(duration_us: int) -> str:
    """In the largest unit that gives a whole number.

    >>> duration_text(90_000_000), duration_text(60_000_000)
    ('90 seconds', '1 minute')
    """
    name, size = next((name, size) for name, size in _UNITS_US if duration_us % size == 0)
    amount = duration_us // size
    return f"{amount:,} {name}{'' if amount == 1 else 's'}"


def _instead_of_rows(streams: int, tables: int) -> str:
    if streams > 1:
        return "use a time window: [RANGE 5 MINUTES]"
    if tables:
        return "use a time window [RANGE 5 MINUTES], or leave the window out"
    return "aggregate it, use a time window [RANGE 5 MINUTES], or leave the window out"


def _aligned(spelling: str, range_us: int, slide_us: int, offset_us: int, span: Span) -> AlignedClause:
    _check_time(range_us, slide_us, span)
    if abs(offset_us) > LONGEST_WINDOW_US:
        raise UserError("window-too-large", "a window's offset is 10 years at most", span=span)
    return AlignedClause(spelling, range_us, slide_us, offset_us, span)


def _check_time(range_us: int, slide_us: int, span: Span) -> None:
    for name, length_us in (("range", range_us), ("slide", slide_us)):
        if length_us <= 0:
            raise UserError("window-not-positive", f"a window's {name} is longer than nothing", span=span)
        if length_us > LONGEST_WINDOW_US:
            raise UserError(
                "window-too-large",
                f"a window's {name} is 10 years at most, not {duration_text(length_us)}",
                span=span,
            )
    _check_overlap(range_us, slide_us, span)


def _check_overlap(size: int, slide: int, span: Span) -> None:
    if size > slide * MOST_WINDOWS_OF_A_ROW:
        raise UserError(
            "window-too-dense",
            f"every row would be in {-(-size // slide):,} windows; {MOST_WINDOWS_OF_A_ROW:,} is the limit",
            hint="take a longer slide or a shorter range",
            span=span,
        )


def _partition_position(node: exp.Expr, relation: BoundRelation, alias: str | None, source: Source) -> int:
    if not isinstance(node, exp.Column):
        raise UnsupportedError(
            "window-partition",
            "PARTITION BY takes columns",
            hint="compute the expression in a subquery and partition by its column",
            span=span_of(node, source),
        )
    names = [name.lower() for name in relation.columns]
    foreign = node.table and node.table.lower() != (alias or "").lower()
    if foreign or node.name.lower() not in names:
        raise UserError(
            "unknown-column",
            f"there is no column `{node.sql()}` in what this window is over",
            hint=closest(node.name, relation.columns),
            span=span_of(node, source),
        )
    return names.index(node.name.lower())
