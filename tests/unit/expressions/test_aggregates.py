"""The types of aggregates."""

from __future__ import annotations

import pytest

from plait.expressions.aggregates import AGGREGATES, SQL_AGGREGATES, aggregate_type, coerce_arguments
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import Call, Column
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
)


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("count", (), BIGINT),
        ("count", (STRING,), BIGINT),
        ("count_distinct", (STRING, INT), BIGINT),
        ("sum", (TINYINT,), BIGINT),
        ("sum", (BIGINT,), BIGINT),
        ("sum", (decimal(10, 2),), decimal(20, 2)),
        ("sum", (decimal(35, 2),), decimal(38, 2)),
        ("sum", (DOUBLE,), DOUBLE),
        ("avg", (INT,), DOUBLE),
        ("avg", (decimal(10, 2),), DOUBLE),
        ("min", (STRING,), STRING),
        ("max", (TIMESTAMP,), TIMESTAMP),
        ("max", (BOOLEAN,), BOOLEAN),
        ("min", (DATE,), DATE),
        ("stddev_samp", (DOUBLE,), DOUBLE),
    ],
)
def test_aggregate_type(name: str, types: tuple[Type, ...], result: Type) -> None:
    assert aggregate_type(name, types) == result


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("sum", (STRING,)),
        ("sum", ()),
        ("sum", (INT, INT)),
        ("sum", (INTERVAL,)),
        ("avg", (TIMESTAMP,)),
        ("min", (INTERVAL,)),
        ("count", (INT, INT)),
        ("count_distinct", ()),
        ("var_pop", (STRING,)),
        ("median", (INT,)),
    ],
)
def test_refused(name: str, types: tuple[Type, ...]) -> None:
    with pytest.raises(FunctionTypeError):
        coerce_arguments(name, [Column(i, type_) for i, type_ in enumerate(types)])


def test_deviations_are_computed_over_doubles() -> None:
    assert coerce_arguments("var_samp", [Column(0, INT)]) == (Call("cast", (Column(0, INT),), DOUBLE),)
    assert coerce_arguments("sum", [Column(0, INT)]) == (Column(0, INT),)


def test_spellings() -> None:
    assert SQL_AGGREGATES["variance"] == "var_samp"
    assert set(SQL_AGGREGATES.values()) == set(AGGREGATES)
