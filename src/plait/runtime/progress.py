"""Shows what a run does: a live table on terminals, a line now and then elsewhere, a summary at the end.

Everything here is a pure function of a `RunProgress`; whoever calls decides when and where it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plait.quantity_text import bytes_text, counted, number_text
from plait.runtime.snapshot import QueryProgress, QueryState, RunProgress, StreamProgress
from plait.runtime.tended import Tended
from plait.runtime.waiting import second_text, time_text
from plait.table_text import printable, table_text

QUERIES_SHOWN = 20
REASONS_SHOWN = 3
FAILED_SHOWN = 5
# Clocks differ, and zones are mixed up: less than that is nothing to speak of.
FAR_AHEAD_US = 3_600_000_000
_SLOW_SECONDS = 1.0  # that a place may take for the rows of a batch before it is told

Cells: TypeAlias = tuple[Sequence[str], list[list[str]], set[int]]

_STREAM_COLUMNS = ("stream", "rows", "rows/s", "watermark", "behind", "bad records")
_QUERY_COLUMNS = ("query", "rows", "rows/s", "late", "batch", "")
_SUMMARY_COLUMNS = ("query", "rows", "late", "results")


def live_table(progress: RunProgress) -> RenderableType:
    """Streams and queries as they are now, for a terminal."""
    streams, queries = tables(progress)
    parts: list[RenderableType] = [_table(*streams), Text(""), _table(*queries)]
    parts += [Text(line, style="dim") for line in _left_out(progress)]
    parts += [Text(warning, style="yellow") for warning in _warnings(progress)]
    parts.append(Text(f"{duration_text(progress.seconds)}; Ctrl-C stops cleanly", style="dim"))
    return Group(*parts)


def tables(progress: RunProgress) -> tuple[Cells, Cells]:
    """Streams and queries as they are now: of each the columns, the cells, and which columns are numbers."""
    shown = _most_important(progress.queries)
    return (
        (_STREAM_COLUMNS, [_stream_cells(s, progress.now_us) for s in progress.streams], {1, 2, 4, 5}),
        (_QUERY_COLUMNS, [_query_cells(q, progress.trigger_seconds) for q in shown], {1, 2, 3, 4}),
    )


def remarks(progress: RunProgress) -> list[str]:
    """What there is to say beside the tables."""
    return [*_left_out(progress), *_warnings(progress), *tended_lines(progress.tended)]


def _left_out(progress: RunProgress) -> Iterator[str]:
    more = len(progress.queries) - QUERIES_SHOWN
    if more > 0:
        yield f"… and {counted(more, 'more query', 'more queries')}"


def line(progress: RunProgress) -> str:
    """The same in short, for logs and pipes."""
    streams = ", ".join(
        f"{stream.name} {number_text(stream.rows_per_s)} rows/s"
        + ("" if stream.watermark_us is None else f" up to {time_text(stream.watermark_us)}")
        for stream in progress.streams
    )
    queries = progress.queries
    counts = [
        counted(len(queries), "query", "queries"),
        counted(sum(query.rows for query in queries), "row"),
        f"{counted(sum(sum(query.late_rows.values()) for query in queries), 'late row')}",
        counted(sum(stream.bad_records for stream in progress.streams), "bad record"),
    ]
    failed = sum(each.rows for query in queries for each in query.failed)
    if failed:
        counts.append(f"{counted(failed, 'value')} NULL as there is none")
    if progress.failed:
        counts.append(f"failed: {_first_of([query.name for query in progress.failed])}")
    batches = [query.batch_seconds for query in queries if query.batch_seconds is not None]
    slowest = f"; batches take up to {duration_text(max(batches))}" if batches else ""
    nothing = "".join(f"; no rows yet of {why}" for why in _reasons(queries))
    warnings = "".join(f"; {warning}" for warning in _warnings(progress))
    return f"{duration_text(progress.seconds)}: {streams}; {', '.join(counts)}{slowest}{nothing}{warnings}"


def summary_text(progress: RunProgress, width: int | None = None) -> str:
    """What came of it, where it is, and what is still open."""
    cells = [
        [query.name, f"{query.rows:,}", f"{sum(query.late_rows.values()):,}", query.results]
        for query in progress.queries
    ]
    parts = [table_text(_SUMMARY_COLUMNS, cells, numeric={1, 2}, width=width)]
    parts += _section("late rows, left out of some results", map(_late_text, progress.queries))
    parts += _section("NULL, as there is no such value", _failed_texts(progress.queries))
    parts += _section("bad records", map(_bad_text, progress.streams))
    parts += _section("results", tended_lines(progress.tended))
    parts += _section("to be looked at", _warnings(progress))
    parts += _section(
        "not exactly once",
        (f"{q.name}: {q.guarantee}" for q in progress.queries if not q.guarantee.startswith("exactly once")),
    )
    waiting = [query for query in progress.queries if query.waiting and query.error is None]
    parts += _section(
        "without rows", (f"{q.name}: {q.waiting}" for q in waiting if not q.rows and not q.is_open)
    )
    parts += _section("still open", (f"{q.name}: {q.waiting}" for q in waiting if q.is_open))
    failed: defaultdict[str, list[str]] = defaultdict(list)
    for query in progress.queries:
        if query.error is not None:
            failed[query.error.message].append(query.name)
    parts += _section("failed", (f"{_first_of(names)}: {why}" for why, names in failed.items()))
    return "\n\n".join(parts)


def summary_json(progress: RunProgress) -> dict[str, Any]:
    """The same for machines. Times are microseconds since 1970, UTC."""
    return {
        "seconds": round(progress.seconds, 3),
        "streams": [
            {
                "name": stream.name,
                "rows": stream.rows,
                "watermark_us": stream.watermark_us,
                "bad_records": stream.bad_records,
                "bad_folder": None if stream.bad_folder is None else str(stream.bad_folder),
                "ahead_us": stream.ahead_us,
                "changed_files": list(stream.changed_files),
            }
            for stream in progress.streams
        ],
        "tended": progress.tended.to_json(),
        "warnings": list(_warnings(progress)),
        "queries": [
            {
                "name": query.name,
                "way": query.way,
                "state": query.state,
                "rows": query.rows,
                "late_rows": dict(query.late_rows),
                "failed": [each.to_json() for each in query.failed],
                "batches": query.batches,
                "watermark_us": query.watermark_us,
                "results": query.results,
                "guarantee": query.guarantee,
                "waiting": query.waiting,
                "open": query.is_open,
                "error": None if query.error is None else query.error.to_json()["errors"][0],
            }
            for query in progress.queries
        ],
    }


def tended_lines(tended: Tended) -> Iterator[str]:
    """What was done for the results."""
    if tended.into_files:
        into = counted(tended.into_files, "file")
        yield f"merged {counted(tended.merged_files, 'file')} into {into}"
    if tended.removed_rows:
        rows = counted(sum(tended.removed_rows.values()), "row")
        files = counted(tended.removed_files, "file")
        yield f"removed {rows}, {files} with {bytes_text(tended.removed_bytes)} of them"
    for query, count in sorted(tended.removed_rows.items())[:QUERIES_SHOWN]:
        yield f"  {query}: {counted(count, 'row')}"


def duration_text(seconds: float) -> str:
    """
    >>> [duration_text(value) for value in (0.034, 0.5, 12.3, 75, 4000, 200_000)]
    ['34 ms', '500 ms', '12.3 s', '75 s', '1.1 h', '2.3 days']
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for limit, size, unit in ((120, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds / 86_400:,.1f}".removesuffix(".0") + " days"


def _most_important(queries: Sequence[QueryProgress]) -> Sequence[QueryProgress]:
    """Those that failed first, the rest as they were declared."""
    return sorted(queries, key=lambda query: query.state is not QueryState.FAILED)[:QUERIES_SHOWN]


def _stream_cells(stream: StreamProgress, now_us: int) -> list[str]:
    if stream.watermark_us is None:
        watermark, behind = "no data yet", ""
    else:
        watermark = time_text(stream.watermark_us)
        behind = duration_text(max(0, now_us - stream.watermark_us) / 1e6)
    rate = number_text(stream.rows_per_s)
    return [stream.name, f"{stream.rows:,}", rate, watermark, behind, f"{stream.bad_records:,}"]


def _query_cells(query: QueryProgress, trigger_seconds: float | None) -> list[str]:
    batch = ""
    if query.batch_seconds is not None:
        batch = duration_text(query.batch_seconds)
        if trigger_seconds:
            batch += f" of {duration_text(trigger_seconds)}"
    late = sum(query.late_rows.values())
    return [
        query.name,
        f"{query.rows:,}",
        number_text(query.rows_per_s),
        f"{late:,}",
        batch,
        _remark(query, trigger_seconds),
    ]


def _remark(query: QueryProgress, trigger_seconds: float | None) -> str:
    if query.error is not None:
        return f"failed: {query.error.message}"
    if query.state is QueryState.STARTING:
        return "starting"
    if trigger_seconds and query.batch_seconds is not None and query.batch_seconds > trigger_seconds:
        return "batches take longer than the trigger"
    return "" if query.rows else query.waiting


def _late_text(query: QueryProgress) -> str:
    late = [f"{rows:,} of {stream}" for stream, rows in query.late_rows.items() if rows]
    return f"{query.name}: {', '.join(late)}" if late else ""


def _failed_texts(queries: Iterable[QueryProgress]) -> Iterator[str]:
    """Of each query the first few; all of them are in the JSON."""
    for query in queries:
        for each in query.failed[:FAILED_SHOWN]:
            rows = counted(each.rows, "row")
            yield f"{query.name}: {each.expression} on {rows} of {each.stream}, first {each.sample}"
        if len(query.failed) > FAILED_SHOWN:
            yield f"{query.name}: … and {counted(len(query.failed) - FAILED_SHOWN, 'more expression')}"


def _bad_text(stream: StreamProgress) -> str:
    where = "" if stream.bad_folder is None else f", in {stream.bad_folder}"
    return f"{stream.bad_records:,} of {stream.name}{where}" if stream.bad_records else ""


def _warnings(progress: RunProgress) -> Iterator[str]:
    """What may be wrong with the data of streams, or with results, and would otherwise go unnoticed."""
    yield from progress.tended.trouble.values()
    yield from progress.put_off
    yield from filter(None, (_slow_text(query, progress.trigger_seconds) for query in progress.queries))
    for stream in progress.streams:
        held_back = [query.name for query in progress.queries if query.held_back_by == stream.name]
        if held_back and stream.silent_since_us is not None:
            yield _silent_text(stream, stream.silent_since_us, held_back)
        if stream.ahead_us > FAR_AHEAD_US:
            ahead = duration_text(stream.ahead_us / 1e6)
            yield (
                f"the watermark of {stream.name} is {ahead} ahead of the clock, so rows of today come late: "
                "max_future = '1 hour' keeps rows from the future aside"
            )
        if stream.gone is not None:
            yield (
                f"{stream.gone}, where {stream.name} is read from, is not there any more: "
                "bring it back, and it is read on"
            )
        if stream.changed_files:
            more = len(stream.changed_files) - 1
            others = f" and {counted(more, 'other file')}" if more else ""
            yield (
                f"{stream.changed_files[0]}{others} of {stream.name} changed after being read, and "
                "what is new is not read: put new rows into new files"
            )


def _slow_text(query: QueryProgress, trigger_seconds: float | None) -> str:
    """Of a place that keeps a query's batches waiting, and with them those of all that run together."""
    seconds = query.handing_over_seconds
    if seconds <= max(_SLOW_SECONDS, trigger_seconds or 0.0) or query.error is not None:
        return ""
    return (
        f"{query.name}: {query.results} takes {duration_text(seconds)} for the rows of a micro-batch, "
        "and the queries that run with it wait: make it quicker, or drop the query"
    )


def _silent_text(stream: StreamProgress, since_us: int, held_back: Sequence[str]) -> str:
    timeout_us = stream.idle_timeout_us
    until = (
        "an idle_timeout would let them go on"
        if timeout_us is None
        else f"its idle_timeout of {duration_text(timeout_us / 1e6)} will let them go on"
    )
    return (
        f"{stream.name} is silent since {second_text(since_us)} and holds back "
        f"{_first_of(held_back)}: {until}"
    )


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - REASONS_SHOWN:,} more" if len(names) > REASONS_SHOWN else ""
    return f"{', '.join(names[:REASONS_SHOWN])}{more}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Nothing without lines."""
    present = [line for line in lines if line]
    return ["\n".join([f"{title}:", *(f"  {line}" for line in present)])] if present else []


def _reasons(queries: Iterable[QueryProgress]) -> Iterator[str]:
    """Why there are no rows yet, each reason once, for the first few queries."""
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for query in queries:
        if not query.rows and query.waiting and query.error is None:
            waiting[query.waiting].append(query.name)
    for reason, names in list(waiting.items())[:REASONS_SHOWN]:
        yield f"{_first_of(names)}: {reason}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
