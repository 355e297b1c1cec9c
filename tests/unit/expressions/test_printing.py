"""What the printers write, and what DuckDB makes of it: values known by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import duckdb
import pytest

from plait.expressions.aggregates import AggregateCall, coerce_arguments
from plait.expressions.calendar import parse_timestamp
from plait.expressions.coercion import build, number_literal
from plait.expressions.duckdb import (
    aggregate_to_duckdb,
    literal_text,
    literal_to_duckdb,
    to_duckdb,
    type_to_duckdb,
)
from plait.expressions.nodes import Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.spark import aggregate_to_spark, literal_to_spark, to_spark
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    Value,
    decimal,
)


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def computed(connection: duckdb.DuckDBPyConnection, select: str, type_: Type) -> list[Any]:
    """The one column of a SELECT, which must have that type."""
    relation = connection.sql(f"SELECT {select}")
    assert relation is not None
    assert [str(name) for name in relation.types] == [type_to_duckdb(type_)]
    return [row[0] for row in relation.fetchall()]


def text(value: str | None) -> Literal:
    return Literal(value, STRING)


def moment(written: str) -> Literal:
    return Literal(parse_timestamp(written), TIMESTAMP)


def number(written: str) -> Literal:
    return number_literal(written)


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        ("add", [number("127Y"), number("1Y")], None),
        ("add", [number("9223372036854775807"), number("1")], None),
        ("add", [moment("9999-12-31 23:59:59"), Literal(1_000_000, INTERVAL)], None),
        ("add", [moment("2024-02-28 23:59:59.5"), Literal(500_000, INTERVAL)], datetime(2024, 2, 29)),
        ("divide", [number("1"), number("0")], None),
        ("divide", [number("1"), number("3")], 1 / 3),
        ("int_divide", [number("-7"), number("2")], -3),
        ("int_divide", [number("-9223372036854775808"), number("-1")], None),
        ("modulo", [number("-7"), number("2")], -1),
        ("modulo", [number("5"), number("0")], None),
        ("multiply", [number("999.99"), number("999.99")], Decimal("999980.0001")),
        ("round", [number("2.5")], Decimal("3")),
        ("round", [number("-2.5")], Decimal("-3")),
        ("floor", [number("-1.5")], Decimal("-2")),
        ("floor", [Literal(float("nan"), DOUBLE)], None),
        ("ceil", [number("1e300")], None),
        ("ln", [number("0")], None),
        ("concat", [text("a"), text(None)], None),
        ("substring", [text("abc"), number("0"), number("2")], "ab"),
        ("substring", [text("abc"), number("-5"), number("3")], "a"),
        ("substring", [text("abc"), number("-2")], "bc"),
        ("substring", [text("abc"), number("2"), number("-1")], ""),
        ("left", [text("abc"), number("-1")], ""),
        ("upper", [text("straße")], "STRAßE"),
        ("like", [text("50%"), text("50\\%")], True),
        ("like", [text("50x"), text("50\\%")], False),
        ("rlike", [text("a\n"), text("a$")], False),
        ("dayofweek", [Literal(date(2024, 2, 25), DATE)], 1),
        ("unix_seconds", [moment("1969-12-31 23:59:59.5")], -1),
        ("timestampdiff", [text("MONTH"), moment("2024-01-31"), moment("2024-02-29")], 0),
        ("timestampdiff", [text("HOUR"), moment("2024-01-01 00:59:00"), moment("2024-01-01 01:00:00")], 0),
        ("add_months", [Literal(date(2024, 1, 31), DATE), number("1")], date(2024, 2, 29)),
        ("null_safe_eq", [text(None), text(None)], True),
        ("isnan", [Literal(None, DOUBLE)], False),
        ("eq", [Literal(float("nan"), DOUBLE), Literal(float("nan"), DOUBLE)], True),
    ],
)
def test_value(
    function: str, arguments: Sequence[Expression], value: object, connection: duckdb.DuckDBPyConnection
) -> None:
    expression = build(function, *arguments)
    assert computed(connection, to_duckdb(expression, []), expression.type) == [value]


@pytest.mark.parametrize(
    ("given", "to", "value"),
    [
        (number("1.9"), INT, 1),
        (number("-1.9"), INT, -1),
        (number("128"), TINYINT, None),
        (text("1.5"), INT, None),
        (text(" +12 "), INT, 12),
        (text("1_000"), INT, None),
        (number("0.285e0"), decimal(5, 2), Decimal("0.29")),
        (text("1.005"), decimal(5, 2), Decimal("1.01")),
        (text("yes"), BOOLEAN, True),
        (text("2024-02-30"), DATE, None),
        (text("2024-02-29 23:00:00-02:00"), TIMESTAMP, datetime(2024, 3, 1, 1)),
        (text("2024-02-29T01:02:03.1234567"), TIMESTAMP, datetime(2024, 2, 29, 1, 2, 3, 123456)),
        (moment("1969-12-31 23:59:59.5"), DATE, date(1969, 12, 31)),
        (moment("2024-02-29 12:00:00.5"), STRING, "2024-02-29 12:00:00.5"),
        (number("1.50"), STRING, "1.50"),
        (number("0.5"), STRING, "0.5"),
    ],
)
def test_cast(given: Expression, to: Type, value: object, connection: duckdb.DuckDBPyConnection) -> None:
    assert computed(connection, to_duckdb(build("cast", given, to=to), []), to) == [value]


@pytest.mark.parametrize(
    ("value", "type_", "spark", "duck"),
    [
        (None, INT, "CAST(NULL AS INT)", "CAST(NULL AS INTEGER)"),
        (True, BOOLEAN, "TRUE", "TRUE"),
        (-5, INT, "-5", "-5"),
        (5, TINYINT, "5Y", "CAST(5 AS TINYINT)"),
        (5, SMALLINT, "5S", "CAST(5 AS SMALLINT)"),
        (5, BIGINT, "5L", "CAST(5 AS BIGINT)"),
        (5, INTERVAL, "5L", "CAST(5 AS BIGINT)"),
        (Decimal("1.50"), decimal(5, 2), "CAST(1.50BD AS DECIMAL(5,2))", "CAST('1.50' AS DECIMAL(5,2))"),
        (1.5, DOUBLE, "1.5D", "CAST('1.5' AS DOUBLE)"),
        (float("nan"), DOUBLE, "CAST('nan' AS DOUBLE)", "CAST('nan' AS DOUBLE)"),
        ("it's \\ ${x}", STRING, "'it\\'s \\\\ \\u0024{x}'", "'it''s \\ ${x}'"),
        ("a\0b", STRING, "'a\\u0000b'", "('a' || chr(0) || 'b')"),
        (date(1, 2, 3), DATE, "DATE '0001-02-03'", "DATE '0001-02-03'"),
        (-1, TIMESTAMP, *["TIMESTAMP '1969-12-31 23:59:59.999999'"] * 2),
    ],
)
def test_literal(
    value: Value, type_: Type, spark: str, duck: str, connection: duckdb.DuckDBPyConnection
) -> None:
    literal = Literal(value, type_)
    assert literal_to_spark(literal) == spark
    assert literal_to_duckdb(literal) == duck
    as_text = f"SELECT unnest($1::VARCHAR[])::{type_to_duckdb(type_)} IS NOT DISTINCT FROM {duck}"
    assert connection.execute(as_text, [[literal_text(literal)]]).fetchall() == [(True,)]


def test_columns_and_window_edges_are_references() -> None:
    age = build("subtract", WindowEdge(Edge.END), Column(1, TIMESTAMP))
    assert to_duckdb(age, ["a", "t.b"], window_end="w.e") == "TRY(epoch_us(w.e) - epoch_us(t.b))"
    assert to_spark(age, ["a", "t.b"], window_end="w.e") == "try_subtract(unix_micros(w.e), unix_micros(t.b))"
    with pytest.raises(ValueError, match="window_end"):
        to_duckdb(age, ["a", "t.b"])


def test_text_grows_with_the_expression_and_not_with_its_depth(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    expression: Expression = Column(0, INT)
    for _ in range(30):
        expression = build("abs", build("nullif", expression, number_literal("7")))
    duck, spark = to_duckdb(expression, ["x"]), to_spark(expression, ["x"])
    assert len(duck) < 10_000
    assert len(spark) < 10_000
    assert computed(connection, f"{duck} FROM (VALUES (-5), (7), (-7)) AS t(x)", INT) == [5, None, None]


AGGREGATED = "(VALUES (1, 'a', 0.5), (2, NULL, 1.5), (NULL, 'b', NULL), (2, 'a', -0.5)) AS t(n, s, d)"
N, S, D = Column(0, INT), Column(1, STRING), Column(2, decimal(2, 1))


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("count", [], 4),
        ("count", [N], 3),
        ("count_distinct", [N], 2),
        ("count_distinct", [N, S], 2),
        ("sum", [N], 5),
        ("sum", [D], Decimal("1.5")),
        ("avg", [N], 5 / 3),
        ("avg", [D], 0.5),
        ("min", [S], "a"),
        ("max", [D], Decimal("1.5")),
        ("var_pop", [N], 2 / 9),
    ],
)
def test_aggregate_value(
    name: str, arguments: list[Expression], value: object, connection: duckdb.DuckDBPyConnection
) -> None:
    call = AggregateCall(name, coerce_arguments(name, arguments))
    printed = aggregate_to_duckdb(call, ["n", "s", "d"])
    expected = pytest.approx(value) if isinstance(value, float) else value
    assert computed(connection, f"{printed} FROM {AGGREGATED}", call.type) == [expected]


@pytest.mark.parametrize("name", ["stddev_pop", "var_pop", "stddev_samp", "var_samp"])
def test_moments_of_what_is_not_finite_are_not_a_number(
    name: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """Also of a single value, at which DuckDB does not look."""
    printed = aggregate_to_duckdb(AggregateCall(name, (Column(0, DOUBLE),)), ["x"])
    for value in ("NaN", "Infinity", "-Infinity"):
        for others in ("", ", (1.0)"):
            rows = f"('{value}'::DOUBLE){others}"
            (found,) = computed(connection, f"{printed} FROM (VALUES {rows}) AS t(x)", DOUBLE)
            is_none = name.endswith("samp") and not others
            assert found is None if is_none else math.isnan(cast(float, found))
    for equal in ("2.5", "1e308"):
        assert computed(connection, f"{printed} FROM (VALUES ({equal}), ({equal})) AS t(x)", DOUBLE) == [0.0]


def test_sums_that_do_not_fit_are_null(connection: duckdb.DuckDBPyConnection) -> None:
    total = aggregate_to_duckdb(AggregateCall("sum", (Column(0, BIGINT),)), ["x"])
    greatest = 2**63 - 1
    for rows, value in ((f"({greatest}), (1)", None), (f"({greatest}), (1), (-1)", greatest)):
        assert computed(connection, f"{total} FROM (VALUES {rows}) AS t(x)", BIGINT) == [value]


def test_sums_of_the_longest_decimals_are_exact(connection: duckdb.DuckDBPyConnection) -> None:
    wide = decimal(38, 2)
    total = aggregate_to_duckdb(AggregateCall("sum", (Column(0, wide),)), ["x"])
    nines = "9" * 36 + ".99"
    rows = f"(VALUES ('{nines}'), ('{nines}'), ('-{nines}'), ('-0.05')) AS t(x)"
    source = f"(SELECT CAST(x AS {wide}) AS x FROM {rows})"
    assert computed(connection, f"{total} FROM {source}", wide) == [Decimal("9" * 36 + ".94")]
    assert computed(connection, f"{total} FROM {source} WHERE x > 0", wide) == [None]


def test_filtered_aggregate(connection: duckdb.DuckDBPyConnection) -> None:
    call = AggregateCall("sum", (N,), build("eq", S, text("a")))
    assert aggregate_to_spark(call, ["n", "s", "d"]) == "sum(n) FILTER (WHERE (s = 'a'))"
    printed = aggregate_to_duckdb(call, ["n", "s", "d"])
    assert computed(connection, f"{printed} FROM {AGGREGATED}", BIGINT) == [3]
