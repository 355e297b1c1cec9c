"""The operational information system of an airline: the enterprise workload of the hierarchical paper
(Seshadri, Kumar, Cooper, Liu, §2.1 and §4.1.1).

Fig. 5 gives each of the five sources a rate, and its selectivity as updates for each flight or destination:

| source | rate | selectivity | which makes |
|---|---|---|---|
| flights | 1500/5 min | 1/flight/5 min | 1,500 flights |
| check-ins | 240/min | 2/flight/min | 120 flights open for check-in |
| baggage | 500/min | 4/flight/min | 125 flights with bags on the belt |
| weather | 450/5 min | 1/dest/5 min | 450 destinations |
| sales | 70/min | 1/dest/min | 70 destinations sold |

The selectivities hold at every rate: a higher rate is a larger airline, not a busier flight, so that the
number of rows that a join finds grows with the rate and not with its square. Flights are numbered from 1
and those with low numbers are the open ones, in all streams and at all times: check-ins and bags meet
whatever the rates are, and so do all five streams where the rates are the same multiple of Fig. 5's. The
columns are those of examples/airline.sql; the paper prints only those that its queries use.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd
from string import ascii_uppercase

import pyarrow as pa

from plait.expressions.types import BIGINT, INT, STRING, TIMESTAMP, decimal
from plait.generators.arrow_columns import bigints, decimals, ints, strings, timestamps
from plait.generators.generator import GeneratedColumn, Generator
from plait.generators.slots import SECOND_US, Integers, Slots, fixed_below

# Rows a second for each flight or destination.
_FLIGHT_UPDATES = Fraction(1, 300)
_CHECKINS = Fraction(2, 60)
_BAGS = Fraction(4, 60)
_REPORTS = Fraction(1, 300)
_SALES = Fraction(1, 60)

_FLIGHTS_PER_DESTINATION = Fraction(1500, 450)

# Choices are listed as often as they are to be met.
_CARRIERS = ("DL", "DL", "DL", "UA", "AA")
_GATES = tuple(f"{letter}{number}" for number in range(1, 41) for letter in "ABCDE")
_FLIGHT_STATUS = (*["on time"] * 12, *["boarding"] * 4, *["delayed"] * 3, "cancelled")
_CHECKIN_STATUS = (*["checked in"] * 7, "upgraded", "standby")
_BAG_STATUS = (*["tagged"] * 8, *["screened"] * 6, *["loaded"] * 5, "misrouted")
_AREAS = ("N", "S", "E", "W")
_FORECASTS = (*["clear"] * 4, *["rain"] * 3, "fog", "storm", "snow")
_CHANNELS = (*["web"] * 6, *["desk"] * 2, "phone")

_KNOWN_CITIES = (
    *("BOS", "ORD", "LAX", "SEA", "MIA", "DEN", "SFO", "DFW"),
    *("PHX", "DTW", "MSP", "SLC", "JFK", "MCO", "LAS"),
)
MAX_CITIES = len(_KNOWN_CITIES) + len(ascii_uppercase) ** 3


def _how_many(rate: Fraction, rate_of_each: Fraction, most: int = 2**31 - 1) -> int:
    """The flights or destinations that give this rate together."""
    return max(1, min(most, round(rate / rate_of_each)))


def _in_turn(slots: Slots, count: int) -> Integers:
    """Each of so many things once a round, neighbours far apart: the open flights report all the time."""
    stride = next(step for step in range(round(0.618 * count) or 1, count + 1) if gcd(step, count) == 1)
    return slots.numbers % count * stride % count


@lru_cache(maxsize=8)
def _cities(count: int) -> pa.Array:
    letters = ascii_uppercase
    others = (f"K{a}{b}{c}" for a in letters for b in letters for c in letters)
    return pa.array([*_KNOWN_CITIES, *(code for code, _ in zip(others, range(count), strict=False))][:count])


def _flights(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    flights = _how_many(slots.rate, _FLIGHT_UPDATES)
    cities = max(1, min(MAX_CITIES, round(flights / _FLIGHTS_PER_DESTINATION)))
    number = _in_turn(slots, flights) + 1
    return (
        ints(number),
        strings(_CARRIERS, fixed_below("carrier", number, len(_CARRIERS))),
        strings(_cities(cities), (number - 1) % cities),
        strings(("T", "S"), number % 2),
        strings(_GATES, fixed_below("gate", number, len(_GATES)), slots.one_in("no gate yet", 40)),
        strings(_FLIGHT_STATUS, slots.below("status", len(_FLIGHT_STATUS))),
        timestamps(times_us),
    )


def _checkins(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    open_flights = _how_many(slots.rate, _CHECKINS)
    return (
        ints(slots.lower_below("flight", open_flights) + 1),
        bigints(slots.numbers),
        strings(_CHECKIN_STATUS, slots.below("status", len(_CHECKIN_STATUS)), slots.one_in("no status", 16)),
        timestamps(times_us),
    )


def _baggage(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    flights = _how_many(slots.rate, _BAGS)
    return (
        ints(slots.below("flight", flights) + 1),
        ints(slots.numbers % 1_000_000_000),
        strings(_AREAS, slots.below("area", len(_AREAS))),
        strings(_BAG_STATUS, slots.below("status", len(_BAG_STATUS))),
        decimals(50 + slots.lower_below("weight", 270), 5, 1, slots.one_in("not weighed", 50)),
        timestamps(times_us),
    )


def _weather(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    cities = _how_many(slots.rate, _REPORTS, MAX_CITIES)
    city = _in_turn(slots, cities)
    climate = fixed_below("climate", city, 30) - 8
    return (
        strings(_cities(cities), city),
        strings(_FORECASTS, slots.below("forecast", len(_FORECASTS))),
        ints(climate + slots.below("celsius", 7) - 3, slots.one_in("no reading", 50)),
        timestamps(times_us),
    )


def _sales(slots: Slots, times_us: Integers) -> Sequence[pa.Array]:
    destinations = _how_many(slots.rate, _SALES, MAX_CITIES)
    return (
        strings(_cities(destinations), slots.lower_below("dest", destinations)),
        strings(_CHANNELS, slots.below("channel", len(_CHANNELS)), slots.one_in("no channel", 50)),
        ints(slots.lower_below("seats", 4) + 1),
        decimals(8_000 + slots.lower_below("fare", 82_000), 8, 2),
        timestamps(times_us),
    )


GENERATORS = (
    Generator(
        "airline.flights",
        "updates of flights: 1 a flight in 5 minutes",
        (
            GeneratedColumn("num", INT),
            GeneratedColumn("carrier_code", STRING),
            GeneratedColumn("dest", STRING),
            GeneratedColumn("terminal", STRING),
            GeneratedColumn("gate", STRING),
            GeneratedColumn("status", STRING),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        1500 / 300,
        5 * SECOND_US,
        _flights,
    ),
    Generator(
        "airline.checkins",
        "passengers checking in: 2 an open flight and minute",
        (
            GeneratedColumn("flight", INT),
            GeneratedColumn("passenger", BIGINT),
            GeneratedColumn("status", STRING),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        240 / 60,
        5 * SECOND_US,
        _checkins,
    ),
    Generator(
        "airline.baggage",
        "bags on their way: 4 a flight and minute",
        (
            GeneratedColumn("flight", INT),
            GeneratedColumn("tag", INT),
            GeneratedColumn("area", STRING),
            GeneratedColumn("status", STRING),
            GeneratedColumn("weight_kg", decimal(5, 1)),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        500 / 60,
        5 * SECOND_US,
        _baggage,
    ),
    Generator(
        "airline.weather",
        "weather reports: 1 a destination in 5 minutes",
        (
            GeneratedColumn("city", STRING),
            GeneratedColumn("forecast", STRING),
            GeneratedColumn("celsius", INT),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        450 / 300,
        20 * SECOND_US,
        _weather,
    ),
    Generator(
        "airline.sales",
        "seats sold: 1 sale a destination and minute",
        (
            GeneratedColumn("dest", STRING),
            GeneratedColumn("channel", STRING),
            GeneratedColumn("seats", INT),
            GeneratedColumn("fare", decimal(8, 2)),
            GeneratedColumn("at", TIMESTAMP),
        ),
        "at",
        70 / 60,
        5 * SECOND_US,
        _sales,
    ),
)
