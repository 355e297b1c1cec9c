"""CAST between types: what does not fit, or is no such value, is NULL.

Numbers lose their fraction toward zero on the way to an integer and round half up to a DECIMAL. Text is
read strictly: an integer is digits with a sign, a DATE is `yyyy-mm-dd` (a time may follow), a TIMESTAMP is
`yyyy-mm-dd[ hh:mm[:ss[.ffffff]][Z|±hh:mm]]` with a blank or a T, in UTC unless it says otherwise; white space around is
ignored. This is what Spark's `try_cast` does, less the spellings in which it accepts half a date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from plait.expressions.functions.definition import (
    Arguments,
    Category,
    Example,
    Function,
    Resolved,
    Shape,
    Staged,
    verbatim,
)
from plait.expressions.functions.text import duckdb_text, spark_text
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_RANGE_US,
    Kind,
    Type,
)

# Spark trims these around most values, and only those up to the blank around fractions.
_BLANKS = r"[\x00-\x20\x7f]*"
_BLANKS_AROUND_FRACTIONS = r"[\x00-\x20]*"
_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = _YEAR + r"-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{0,9})?)?"
_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"
_FRACTION = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"

_INTEGER_TEXT = rf"^{_BLANKS}([+-]?[0-9]+){_BLANKS}\z"
_DECIMAL_TEXT = rf"^{_BLANKS_AROUND_FRACTIONS}({_FRACTION}){_BLANKS_AROUND_FRACTIONS}\z"
_DATE_TEXT = rf"^{_BLANKS}({_DATE})(?:[ T](?s:.*))?{_BLANKS}\z"
_TIMESTAMP_TEXT = rf"^{_BLANKS}({_DATE}(?:[ T]{_TIME}{_ZONE}?)?){_BLANKS}\z"

# Java also reads the suffix of a Java literal. It reads hexadecimal fractions too; those we refuse.
_DOUBLE_SUFFIX = r"([0-9.])[dDfF]([\x00-\x20]*)\z"
_DOUBLE_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DOUBLE_WORD = r"[+-]?(?i:inf(?:inity)?)|(?i:nan)|[+-]NaN"
_DOUBLE_TEXT = rf"^{_BLANKS_AROUND_FRACTIONS}({_DOUBLE_NUMBER}|{_DOUBLE_WORD}){_BLANKS_AROUND_FRACTIONS}\z"
_TRUE_WORDS = "('t', 'true', 'y', 'yes', '1')"
_FALSE_WORDS = "('f', 'false', 'n', 'no', '0')"
_BOOLEAN_TEXT = rf"^{_BLANKS}([a-zA-Z01]+){_BLANKS}\z"

_EXACT_IN_DOUBLE_DIGITS = 15


def parse_date(text: str) -> date | None:
    """A DATE as a cast reads it.

    >>> parse_date("2024-2-29")
    datetime.date(2024, 2, 29)
    """
    match = re.match(_python(_DATE_TEXT), text)
    return _date(match[1]) if match else None


def parse_timestamp(text: str) -> int | None:
    """A TIMESTAMP as a cast reads it, in microseconds.

    >>> parse_timestamp("1970-01-01 01:00:00.5+01:00")
    500000
    """
    match = re.match(_python(_TIMESTAMP_TEXT), text)
    if not match:
        return None
    parts = re.match(r"([-0-9]+)(?:[ T]([0-9:]+)(?:\.([0-9]*))?(Z|[+-].*)?)?", match[1])
    assert parts
    day = _date(parts[1])
    hour, minute, second = ([int(part) for part in (parts[2] or "0:0:0").split(":")] + [0])[:3]
    if day is None or hour > 23 or minute > 59 or second > 59:
        return None
    moment = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=UTC)
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    microseconds += int((parts[3] or "")[:6].ljust(6, "0"))
    zone = parts[4] or "Z"
    if zone != "Z":
        offset_minutes = int(zone[1:3]) * 60 + int(zone[4:6])
        microseconds -= (1 if zone[0] == "+" else -1) * offset_minutes * 60_000_000
    first, last = TIMESTAMP_RANGE_US
    return microseconds if first <= microseconds <= last else None


def _python(pattern: str) -> str:
    return pattern.replace(r"\z", r"\Z")


def _date(text: str) -> date | None:
    try:
        return date(*(int(part) for part in text.split("-")))
    except ValueError:
        return None


def _cast_rule(arguments: Arguments) -> Resolved:
    to = arguments.to
    if to is None or len(arguments.types) != 1:
        raise arguments.refused("a cast takes one value and a type")
    given = arguments.types[0] or to
    refusal = _refusal(given, to)
    if refusal is not None:
        reason, hint = refusal
        raise arguments.refused(f"{given} cannot become {to}{reason}", hint)
    return Resolved((given,), to)


def _refusal(given: Type, to: Type) -> tuple[str, str] | None:
    """Why a cast is not allowed, and what to write instead; None if it is."""
    if given == to:
        return None
    if INTERVAL in (given, to):
        return "", "use timestampdiff(unit, from, to) for a number; write INTERVAL literals"
    if given == DOUBLE and to == STRING:
        return ": engines write fractions differently", "CAST it to a DECIMAL first"
    moments = (DATE, TIMESTAMP)
    if given in moments and to not in (*moments, STRING):
        return "", "use unix_seconds(t), unix_millis(t), unix_micros(t) or datediff(to, from)"
    if to in moments and given not in (*moments, STRING):
        return "", "use timestamp_seconds(n), timestamp_millis(n) or timestamp_micros(n)"
    return None


def _timestamp_or_null(cast: str) -> Staged:
    inside = "{value} BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
    return Staged(cast, f"CASE WHEN {inside} THEN {{value}} END")


def _matched(pattern: str, quoted: Callable[[str], str]) -> str:
    """The part of the text a pattern takes; the empty text, which no cast accepts, if there is no match."""
    return f"regexp_extract({{0}}, {verbatim(quoted(pattern))}, 1)"


def _cast_spark(shape: Shape) -> str | Staged:
    given, to = shape.types[0], shape.result
    if given == to:
        return "{0}"
    if given == DOUBLE and to == BIGINT:
        # Spark takes 2^63 for the greatest BIGINT.
        return "try_cast(CASE WHEN {0} < 9223372036854775808D THEN {0} END AS BIGINT)"
    if given == STRING:
        if to == DOUBLE:
            return "try_cast(translate({0}, 'pP', '??') AS DOUBLE)"  # no hexadecimal fractions
        if to.kind is Kind.DECIMAL:
            return f"try_cast({_matched(_DECIMAL_TEXT, spark_text)} AS {{type}})"
        if to == DATE:
            return f"try_cast({_matched(_DATE_TEXT, spark_text)} AS DATE)"
        if to == TIMESTAMP:
            return _timestamp_or_null(f"try_cast({_matched(_TIMESTAMP_TEXT, spark_text)} AS TIMESTAMP)")
    return "try_cast({0} AS {type})"


def _cast_duckdb(shape: Shape) -> str | Staged:
    given, to = shape.types[0], shape.result
    if given == to:
        return "{0}"
    if given == STRING:
        return _text_to_duckdb(to)
    if to == BOOLEAN:
        return "({0} <> 0)"
    if given == BOOLEAN and to.is_numeric:
        return "TRY_CAST(CAST({0} AS INTEGER) AS {type})"
    if to.is_integer and not given.is_integer:
        return "TRY_CAST(trunc({0}) AS {type})"
    if given == DOUBLE:
        return "TRY_CAST(CAST({0} AS VARCHAR) AS {type})"  # rounds the shortest decimal that is this double
    if to == DOUBLE and given.kind is Kind.DECIMAL and given.precision > _EXACT_IN_DOUBLE_DIGITS:
        return (
            "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"  # the nearest double, where a division would round twice
        )
    return "TRY_CAST({0} AS {type})"


def _text_to_duckdb(to: Type) -> str | Staged:
    if to.is_integer:
        return f"TRY_CAST({_matched(_INTEGER_TEXT, duckdb_text)} AS {{type}})"
    if to.kind is Kind.DECIMAL:
        return f"TRY_CAST({_matched(_DECIMAL_TEXT, duckdb_text)} AS {{type}})"
    if to == DOUBLE:
        suffixless = f"regexp_replace({{0}}, {verbatim(duckdb_text(_DOUBLE_SUFFIX))}, '\\1\\2')"
        return f"TRY_CAST(regexp_extract({suffixless}, {verbatim(duckdb_text(_DOUBLE_TEXT))}, 1) AS DOUBLE)"
    if to == BOOLEAN:
        words = f"lower({_matched(_BOOLEAN_TEXT, duckdb_text)})"
        chosen = (
            f"CASE WHEN {{value}} IN {_TRUE_WORDS} THEN TRUE WHEN {{value}} IN {_FALSE_WORDS} THEN FALSE END"
        )
        return Staged(words, chosen)
    if to == DATE:
        return f"TRY_CAST({_matched(_DATE_TEXT, duckdb_text)} AS DATE)"
    assert to == TIMESTAMP
    zoned = f"TRY_CAST({_matched(_TIMESTAMP_TEXT, duckdb_text)} AS TIMESTAMPTZ)"
    return _timestamp_or_null(f"({zoned} AT TIME ZONE 'UTC')")


CASTS: tuple[Function, ...] = (
    Function(
        "cast",
        Category.CAST,
        "CAST(x AS type)",
        "The value as another type, NULL if it is none of that type; also `try_cast(x AS type)` and `x::type`.",
        _cast_rule,
        spark=_cast_spark,
        duckdb=_cast_duckdb,
        example=Example(("17",), 17, to=INT),
        written="CAST({0} AS {to})",
    ),
)
