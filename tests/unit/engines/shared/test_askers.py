"""Queries as tables: constants keep their types and values, and queries of different shapes are apart."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from plait.engines.duckdb import Database
from plait.engines.shared.askers import Asker, asker_tables
from plait.expressions.nodes import Column, Literal
from plait.expressions.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type, Value, decimal
from plait.sharing.shapes import Shape, Shaped

NOON_US = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)


def asker(query: str, type_: Type, value: Value, *numbers: int) -> Asker:
    shape = Shape(1, (), (Column(1, type_),), (type_,))
    return Asker(query, Shaped(shape, (Literal(value, type_),)), numbers)


@pytest.mark.parametrize(
    ("type_", "one", "other", "stored"),
    [
        (INT, 7, -(2**31), ["7", "-2147483648"]),
        (BIGINT, 2**63 - 1, 0, ["9223372036854775807", "0"]),
        (DOUBLE, 0.1, 1e300, ["0.1", "1e+300"]),
        (decimal(38, 3), Decimal("1.500"), Decimal("-0.001"), ["1.500", "-0.001"]),
        (BOOLEAN, True, False, ["true", "false"]),
        (STRING, "it's", "", ["it's", ""]),
        (TIMESTAMP, NOON_US, NOON_US + 1, ["2026-01-01 12:00:00", "2026-01-01 12:00:00.000001"]),
    ],
    ids=str,
)
def test_constants_keep_type_and_value(type_: Type, one: Value, other: Value, stored: list[str]) -> None:
    askers = [asker("a", type_, one, 3), asker("b", type_, other, 2**40), asker("c", type_, None, 5)]
    (table,) = asker_tables("tree", ["target"], ((each.shaped.shape, each) for each in askers)).values()
    assert table.queries == ("a", "b", "c")
    assert table.constants == ["q.q0"]
    with Database() as database:
        table.create(database)
        rows = database.fetch(f"SELECT query, target, q0::VARCHAR FROM {table.name} AS q ORDER BY query")
        assert rows == [(0, 3, stored[0]), (1, 2**40, stored[1]), (2, 5, None)]


def test_a_table_is_of_one_key() -> None:
    askers = [asker("a", INT, 1, 0), asker("b", STRING, "x", 1), asker("c", INT, 2, 2)]
    tables = asker_tables("pass", ["taker"], ((each.shaped.shape, each) for each in askers))
    assert [table.queries for table in tables.values()] == [("a", "c"), ("b",)]
    with Database() as database:
        for table in tables.values():
            table.create(database)
            table.create(database)  # again, when a state is opened again
        assert database.fetch("SELECT taker, q0 FROM pass_queries0 ORDER BY query") == [(0, 1), (2, 2)]
        assert database.fetch("SELECT taker, q0 FROM pass_queries1") == [(1, "x")]
