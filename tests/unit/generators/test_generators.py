"""Generators are pure functions of seed and time, fit their schema, and their streams find partners."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import UserError
from plait.generators import GENERATORS, Generator
from plait.generators.slots import exact_rate, first_at, slot_us

SECOND = 1_000_000
MINUTE = 60 * SECOND
START = 1_772_409_600 * SECOND  # 2 March 2026

every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))


def minutes(name: str, count: int, seed: int = 7) -> pa.Table:
    generator = GENERATORS[name]
    return generator.rows(seed, generator.default_rate_rows_per_s, START, START + count * MINUTE)


def column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table.column(name).to_pylist()
    return values


def event_times_us(table: pa.Table, name: str) -> list[int]:
    return column(table.set_column(0, "us", table.column(name).cast(pa.int64())), "us")


@every_generator
@settings(deadline=None, max_examples=20)
@given(
    cuts=st.lists(st.integers(0, 4 * SECOND), min_size=1, max_size=4).map(sorted),
    rate=st.sampled_from([1.5, 70 / 60, 33.3, 5_000.0]),
)
def test_an_interval_may_be_cut_anywhere(generator: Generator, cuts: list[int], rate: float) -> None:
    edges = [START, *(START + cut for cut in cuts), START + 4 * SECOND]
    pieces = [generator.rows(3, rate, start, end) for start, end in pairwise(edges)]
    assert pa.concat_tables(pieces).equals(generator.rows(3, rate, edges[0], edges[-1]))


@every_generator
def test_rows_fit_the_schema(generator: Generator) -> None:
    rows = generator.rows(1, 5_000, START, START + 30 * SECOND)
    rows.validate(full=True)
    assert rows.schema == generator.schema
    assert rows.num_rows == 150_000
    assert generator.event_time in rows.column_names
    assert rows.column(generator.event_time).null_count == 0


@every_generator
def test_event_times_lag_within_the_bound_and_some_are_out_of_order(generator: Generator) -> None:
    rate = 100
    rows = generator.rows(1, rate, START, START + 5 * MINUTE)
    times = event_times_us(rows, generator.event_time)
    lags = [START + k * SECOND // rate - time for k, time in enumerate(times)]
    assert all(0 <= lag <= generator.max_lag_us for lag in lags)
    assert max(lags) > generator.max_lag_us // 2
    assert times != sorted(times)
    assert all(time % generator.resolution_us == 0 for time in times)


@every_generator
def test_the_seed_decides(generator: Generator) -> None:
    def of(seed: int) -> pa.Table:
        return generator.rows(seed, 100, START, START + MINUTE)

    assert of(1).equals(of(1))
    assert not of(1).equals(of(2))


@every_generator
def test_nothing_before_1970_and_nothing_backwards(generator: Generator) -> None:
    assert generator.rows(1, 10, -MINUTE, 0).num_rows == 0
    assert generator.rows(1, 10, START, START).num_rows == 0
    assert generator.rows(1, 10, START + MINUTE, START).num_rows == 0
    first = generator.rows(1, 10, -MINUTE, MINUTE)
    assert first.num_rows == 600
    assert min(event_times_us(first, generator.event_time)) > 0


@given(
    numerator=st.integers(1, 10**12),
    denominator=st.integers(1, 10**6),
    time_us=st.integers(0, 253_402_300_799 * SECOND),
)
def test_slots_are_exact(numerator: int, denominator: int, time_us: int) -> None:
    rate = Fraction(numerator, denominator)
    first = first_at(rate, time_us)
    assert slot_us(rate, first) >= time_us
    assert first == 0 or slot_us(rate, first - 1) < time_us


@every_generator
def test_the_last_days_of_time(generator: Generator) -> None:
    last_us = 253_402_300_800 * SECOND  # the year 10000
    rows = generator.rows(1, 50_000, last_us - SECOND, last_us)
    rows.validate(full=True)
    assert rows.num_rows == 50_000
    assert last_us - SECOND - generator.max_lag_us <= min(event_times_us(rows, generator.event_time))


@pytest.mark.parametrize("rate", [0, -1, 1e-7, 1e7, float("nan"), float("inf")])
def test_rates_that_cannot_be(rate: float) -> None:
    with pytest.raises(UserError) as error:
        exact_rate(rate)
    assert error.value.code == "generator-rate"


# The airline: Fig. 5 of the hierarchical paper.


@pytest.mark.parametrize(
    ("name", "key", "rows", "things"),
    [
        ("airline.flights", "num", 18_000, 1500),
        ("airline.checkins", "flight", 14_400, 120),
        ("airline.baggage", "flight", 30_000, 125),
        ("airline.weather", "city", 5_400, 450),
        ("airline.sales", "dest", 4_200, 70),
    ],
)
def test_rates_and_selectivities_are_the_papers(name: str, key: str, rows: int, things: int) -> None:
    hour = minutes(name, 60)
    assert hour.num_rows == rows
    assert len(set(column(hour, key))) == pytest.approx(things, rel=0.02)


def test_a_higher_rate_is_a_larger_airline() -> None:
    for name, key in (("airline.flights", "num"), ("airline.checkins", "flight")):
        generator = GENERATORS[name]
        rate = generator.default_rate_rows_per_s
        small, large = (
            generator.rows(1, factor * rate, START, START + 5 * MINUTE).column(key) for factor in (1, 10)
        )
        assert len(pc.unique(large)) == pytest.approx(10 * len(pc.unique(small)), rel=0.1)


def test_flights_checkins_bags_weather_and_sales_meet() -> None:
    flights = minutes("airline.flights", 5)
    numbers, destinations = set(column(flights, "num")), set(column(flights, "dest"))
    assert set(column(minutes("airline.checkins", 5), "flight")) <= numbers
    assert set(column(minutes("airline.baggage", 5), "flight")) <= numbers
    assert set(column(minutes("airline.weather", 5), "city")) == destinations
    assert set(column(minutes("airline.sales", 5), "dest")) <= destinations


def test_a_flight_reports_once_in_five_minutes_and_the_open_ones_all_the_time() -> None:
    five_minutes = column(minutes("airline.flights", 5), "num")
    assert sorted(five_minutes) == list(range(1, 1501))
    open_in = [any(number <= 120 for number in five_minutes[k : k + 50]) for k in range(0, 1500, 50)]
    assert all(open_in)


def test_a_flight_keeps_its_carrier_and_destination() -> None:
    flights = minutes("airline.flights", 20)
    fixed = zip(*(column(flights, name) for name in ("num", "carrier_code", "dest", "terminal")), strict=True)
    assert len(set(fixed)) == 1500


# Smart plugs: §8.1 of the federation paper.


def test_every_sensor_reports_every_second() -> None:
    second = GENERATORS["smart_plugs.measurements"].rows(7, 2000, START, START + SECOND)
    sensors = zip(
        *(column(second, name) for name in ("house_id", "household_id", "plug_id", "property")), strict=True
    )
    assert len(set(sensors)) == second.num_rows == 2000
    assert len(set(column(second, "house_id"))) == 40


def test_work_never_falls() -> None:
    rows = GENERATORS["smart_plugs.measurements"].rows(7, 2000, START, START + 2 * MINUTE)
    last: dict[tuple[int, int, int], tuple[int, Any]] = {}
    measured = zip(
        event_times_us(rows, "ts"),
        *(column(rows, name) for name in ("value", "property", "house_id", "household_id", "plug_id")),
        strict=True,
    )
    for time, value, property_, *plug in sorted(measured, key=lambda row: row[0]):
        if property_ == 0 and value is not None:
            house, household, number = plug
            before = last.get((house, household, number), (0, value))
            assert value >= before[1]
            last[house, household, number] = time, value
    assert len(last) == 1000


# Auctions.


def test_bids_find_their_auctions_and_bidders() -> None:
    auctions = set(column(minutes("auctions.auctions", 10), "id"))
    persons = set(column(minutes("auctions.persons", 10), "id"))
    bids = GENERATORS["auctions.bids"].rows(7, 920, START + 6 * MINUTE, START + 10 * MINUTE)
    found = Counter(auction in auctions for auction in column(bids, "auction"))
    assert found[True] > 0.99 * bids.num_rows
    assert sum(bidder in persons for bidder in column(bids, "bidder")) > 0.99 * bids.num_rows
    sellers = column(minutes("auctions.auctions", 10).slice(2 * 60 * 60), "seller")
    assert sum(seller in persons for seller in sellers) > 0.99 * len(sellers)


def test_ids_are_unique() -> None:
    for name in ("auctions.auctions", "auctions.persons"):
        ids = column(minutes(name, 10), "id")
        assert len(set(ids)) == len(ids)


def test_some_auctions_are_hot() -> None:
    bids = minutes("auctions.bids", 10)
    counts = sorted(Counter(column(bids, "auction")).values(), reverse=True)
    assert counts[0] > 20 * counts[len(counts) // 2]
