"""A generator as a stream declares it: with seed, rate, start and end.

The one place that says what a declaration leaves out: the seed is 0, the rate the generator's own. A stream
without `start` begins when it is first run; one without `end` goes on with the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pyarrow as pa

from plait.generators.generator import Generator
from plait.generators.registry import GENERATORS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_POSITIONS = ("earliest", "latest")  # no times


class DeclaredStream(Protocol):
    """A stream of the catalog with `connector = 'generator'`."""

    @property
    def options(self) -> Mapping[str, object]: ...
    @property
    def rate_rows_per_s(self) -> float | None: ...
    @property
    def start(self) -> str: ...
    @property
    def end(self) -> str | None: ...


@dataclass(frozen=True)
class Feed:
    """None: without start, or without end."""

    generator: Generator
    seed: int
    rate_rows_per_s: float
    start_us: int | None
    end_us: int | None

    def rows(self, from_us: int, to_us: int) -> pa.Table:
        """The rows with slots in [from_us, to_us) that the stream consists of."""
        return self.generator.rows(self.seed, self.rate_rows_per_s, *self._within(from_us, to_us))

    def parts(self, from_us: int, to_us: int) -> Iterator[pa.RecordBatch]:
        """The same rows, a part at a time."""
        return self.generator.parts(self.seed, self.rate_rows_per_s, *self._within(from_us, to_us))

    def _within(self, from_us: int, to_us: int) -> tuple[int, int]:
        first_us = from_us if self.start_us is None else max(from_us, self.start_us)
        return first_us, to_us if self.end_us is None else min(to_us, self.end_us)


def feed(stream: DeclaredStream) -> Feed:
    """What a declared stream is fed by."""
    generator = GENERATORS[str(stream.options["generator"])]
    rate = stream.rate_rows_per_s
    return Feed(
        generator,
        int(str(stream.options.get("seed", 0))),
        generator.default_rate_rows_per_s if rate is None else rate,
        None if stream.start in _POSITIONS else time_us(stream.start),
        None if stream.end is None else time_us(stream.end),
    )


def time_us(time: str) -> int:
    """A time in UTC, as microseconds since 1970.

    >>> time_us("1970-01-01 00:00:01.5")
    1500000
    """
    return (datetime.fromisoformat(time).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
