"""Numbers, choices and decimals as Arrow columns, without Python per row.

Columns are built from their buffers: `pa.array` would import pandas to find out what it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.generators.slots import Flags, Integers


def ints(values: Integers, null: Flags | None = None) -> pa.Array:
    return _from_values(pa.int32(), values.astype(np.int32), null)


def bigints(values: Integers, null: Flags | None = None) -> pa.Array:
    return _from_values(pa.int64(), values, null)


def timestamps(times_us: Integers) -> pa.Array:
    return _from_values(pa.timestamp("us", tz="UTC"), times_us)


def strings(choices: Sequence[str] | pa.Array, index: Integers, null: Flags | None = None) -> pa.Array:
    """The strings at these positions."""
    table = choices if isinstance(choices, pa.Array) else pa.array(choices, pa.string())
    return table.take(bigints(index, null))


def numbered(prefix: str, numbers: Integers) -> pa.Array:
    """Strings such as `lot 17`."""
    return pc.binary_join_element_wise(prefix, bigints(numbers).cast(pa.string()), "")


def decimals(unscaled: Integers, precision: int, scale: int, null: Flags | None = None) -> pa.Array:
    """Decimals whose last digits are these whole numbers: 1250 with scale 2 is 12.50."""
    # Arrow's 128 bits, low half first; the high half repeats the sign.
    halves = np.empty((len(unscaled), 2), dtype=np.int64)
    halves[:, 0] = unscaled
    halves[:, 1] = unscaled >> 63
    return _from_values(pa.decimal128(precision, scale), halves, null)


def _from_values(type_: pa.DataType, values: NDArray[Any], null: Flags | None = None) -> pa.Array:
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    # A view with another stride has no buffer of its own.
    return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])
