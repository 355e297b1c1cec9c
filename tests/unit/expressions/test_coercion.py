"""Which implicit casts a call gets, which type it has, and what is refused with which way out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from plait.expressions.coercion import build, coerce, common_type, number_literal, parse_interval
from plait.expressions.functions import FunctionTypeError, result_type
from plait.expressions.nodes import Call, Column, Expression, Literal
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
    decimal,
    parse_type,
)

DAY_US = 86_400_000_000


def column(type_: Type) -> Column:
    return Column(0, type_)


def text(value: str) -> Literal:
    return Literal(value, STRING)


@pytest.mark.parametrize(
    ("function", "types", "result"),
    [
        ("add", "TINYINT TINYINT", "TINYINT"),
        ("add", "TINYINT BIGINT", "BIGINT"),
        ("add", "INT DECIMAL(5,2)", "DECIMAL(13,2)"),
        ("add", "DECIMAL(10,2) DECIMAL(5,4)", "DECIMAL(13,4)"),
        ("add", "DECIMAL(10,2) DOUBLE", "DOUBLE"),
        ("subtract", "BIGINT DECIMAL(3,1)", "DECIMAL(22,1)"),
        ("multiply", "DECIMAL(10,2) DECIMAL(5,4)", "DECIMAL(16,6)"),
        ("divide", "INT INT", "DOUBLE"),
        ("divide", "DECIMAL(10,2) INT", "DOUBLE"),
        ("int_divide", "INT SMALLINT", "BIGINT"),
        ("modulo", "INT DECIMAL(5,2)", "DECIMAL(12,2)"),
        ("add", "TIMESTAMP INTERVAL", "TIMESTAMP"),
        ("add", "INTERVAL TIMESTAMP", "TIMESTAMP"),
        ("add", "DATE INTERVAL", "TIMESTAMP"),
        ("subtract", "DATE INTERVAL", "TIMESTAMP"),
        ("subtract", "TIMESTAMP TIMESTAMP", "INTERVAL"),
        ("subtract", "DATE TIMESTAMP", "INTERVAL"),
        ("multiply", "INTERVAL INT", "INTERVAL"),
        ("eq", "DATE TIMESTAMP", "BOOLEAN"),
        ("eq", "BOOLEAN BOOLEAN", "BOOLEAN"),
        ("coalesce", "INT DOUBLE", "DOUBLE"),
        ("greatest", "SMALLINT DECIMAL(3,1)", "DECIMAL(6,1)"),
        ("case", "BOOLEAN INT BIGINT", "BIGINT"),
        ("floor", "DOUBLE", "BIGINT"),
        ("floor", "DECIMAL(10,2)", "DECIMAL(9,0)"),
        ("round", "DECIMAL(10,2)", "DECIMAL(9,0)"),
        ("length", "STRING", "INT"),
        ("year", "TIMESTAMP", "INT"),
        ("datediff", "TIMESTAMP DATE", "INT"),
        ("sqrt", "DECIMAL(38,10)", "DOUBLE"),
        ("second_with_fraction", "TIMESTAMP", "DECIMAL(8,6)"),
    ],
)
def test_result_type(function: str, types: str, result: str) -> None:
    built = build(function, *(column(parse_type(name)) for name in types.split()))
    assert built.type == parse_type(result)


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        ("add", [column(STRING), column(INT)], "it takes numbers"),
        ("add", [column(TIMESTAMP), column(TIMESTAMP)], "two times cannot be added"),
        ("multiply", [column(decimal(38, 0)), column(decimal(5, 2))], "44 digits"),
        ("add", [column(decimal(38, 0)), column(decimal(38, 0))], "39 digits"),
        ("eq", [column(STRING), column(INT)], "STRING and INT have no common type"),
        ("eq", [column(INT), text("5")], "no common type"),
        ("eq", [column(TIMESTAMP), text("yesterday")], "'yesterday' is no TIMESTAMP"),
        ("and", [column(BOOLEAN), column(INT)], "no common type"),
        ("and", [column(BOOLEAN)], "at least 2"),
        ("not", [column(INT)], "takes BOOLEAN"),
        ("case", [column(INT), column(INT), column(INT)], "a condition is BOOLEAN"),
        ("case", [column(BOOLEAN), column(INT)], "then the ELSE"),
        ("case", [column(BOOLEAN), column(INT), column(STRING)], "no common type"),
        ("round", [column(DOUBLE)], "only exact numbers"),
        ("round", [column(decimal(5, 2)), column(INT)], "must be a constant"),
        ("length", [column(INT)], "INT is no STRING"),
        ("length", [], "it takes 1 argument"),
        ("substring", [column(STRING), column(BIGINT)], "BIGINT is no INT"),
        ("concat", [column(STRING), column(INT)], "no common type"),
        ("concat", [column(INT), column(INT)], "CAST other types to STRING"),
        ("int_divide", [column(decimal(5, 2)), column(INT)], "is no BIGINT"),
        ("date_trunc", [text("fortnight"), column(TIMESTAMP)], "must be one of"),
        ("date_trunc", [column(STRING), column(TIMESTAMP)], "must be one of"),
        ("timestampadd", [text("MONTH"), column(INT), column(TIMESTAMP)], "fixed length"),
        ("date_part", [text("CENTURY"), column(DATE)], "not known"),
        ("lpad", [column(STRING), number_literal("10001")], "from 0 to 10000"),
        ("lpad", [column(STRING), number_literal("5"), text("")], "must not be empty"),
        ("split_part", [column(STRING), text(","), number_literal("0")], "other than 0"),
        ("like", [column(STRING), column(STRING)], "constant text"),
        ("if", [column(BOOLEAN), column(INT)], "takes 3 arguments"),
        ("no_such", [column(INT)], "no function"),
    ],
)
def test_refused(function: str, arguments: list[Expression], reason: str) -> None:
    with pytest.raises(FunctionTypeError, match=reason):
        build(function, *arguments)


@pytest.mark.parametrize(
    ("given", "to", "hint"),
    [
        (DOUBLE, STRING, "DECIMAL first"),
        (DOUBLE, decimal(38, 20), "scale of 18"),
        (TIMESTAMP, BIGINT, "unix_micros"),
        (BIGINT, TIMESTAMP, "timestamp_seconds"),
        (INTERVAL, BIGINT, "timestampdiff"),
        (STRING, INTERVAL, "INTERVAL literals"),
        (BOOLEAN, DATE, "timestamp_seconds"),
    ],
)
def test_refused_cast(given: Type, to: Type, hint: str) -> None:
    with pytest.raises(FunctionTypeError) as raised:
        build("cast", column(given), to=to)
    assert hint in raised.value.hint


def test_arguments_of_a_call_have_equal_types() -> None:
    wide = decimal(7, 2)
    assert build("eq", column(SMALLINT), column(decimal(5, 2))) == Call(
        "eq", (Call("cast", (column(SMALLINT),), wide), Call("cast", (column(decimal(5, 2)),), wide))
    )


def test_a_call_without_its_casts_cannot_be_built() -> None:
    with pytest.raises(FunctionTypeError, match="casts to"):
        Call("eq", (column(INT), column(BIGINT)))
    assert result_type("eq", (INT, INT)) == BOOLEAN


def test_literals_take_the_type_that_is_wanted() -> None:
    assert build("eq", column(BIGINT), number_literal("1")) == Call(
        "eq", (column(BIGINT), Literal(1, BIGINT))
    )
    assert build("eq", column(DOUBLE), number_literal("1.5")) == Call(
        "eq", (column(DOUBLE), Literal(1.5, DOUBLE))
    )
    assert build("gt", column(DATE), text("2024-02-29")) == Call(
        "gt", (column(DATE), Literal(date(2024, 2, 29), DATE))
    )
    assert build("lt", text("1970-01-02"), column(TIMESTAMP)) == Call(
        "lt", (Literal(DAY_US, TIMESTAMP), column(TIMESTAMP))
    )
    assert build("add", column(TIMESTAMP), text("1 day")) == Call(
        "add", (column(TIMESTAMP), Literal(DAY_US, INTERVAL))
    )
    assert build("coalesce", column(DATE), Literal(None, BOOLEAN)) == Call(
        "coalesce", (column(DATE), Literal(None, DATE))
    )


def test_integer_literals_beside_decimals_have_only_their_own_digits() -> None:
    assert build("multiply", column(decimal(10, 2)), number_literal("2")).type == decimal(12, 2)
    assert build("eq", column(decimal(37, 30)), number_literal("1")) == Call(
        "eq", (column(decimal(37, 30)), Literal(Decimal("1." + "0" * 30), decimal(37, 30)))
    )


def test_a_null_beside_a_decimal_needs_hardly_any_digits() -> None:
    assert build("multiply", column(decimal(36, 2)), Literal(None, BOOLEAN)).type == decimal(38, 2)


@pytest.mark.parametrize(("interval_us", "result"), [(DAY_US, DATE), (-2 * DAY_US, DATE), (1, TIMESTAMP)])
def test_a_date_moved_by_whole_days_stays_a_date(interval_us: int, result: Type) -> None:
    for function in ("add", "subtract"):
        assert build(function, column(DATE), Literal(interval_us, INTERVAL)).type == result


@pytest.mark.parametrize(
    ("written", "value", "type_"),
    [
        ("0", 0, INT),
        ("-2147483648", -(2**31), INT),
        ("2147483648", 2**31, BIGINT),
        ("-9223372036854775808", -(2**63), BIGINT),
        ("9223372036854775808", Decimal(2**63), decimal(19, 0)),
        ("1.5", Decimal("1.5"), decimal(2, 1)),
        ("0.05", Decimal("0.05"), decimal(2, 2)),
        (".5", Decimal("0.5"), decimal(1, 1)),
        ("1.", Decimal("1"), decimal(1, 0)),
        ("1e0", 1.0, DOUBLE),
        ("-1.5E-3", -0.0015, DOUBLE),
        ("-0e0", 0.0, DOUBLE),
        ("-0.00", Decimal("0.00"), decimal(2, 2)),
        ("5Y", 5, TINYINT),
        ("5s", 5, SMALLINT),
        ("5L", 5, BIGINT),
        ("5D", 5.0, DOUBLE),
        ("1.50BD", Decimal("1.50"), decimal(3, 2)),
        ("9" * 38, Decimal("9" * 38), decimal(38, 0)),
    ],
)
def test_number_literal(written: str, value: int | float | Decimal, type_: Type) -> None:
    assert number_literal(written) == Literal(value, type_)


@pytest.mark.parametrize(
    "written",
    [
        "9" * 39,
        "128Y",
        "1.5L",
        "1e400",
        "abc",
        "0x10",
        "1_000",
        "",
        "１",
        "9" * 5000,
        "1e999999BD",
        "1e99999BD",
    ],
)
def test_no_number_literal(written: str) -> None:
    with pytest.raises(FunctionTypeError):
        number_literal(written)


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("5 minutes", 300_000_000),
        ("1 day 2 hours", 93_600_000_000),
        ("-1.5 SECONDS", -1_500_000),
        ("1 week", 7 * DAY_US),
        ("0 seconds", 0),
        ("1 month", None),
        ("", None),
        ("five minutes", None),
        ("0.1 microseconds", None),
        ("999999999999 weeks", None),
    ],
)
def test_parse_interval(written: str, microseconds: int | None) -> None:
    assert parse_interval(written) == microseconds


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ([INT, INT], INT),
        ([TINYINT, BIGINT, SMALLINT], BIGINT),
        ([INT, decimal(5, 2), DOUBLE], DOUBLE),
        ([decimal(10, 2), decimal(5, 4)], decimal(12, 4)),
        ([DATE, TIMESTAMP], TIMESTAMP),
    ],
)
def test_common_type(types: list[Type], common: Type) -> None:
    assert common_type(types) == common


def test_coerce_never_loses_anything() -> None:
    assert coerce(column(INT), BIGINT) == Call("cast", (column(INT),), BIGINT)
    assert coerce(Literal(300, INT), BIGINT) == Literal(300, BIGINT)
    lossy: list[tuple[Expression, Type]] = [
        (column(BIGINT), INT),
        (column(TIMESTAMP), DATE),
        (column(STRING), DATE),
        (Literal(300, INT), TINYINT),
        (Literal(Decimal("1.25"), decimal(3, 2)), decimal(3, 1)),
        (text("5"), INT),
    ]
    for expression, to in lossy:
        with pytest.raises(FunctionTypeError):
            coerce(expression, to)


def test_the_opposite_of_a_constant_is_a_constant() -> None:
    assert build("negate", number_literal("5")) == Literal(-5, INT)
    assert build("negate", Literal(Decimal("9" * 38), decimal(38, 0))) == Literal(
        Decimal("-" + "9" * 38), decimal(38, 0)
    )
    least = Literal(-(2**63), BIGINT)
    assert build("negate", least) == Call("negate", (least,))


def test_shorthands_are_spelled_out() -> None:
    condition, moment = column(BOOLEAN), column(TIMESTAMP)
    assert build("if", condition, number_literal("1"), Literal(None, BOOLEAN)) == Call(
        "case", (condition, Literal(1, INT), Literal(None, INT))
    )
    assert build("locate", text("a"), column(STRING)) == Call("instr", (column(STRING), text("a")))
    assert build("to_date", moment) == Call("cast", (moment,), DATE)
    assert build("to_timestamp", moment) == moment
    assert build("date_part", text("HOUR"), moment) == Call("hour", (moment,))
    assert build("datediff", text("DAY"), moment, moment) == Call(
        "timestampdiff", (text("DAY"), moment, moment)
    )
    assert build("isnotnull", moment) == Call("not", (Call("is_null", (moment,)),))
