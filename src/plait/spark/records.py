"""Records of a stream as Spark reads them, and which of them are bad.

However a stream is read, it becomes a frame of the same columns:

| column | holds |
|---|---|
| `c0`, `c1`, … | the declared columns, in the plan's types |
| `problem` | what is wrong with the record as it is stored; NULL if nothing is |
| `record` | the record as text, to be kept aside if it is bad |

`judged` adds the event time `t` and the `reason` why the record is bad (NULL for a good one): its problem, or
an event time that breaks the rules of engines/event_times.py. The clock that `max_future` goes by is that of
the micro-batch, so that a batch that runs again judges alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.catalog import ColumnDefinition, Stream
from plait.engines.event_times import LAST_EVENT_TIME_US, start_us
from plait.engines.stored_files import position
from plait.engines.written_values import written_pattern
from plait.expressions.spark import type_to_spark
from plait.expressions.types import Kind

_LONGEST_SHOWN = 60
_NOT_UTF8 = "\ufffd"  # what a reader makes of bytes that are no UTF-8


def of_values(
    frame: DataFrame, stream: Stream, values: Sequence[Column], problem: Column | None = None
) -> DataFrame:
    """Records of values that have the declared types, or narrower ones."""
    members = [value.alias(column.name) for column, value in zip(stream.columns, values, strict=True)]
    return frame.select(
        *(
            _normalised(column, value.cast(type_to_spark(column.type))).alias(f"c{k}")
            for k, (column, value) in enumerate(zip(stream.columns, values, strict=True))
        ),
        (F.lit(None).cast("string") if problem is None else problem).alias("problem"),
        F.to_json(F.struct(*members)).alias("record"),
    )


def of_texts(
    frame: DataFrame, stream: Stream, texts: Sequence[Column], problem: Column, record: Column
) -> DataFrame:
    """Records of values that are written as text; `problem` is what is wrong before they are looked at."""
    parsed = [_parsed(column, text) for column, text in zip(stream.columns, texts, strict=True)]
    problems = [
        _problem(column, text, value)
        for column, text, value in zip(stream.columns, texts, parsed, strict=True)
    ]
    return frame.select(
        *(
            _normalised(column, value).alias(f"c{k}")
            for k, (column, value) in enumerate(zip(stream.columns, parsed, strict=True))
        ),
        F.coalesce(problem, *problems).alias("problem"),
        record.alias("record"),
    )


def judged(records: DataFrame, stream: Stream) -> DataFrame:
    """The records with their event time `t`, and with the `reason` why they are bad.

    Good ones from before the stream's start are left out.
    """
    name = stream.event_time
    time = F.col(f"c{position(stream, name)}")
    t = F.unix_micros(time)
    shown = F.concat(F.lit(f"the event time `{name}` is "), time.cast("string"))
    reasons = [
        F.when(time.isNull(), F.lit(f"the event time `{name}` is NULL")),
        F.when(t <= 0, F.concat(shown, F.lit(", which is not after 1970-01-01 00:00:00"))),
        F.when(t > LAST_EVENT_TIME_US, F.lit(f"the event time `{name}` is after the year 9999")),
    ]
    if stream.max_future_us is not None:
        is_ahead = t > F.unix_micros(F.current_timestamp()) + stream.max_future_us
        reasons.append(F.when(is_ahead, F.concat(shown, F.lit(", further ahead than `max_future` allows"))))
    reasoned = records.withColumns({"t": time, "reason": F.coalesce(F.col("problem"), *reasons)})
    first_us = start_us(stream)
    if first_us == 0:
        return reasoned
    return reasoned.where(F.col("reason").isNotNull() | (F.unix_micros("t") >= first_us))


def _normalised(column: ColumnDefinition, value: Column) -> Column:
    """−0.0 becomes 0.0."""
    if column.type.kind is not Kind.DOUBLE:
        return value
    return F.when(value == 0, F.lit(0.0)).otherwise(value)


def _parsed(column: ColumnDefinition, text: Column) -> Column:
    """The value that a text stands for, NULL if it is none of the type's."""
    type_ = column.type
    if type_.kind is Kind.TIMESTAMP:
        # Spark does not take a zone after minutes.
        with_seconds = F.regexp_replace(text, r"^(.{10}[T ]\d{2}:\d{2})(Z|[+-])", "$1:00$2")
        return F.coalesce(text.try_cast("TIMESTAMP"), with_seconds.try_cast("TIMESTAMP"))
    if type_.kind is not Kind.DOUBLE:
        return text.try_cast(type_to_spark(type_))
    value = (
        text.try_cast("FLOAT").cast("DOUBLE")
        if column.storage.upper() == "FLOAT"
        else text.try_cast("DOUBLE")
    )
    # A number that is too large is read as infinity: take that only where it is written.
    is_too_large = F.abs(value).eqNullSafe(F.lit(float("inf"))) & ~text.rlike("(?i)inf")
    return F.when(~is_too_large, value)


def _problem(column: ColumnDefinition, text: Column, parsed: Column) -> Column:
    """What is wrong with the text of a value; NULL if nothing is."""
    pattern = written_pattern(column.type)
    shown = F.substring(text, 1, _LONGEST_SHOWN)
    if pattern is None:
        reason = F.concat(F.lit(f"column `{column.name}` holds '"), shown, F.lit("', which is no UTF-8"))
        return F.when(F.contains(text, F.lit(_NOT_UTF8)), reason)
    fits = text.rlike(rf"\A(?:{pattern})\z") & parsed.isNotNull()
    declared = column.storage or column.type
    reason = F.concat(F.lit(f"column `{column.name}` holds '"), shown, F.lit(f"', which is no {declared}"))
    return F.when(text.isNotNull() & ~fits, reason)
