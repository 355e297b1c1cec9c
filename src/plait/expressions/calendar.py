r"""Dates and timestamps as text and as microseconds since 1970 (UTC), in the one form everything here reads
and writes.

A DATE is `yyyy-mm-dd` (a time may follow), a TIMESTAMP `yyyy-mm-dd[ hh:mm[:ss[.ffffff][Z|±hh:mm]]]` with a
blank or a T in between; white space around is ignored. The patterns are read by Python, Java and RE2 alike,
but for `\z`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from plait.expressions.types import TIMESTAMP_RANGE_US

BLANKS = r"[\x00-\x20\x7f]*"
_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = _YEAR + r"-[0-9]{1,2}-[0-9]{1,2}"
_HOUR_AND_MINUTE = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]"
_SECOND = r":[0-5]?[0-9](?:\.[0-9]{0,9})?"
_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"

DATE_PATTERN = rf"^{BLANKS}({_DATE})(?:[ T](?s:.*))?{BLANKS}\z"
TIMESTAMP_PATTERN = rf"^{BLANKS}({_DATE}(?:[ T]{_HOUR_AND_MINUTE}(?:{_SECOND}{_ZONE}?)?)?){BLANKS}\z"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_date(text: str) -> date | None:
    """
    >>> parse_date("2024-2-29")
    datetime.date(2024, 2, 29)
    """
    match = re.match(_in_python(DATE_PATTERN), text)
    return _date(match[1]) if match else None


def parse_timestamp(text: str) -> int | None:
    """Microseconds.

    >>> parse_timestamp("1970-01-01 01:00:00.5+01:00")
    500000
    """
    match = re.match(_in_python(TIMESTAMP_PATTERN), text)
    if not match:
        return None
    parts = re.fullmatch(r"([0-9-]+)(?:[ T]([0-9:]+)(?:\.([0-9]*))?(Z|[+-].*)?)?", match[1])
    assert parts
    day, (hour, minute, second) = _date(parts[1]), _clock(parts[2] or "0:0")
    if day is None:
        return None
    microseconds = date_to_us(day) + ((hour * 60 + minute) * 60 + second) * 1_000_000
    microseconds += int((parts[3] or "")[:6].ljust(6, "0"))
    zone = parts[4] or "Z"
    if zone != "Z":
        offset_us = (int(zone[1:3]) * 60 + int(zone[4:6])) * 60_000_000
        microseconds -= offset_us if zone[0] == "+" else -offset_us
    first, last = TIMESTAMP_RANGE_US
    return microseconds if first <= microseconds <= last else None


def timestamp_text(microseconds: int) -> str:
    """
    >>> timestamp_text(-500000)
    '1969-12-31 23:59:59.5'
    """
    text = (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def date_to_us(day: date) -> int:
    """Microseconds of a date's first moment.

    >>> date_to_us(date(1970, 1, 2))
    86400000000
    """
    return (day.toordinal() - _EPOCH.toordinal()) * 86_400_000_000


def datetime_to_us(moment: datetime) -> int:
    """Microseconds of a datetime without zone, which is in UTC.

    >>> datetime_to_us(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    return (moment - _EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)


def _in_python(pattern: str) -> str:
    return pattern.replace(r"\z", r"\Z")


def _date(text: str) -> date | None:
    year, month, day = (int(part) for part in text.split("-"))
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _clock(text: str) -> tuple[int, int, int]:
    hour, minute, *second = (int(part) for part in text.split(":"))
    return hour, minute, second[0] if second else 0
