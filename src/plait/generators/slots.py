"""When row k of a generated stream happens, and the random numbers that belong to it.

Row k has the **slot** floor(k / rate), in microseconds since 1970. The rate is taken as a fraction and all
arithmetic is on integers, so that a slot does not depend on the interval in which it is met.

Random numbers are SplitMix64 in counter mode: the number of column c in row k is the k-th number of the
sequence whose seed is a digest of (seed, stream, c). Nothing has to be drawn before it, columns are
independent of each other, and a million numbers take about 5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.errors import UserError

Integers: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]

SECOND_US = 1_000_000

MAX_RATE_ROWS_PER_S = 1_000_000
# A rate's fraction has no greater denominator, so that products of a part's row numbers fit into 64 bits.
_MAX_DENOMINATOR = 1_000_000
# Rows computed at a time: small enough for the processor's cache, large enough to forget the cost of a call.
_ROWS_PER_PART = 1 << 16

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, eq=False)
class Slots:
    """Consecutive rows of a stream: their numbers, their times, and random numbers by column."""

    stream: str
    seed: int
    rate: Fraction
    numbers: Integers
    times_us: Integers

    def __len__(self) -> int:
        return len(self.numbers)

    def bits(self, column: str) -> Bits:
        """64 random bits a row."""
        key = np.uint64(_key(f"{self.seed}/{self.stream}/{column}"))
        return mixed(self.numbers.astype(np.uint64), key)

    def below(self, column: str, limit: int) -> Integers:
        """Whole numbers from 0 up to, not including, the limit, all equally often."""
        return scaled(self.bits(column), limit)

    def lower_below(self, column: str, limit: int) -> Integers:
        """The same, but low numbers more often: the lesser of two draws."""
        return np.minimum(self.below(column, limit), self.below(f"{column}/2", limit))

    def one_in(self, column: str, count: int) -> Flags:
        """True for one row in so many."""
        flags: Flags = self.below(column, count) == 0
        return flags


def mixed(numbers: Bits, key: np.uint64) -> Bits:
    """The numbers of a SplitMix64 sequence at these positions."""
    z = numbers * _GOLDEN
    z += key
    z ^= z >> np.uint64(30)
    z *= _MIX_1
    z ^= z >> np.uint64(27)
    z *= _MIX_2
    z ^= z >> np.uint64(31)
    return z


def scaled(bits: Bits, limit: int) -> Integers:
    """Random bits as whole numbers below a limit of at most 32 bits."""
    high = bits >> np.uint64(32)
    high *= np.uint64(limit)
    high >>= np.uint64(32)
    return high.astype(np.int64)


def fixed_below(name: str, of: Integers, limit: int) -> Integers:
    """A property of a thing that is the same in every stream and for every seed: a number below the limit."""
    return scaled(mixed(of.astype(np.uint64), np.uint64(_key(name))), limit)


def exact_rate(rate_rows_per_s: float) -> Fraction:
    """The rate as a fraction: 70 rows a minute are 7/6 a second.

    >>> exact_rate(70 / 60)
    Fraction(7, 6)
    """
    if 1 / _MAX_DENOMINATOR <= rate_rows_per_s <= MAX_RATE_ROWS_PER_S:
        return Fraction(rate_rows_per_s).limit_denominator(_MAX_DENOMINATOR)
    raise UserError(
        "generator-rate",
        f"a generator makes no {rate_rows_per_s:g} rows a second",
        hint=f"use a rate from one row in eleven days to {MAX_RATE_ROWS_PER_S:,} rows a second",
    )


def first_at(rate: Fraction, time_us: int) -> int:
    """The number of the first row whose slot is not before this time."""
    return -(-time_us * rate.numerator // (rate.denominator * SECOND_US))


def slot_us(rate: Fraction, number: int) -> int:
    """When row `number` happens."""
    return number * SECOND_US * rate.denominator // rate.numerator


def parts(stream: str, seed: int, rate: Fraction, from_us: int, to_us: int) -> Iterator[Slots]:
    """The rows whose slots are in [from_us, to_us), cut at fixed row numbers."""
    number, end = first_at(rate, max(0, from_us)), first_at(rate, max(0, to_us))
    while number < end:
        stop = min(end, (number // _ROWS_PER_PART + 1) * _ROWS_PER_PART)
        yield _part(stream, seed, rate, number, stop)
        number = stop


def _part(stream: str, seed: int, rate: Fraction, first: int, stop: int) -> Slots:
    step = SECOND_US * rate.denominator
    # Beyond 64 bits only once a part: the first row's product as a Python integer, the others from there.
    whole, rest = divmod(first * step, rate.numerator)
    offsets = np.arange(stop - first, dtype=np.int64)
    times_us = whole + (rest + offsets * step) // rate.numerator
    return Slots(stream, seed, rate, first + offsets, times_us)


@lru_cache(maxsize=1024)
def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
