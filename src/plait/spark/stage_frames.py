"""Stages of Spark's own streaming operators, in append mode, applied.

How a relation is a DataFrame: its columns are `c0`, `c1`, …; beside them stands one event-time column, by
which Spark knows what is late and what it can forget. That Spark takes a column for one is a matter of its
metadata (`spark.watermarkDelayMs`), which is why every such column is tagged where it is made.

| timing | beside the columns |
|---|---|
| `Flowing` | `t`, the event time |
| `Windowed` | `t`, the greatest event time; if of several streams also each, `t0`, `t1`, … (BIGINT, µs) |
| `Ticking` | `tick`, the end of the window |

Three things are done against what Spark infers. It moves filters below `withWatermark` if they do not mention
the event time, also filters that it makes up itself (a join key is not NULL); there they would take away the
rows that move the watermark. So above the watermark every column is made to depend on the event time. And it
drops a source of which it can tell that it gives no row, and with it that source's watermark; so a predicate
without columns is made to depend on the event time too. And from the comparisons in a join's condition it
finds out when rows can be forgotten, whatever they compare; those not about times are hidden from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import assert_never

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.catalog import Catalog
from plait.deployment.binary_joins import equalities
from plait.deployment.stages import (
    AggregateStage,
    Distinct,
    IntervalJoinStage,
    KeepStage,
    Probe,
    ReadStage,
    SelectStage,
    Stage,
    Stages,
    TickJoinStage,
    TicksStage,
    UniteStage,
)
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE, Column, Expression, columns_of, conjuncts
from plait.expressions.spark import aggregate_to_spark, to_spark, type_to_spark
from plait.expressions.types import DOUBLE
from plait.plan.nodes import (
    Filter,
    Join,
    Node,
    OuterJoin,
    StreamScan,
    Ticking,
    TickWindow,
    Windowed,
)
from plait.spark.counted_rows import CountedRows
from plait.spark.frame_columns import column_names, join_type, joined_names
from plait.spark.stream_rows import RecordSource, StreamRows, scans_by_stream

_EVENT_TIME = {"spark.watermarkDelayMs": 0}
_EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"  # every event time is later


def stream_readers(
    stages: Stages, catalog: Catalog, sources: RecordSource, beats: Path
) -> Mapping[str, StreamReader]:
    """The streams that stages read, each once, watched where the stages can find their rows too late."""
    scans = [stage.output for stage in stages.streaming if isinstance(stage, ReadStage)]
    joins_rows = any(isinstance(stage, IntervalJoinStage) for stage in stages.streaming)
    readers = {
        key: StreamReader(StreamRows(key, of_stream, catalog, sources, beats), joins_rows=joins_rows)
        for key, of_stream in scans_by_stream(scans).items()
    }
    for probe in stages.probes:
        reader = readers[probe.scan.stream.lower()]
        reader.watch(reader.in_time_until(probe))
    return readers


def applied(stages: Sequence[Stage], readers: Mapping[str, StreamReader]) -> DataFrame:
    """The rows of the last stage."""
    frames: list[DataFrame] = []
    for stage in stages:
        inputs = [frames[k] for k in stage.inputs]
        nodes = [stages[k].output for k in stage.inputs]
        match stage:
            case ReadStage(scan):
                frames.append(readers[scan.stream.lower()].read(scan))
            case SelectStage():
                frames.append(_selected(stage, *inputs))
            case UniteStage():
                frames.append(_united(stage, inputs))
            case KeepStage():
                frames.append(_as_stream(inputs[0], nodes[0]))
            case TicksStage():
                frames.append(_at_ticks(stage, _as_stream(inputs[0], nodes[0])))
            case AggregateStage():
                frames.append(_aggregated(stage, *inputs))
            case IntervalJoinStage():
                frames.append(_joined_in_time(stage, *inputs))
            case TickJoinStage():
                frames.append(_joined_at_ticks(stage, *inputs))
            case _:
                assert_never(stage)
    return frames[-1]


# Reading


class StreamReader:
    """The rows of a stream under its watermark, counted as they are read, the late ones too."""

    def __init__(self, rows: StreamRows, *, joins_rows: bool) -> None:
        self.counted = CountedRows(rows.stream.name.lower(), rows.records)
        self._rows = rows
        # Spark's watermarks are whole milliseconds, and its joins of rows drop what is not later than them.
        self._delay_ms = -(-rows.stream.delay_us // 1000) + joins_rows

    def watch(self, in_time_until: str) -> None:
        """Find rows that are too late by this. To be said before the first row is read."""
        self.counted.watch(in_time_until)

    def read(self, scan: StreamScan) -> DataFrame:
        """The columns of a scan, and `t`; under the watermark."""
        columns = [f"{name} AS c{k}" for k, name in enumerate(self._rows.columns_of(scan))]
        return self._timely.select(*map(F.expr, columns), event_time("t"))

    @cached_property
    def _timely(self) -> DataFrame:
        barred = [f"CASE WHEN t > {_EPOCH} THEN {c} END AS {c}" for c in (*self._rows.columns, "beat")]
        good = self.counted.observed.where("reason IS NULL").select(*self._rows.columns, "t", "beat")
        both = good.union(self._rows.beats.select(*self._rows.columns, "t", "beat"))
        timed = both.withWatermark("t", f"{self._delay_ms} milliseconds")
        return timed.selectExpr(*barred, "t").where("NOT beat")

    def columns_of(self, scan: StreamScan) -> list[str]:
        """The names that the columns of a scan have among the counted rows."""
        return self._rows.columns_of(scan)

    def in_time_until(self, probe: Probe) -> str:
        """Of a row: the last watermark (µs) before which it is in time; NULL if it does not go that way."""
        names = self._rows.columns_of(probe.scan)
        last = "unix_micros(t)"
        if probe.window is not None:
            last = f"array_min({_ticks(probe.window)})"
            if probe.tick_predicate != TRUE:
                holds = to_spark(probe.tick_predicate, names, window_end="timestamp_micros(tick)")
                last = f"array_min(filter({_ticks(probe.window)}, tick -> {holds}))"
        return f"CASE WHEN {to_spark(probe.predicate, names)} THEN {last} + {probe.hold_ms * 1000} END"


# Row by row


def _selected(stage: SelectStage, frame: DataFrame) -> DataFrame:
    node = stage.output
    names, window_end = column_names(node.input), _window_end(node.input)
    if isinstance(node, Filter):
        condition = to_spark(node.predicate, names, window_end=window_end)
        if not columns_of(node.predicate) and node.predicate != TRUE:
            time = _time_columns(node)[0]
            condition = f"coalesce({condition}, FALSE) = ({time} > {_EPOCH})"
        return frame.where(condition)
    items = [
        F.expr(f"{to_spark(expression, names, window_end=window_end)} AS c{k}")
        for k, expression in enumerate(node.expressions)
    ]
    return frame.select(*items, *_time_columns(node))


def _united(stage: UniteStage, frames: Sequence[DataFrame]) -> DataFrame:
    node = stage.output
    parts = []
    for source, frame in zip(node.inputs, frames, strict=True):
        timed = frame if isinstance(node.timing, Ticking) else _as_stream(frame, source)
        casts = [f"CAST(c{k} AS {type_to_spark(type_)}) AS c{k}" for k, type_ in enumerate(node.types)]
        parts.append(timed.select(*map(F.expr, casts), _time_columns(node)[0]))
    united = parts[0]
    for part in parts[1:]:
        united = united.unionAll(part)
    return united.select(*column_names(node), event_time(_time_columns(node)[0]))


def _as_stream(frame: DataFrame, node: Node) -> DataFrame:
    """The rows with their event time: of a tick, a microsecond before it."""
    if isinstance(node.timing, Ticking):
        time = "timestamp_micros(unix_micros(tick) - 1)"
        return frame.select(*column_names(node), event_time(time, "t"))
    return frame.select(*column_names(node), "t")


# Ticks


def _ticks(window: TickWindow) -> str:
    """The ticks (µs) whose windows hold a row of the event time `t`, as an array; empty in a gap."""
    time, slide = "unix_micros(t)", window.slide_us
    first = f"{time} - pmod({time} - {window.offset_us}, {slide}) + {slide}"
    last = f"{time} + {window.range_us}"
    if window.range_us < slide:
        return f"CASE WHEN {first} <= {last} THEN array({first}) ELSE array() END"
    return f"sequence({first}, {last}, {slide}L)"


def _at_ticks(stage: TicksStage, frame: DataFrame) -> DataFrame:
    node = stage.output
    exploded = frame.select(*column_names(node), F.expr(f"explode({_ticks(stage.window)}) AS tick_us"))
    return exploded.select(*column_names(node), event_time("timestamp_micros(tick_us)", "tick"))


def _aggregated(stage: AggregateStage, frame: DataFrame) -> DataFrame:
    """Keys and arguments are computed below the grouping, as `e0`, `e1`, …"""
    node = stage.output
    names, window_end = column_names(node.input), _window_end(node.input)
    computed = [*node.keys, *(e for call in node.aggregates for e in call.expressions)]
    inner = frame.select(
        *(F.expr(f"{to_spark(e, names, window_end=window_end)} AS e{k}") for k, e in enumerate(computed)),
        event_time("tick"),
    )
    keys = [f"e{k}" for k in range(len(node.keys))]
    if stage.distinct is Distinct.TWO_STEPS:
        values = [f"e{len(keys) + k}" for k in range(len(node.aggregates[0].arguments))]
        inner = inner.groupBy("tick", *keys, *values).agg(F.count(F.lit(1)).alias("rows"))
        counted = f"count(CASE WHEN {_none_is_null(values)} THEN 1 END)"
        items = [F.expr(f"{counted} AS a{k}") for k in range(len(node.aggregates))]
    else:
        items = [
            F.expr(f"{text} AS a{k}") for k, text in enumerate(_aggregate_texts(node.aggregates, len(keys)))
        ]
    grouped = inner.groupBy("tick", *keys).agg(*items or [F.count(F.lit(1)).alias("rows")])
    columns = [*keys, *(f"a{k}" for k in range(len(node.aggregates)))]
    return grouped.select(*(F.col(name).alias(f"c{k}") for k, name in enumerate(columns)), event_time("tick"))


def _aggregate_texts(calls: Sequence[AggregateCall], position: int) -> list[str]:
    """The aggregates as SQL, over arguments and filters that are columns from `position` on."""
    names = [f"e{k}" for k in range(position + sum(len(call.expressions) for call in calls))]
    texts = []
    for call in calls:
        arguments = tuple(Column(position + k, e.type) for k, e in enumerate(call.arguments))
        position += len(arguments)
        condition = None if call.filter is None else Column(position, call.filter.type)
        position += condition is not None
        if call.function == "count_distinct":
            texts.append(_set_size([names[a.index] for a in arguments], arguments, condition, names))
        else:
            texts.append(aggregate_to_spark(AggregateCall(call.function, arguments, condition), names))
    return texts


def _set_size(
    values: Sequence[str], arguments: Sequence[Column], condition: Column | None, names: Sequence[str]
) -> str:
    """The number of different values, by a set of them. -0.0 + 0.0 is 0.0: a set tells them apart."""
    plain = [f"({v} + 0.0D)" if a.type == DOUBLE else v for v, a in zip(values, arguments, strict=True)]
    value = plain[0] if len(plain) == 1 else f"struct({', '.join(plain)})"
    where = "" if condition is None else f" FILTER (WHERE {names[condition.index]})"
    return f"CAST(size(collect_set(CASE WHEN {_none_is_null(values)} THEN {value} END){where}) AS BIGINT)"


def _none_is_null(values: Sequence[str]) -> str:
    return " AND ".join(f"{value} IS NOT NULL" for value in values)


# Joins


def _joined_in_time(stage: IntervalJoinStage, left: DataFrame, right: DataFrame) -> DataFrame:
    node = stage.output
    conditions = [
        # By these Spark finds out which rows it can forget; they follow from those below, if there are any.
        f"r_t < l_t + {_interval(stage.left_range_us)}",
        f"l_t < r_t + {_interval(stage.right_range_us)}",
        *_meeting(node),
        *_predicate(node),
    ]
    joined = _side(left, "l", node.inputs[0]).join(
        _side(right, "r", node.inputs[1]), F.expr(_all(conditions)), join_type(node)
    )
    times = [*_stream_times("l", node.inputs[0]), *_stream_times("r", node.inputs[1])]
    return joined.select(
        *_renamed(node),
        event_time("greatest(l_t, r_t)", "t"),  # ignores NULLs: absent rows
        *(F.expr(f"{time} AS t{k}") for k, time in enumerate(times)),
    )


def _joined_at_ticks(stage: TickJoinStage, left: DataFrame, right: DataFrame) -> DataFrame:
    node = stage.output
    joined = _side(left, "l", node.inputs[0]).join(
        _side(right, "r", node.inputs[1]),
        F.expr(_all(["l_tick = r_tick", *_predicate(node)])),
        join_type(node),
    )
    tick = "coalesce(l_tick, r_tick)" if isinstance(node, OuterJoin) else "l_tick"
    return joined.select(*_renamed(node), event_time(tick, "tick"))


def _side(frame: DataFrame, prefix: str, node: Node) -> DataFrame:
    """An input of a join, with names that the other input does not have."""
    first, *times = _time_columns(node)
    return frame.select(
        *(F.col(name).alias(f"{prefix}_{name}") for name in column_names(node)),
        event_time(first, f"{prefix}_{first}"),
        *(F.col(time).alias(f"{prefix}_{time}") for time in times),
    )


def _predicate(node: Join | OuterJoin) -> list[str]:
    names = joined_names(node)
    window_end = "l_tick" if isinstance(node.timing, Ticking) else None

    def printed(expression: Expression) -> str:
        return to_spark(expression, names, window_end=window_end)

    # Spark takes NULL for equal to NULL in a full outer join, and where it does not see that a key can be
    # NULL: of a DOUBLE, or of what is computed.
    conditions = [
        f"({printed(one)} IS NOT NULL OR {printed(other)} IS NOT NULL)" for one, other in equalities(node)
    ]
    if isinstance(node.timing, Ticking):
        terms = [printed(term) for term in conjuncts(node.predicate)]
    else:
        terms = [_veiled(printed(term), _only_side(node, term)) for term in conjuncts(node.predicate)]
    if node.predicate != TRUE:
        conditions.append(_all(terms))
    return conditions


def _only_side(node: Join | OuterJoin, term: Expression) -> str | None:
    columns, first_of_right = columns_of(term), node.starts[1]
    if not columns or min(columns) < first_of_right <= max(columns):
        return None
    return "l" if max(columns) < first_of_right else "r"


def _veiled(term: str, side: str | None) -> str:
    """A term about one side of a join in time, so that Spark does not see that it compares.

    It takes `x >= 3` for a bound of the event time, never comes to the end of that row's time, and so never
    gives the rows without partner nor lets go of them.
    """
    return term if side is None else f"coalesce({term}, FALSE) = ({side}_t > {_EPOCH})"


def _meeting(node: Join | OuterJoin) -> list[str]:
    """When rows of several streams meet: pair by pair, as far as they are present."""
    left, right = (source.timing for source in node.inputs)
    assert isinstance(left, Windowed)
    assert isinstance(right, Windowed)
    if len(left.ranges_us) == len(right.ranges_us) == 1:
        return []  # the event times themselves say it
    conditions = []
    for one, one_range in zip(_stream_times("l", node.inputs[0]), left.ranges_us, strict=True):
        for other, other_range in zip(_stream_times("r", node.inputs[1]), right.ranges_us, strict=True):
            conditions.append(
                f"({one} IS NULL OR {other} IS NULL OR "
                f"({other} - {one} < {one_range} AND {one} - {other} < {other_range}))"
            )
    return conditions


def _stream_times(prefix: str, node: Node) -> list[str]:
    """The event times (µs) of the streams whose rows an input of a join combines."""
    _, *times = _time_columns(node)
    return [f"{prefix}_{time}" for time in times] or [f"unix_micros({prefix}_t)"]


def _renamed(node: Join | OuterJoin) -> list[SparkColumn]:
    return [F.col(name).alias(f"c{k}") for k, name in enumerate(joined_names(node))]


def _interval(us: int) -> str:
    seconds, rest = divmod(us, 1_000_000)
    return f"INTERVAL '{seconds}.{rest:06}' SECOND"


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({condition})" for condition in conditions)


# Times


def _time_columns(node: Node) -> list[str]:
    """The event time first."""
    match node.timing:
        case Ticking():
            return ["tick"]
        case Windowed(ranges_us) if len(ranges_us) > 1:
            return ["t", *(f"t{k}" for k in range(len(ranges_us)))]
        case _:
            return ["t"]


def _window_end(node: Node) -> str | None:
    return "tick" if isinstance(node.timing, Ticking) else None


def event_time(sql: str, name: str | None = None) -> SparkColumn:
    return F.expr(sql).alias(name or sql, metadata=_EVENT_TIME)
