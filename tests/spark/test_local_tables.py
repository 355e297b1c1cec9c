"""Tables that are handed to Spark once: their values, and what becomes of them in plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.workloads.predicates import VALUES

from plait.expressions.nodes import Literal
from plait.expressions.spark import literal_to_spark
from plait.expressions.types import INT, Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_values_of_all_types_are_those_of_literals(spark: SparkSession) -> None:
    from plait.spark.local_tables import LocalTable

    columns = [(f"c{k}", type_) for k, type_ in enumerate(VALUES)]
    rows: list[list[Value]] = [[values[k % len(values)] for values in VALUES.values()] for k in range(7)]
    rows.append([None] * len(columns))
    table = LocalTable(columns, rows)
    expected = [
        [literal_to_spark(Literal(v, type_)) for v, type_ in zip(row, VALUES, strict=True)] for row in rows
    ]
    values = ", ".join(f"({', '.join(row)})" for row in expected)
    given, said = table.broadcast(spark), spark.sql(f"SELECT * FROM VALUES {values}")
    assert [type_ for _, type_ in given.dtypes] == [type_ for _, type_ in said.dtypes]
    assert [*map(repr, given.collect())] == [*map(repr, said.toDF(*given.columns).collect())]


@pytest.mark.spark
def test_a_table_is_made_once_for_a_session_and_is_local(spark: SparkSession) -> None:
    from plait.spark.local_tables import LocalTable

    table = LocalTable([("n", INT)], [[k] for k in range(20_000)])
    made = table.broadcast(spark)
    assert table.broadcast(made.sparkSession) is made
    assert table.broadcast(spark.newSession()) is not made
    joined = spark.range(3).join(made, made["n"] == 1)._jdf.queryExecution()
    assert "LocalRelation [n" in joined.optimizedPlan().toString()
    assert "BroadcastExchange" in joined.executedPlan().toString()


@pytest.mark.spark
def test_a_table_without_rows(spark: SparkSession) -> None:
    from plait.spark.local_tables import LocalTable

    assert LocalTable([("n", INT)], []).broadcast(spark).collect() == []
