"""Every function, cast and aggregate gives the same value and type on Spark and on DuckDB, on edge values.

All expressions over as many columns are evaluated over one wide table whose columns hold every combination
of edge values, in a few statements; and on some combinations as constants, which Spark evaluates while it
optimises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from tests.java_options import COMPILED
from tests.spark.edge_values import BOOLEAN_TEXTS, EDGE_VALUES, FEW_VALUES, NUMBER_TEXTS, TIME_TEXTS
from tests.spark.function_cases import AGGREGATE_CASES, CAST_CASES, FUNCTION_CASES, Case

from plait.expressions.aggregates import AGGREGATES, AggregateCall, coerce_arguments
from plait.expressions.calendar import datetime_to_us
from plait.expressions.coercion import build
from plait.expressions.documentation import example_expression
from plait.expressions.duckdb import aggregate_to_duckdb, to_duckdb, type_to_duckdb
from plait.expressions.functions import FUNCTIONS, SHORTHANDS, Function, Shorthand
from plait.expressions.nodes import Column, Expression, Literal
from plait.expressions.spark import aggregate_to_spark, to_spark, type_to_spark
from plait.expressions.types import DOUBLE, INT, STRING, TIMESTAMP, Kind, Type, Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = TypeVar("T")

STATEMENT_SIZE = 60
CONSTANT_ROWS = 2


@dataclass(frozen=True)
class Question:
    """A function with its arguments: column types, or constants."""

    function: str
    arguments: Case
    to: Type | None = None

    def __str__(self) -> str:
        written = ", ".join(str(a) if isinstance(a, Type) else repr(a) for a in self.arguments)
        return f"{self.function}({written})" + (f" to {self.to}" if self.to else "")

    @property
    def column_types(self) -> tuple[Type, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, Type))

    def expression(self, columns: Sequence[Expression]) -> Expression:
        """The call, with the columns in the places of the column types."""
        rest = iter(columns)
        arguments = (next(rest) if isinstance(a, Type) else constant(a) for a in self.arguments)
        return build(self.function, *arguments, to=self.to)

    def rows(self) -> Iterator[tuple[Value, ...]]:
        types = self.column_types
        if self.to is not None and types == (STRING,):
            return iter((v,) for v in (*EDGE_VALUES[STRING], *NUMBER_TEXTS, *BOOLEAN_TEXTS, *TIME_TEXTS))
        values = EDGE_VALUES if len(types) < 3 else FEW_VALUES
        return product(*(values[type_] for type_ in types))


@dataclass(frozen=True)
class Answer:
    """What an engine says to a question: its name of the type, and a value for every row asked."""

    type_name: str
    values: Sequence[Any]


def constant(value: int | str) -> Literal:
    return Literal(value, STRING if isinstance(value, str) else INT)


QUESTIONS = (
    *(Question(name, case) for name, cases in FUNCTION_CASES.items() for case in cases),
    *(Question("cast", (given,), to) for given, to in CAST_CASES),
)
AGGREGATE_QUESTIONS = tuple(Question(name, case) for name, cases in AGGREGATE_CASES.items() for case in cases)


class WideTable:
    """Holds the rows of several questions side by side, the shorter ones filled up with NULLs."""

    def __init__(self, name: str, questions: Sequence[Question], folder: Path) -> None:
        self.name = name
        self.types: list[Type] = []
        self._first_column: dict[tuple[tuple[Type, ...], bool], int] = {}
        self._path = folder / f"{name}.parquet"
        self._columns: list[tuple[Value, ...]] = []
        for question in questions:
            key = self._key(question)
            if key not in self._first_column:
                self._first_column[key] = len(self.types)
                self.types += question.column_types
                self._columns += zip(*question.rows(), strict=True)
        self.row_count = max((len(column) for column in self._columns), default=1)

    def columns(self, question: Question) -> list[Column]:
        first = self._first_column[self._key(question)]
        return [Column(first + i, type_) for i, type_ in enumerate(question.column_types)]

    @property
    def references(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.types))]

    def register(self, spark: SparkSession, connection: duckdb.DuckDBPyConnection) -> None:
        arrays = {"id": pa.array(range(self.row_count), pa.int32())}
        for reference, type_, values in zip(self.references, self.types, self._columns, strict=True):
            padded = [*values, *[None] * (self.row_count - len(values))]
            arrays[reference] = pa.array(padded, arrow_type(type_))
        parquet.write_table(pa.table(arrays), self._path)
        spark.read.parquet(str(self._path)).createOrReplaceTempView(self.name)
        moments = [
            f"{r} AT TIME ZONE 'UTC' AS {r}"
            for r, t in zip(self.references, self.types, strict=True)
            if t == TIMESTAMP
        ]
        changed = f" REPLACE ({', '.join(moments)})" if moments else ""
        connection.execute(f"CREATE TABLE {self.name} AS SELECT *{changed} FROM '{self._path}' ORDER BY id")

    @staticmethod
    def _key(question: Question) -> tuple[tuple[Type, ...], bool]:
        return question.column_types, question.to is not None


def arrow_type(type_: Type) -> pa.DataType:
    match type_.kind:
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        case kind:
            return {
                Kind.BOOLEAN: pa.bool_(),
                Kind.TINYINT: pa.int8(),
                Kind.SMALLINT: pa.int16(),
                Kind.INT: pa.int32(),
                Kind.BIGINT: pa.int64(),
                Kind.INTERVAL: pa.int64(),
                Kind.DOUBLE: pa.float64(),
                Kind.STRING: pa.string(),
                Kind.DATE: pa.date32(),
            }[kind]


class Engines:
    """Both engines, asked the same."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def ask_spark(self, expressions: Sequence[str], source: str) -> list[Answer]:
        aliased = ", ".join(f"{expression} AS r{i}" for i, expression in enumerate(expressions))
        frame = self.spark.sql(f"SELECT {aliased} {source}")
        names = [field.dataType.simpleString().upper() for field in frame.schema]
        fetched = frame.selectExpr(
            *(
                f"unix_micros(r{i}) AS r{i}" if name == "TIMESTAMP" else f"r{i}"
                for i, name in enumerate(names)
            )
        )
        table = fetched.toArrow()
        return [Answer(name, table.column(i).to_pylist()) for i, name in enumerate(names)]

    def ask_duckdb(self, expressions: Sequence[str], source: str) -> list[Answer]:
        aliased = ", ".join(f"{expression} AS r{i}" for i, expression in enumerate(expressions))
        relation = self.connection.sql(f"SELECT {aliased} {source}")
        names = [str(type_) for type_ in relation.types]
        fetched = relation.project(
            ", ".join(
                f"epoch_us(r{i}) AS r{i}" if name == "TIMESTAMP" else f"r{i}" for i, name in enumerate(names)
            )
        )
        columns = list(zip(*fetched.fetchall(), strict=True))
        return [Answer(name, values) for name, values in zip(names, columns, strict=True)]


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Engines:
    compiling = spark.newSession()
    for key, value in COMPILED.items():
        compiling.conf.set(key, value)
    return Engines(compiling)


@dataclass(frozen=True)
class Comparison:
    """Both answers to one expression. `rows` are the arguments, for showing where they differ."""

    question: Question
    type: Type
    rows: Sequence[tuple[Value, ...]]
    spark: Answer
    duckdb: Answer

    def differences(self) -> list[str]:
        found = []
        wanted = type_to_spark(self.type)
        if self.spark.type_name != wanted:
            found.append(f"{self.question}: Spark has the type {self.spark.type_name}, not {wanted}")
        if self.duckdb.type_name != type_to_duckdb(self.type):
            found.append(f"{self.question}: DuckDB has the type {self.duckdb.type_name}, not {self.type}")
        for row, left, right in zip(self.rows, self.spark.values, self.duckdb.values, strict=False):
            if not same(left, right):
                found.append(f"{self.question} of {row!r}: Spark {left!r}, DuckDB {right!r}")
        return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=0.0)
    return type(left) is type(right) and bool(left == right)


def _parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def compared_over_columns(engines: Engines, folder: Path) -> Iterator[Comparison]:
    for arity in range(4):
        questions = [question for question in QUESTIONS if len(question.column_types) == arity]
        table = WideTable(f"edge_values_{arity}", questions, folder)
        table.register(engines.spark, engines.connection)
        expressions = [question.expression(table.columns(question)) for question in questions]
        source = f"FROM {table.name}"
        for part in _parts(list(zip(questions, expressions, strict=True)), STATEMENT_SIZE):
            spark = engines.ask_spark([to_spark(e, table.references) for _, e in part], source)
            duck = engines.ask_duckdb([to_duckdb(e, table.references) for _, e in part], source)
            for (question, expression), left, right in zip(part, spark, duck, strict=True):
                assert len(left.values) == len(right.values) == table.row_count
                yield Comparison(question, expression.type, list(question.rows()), left, right)


def compared_as_constants(engines: Engines) -> Iterator[Comparison]:
    asked: list[tuple[Question, tuple[Value, ...], Expression]] = []
    for number, question in enumerate(QUESTIONS):
        rows = list(question.rows())
        # Other combinations for every question, extremes among them.
        for row in islice(rows, number % 7, None, max(1, len(rows) // CONSTANT_ROWS)):
            literals = [
                Literal(value, type_) for value, type_ in zip(row, question.column_types, strict=True)
            ]
            asked.append((question, row, question.expression(literals)))
    for part in _parts(asked, STATEMENT_SIZE * 8):
        spark = engines.ask_spark([to_spark(e, []) for _, _, e in part], "")
        duck = engines.ask_duckdb([to_duckdb(e, []) for _, _, e in part], "")
        for (question, row, expression), left, right in zip(part, spark, duck, strict=True):
            yield Comparison(question, expression.type, [row], left, right)


@pytest.fixture(scope="module")
def comparisons(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Comparison]]:
    """By function."""
    found: dict[str, list[Comparison]] = {}
    folder = tmp_path_factory.mktemp("edge_values")
    for comparison in (*compared_over_columns(engines, folder), *compared_as_constants(engines)):
        found.setdefault(comparison.question.function, []).append(comparison)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str, comparisons: Mapping[str, list[Comparison]]) -> None:
    assert name in comparisons, f"{name} has no edge values"
    assert [d for comparison in comparisons[name] for d in comparison.differences()] == []


def compared_aggregates(engines: Engines, folder: Path) -> Iterator[Comparison]:
    """Over all rows and over groups of them, with filters that leave much, little and nothing."""
    table = WideTable("aggregated", [Question("count", (type_,)) for type_ in EDGE_VALUES], folder)
    table.register(engines.spark, engines.connection)
    references = [*table.references, "id"]
    row = Column(len(table.types), INT)
    filters = [None, *(build("lt", row, constant(most)) for most in (4, 0))]
    asked = [
        (question, AggregateCall(question.function, arguments, _without_extremes(arguments, filter_)))
        for question in AGGREGATE_QUESTIONS
        for arguments in [_aggregated(question, table)]
        for filter_ in filters
    ]
    # Spark copies the rows for every DISTINCT of a statement: keep those few.
    distinct = [one for one in asked if one[0].function == "count_distinct"]
    others = [one for one in asked if one[0].function != "count_distinct"]
    statements = [*_parts(distinct, STATEMENT_SIZE // 6), *_parts(others, STATEMENT_SIZE)]
    for part, group in product(statements, ("id % 4", "id % 1")):
        source = f"FROM {table.name} GROUP BY {group}"
        spark = engines.ask_spark(
            [group, *(aggregate_to_spark(call, references) for _, call in part)], source
        )
        duck = engines.ask_duckdb(
            [group, *(aggregate_to_duckdb(call, references) for _, call in part)], source
        )
        for (question, call), left, right in zip(part, _by_group(spark), _by_group(duck), strict=True):
            assert len(left.values) == len(right.values)
            yield Comparison(question, call.type, [()] * len(left.values), left, right)


def _by_group(answers: Sequence[Answer]) -> list[Answer]:
    """The answers after the first, in the order of the first."""
    groups = answers[0].values
    order = sorted(range(len(groups)), key=groups.__getitem__)
    return [Answer(answer.type_name, [answer.values[i] for i in order]) for answer in answers[1:]]


def _aggregated(question: Question, table: WideTable) -> tuple[Expression, ...]:
    columns = [table.columns(Question("count", (type_,)))[0] for type_ in question.column_types]
    return coerce_arguments(question.function, columns)


def _without_extremes(arguments: Sequence[Expression], filter_: Expression | None) -> Expression | None:
    """Doubles whose sums do not depend on the order of rows."""
    if len(arguments) != 1 or arguments[0].type != DOUBLE:
        return filter_
    inside = build("lt", build("abs", arguments[0]), Literal(1e6, DOUBLE))
    return inside if filter_ is None else build("and", inside, filter_)


@pytest.fixture(scope="module")
def aggregate_comparisons(
    engines: Engines, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for comparison in compared_aggregates(engines, tmp_path_factory.mktemp("aggregates")):
        found.setdefault(comparison.question.function, []).append(comparison)
    return found


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate(name: str, aggregate_comparisons: Mapping[str, list[Comparison]]) -> None:
    assert name in aggregate_comparisons, f"{name} has no edge values"
    assert [d for comparison in aggregate_comparisons[name] for d in comparison.differences()] == []


def test_examples_of_the_documentation(engines: Engines) -> None:
    entries: list[Function | Shorthand] = [*FUNCTIONS.values(), *SHORTHANDS.values()]
    answers = engines.ask_spark([to_spark(example_expression(entry), []) for entry in entries], "")
    for entry, answer in zip(entries, answers, strict=True):
        expected = entry.example.result
        if isinstance(expected, datetime):
            expected = datetime_to_us(expected)
        assert same(answer.values[0], expected), entry.name


def test_deep_expressions(engines: Engines) -> None:
    """Arguments that templates repeat are bound to variables, which both engines must take to some depth."""
    expression: Expression = Column(0, INT)
    for _ in range(20):
        expression = build("abs", build("nullif", expression, constant(7)))
    (spark,) = engines.ask_spark([to_spark(expression, ["x"])], "FROM VALUES (-5), (7), (NULL) AS t(x)")
    (duck,) = engines.ask_duckdb([to_duckdb(expression, ["x"])], "FROM (VALUES (-5), (7), (NULL)) AS t(x)")
    assert list(spark.values) == list(duck.values) == [5, None, None]
