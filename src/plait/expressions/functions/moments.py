"""Functions of time: DATE, TIMESTAMP (microseconds, UTC, years 1 to 9999) and INTERVAL.

Engines print an INTERVAL as a BIGINT of microseconds, so that they cannot differ in it. A moment outside
the years 1 to 9999 does not exist: what would give one is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from plait.expressions.functions.definition import (
    Arguments,
    Category,
    Example,
    Function,
    Resolved,
    Rule,
    Shape,
    Shorthand,
    Staged,
    always,
)
from plait.expressions.functions.rules import takes
from plait.expressions.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_RANGE_US, Type, decimal

_FIRST_US, _LAST_US = TIMESTAMP_RANGE_US
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))

_INSIDE_US = f"{{value}} BETWEEN {_FIRST_US} AND {_LAST_US}"
MICROSECONDS_TO_TIMESTAMP_SPARK = f"CASE WHEN {_INSIDE_US} THEN timestamp_micros({{value}}) END"
MICROSECONDS_TO_TIMESTAMP_DUCKDB = f"CASE WHEN {_INSIDE_US} THEN make_timestamp({{value}}) END"
_INSIDE_DAYS = f"{{value}} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"

FIXED_UNITS_US: Mapping[str, int] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_CALENDAR_UNITS_MONTHS: Mapping[str, int] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = (*FIXED_UNITS_US, *_CALENDAR_UNITS_MONTHS)

# What EXTRACT and date_part can take out of a moment. SECOND has its fraction, as in Spark; second() has not.
EXTRACT_FIELDS: Mapping[str, str] = {
    "year": "year",
    "years": "year",
    "quarter": "quarter",
    "month": "month",
    "months": "month",
    "week": "weekofyear",
    "weeks": "weekofyear",
    "day": "day",
    "days": "day",
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "hour": "hour",
    "hours": "hour",
    "minute": "minute",
    "minutes": "minute",
    "second": "second_with_fraction",
    "seconds": "second_with_fraction",
}


def normalised_unit(text: object) -> str | None:
    """The unit a text names, in upper case and singular.

    >>> normalised_unit("minutes")
    'MINUTE'
    """
    if not isinstance(text, str):
        return None
    name = text.upper()
    return next((unit for unit in UNITS if name in (unit, unit + "S")), None)


def _with_unit(inner: Rule) -> Rule:
    """The rule of the other arguments, behind a constant unit."""

    def rule(arguments: Arguments) -> Resolved:
        if len(arguments.types) < 2:
            raise arguments.refused("it takes a unit first")
        if normalised_unit(arguments.constants[0]) is None:
            raise arguments.invalid(f"the unit must be one of {', '.join(UNITS)}")
        rest = Arguments(arguments.usage, arguments.types[1:], arguments.constants[1:])
        resolved = inner(rest)
        return Resolved((STRING, *resolved.parameters), resolved.result)

    return rule


def _unit(shape: Shape) -> str:
    unit = normalised_unit(shape.constants[0])
    assert unit is not None  # the rule has checked it
    return unit


def _truncated(shape: Shape) -> str:
    return f"date_trunc('{_unit(shape)}', {{1}})"


def _difference_spark(shape: Shape) -> str:
    unit = _unit(shape)
    if unit in FIXED_UNITS_US:
        return f"(try_subtract(unix_micros({{2}}), unix_micros({{1}})) div {FIXED_UNITS_US[unit]}L)"
    return f"timestampdiff({unit}, {{1}}, {{2}})"


def _difference_duckdb(shape: Shape) -> str | Staged:
    unit = _unit(shape)
    if unit in FIXED_UNITS_US:
        return f"(TRY(epoch_us({{2}}) - epoch_us({{1}})) // {FIXED_UNITS_US[unit]})"
    # Java's count of whole months: a day less where the time of day is not reached, then months of 32 days.
    first, last = "CAST({1} AS DATE)", "CAST({2} AS DATE)"
    first_time, last_time = "CAST({1} AS TIME)", "CAST({2} AS TIME)"
    reached = (
        f"CASE WHEN {last} > {first} AND {last_time} < {first_time} THEN {last} - 1 "
        f"WHEN {last} < {first} AND {last_time} > {first_time} THEN {last} + 1 ELSE {last} END"
    )
    months = f"({_packed('{value}')} - {_packed(first)}) // 32"
    return Staged(reached, f"({months} // {_CALENDAR_UNITS_MONTHS[unit]})")


def _packed(day: str) -> str:
    return f"((year({day}) * 12 + month({day})) * 32 + day({day}))"


def _part(
    name: str,
    parameter: Type,
    meaning: str,
    example: int,
    *,
    duckdb: str = "",
    spellings: tuple[str, ...] = (),
) -> Function:
    """A part of a moment, an INT."""
    return Function(
        name,
        Category.TIME,
        f"{name}(t)",
        meaning,
        takes(INT, parameter),
        spark=f"{name}({{0}})",
        duckdb=f"CAST({duckdb or name + '({0})'} AS INTEGER)",
        example=Example((_EXAMPLE_TIME,), example),
        spellings=(name, *spellings),
    )


_EXAMPLE_TIME = datetime(2024, 2, 29, 13, 14, 15, 500_000)


def _from_epoch(name: str, unit: str, factor: int, example: int) -> Function:
    return Function(
        name,
        Category.TIME,
        f"{name}(n)",
        f"The TIMESTAMP that many {unit} after 1970 began.",
        takes(TIMESTAMP, BIGINT),
        spark=Staged(f"try_multiply({{0}}, {factor}L)", MICROSECONDS_TO_TIMESTAMP_SPARK),
        duckdb=Staged(f"TRY({{0}} * {factor})", MICROSECONDS_TO_TIMESTAMP_DUCKDB),
        example=Example((example,), datetime(1970, 1, 1, 0, 0, 1)),
        spellings=(name,),
        fails=always,
    )


def _since_epoch(name: str, unit: str, factor: int, *spellings: str) -> Function:
    # DuckDB's integer division truncates: go down to the whole unit first.
    whole = "{0}" if factor == 1 else f"date_trunc('{unit.removesuffix('s')}', {{0}})"
    return Function(
        name,
        Category.TIME,
        f"{name}(t)",
        f"Whole {unit} since 1970 began, rounded down.",
        takes(BIGINT, TIMESTAMP),
        spark=f"{name}({{0}})",
        duckdb=f"(epoch_us({whole}) // {factor})",
        example=Example((datetime(1970, 1, 1, 0, 0, 1),), 1_000_000 // factor),
        spellings=(name, *spellings),
    )


_DAYS_SINCE_EPOCH_DUCKDB = "({0} - DATE '1970-01-01')"

TIMES: tuple[Function, ...] = (
    _part("year", DATE, "Year.", 2024),
    _part("quarter", DATE, "Quarter of the year, 1 to 4.", 1),
    _part("month", DATE, "Month, 1 to 12.", 2),
    _part("weekofyear", DATE, "ISO week of the year, 1 to 53.", 9),
    _part("day", DATE, "Day of the month.", 29, spellings=("dayofmonth",)),
    _part("dayofyear", DATE, "Day of the year, 1 to 366.", 60),
    _part("dayofweek", DATE, "1 for Sunday to 7 for Saturday.", 5, duckdb="dayofweek({0}) + 1"),
    _part("weekday", DATE, "0 for Monday to 6 for Sunday.", 3, duckdb="isodow({0}) - 1"),
    _part("hour", TIMESTAMP, "Hour, 0 to 23.", 13),
    _part("minute", TIMESTAMP, "Minute, 0 to 59.", 14),
    _part("second", TIMESTAMP, "Second without its fraction, 0 to 59.", 15),
    Function(
        "second_with_fraction",
        Category.TIME,
        "EXTRACT(SECOND FROM t)",
        "Second with its fraction, DECIMAL(8,6). EXTRACT also takes YEAR, QUARTER, MONTH, WEEK, DAY, DOW, "
        "DOY, HOUR and MINUTE.",
        takes(decimal(8, 6), TIMESTAMP),
        spark="extract(SECOND FROM {0})",
        duckdb="CAST(CAST(microsecond({0}) AS DECIMAL(18,0)) * 0.000001 AS DECIMAL(8,6))",
        example=Example((_EXAMPLE_TIME,), Decimal("15.500000")),
        written="EXTRACT(SECOND FROM {0})",
    ),
    Function(
        "date_trunc",
        Category.TIME,
        "date_trunc(unit, t)",
        "The start of the unit a moment lies in; weeks start on Monday.",
        _with_unit(takes(TIMESTAMP, TIMESTAMP)),
        spark=_truncated,
        duckdb=lambda shape: f"CAST({_truncated(shape)} AS TIMESTAMP)",
        example=Example(("HOUR", _EXAMPLE_TIME), datetime(2024, 2, 29, 13)),
        spellings=("date_trunc",),
        literals=frozenset({0}),
    ),
    Function(
        "timestampdiff",
        Category.TIME,
        "timestampdiff(unit, from, to)",
        "Whole units between two moments, negative if `to` is earlier. Also `datediff(unit, from, to)`.",
        _with_unit(takes(BIGINT, TIMESTAMP, TIMESTAMP)),
        spark=_difference_spark,
        duckdb=_difference_duckdb,
        example=Example(("MINUTE", datetime(2024, 1, 1, 0, 0, 30), datetime(2024, 1, 1, 1)), 59),
        spellings=("timestampdiff",),
        literals=frozenset({0}),
    ),
    Function(
        "datediff",
        Category.TIME,
        "datediff(to, from)",
        "Days between two dates, an INT.",
        takes(INT, DATE, DATE),
        spark="datediff({0}, {1})",
        duckdb="CAST(({0} - {1}) AS INTEGER)",
        example=Example((date(2024, 3, 1), date(2024, 2, 28)), 2),
        spellings=("datediff", "date_diff"),
    ),
    Function(
        "date_add",
        Category.TIME,
        "date_add(d, n)",
        "The date n days later.",
        takes(DATE, DATE, INT),
        spark=Staged(
            "try_add(unix_date({0}), {1})",
            f"CASE WHEN {_INSIDE_DAYS} THEN date_from_unix_date({{value}}) END",
        ),
        duckdb=Staged(
            f"({_DAYS_SINCE_EPOCH_DUCKDB} + {{1}})",
            f"CASE WHEN {_INSIDE_DAYS} THEN DATE '1970-01-01' + CAST({{value}} AS INTEGER) END",
        ),
        example=Example((date(2024, 2, 28), 2), date(2024, 3, 1)),
        spellings=("date_add",),
        fails=always,
    ),
    Function(
        "add_months",
        Category.TIME,
        "add_months(d, n)",
        "The same day n months later, or the last of that month if it is shorter.",
        takes(DATE, DATE, INT),
        # 240,000 months lead out of all years there are, and more would make the engines raise an error.
        spark=Staged(
            "unix_date(add_months({0}, least(greatest({1}, -240000), 240000)))",
            f"CASE WHEN {_INSIDE_DAYS} THEN date_from_unix_date({{value}}) END",
        ),
        duckdb=Staged(
            "(CAST({0} + to_months(least(greatest({1}, -240000), 240000)) AS DATE) - DATE '1970-01-01')",
            f"CASE WHEN {_INSIDE_DAYS} THEN DATE '1970-01-01' + CAST({{value}} AS INTEGER) END",
        ),
        example=Example((date(2024, 1, 31), 1), date(2024, 2, 29)),
        spellings=("add_months",),
        fails=always,
    ),
    Function(
        "last_day",
        Category.TIME,
        "last_day(d)",
        "The last date of the month.",
        takes(DATE, DATE),
        spark="last_day({0})",
        duckdb="last_day({0})",
        example=Example((date(2024, 2, 1),), date(2024, 2, 29)),
        spellings=("last_day",),
    ),
    _since_epoch("unix_seconds", "seconds", 1_000_000, "unix_timestamp", "to_unix_timestamp"),
    _since_epoch("unix_millis", "milliseconds", 1_000),
    _since_epoch("unix_micros", "microseconds", 1),
    _from_epoch("timestamp_seconds", "seconds", 1_000_000, 1),
    _from_epoch("timestamp_millis", "milliseconds", 1_000, 1_000),
    _from_epoch("timestamp_micros", "microseconds", 1, 1_000_000),
)

TIME_SHORTHANDS: tuple[Shorthand, ...] = (
    Shorthand(
        "date_part",
        Category.TIME,
        "date_part(field, t)",
        "Short for EXTRACT(field FROM t).",
        Example(("HOUR", _EXAMPLE_TIME), 13),
        ("date_part", "datepart"),
    ),
    Shorthand(
        "trunc",
        Category.TIME,
        "trunc(d, unit)",
        "The first date of the unit a date lies in.",
        Example((date(2024, 2, 29), "MONTH"), date(2024, 2, 1)),
        ("trunc",),
    ),
    Shorthand(
        "date_sub",
        Category.TIME,
        "date_sub(d, n)",
        "The date n days earlier.",
        Example((date(2024, 3, 1), 1), date(2024, 2, 29)),
        ("date_sub",),
    ),
    Shorthand(
        "timestampadd",
        Category.TIME,
        "timestampadd(unit, n, t)",
        "The moment n units later; MICROSECOND to WEEK.",
        Example(("HOUR", 2, datetime(2024, 1, 1)), datetime(2024, 1, 1, 2)),
        ("timestampadd", "dateadd"),
    ),
    Shorthand(
        "to_date",
        Category.TIME,
        "to_date(x)",
        "Short for CAST(x AS DATE).",
        Example(("2024-02-29",), date(2024, 2, 29)),
        ("to_date", "date"),
    ),
    Shorthand(
        "to_timestamp",
        Category.TIME,
        "to_timestamp(x)",
        "Short for CAST(x AS TIMESTAMP).",
        Example(("2024-02-29 13:00:00",), datetime(2024, 2, 29, 13)),
        ("to_timestamp", "timestamp"),
    ),
)
