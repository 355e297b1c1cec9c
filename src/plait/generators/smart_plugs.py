"""Energy consumption of households: the smart plugs of the federation paper (Ji et al., §8.1), in the schema
of the DEBS 2014 Grand Challenge.

A plug is known by house, household and plug together. It has two sensors: one measures the load of this
moment in watts (property 1), the other the work done so far in kilowatt hours (property 0). 40 houses with
1,000 plugs report every second, which makes the paper's 2,000 rows a second. As there, another rate is
another report frequency of the same plugs: 20,000 rows a second are a report every tenth of a second, the
rate factor 10.

The load of a plug is that of a device that is switched on and off by the minute; the work is the integral
over its mean load, so that it never falls, and starts anew after a million kilowatt hours. Times are in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from plait.expressions.types import BIGINT, INT, TIMESTAMP, decimal
from plait.generators.arrow_columns import bigints, decimals, ints, timestamps
from plait.generators.generator import GeneratedColumn, Generator
from plait.generators.slots import SECOND_US, Integers, Slots, fixed_below

HOUSES = 40
PLUGS = 1000
SENSORS = 2 * PLUGS

_MINUTE_US = 60 * SECOND_US
_LARGEST_WORK_WH = 10**9


@dataclass(frozen=True, eq=False)
class _Plugs:
    """Where each plug is, and what it feeds."""

    house: Integers
    household: Integers
    plug: Integers
    device_w: Integers


@lru_cache(maxsize=1)
def _plugs() -> _Plugs:
    number = np.arange(PLUGS, dtype=np.int64)
    house, in_house = number % HOUSES, number // HOUSES
    households = 2 + fixed_below("households", house, 17)
    # Most devices are small, a few are large: 2 W to 2 kW.
    device_w = 2 + fixed_below("device", number, 45) ** 2
    return _Plugs(house, in_house % households, in_house // households, device_w)


def _measurements(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    plugs = _plugs()
    sensor = slots.numbers % SENSORS
    number, property_ = sensor // 2, sensor % 2
    device_w = plugs.device_w[number]
    switched_on = fixed_below("switch", times_us // _MINUTE_US * PLUGS + number, 3) > 0
    noise_mw = slots.below("noise", 100) * device_w
    load_mw = np.where(switched_on, device_w * 950 + noise_mw, 0)
    work_wh = (device_w * (times_us // SECOND_US) // 3600) % _LARGEST_WORK_WH
    value = np.where(property_ == 1, load_mw, work_wh)
    return (
        bigints(slots.numbers),
        timestamps(times_us),
        decimals(value, 9, 3, slots.one_in("no value", 500)),
        ints(property_),
        ints(plugs.plug[number]),
        ints(plugs.household[number]),
        ints(plugs.house[number]),
    )


GENERATORS = (
    Generator(
        "smart_plugs.measurements",
        "load and work of 1,000 smart plugs in 40 houses, every second",
        (
            GeneratedColumn("id", BIGINT),
            GeneratedColumn("ts", TIMESTAMP),
            GeneratedColumn("value", decimal(9, 3)),
            GeneratedColumn("property", INT),
            GeneratedColumn("plug_id", INT),
            GeneratedColumn("household_id", INT),
            GeneratedColumn("house_id", INT),
        ),
        "ts",
        float(SENSORS),
        3 * SECOND_US,
        _measurements,
        resolution_us=1000,
    ),
)
