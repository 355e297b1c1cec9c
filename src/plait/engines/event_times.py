"""Which rows of a stream count, by their event time: the one rule for evaluating and for sampling.

Bad records are rows whose event time is NULL, at or before 1970-01-01 00:00:00, after the year 9999 (no two
engines agree on such times) or further in the future than the stream's `max_future`. A stream that starts at
a time consists of the rows from then on; `latest` changes nothing where data is stored: what is there is what
there is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from plait.catalog import Stream
from plait.engines.duckdb import Database
from plait.engines.stored_files import position

LAST_EVENT_TIME_US = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999


def set_bad_records_aside(
    database: Database, stream: Stream, rows: str, table: str, now: datetime | None
) -> int:
    """Create `table` from the rows that count, their event time as `t`; the number of bad records.

    `rows` is a table, or a query in parentheses, with the stream's columns as `c0`, `c1`, …; `now` is the
    clock that `max_future` goes by: the machine's unless given.
    """
    is_good = good_times(stream, microseconds(now or datetime.now(UTC)))
    timed = f"(SELECT *, epoch_us(c{position(stream, stream.event_time)}) AS t FROM {rows})"
    database.execute(
        f"CREATE TABLE {table} AS SELECT * FROM {timed} WHERE {is_good} AND t >= {start_us(stream)}"
    )
    ((bad_records,),) = database.fetch(f"SELECT count(*) FROM {timed} WHERE ({is_good}) IS NOT TRUE")
    return int(bad_records)


def good_times(stream: Stream, now_us: int) -> str:
    """Whether the event time `t` of a record, in microseconds, is a good one."""
    last_us = LAST_EVENT_TIME_US
    if stream.max_future_us is not None:
        last_us = min(last_us, now_us + stream.max_future_us)
    return f"t > 0 AND t <= {last_us}"


def reason_why_bad(stream: Stream, time: str, now_us: int) -> str:
    """An expression that says why a record is bad, NULL for a good one. `time` is its event time."""
    name, us = stream.event_time, f"epoch_us({time})"
    shown = f"'the event time `{name}` is ' || {time}"
    beyond = f"'the event time `{name}` is after the year 9999'"
    reasons = [
        f"WHEN {time} IS NULL THEN 'the event time `{name}` is NULL'",
        f"WHEN {time} <= TIMESTAMP '1970-01-01' THEN {shown} || ', which is not after 1970-01-01 00:00:00'",
        f"WHEN {us} > {LAST_EVENT_TIME_US} THEN {beyond}",
    ]
    if stream.max_future_us is not None:
        reasons.append(
            f"WHEN {us} > {now_us + stream.max_future_us} "
            f"THEN {shown} || ', further ahead than `max_future` allows'"
        )
    # What is left has no microseconds: DuckDB takes the greatest numbers for infinite times.
    return f"CASE {' '.join(reasons)} WHEN NOT isfinite({time}) THEN {beyond} END"


def microseconds(time: datetime) -> int:
    """Microseconds since the epoch of a time that is aware or in UTC.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5))
    1000005
    """
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def start_us(stream: Stream) -> int:
    if stream.start in ("earliest", "latest"):
        return 0
    return microseconds(datetime.fromisoformat(stream.start))
