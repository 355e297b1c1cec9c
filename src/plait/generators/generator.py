"""What a generator is, and how an interval of time becomes rows.

`rows(seed, rate, from, to)` are the rows whose **slots** are in [from, to) (see `slots`). A row's event time
is its slot, or, for some of the rows, earlier by up to `max_lag_us`: these come out of order, as they do in
real feeds. A stream whose watermark delay is at least that never loses a row. Event times are multiples of
`resolution_us`, which is part of that lag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from plait.expressions.arrow import arrow_schema
from plait.expressions.types import Type
from plait.generators.slots import Integers, Slots, exact_rate, parts

# One row in so many comes out of order.
_OUT_OF_ORDER = 16


@dataclass(frozen=True)
class GeneratedColumn:
    name: str
    type: Type


@dataclass(frozen=True)
class Generator:
    """`make` gives the columns of some rows, in order, from their slots and event times."""

    name: str
    documentation: str
    columns: tuple[GeneratedColumn, ...]
    event_time: str
    default_rate_rows_per_s: float
    max_lag_us: int
    make: Callable[[Slots, Integers], Sequence[pa.Array]] = field(repr=False)
    resolution_us: int = 1

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema([c.name for c in self.columns], [c.type for c in self.columns])

    def rows(self, seed: int, rate_rows_per_s: float, from_us: int, to_us: int) -> pa.Table:
        """All rows with slots in [from_us, to_us), in the order of their slots."""
        return pa.Table.from_batches(self.parts(seed, rate_rows_per_s, from_us, to_us), self.schema)

    def parts(self, seed: int, rate_rows_per_s: float, from_us: int, to_us: int) -> Iterator[pa.RecordBatch]:
        """The same rows, a part at a time, for intervals that do not fit into memory."""
        for slots in parts(self.name, seed, exact_rate(rate_rows_per_s), from_us, to_us):
            columns = self.make(slots, self._event_times(slots))
            yield pa.RecordBatch.from_arrays(list(columns), schema=self.schema)

    def _event_times(self, slots: Slots) -> Integers:
        resolution_us = self.resolution_us
        lag_us = slots.below("lag", self.max_lag_us - resolution_us + 2)
        times_us = slots.times_us - np.where(slots.one_in("out of order", _OUT_OF_ORDER), lag_us, 0)
        # Event time begins after 1970-01-01 00:00:00.
        return np.maximum(times_us // resolution_us, 1) * resolution_us
