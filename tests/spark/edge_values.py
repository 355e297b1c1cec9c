"""Values at which engines tend to differ, by type; timestamps and intervals in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Context, Decimal

from plait.expressions.calendar import parse_timestamp
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
    TIMESTAMP_RANGE_US,
    TINYINT,
    Type,
    Value,
    decimal,
    integer_range,
)

MONEY = decimal(5, 2)
RATIO = decimal(18, 6)
FRACTION = decimal(9, 9)
LONG = decimal(20, 0)
WIDE = decimal(38, 0)
FINE = decimal(38, 20)
RATE = decimal(32, 10)

_EXACT = Context(prec=60)


def _integers(type_: Type) -> tuple[Value, ...]:
    low, high = integer_range(type_)
    return (None, 0, 1, -1, 2, -7, 100, low, low + 1, high, high - 1)


def _decimals(type_: Type, *texts: str) -> tuple[Value, ...]:
    greatest = _EXACT.create_decimal(10**type_.precision - 1).scaleb(-type_.scale, context=_EXACT)
    unit = Decimal(1).scaleb(-type_.scale)
    values = [Decimal(0), unit, -unit, greatest, greatest.copy_negate(), *map(Decimal, texts)]
    return (None, *(value.quantize(unit, context=_EXACT) for value in values))


TEXTS: tuple[Value, ...] = (
    *(None, "", " ", "  a b ", "a", "b", "ab", "abc", "ABC", "abcabc", "aXbXc", "a,b,,c"),
    *("ß", "straße", "İstanbul", "ı", "😀", "a😀b😀", "é", "e\u0301", "ǅ", "K"),
    *("%", "_", "\\", "a%b", "a_b", "a\\b", "100%", "\t x\n", "it's", "$", "${env:HOME}", "{0}", "a\0b"),
    *("line\nbreak", "\r", "x\r\n", "\u2028", "gate 17", "gate 17, gate 4", "[a]", "12", "-"),
)

NUMBER_TEXTS: tuple[Value, ...] = (
    *("0", "1", "+1", "-1", " 12 ", "\t7\n", "\x7f8", "\xa09", "--1", "+", "-", "1 2", "1_000", "１", "0x10"),
    *(
        "1.5",
        "-1.5",
        ".5",
        "1.",
        ".",
        "1.005",
        "-1.995",
        "999.994",
        "999.995",
        "99999999.99",
        "1e3",
        "1E-3",
        "1e",
        "e1",
    ),
    *(
        "1e400",
        "-1e400",
        "1e-400",
        "1d",
        "1F",
        "1.5D",
        "1.e2f",
        "inf",
        "-Infinity",
        "+INF",
        "NaN",
        "nan",
        "-NaN",
        "-nan",
    ),
    *(
        "inff",
        "infinit",
        "0x1p3",
        "1L",
        "127",
        "128",
        "-129",
        "32768",
        "2147483648",
        "-2147483648",
        "2147483647",
    ),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "0" * 50 + "1",
        "9" * 38,
        "9" * 39,
    ),
    *("0." + "3" * 60, "0.0000000005", "0.9999999995"),
)

BOOLEAN_TEXTS: tuple[Value, ...] = (
    "true",
    " TRUE ",
    "t",
    "Yes",
    "y",
    "false",
    "F",
    "no",
    "N",
    "on",
    "off",
    "truE",
    "yeſ",
)

TIME_TEXTS: tuple[Value, ...] = (
    *(
        "2024-02-29",
        "2024-2-9",
        " 2024-02-29 ",
        "2023-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-02-29abc",
        "2024-02-29 abc",
    ),
    *(
        "2024-02-29T",
        "2024-02-29Z",
        "2024",
        "2024-02",
        "20240229",
        "02/29/2024",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
    ),
    *(
        "10000-01-01",
        "+2024-01-01",
        "-2024-01-01",
        "2024-02-29 12:34:56",
        "2024-02-29T12:34:56",
        "2024-02-29 1:2:3",
    ),
    *(
        "2024-02-29 12:34",
        "2024-02-29 12",
        "2024-02-29 12:34:56.",
        "2024-02-29 12:34:56.7",
        "2024-02-29 12:34:56.123456789",
    ),
    *("2024-02-29 12:34:56.9999999", "2024-02-29 24:00:00", "2024-02-29 23:60:00", "2024-02-29 23:59:60"),
    *(
        "2024-02-29 12:34:56Z",
        "2024-02-29 12:34:56 UTC",
        "2024-02-29 12:34:56+05:30",
        "2024-02-29T00:00:00-17:59",
    ),
    *(
        "2024-02-29 12:34:56+18:00",
        "2024-02-29 12:34:56+5",
        "2024-02-29 12:34:56+05:60",
        "2024-02-29 12:34+01:00",
    ),
    *(
        "0001-01-01 00:00:00+05:00",
        "9999-12-31 23:59:59-05:00",
        "1969-12-31 23:59:59.999999",
        "12:34:56",
        "now",
        "epoch",
    ),
    *("2024-02-29 12:34:56 Europe/Berlin", "2024-02-29\t12:34:56", "infinity", "1582-10-10 00:00:00"),
)

EDGE_VALUES: Mapping[Type, tuple[Value, ...]] = {
    BOOLEAN: (None, True, False),
    TINYINT: _integers(TINYINT),
    SMALLINT: _integers(SMALLINT),
    INT: (*_integers(INT), 3, -3, 29, 146_097, -240_000, 1_000_000),
    BIGINT: (*_integers(BIGINT), 999, -999, 1_000_001, 253_402_300_800, -62_135_596_801, 2**53 + 1),
    MONEY: _decimals(MONEY, "1", "1.25", "-1.25", "1.35", "0.5", "-0.50", "2.5", "127.5", "-128.5"),
    RATIO: _decimals(RATIO, "1", "0.285", "-7.5", "2.000001", "2147483648", "-128.999999"),
    FRACTION: _decimals(FRACTION, "0.5", "-0.5", "0.123456789"),
    LONG: _decimals(LONG, "5", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    WIDE: _decimals(WIDE, "5", "9223372036854775808", "12345678901234567890123456789012345678"),
    RATE: _decimals(RATE, "1", "-0.5", "1234567890.0123456789"),
    FINE: _decimals(FINE, "0.5", "-1.5", "0.1", "123456789012345678.12345678901234567890"),
    DOUBLE: (
        *(
            None,
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            0.285,
            1.005,
            127.5,
            -128.9,
            1e-9,
            1e-5,
        ),
        *(
            12345.678,
            1e10,
            2147483647.9,
            -2147483648.9,
            9007199254740993.0,
            9.223372036854775807e18,
            -9.223372036854775808e18,
        ),
        *(
            1e19,
            -1e22,
            1.7976931348623157e308,
            -1.7976931348623157e308,
            5e-324,
            float("nan"),
            float("inf"),
            float("-inf"),
        ),
    ),
    STRING: TEXTS,
    DATE: (
        *(
            None,
            date.min,
            date(1, 1, 2),
            date(1582, 10, 10),
            date(1900, 2, 28),
            date(1969, 12, 31),
            date(1970, 1, 1),
        ),
        *(
            date(2000, 2, 29),
            date(2021, 1, 1),
            date(2024, 1, 31),
            date(2024, 2, 29),
            date(2024, 3, 31),
            date(2024, 12, 30),
        ),
        date.max,
    ),
    TIMESTAMP: (
        *(None, *TIMESTAMP_RANGE_US, 0, 1, -1, 1_000_000, -1_000_001),
        *map(
            parse_timestamp,
            (
                *(
                    "1582-10-10 01:02:03",
                    "1969-12-31 12:00:00",
                    "2024-01-31 12:00:00",
                    "2024-02-29 12:34:56.789012",
                ),
                *(
                    "2024-03-01 10:00:00",
                    "2024-03-31 23:59:59.999999",
                    "2024-12-30 00:00:00",
                    "2023-01-31 12:00:01",
                ),
            ),
        ),
    ),
    INTERVAL: (
        None,
        0,
        1,
        -1,
        1_000_000,
        86_400_000_000,
        -86_400_000_000,
        315_537_897_600_000_000,
        *integer_range(BIGINT),
    ),
}

# Fewer values of each type, for functions of three arguments.
FEW_VALUES: Mapping[Type, tuple[Value, ...]] = {
    BOOLEAN: EDGE_VALUES[BOOLEAN],
    INT: (None, 0, 1, -1, 2, -3, 5, *integer_range(INT)),
    DOUBLE: (None, 0.0, -1.5, float("nan"), float("inf")),
    MONEY: EDGE_VALUES[MONEY][:6],
    STRING: (None, "", "a", "abc", "ab", "b", "a😀b😀", "aXbXc", "ß", "X", "c", "\\", "%"),
    DATE: (None, date.min, date(2024, 2, 29), date.max),
    TIMESTAMP: (None, *TIMESTAMP_RANGE_US, 0, -1),
}
