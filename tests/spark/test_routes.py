"""The cell of a value among many constants, which Spark finds in an array, is the one that branches find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.workloads.predicates import COLUMNS, NAMES, VALUES

from plait.expressions.nodes import Literal
from plait.expressions.spark import literal_to_spark, type_to_spark
from plait.sharing.patterns import Bound, Pattern, Selection
from plait.spark import routes
from plait.spark.routes import Routes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_cells_of_all_types(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other value is a constant; all of them are looked for, and NULL."""
    wanted = [
        Selection(
            Pattern(2, bounded=column),
            bounds=tuple(Bound(Literal(v, column.type), True, True) for v in VALUES[column.type][::2]),
        )
        for column in COLUMNS
    ]
    by = Routes([each.pattern for each in wanted], [tuple(wanted)])
    values = [
        [literal_to_spark(Literal([*VALUES[c.type], *[None] * 7][k], c.type)) for c in COLUMNS]
        for k in range(8)
    ]
    items = [f"CAST({n} AS {type_to_spark(c.type)}) AS {n}" for n, c in zip(NAMES, COLUMNS, strict=True)]
    table = ", ".join(f"({', '.join(row)})" for row in values)
    rows = spark.sql(f"SELECT {', '.join(items)} FROM VALUES {table} AS t({', '.join(NAMES)})")
    branches = rows.selectExpr(*by.items(NAMES)).collect()
    monkeypatch.setattr(routes, "_MOST_BRANCHES", 0)
    assert "aggregate" in by.items(NAMES)[0]
    assert rows.selectExpr(*by.items(NAMES)).collect() == branches
    assert len({cell for row in branches for cell in row}) > 6
