"""A tree of window aggregates on Spark: two stateful aggregations, one after the other.

The edges of all windows cut time into pieces (`plait.windows.edges`). The first aggregation makes partials:
one row for each piece, route and group, given when the watermark has passed the end of the piece. Each goes
to all windows that hold the piece, and the second aggregation puts the partials of each window together when
the watermark reaches its tick. A piece that ends at e is in the windows that end at a tick τ with
e ≤ τ < e + range.

A row is too late when its piece is closed, for all windows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.expressions.aggregates import AggregateCall
from plait.expressions.spark import to_spark, type_to_spark
from plait.expressions.types import BIGINT, INT
from plait.plan.nodes import TickWindow
from plait.sharing.numbered import numbered
from plait.sharing.trees import WovenAggregate
from plait.spark.local_tables import LocalTable
from plait.spark.routes import Routes
from plait.spark.stage_frames import event_time
from plait.spark.subscriptions import ByNumber, Statement, Subscription, Subscriptions
from plait.spark.weaves import wanted_rows
from plait.windows.edges import united
from plait.windows.partials import ROWS, Partial, PartialKind, partials_of


@dataclass(frozen=True)
class _Target:
    """What finals are computed for: a window over the rows of a taker."""

    taker: int
    window: TickWindow


class TreeWeave:
    def __init__(self, members: Sequence[WovenAggregate]) -> None:
        key = members[0].key
        self.scans, self.patterns = [key.scan], [key.pattern]
        self.selections = [(member.selection,) for member in members]
        self.windows = [m.window if m.window.range_us < m.window.slide_us else None for m in members]
        self.plan = wanted_rows(key.scan, [member.selection for member in members])
        self._names = [f"c{k}" for k in range(len(key.scan.columns))]
        self._keys = key.keys
        self._edges = united(member.window for member in members)
        self._calls = list(dict.fromkeys(call for m in members for call in m.aggregates))
        self._partials = list(
            dict.fromkeys([ROWS, *(each for call in self._calls for each in partials_of(call))])
        )
        takers = numbered(member.selection for member in members)
        self._routes = Routes(self.patterns, [(each,) for each in takers])
        wanted = [_Target(takers[member.selection], member.window) for member in members]
        self._targets = numbered(wanted)
        self.subscriptions = Subscriptions(
            [
                Subscription(member.query, self._statement(member), member.shaped.constants)
                for member in members
            ],
            ByNumber([self._targets[target] for target in wanted]),
            window_end="timestamp_micros(r.tick)",
        )

    @property
    def in_time_until(self) -> str:
        """Over an event time `t`."""
        return self._piece("unix_micros(t)")

    def streamed(self, rows: DataFrame, session: SparkSession) -> DataFrame:
        keys = [f"k{k}" for k in range(len(self._keys))]
        pieces = rows.select(
            *(F.expr(f"{to_spark(e, self._names)} AS k{k}") for k, e in enumerate(self._keys)),
            *(F.expr(f"{self._argument(each)} AS e{k}") for k, each in enumerate(self._partials)),
            *map(F.expr, self._routes.items(self._names)),
            event_time(f"timestamp_micros({self._piece('unix_micros(t)')})", "piece"),
        )
        partials = pieces.groupBy("piece", *self._routes.names, *keys).agg(
            *(F.expr(f"{_first(each, f'e{k}')} AS p{k}") for k, each in enumerate(self._partials))
        )
        windows = self._windows().broadcast(session).alias("w")
        found = partials.selectExpr("*", *self._routes.blocks).alias("p")
        routed = found.join(windows, F.expr(self._routes.condition("p", "w")), "inner")
        kept = [*keys, *(f"p{k}" for k in range(len(self._partials)))]
        ticks = routed.selectExpr(
            "w.target", *(f"p.{name}" for name in kept), f"explode({_TICKS}) AS tick_us"
        )
        timed = ticks.select("target", *kept, event_time("timestamp_micros(tick_us)", "tick"))
        finals = timed.groupBy("tick", "target", *keys).agg(
            *(F.expr(f"{_together(each, f'p{k}')} AS p{k}") for k, each in enumerate(self._partials))
        )
        return finals.selectExpr("target", "unix_micros(tick) AS tick", *kept)

    def shared_rows(self, rows: DataFrame) -> DataFrame:
        keys = [f"k{k}" for k in range(len(self._keys))]
        calls = [f"{self._final(call)} AS a{k}" for k, call in enumerate(self._calls)]
        return rows.selectExpr("target AS number", "tick", "tick - 1 AS at_us", *keys, *calls)

    def _statement(self, member: WovenAggregate) -> Statement:
        keys = (f"k{k}" for k in range(len(self._keys)))
        calls = (f"a{self._calls.index(call)}" for call in member.aggregates)
        return Statement(member.shaped.shape, (*keys, *calls))

    def _piece(self, time: str) -> str:
        """The end of the piece that a time (µs) is in: the first edge after it."""
        ends = [
            f"{time} - pmod({time} - {each.phase_us}, {each.step_us}) + {each.step_us}"
            for each in self._edges
        ]
        return f"least({', '.join(ends)})" if len(ends) > 1 else ends[0]

    def _argument(self, partial: Partial) -> str:
        """What is aggregated, NULL where it does not count."""
        value = "1" if partial.argument is None else to_spark(partial.argument, self._names)
        if partial.filter is None:
            return value
        return f"CASE WHEN {to_spark(partial.filter, self._names)} THEN {value} END"

    def _final(self, call: AggregateCall) -> str:
        first, *others = (f"p{self._partials.index(each)}" for each in partials_of(call))
        match call.function:
            case "sum":
                return f"CASE WHEN {others[0]} > 0 THEN try_cast({first} AS {type_to_spark(call.type)}) END"
            case "avg":
                return f"try_divide(CAST({first} AS DOUBLE), CAST({others[0]} AS DOUBLE))"
            case _:
                return first

    def _windows(self) -> LocalTable:
        columns = [("target", INT), *self._routes.table_columns]
        columns += [(name, BIGINT) for name in ("range_us", "slide_us", "offset_us")]
        rows = [
            [number, *route, w.range_us, w.slide_us, w.offset_us]
            for target, number in self._targets.items()
            for w in (target.window,)
            for route in self._routes.table_rows(target.taker)
        ]
        return LocalTable(columns, rows)


_END = "unix_micros(p.piece)"
_FIRST = f"{_END} + pmod(w.offset_us - {_END}, w.slide_us)"
_LAST = f"{_END} + w.range_us - 1"
# The ticks of a window that hold a piece; in a gap between windows there are none.
_TICKS = f"CASE WHEN {_FIRST} <= {_LAST} THEN sequence({_FIRST}, {_LAST}, w.slide_us) ELSE array() END"


def _first(partial: Partial, column: str) -> str:
    """Of rows. BIGINTs are summed in two halves, which cannot overflow: decimals take Spark much longer."""
    argument = partial.argument
    if partial.kind is not PartialKind.SUM or argument is None or argument.type != BIGINT:
        return f"{partial.kind}({column})"
    high, low = f"sum(shiftright({column}, 32))", f"sum({column} & 4294967295L)"
    return f"CAST({high} AS DECIMAL(20,0)) * 4294967296BD + CAST({low} AS DECIMAL(20,0))"


def _together(partial: Partial, column: str) -> str:
    """Several partials as one."""
    return f"sum({column})" if partial.kind is PartialKind.COUNT else f"{partial.kind}({column})"
