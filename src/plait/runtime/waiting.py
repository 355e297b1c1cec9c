"""Why a query shows no rows yet, and what of it is still open, in words.

Decided from the plan's timing and from watermarks alone. A query with ticks closes the window that ends at τ
when its watermark reaches τ; one that reads several streams goes by the slowest of them, which is named if
it is the one that all wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from plait.expressions.types import TIMESTAMP_RANGE_US
from plait.plan.nodes import (
    Flowing,
    Node,
    OuterJoin,
    RowTicking,
    Static,
    Ticking,
    Windowed,
    sources_of,
    walk_plan,
)
from plait.runtime.snapshot import StreamProgress

# Spark's watermarks are whole milliseconds, and one less for joins.
_BEHIND_US = 2_000


@dataclass(frozen=True)
class Waiting:
    """What a query waits for, in words: empty if rows have come and none is held back. It is open if a later
    watermark closes something of it. `held_back_by` is the stream that is behind the others, if one is."""

    words: str = ""
    is_open: bool = False
    held_back_by: str | None = None


def waiting(
    plan: Node, rows: int, streams: Mapping[str, StreamProgress], reached_us: int | None = None
) -> Waiting:
    """What a query waits for, given how many rows it has shown, its streams by their keys, and the watermark
    that it has come to itself: it may be behind what its streams have brought."""
    read = [streams[key] for key in sorted(map(str.lower, sources_of(plan)[0])) if key in streams]
    without_data = [stream for stream in read if stream.watermark_us is None]
    if without_data:
        holds_back = len(without_data) < len(read) and _closes(plan, 0)
        return Waiting(
            f"no data yet in {_names(without_data)}",
            held_back_by=without_data[0].name if holds_back else None,
        )
    empty = [stream for stream in read if not stream.rows]
    if empty and not rows and all(map(_has_ended, read)):
        return Waiting(f"no data in {_names(empty)}")
    marks = {stream.name: stream.watermark_us for stream in read if stream.watermark_us is not None}
    if not marks:
        return Waiting()
    slowest = min(marks, key=lambda name: marks[name])
    if reached_us is not None and reached_us < marks[slowest] - _BEHIND_US:
        closes = _closes(plan, reached_us)
        come = f"has come to {time_text(reached_us)}, its streams to {time_text(marks[slowest])}"
        return Waiting(f"{closes}; the query {come}", is_open=True) if closes else Waiting()
    closes = _closes(plan, marks[slowest])
    if not closes:
        return Waiting("" if rows else "no row has matched so far")
    watermark = f"the watermark is at {time_text(marks[slowest])}"
    if marks[slowest] == max(marks.values()):
        return Waiting(f"{closes}; {watermark}", is_open=True)
    held_back = _held_back(streams[slowest.lower()])
    return Waiting(f"{closes}; {watermark}, {held_back}", is_open=True, held_back_by=slowest)


def _held_back(by: StreamProgress) -> str:
    silent = "" if by.silent_since_us is None else f", silent since {second_text(by.silent_since_us)}"
    return f"held back by {by.name}{silent}"


def _has_ended(stream: StreamProgress) -> bool:
    return stream.watermark_us is not None and stream.watermark_us > TIMESTAMP_RANGE_US[1]


def _names(streams: list[StreamProgress]) -> str:
    return ", ".join(stream.name for stream in streams)


def _closes(plan: Node, watermark_us: int) -> str:
    if watermark_us > TIMESTAMP_RANGE_US[1]:
        return ""  # the streams have ended
    match plan.timing:
        case Ticking(slide_us, offset_us):
            tick_us = (watermark_us - offset_us) // slide_us * slide_us + offset_us + slide_us
            return f"the next window closes at {time_text(tick_us)}"
        case RowTicking():
            return "windows close when enough rows are behind the watermark"
        case Windowed(ranges_us) if any(isinstance(node, OuterJoin) for node in walk_plan(plan)):
            since_us = watermark_us - max(ranges_us)
            return f"rows without a partner from {time_text(since_us)} on are still open"
        case Windowed() | Flowing() | Static():
            return ""
        case _:
            assert_never(plan.timing)


def time_text(us: int) -> str:
    """A moment, without a fraction where there is none.

    >>> time_text(1767268800000000), time_text(1767268800500000), time_text(10**18)
    ('2026-01-01 12:00:00', '2026-01-01 12:00:00.500', 'the end of time')
    """
    if us > TIMESTAMP_RANGE_US[1]:
        return "the end of time"
    moment = datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000, tzinfo=None)
    precision = "seconds" if us % 1_000_000 == 0 else "milliseconds" if us % 1000 == 0 else "microseconds"
    return moment.isoformat(sep=" ", timespec=precision)


def second_text(us: int) -> str:
    """A moment of the clock, of which nobody needs a fraction.

    >>> second_text(1767268800500000)
    '2026-01-01 12:00:00'
    """
    return time_text(us // 10**6 * 10**6)
