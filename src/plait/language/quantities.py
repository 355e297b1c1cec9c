"""Quantities with units as people write them: durations, sizes, bandwidths, rates.

Decides which spellings mean what, and refuses what would be guesswork: months (they differ in length),
bandwidths without a unit, values no machine has. Every error comes with an example that works.
"""

from __future__ import annotations

import re
from fractions import Fraction

from plait.errors import closest
from plait.language.limits import clip

MAX_DURATION_US = 100 * 365 * 86_400 * 1_000_000
MAX_BYTES = 10**18
MAX_BANDWIDTH_BYTES_PER_S = 10.0**15
MAX_RATE_ROWS_PER_S = 10.0**12
MAX_COUNT = 2**63 - 1
MAX_LENGTH = 200  # of the text of a quantity: Python reads no numbers of many thousand digits

_UNITS_US = {
    1: ("microsecond", "microseconds", "micros", "us", "µs", "μs"),
    1_000: ("millisecond", "milliseconds", "millis", "msec", "ms"),
    1_000_000: ("second", "seconds", "secs", "sec", "s"),
    60_000_000: ("minute", "minutes", "mins", "min", "m"),
    3_600_000_000: ("hour", "hours", "hrs", "hr", "h"),
    86_400_000_000: ("day", "days", "d"),
    604_800_000_000: ("week", "weeks", "w"),
}
DURATION_UNITS_US = {name: microseconds for microseconds, names in _UNITS_US.items() for name in names}
_VARYING_UNITS = frozenset({"month", "months", "mon", "quarter", "quarters", "year", "years", "y"})

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
_DURATION_PART = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>[^\W\d_]+)\s*(?:,|\band\b)?")
_WITH_UNIT = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>.*?)\s*", re.DOTALL)

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY_PREFIXES = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_SCALES = _PREFIXES | _BINARY_PREFIXES
_SIZE_UNIT = re.compile(r"(?P<prefix>[kmgtp]i?)?(?:b|bytes?)", re.IGNORECASE)
# Bits and bytes differ by the case of one letter, as everywhere.
_BANDWIDTH_UNIT = re.compile(
    r"(?P<prefix>[kKmMgGtT]i?)?(?:(?P<bits>bps|b/s|bits?/s|bits? per second)|(?P<bytes>Bps|B/s|bytes?/s))"
)
_RATE = re.compile(
    rf"\s*(?P<number>{_NUMBER})\s*(?:rows?|events?|tuples?)?\s*(?:(?:/|\bper\b)\s*(?P<time>.+?))?\s*",
    re.IGNORECASE,
)


class QuantityError(ValueError):
    """A quantity that cannot be read, and an example of one that can."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def parse_duration(text: str, *, positive: bool = False, signed: bool = False) -> int:
    """A duration in microseconds. `positive` refuses zero, `signed` allows negative ones.

    >>> parse_duration("5 MINUTES"), parse_duration("INTERVAL '1' HOUR"), parse_duration("1 day 2h")
    (300000000, 3600000000, 93600000000)
    """
    example = "for example '5 minutes', '2min', '100 ms'"
    shown = _shown(text)
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"{shown} is not a duration", example)
    inner = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    inner = inner.replace("'", " ").replace('"', " ").strip()
    if not inner:
        raise QuantityError(f"{shown} is not a duration", example)
    total = Fraction(0)
    position = 0
    while position < len(inner):
        part = _DURATION_PART.match(inner, position)
        if part is None:
            if re.fullmatch(_NUMBER, inner):
                number = inner.lstrip("-") if not signed else inner
                raise QuantityError(f"the duration {shown} lacks a unit", f"for example '{number} seconds'")
            raise QuantityError(f"{shown} is not a duration", example)
        total += Fraction(part["number"]) * _duration_unit_us(part["unit"])
        position = part.end()
    if total < 0 and not signed:
        raise QuantityError(f"the duration {shown} is negative", example)
    if positive and total == 0:
        raise QuantityError(f"the duration {shown} is zero", "a microsecond is the least there is")
    if abs(total) > MAX_DURATION_US:
        raise QuantityError(f"the duration {shown} is longer than 100 years", "the longest is '36500 days'")
    if total.denominator != 1:
        raise QuantityError(f"the duration {shown} is finer than a microsecond", example)
    return int(total)


def parse_limits(text: str) -> tuple[int | None, int | None]:
    """How long, in microseconds, and how much, in bytes; either, or both with a comma between them.

    >>> parse_limits("7 days"), parse_limits("10 GB"), parse_limits("7 days, 10 GB")
    ((604800000000, None), (None, 10000000000), (604800000000, 10000000000))
    """
    example = "for example '7 days', '10 GB', '7 days, 10 GB'"
    found: dict[bool, int] = {}
    for part in text.split(","):
        match = _WITH_UNIT.fullmatch(part)
        is_size = match is not None and _SIZE_UNIT.fullmatch(match["unit"]) is not None
        if is_size in found:
            raise QuantityError(f"{_shown(text)} says two times how {'much' if is_size else 'long'}", example)
        try:
            found[is_size] = parse_bytes(part) if is_size else parse_duration(part, positive=True)
        except QuantityError as error:
            raise QuantityError(error.message, example) from None
    return found.get(False), found.get(True)


def _duration_unit_us(unit: str) -> int:
    name = unit.lower()
    if name in _VARYING_UNITS:
        raise QuantityError(
            f"a duration in {name} has no fixed length", "say it in days: '30 days', '365 days'"
        )
    if name not in DURATION_UNITS_US:
        hint = closest(name, DURATION_UNITS_US) or "units are microseconds to weeks, such as '5 minutes'"
        raise QuantityError(f"there is no unit of time `{clip(unit)}`", hint)
    return DURATION_UNITS_US[name]


def parse_bytes(text: str, *, needs_unit: bool = False) -> int:
    """A size in bytes; without a unit the number of bytes, unless `needs_unit` refuses that.

    >>> parse_bytes("16 GB"), parse_bytes("64 KiB"), parse_bytes("120")
    (16000000000, 65536, 120)
    """
    example = "for example '16 GB', '512 MiB'"
    number, unit = _number_and_unit(text, "a size", example)
    if needs_unit and not unit:
        raise QuantityError(f"the size {_shown(text)} lacks a unit", f"for example '{text.strip()} GB'")
    match = _SIZE_UNIT.fullmatch(unit or "B")
    if match is None:
        raise QuantityError(f"{_shown(text)} has no unit of size", example)
    size = number * _SCALES[(match["prefix"] or "").lower()]
    if not 0 < size <= MAX_BYTES:
        raise QuantityError(f"the size {_shown(text)} is not between 1 byte and 1 EB", example)
    if size.denominator != 1:
        raise QuantityError(f"the size {_shown(text)} is no whole number of bytes", example)
    return int(size)


def parse_bandwidth(text: str) -> float:
    """A bandwidth in bytes per second. `Mbps` counts bits, `MB/s` bytes.

    >>> parse_bandwidth("100 Mbps"), parse_bandwidth("10 MB/s")
    (12500000.0, 10000000.0)
    """
    example = "for example '100 Mbps' (bits) or '10 MB/s' (bytes)"
    number, unit = _number_and_unit(text, "a bandwidth", example)
    match = _BANDWIDTH_UNIT.fullmatch(unit)
    if match is None:
        problem = "lacks a unit" if not unit else f"has the unknown unit `{clip(unit)}`"
        raise QuantityError(f"the bandwidth {_shown(text)} {problem}", example)
    scaled = number * _SCALES[(match["prefix"] or "").lower()]
    bytes_per_s = float(scaled / 8 if match["bits"] else scaled)
    if not 0 < bytes_per_s <= MAX_BANDWIDTH_BYTES_PER_S:
        raise QuantityError(f"the bandwidth {_shown(text)} is not between 0 and 1 PB/s", example)
    return bytes_per_s


def parse_rate(text: str) -> float:
    """A rate in rows per second.

    >>> parse_rate("5"), parse_rate("240/min"), parse_rate("1500 rows / 5 min")
    (5.0, 4.0, 5.0)
    """
    example = "for example 5 (rows a second), '240/min', '1500/5 min'"
    match = _RATE.fullmatch(text)
    if match is None or len(text) > MAX_LENGTH:
        raise QuantityError(f"{_shown(text)} is not a rate", example)
    seconds = Fraction(1)
    if match["time"]:
        time = match["time"]
        per_one = time if re.match(r"[0-9.+-]", time) else f"1 {time}"
        seconds = Fraction(parse_duration(per_one, positive=True), 1_000_000)
    rate = Fraction(match["number"]) / seconds
    if not 0 <= rate <= MAX_RATE_ROWS_PER_S:
        raise QuantityError(f"the rate {_shown(text)} is not between 0 and 10^12 rows a second", example)
    return float(rate)


def parse_count(text: str, *, least: int = 1) -> int:
    """A whole number.

    >>> parse_count("300")
    300
    """
    stripped = text.strip()
    if not re.fullmatch(r"[+-]?[0-9]+", stripped) or len(stripped) > 20:
        raise QuantityError(f"{_shown(text)} is not a whole number", "for example 300")
    number = int(stripped)
    if not least <= number <= MAX_COUNT:
        raise QuantityError(f"{_shown(text)} is not a whole number of at least {least}", "for example 300")
    return number


def parse_number(text: str, *, most: float) -> float:
    """A positive number up to `most`."""
    stripped = text.strip()
    if not re.fullmatch(_NUMBER, stripped):
        raise QuantityError(f"{_shown(text)} is not a number", "for example 4")
    number = float(stripped)
    if not 0 < number <= most:
        raise QuantityError(f"{_shown(text)} is not a positive number up to {most:g}", "for example 4")
    return number


def _number_and_unit(text: str, what: str, example: str) -> tuple[Fraction, str]:
    match = _WITH_UNIT.fullmatch(text)
    if match is None or len(text) > MAX_LENGTH:
        raise QuantityError(f"{_shown(text)} is not {what}", example)
    number = Fraction(match["number"])
    if number < 0:
        raise QuantityError(f"{what} is not negative: {_shown(text)}", example)
    return number, match["unit"]


def _shown(text: str) -> str:
    return f"`{clip(text.strip())}`"
