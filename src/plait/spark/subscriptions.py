"""The rows of a shared operator, handed out to the queries that want them, in one pass.

The table of subscriptions has for each query its number, its statement (which expressions are its columns,
and which condition it has above the operator), the constants of that statement, how it finds its rows
(`routes`), and the ranges of its windows where the operator's are greater. It is small, and every batch of
the operator's rows is joined with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import count
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import BatchRows
from plait.expressions.arrow import arrow_schema
from plait.expressions.nodes import Literal, conjunction
from plait.expressions.spark import to_spark, type_to_spark
from plait.expressions.types import BIGINT, INT, Type, Value
from plait.sharing.numbered import numbered
from plait.sharing.shapes import Shape
from plait.spark.executed_batch import collected
from plait.spark.local_tables import LocalTable
from plait.windows.stretches import ALWAYS, Stretch


@dataclass(frozen=True)
class Statement:
    """What queries compute of a row: a shape over columns of these names."""

    shape: Shape
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Subscription:
    """`constants` are the statement's, `ranges_us` those of the windows of all streams, if they differ."""

    query: str
    statement: Statement
    constants: tuple[Literal, ...]
    ranges_us: tuple[int, ...] = ()


class Route(Protocol):
    """How rows find subscriptions: `plait.spark.routes.Routes`, by the takers' numbers."""

    @property
    def blocks(self) -> Sequence[str]: ...
    @property
    def table_columns(self) -> Sequence[tuple[str, Type]]: ...
    def table_rows(self, taker: int) -> Iterable[Sequence[Value]]: ...
    def condition(self, row: str, table: str) -> str: ...


class ByNumber:
    """Rows that say in a column `number` where they go; each taker has one."""

    blocks = ()
    table_columns = (("number", INT),)

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def table_rows(self, taker: int) -> Iterable[Sequence[Value]]:
        yield [self._numbers[taker]]

    def condition(self, row: str, table: str) -> str:
        return f"{row}.number = {table}.number"


class Subscriptions:
    """Subscription n finds its rows as taker n of the routes. Shared rows have the routes' values, and the
    event time of the results that come of them as `at_us`.

    `window_end` is how the end of a row's window is written.
    """

    def __init__(
        self, subscriptions: Sequence[Subscription], routes: Route, window_end: str | None = None
    ) -> None:
        self._subscriptions = subscriptions
        self._routes = routes
        self._window_end = window_end
        self._statements = numbered(each.statement for each in subscriptions)
        self._inputs = range(len(subscriptions[0].ranges_us))
        self._gives: Mapping[str, Stretch] = {}
        self._table = self._subscribed()

    def give(self, stretches: Mapping[str, Stretch]) -> None:
        """Give these parts of the rows of some queries from now on."""
        self._gives = {query: each for query, each in stretches.items() if each != ALWAYS}
        self._table = self._subscribed()

    def results(self, rows: DataFrame, frame: DataFrame, most_rows: int | None = None) -> list[BatchRows]:
        """The rows of all queries, of shared rows that are made of a batch's frame; more than `most_rows` in
        all are an error. Runs the batch."""
        table = self._table.broadcast(rows.sparkSession).alias("s")
        items, conditions = ["s.query", "s.statement"], []
        for statement, number in self._statements.items():
            references = [*(f"r.{name}" for name in statement.columns), *self._constants(statement)]
            terms = to_spark(conjunction(statement.shape.terms), references, window_end=self._window_end)
            conditions.append(f"(s.statement = {number} AND {terms})")
            for k, expression in enumerate(statement.shape.expressions):
                value = to_spark(expression, references, window_end=self._window_end)
                value = f"CAST({value} AS {type_to_spark(expression.type)})"
                items.append(f"CASE WHEN s.statement = {number} THEN {value} END AS o{number}_{k}")
        meeting = [
            f"r.t{right} - r.t{left} < s.r{left} AND r.t{left} - r.t{right} < s.r{right}"
            for right in self._inputs
            for left in range(right)
        ]
        given = ["r.at_us >= s.from_us AND r.at_us < s.until_us"] if self._gives else []
        found = rows.selectExpr("*", *self._routes.blocks).alias("r")
        routed = found.join(table, F.expr(self._routes.condition("r", "s")), "inner")
        wanted = routed.where(" AND ".join([f"({' OR '.join(conditions)})", *meeting, *given]))
        return self._by_statement(collected(wanted.selectExpr(*items), frame, most_rows))

    def _by_statement(self, found: pa.Table) -> list[BatchRows]:
        results = []
        for statement, number in self._statements.items():
            rows = found
            if len(self._statements) > 1:
                rows = found.filter(pc.equal(found["statement"], number))
            names = tuple(each.query for each in self._subscriptions if each.statement == statement)
            columns = [f"o{number}_{k}" for k in range(len(statement.shape.expressions))]
            schema = arrow_schema(columns, [e.type for e in statement.shape.expressions])
            results.append(BatchRows(names, rows.select(columns).cast(schema), rows["query"]))
        return results

    def _constants(self, statement: Statement) -> list[str]:
        number, types = self._statements[statement], statement.shape.constants
        return [f"CAST(s.s{number}_q{k} AS {type_to_spark(type_)})" for k, type_ in enumerate(types)]

    def _subscribed(self) -> LocalTable:
        columns = [("query", INT), ("statement", INT), *self._routes.table_columns]
        columns += [(f"r{k}", BIGINT) for k in self._inputs]
        columns += [("from_us", BIGINT), ("until_us", BIGINT)]
        for statement, number in self._statements.items():
            columns += [(f"s{number}_q{k}", type_) for k, type_ in enumerate(statement.shape.constants)]
        rows: list[Sequence[Value]] = []
        places = [count() for _ in self._statements]  # a query is known by its place among its statement's
        for number, each in enumerate(self._subscriptions):
            own = self._statements[each.statement]
            place = next(places[own])
            constants: list[Value] = []
            for statement, other in self._statements.items():
                nulls = [None] * len(statement.shape.constants)
                constants += [constant.value for constant in each.constants] if other == own else nulls
            fixed = [*each.ranges_us, *astuple(self._gives.get(each.query, ALWAYS)), *constants]
            rows += [[place, own, *route, *fixed] for route in self._routes.table_rows(number)]
        return LocalTable(columns, rows)
