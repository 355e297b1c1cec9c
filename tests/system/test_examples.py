"""The examples work as they are: they check, plan under every planner, and every query has rows.

For some queries the rows are worked out again here, by hand or by a few lines of Python that follow the words
of docs/semantics.md and share nothing with Plait.
"""

from __future__ import annotations

import runpy
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import plait
from plait.evaluator import difference
from plait.planners import PLANNERS
from plait.planners.weaving import OPTIMIZERS

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("airline", "airline_live", "auction", "auction_live", "smart_plugs", "smart_plugs_live", "traffic")
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def sessions() -> dict[str, plait.Session]:
    return {name: plait.open(EXAMPLES / f"{name}.sql") for name in NAMES}


def stored(path: str) -> list[tuple[Any, ...]]:
    """All rows of one example source, as DuckDB itself reads them."""
    file = next(file for file in (EXAMPLES / "data" / path).iterdir())
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT * FROM '{file}'").fetchall()


def at(minute: int) -> datetime:
    return datetime(2026, 3, 2, 6, minute)


def test_there_are_no_other_examples() -> None:
    assert sorted(file.stem for file in EXAMPLES.glob("*.sql")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("planner", sorted(PLANNERS.keys() - OPTIMIZERS.keys()))
def test_every_planner_admits_every_query(
    name: str, planner: str, sessions: dict[str, plait.Session]
) -> None:
    document = sessions[name].plan(planner=planner).to_json()
    assert [query["name"] for query in document["queries"] if query["admitted"]] == list(
        sessions[name].queries
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_query_has_rows(name: str, sessions: dict[str, plait.Session]) -> None:
    empty = [query for query in sessions[name].queries if not len(sessions[name].evaluate(query))]
    assert not empty


def test_a_query_written_twice_is_planned_once(sessions: dict[str, plait.Session]) -> None:
    streams = {query["name"]: query["stream"] for query in sessions["airline"].plan().to_json()["queries"]}
    assert streams["gate_17"] == streams["gate_17_display"]
    assert streams["gate_17"] != streams["gate_12"]


def test_the_stored_data_is_what_the_script_makes(tmp_path: Path) -> None:
    made = runpy.run_path(str(EXAMPLES / "make_data.py"))
    made["make"](tmp_path)
    files = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file())
    committed = EXAMPLES / "data"
    assert files == sorted(file.relative_to(committed) for file in committed.rglob("*") if file.is_file())
    for file in files:
        if file.suffix == ".parquet":  # another DuckDB may write the same rows in other bytes
            with duckdb.connect() as connection:
                new, old = (
                    connection.execute(f"SELECT * FROM '{folder / file}'").fetchall()
                    for folder in (tmp_path, committed)
                )
            assert new == old, file
        else:
            assert (tmp_path / file).read_bytes() == (committed / file).read_bytes(), file


# Traffic: by hand.


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("left_turns", [("SOXFAN4", 50)]),
        ("slower_turns", [("SOXFAN4", 50, 1), ("UMASS1", 45, 2)]),
        ("speed_by_type", [(at(2), "Car", 4, 51.25), (at(2), "SUV", 1, 45.0), (at(2), "Truck", 1, 42.0)]),
        ("gone_straight", [("1345 DGE", 65), ("8325 DL", 35), ("9034 TR", 55), ("FED 1", 42)]),
    ],
)
def test_traffic_by_hand(query: str, rows: list[tuple[Any, ...]], sessions: dict[str, plait.Session]) -> None:
    assert list(sessions["traffic"].evaluate(query)) == rows


# Airline.


def meet(first: tuple[datetime, timedelta], second: tuple[datetime, timedelta]) -> bool:
    """Whether two rows are ever in their windows together: neither comes when the other has gone."""
    (first_at, first_range), (second_at, second_range) = first, second
    return second_at - first_at < first_range and first_at - second_at < second_range


def test_gate_17(sessions: dict[str, plait.Session]) -> None:
    flights = [(row[4], (row[6], 5 * MINUTE)) for row in stored("airline/flights") if row[0] == 17]
    bags = [(row[3], (row[5], MINUTE)) for row in stored("airline/baggage") if row[0] == 17]
    checkins = [(row[2], (row[3], MINUTE)) for row in stored("airline/checkins") if row[0] == 17]
    expected = [
        (gate, bag, checkin)
        for gate, flight_time in flights
        for bag, bag_time in bags
        for checkin, checkin_time in checkins
        if meet(flight_time, bag_time) and meet(flight_time, checkin_time) and meet(bag_time, checkin_time)
    ]
    assert len(expected) > 5
    for query in ("gate_17", "gate_17_display"):
        assert not difference(sessions["airline"].evaluate(query), expected)


def test_sales_by_destination(sessions: dict[str, plait.Session]) -> None:
    sales = stored("airline/sales")
    expected = []
    for tick in (at(minute) for minute in range(1, 12)):
        seats: Counter[str] = Counter()
        revenue: dict[str, Decimal] = defaultdict(Decimal)
        for destination, _, sold, fare, sold_at in sales:
            if tick - 3 * MINUTE <= sold_at < tick:
                seats[destination] += sold
                revenue[destination] += sold * Decimal(str(fare))
        expected += [(tick, city, count, revenue[city]) for city, count in seats.items() if count >= 5]
    assert not difference(sessions["airline"].evaluate("sales_by_destination"), expected)


# Smart plugs.


def loads() -> dict[tuple[int, int, int], list[tuple[datetime, Decimal]]]:
    """The load measurements of each plug (house, household, plug)."""
    by_plug: dict[tuple[int, int, int], list[tuple[datetime, Decimal]]] = defaultdict(list)
    for _, measured_at, value, kind, plug, household, house in stored("smart_plugs/measurements"):
        if kind == 1:
            by_plug[house, household, plug].append((measured_at, Decimal(f"{value:.3f}")))
    return by_plug


def ticks() -> list[datetime]:
    """Every second at which a window of five minutes holds anything."""
    return [at(0) + count * SECOND for count in range(1, 390 + 300)]


def test_cq1(sessions: dict[str, plait.Session]) -> None:
    expected = []
    for plug, measurements in loads().items():
        for tick in ticks():
            window = [value for time, value in measurements if tick - 5 * MINUTE <= time < tick]
            if window:
                high = sum(value > Decimal("0.9") * max(window) for value in window)
                expected.append((*plug, tick, high))
    assert not difference(sessions["smart_plugs"].evaluate("cq1"), expected)


def test_cq5(sessions: dict[str, plait.Session]) -> None:
    highest: dict[tuple[int, int, datetime], Decimal] = {}
    for (house, household, _), measurements in loads().items():
        for tick in ticks():
            window = [value for time, value in measurements if tick - 5 * MINUTE <= time < tick]
            if window:
                key = (house, household, tick)
                highest[key] = max(highest.get(key, Decimal(0)), sum(window, Decimal(0)))
    expected = [(*key, total) for key, total in highest.items()]
    assert not difference(sessions["smart_plugs"].evaluate("cq5"), expected)


# Auction.


def test_hot_items(sessions: dict[str, plait.Session]) -> None:
    bids = stored("auction/bids")
    expected = []
    for tick in (at(minute) for minute in range(1, 13)):
        counts = Counter(bid[0] for bid in bids if tick - 2 * MINUTE <= bid[4] < tick)
        hottest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
        expected += [(tick, auction, count) for auction, count in hottest]
    assert not difference(sessions["auction"].evaluate("hot_items"), expected)


def test_recent_prices(sessions: dict[str, plait.Session]) -> None:
    by_auction: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for auction, bidder, price, channel, bid_at in stored("auction/bids"):
        by_auction[auction].append((bid_at, auction, bidder, price, channel))
    expected = []
    for auction, bids in by_auction.items():
        bids.sort()
        for closing in range(5, len(bids) + 1, 5):
            window = bids[max(0, closing - 10) : closing]
            mean = float(sum(bid[3] for bid in window)) / len(window)
            window_end = window[-1][0] + timedelta(microseconds=1)
            expected.append((auction, window_end, len(window), mean))
    assert not difference(sessions["auction"].evaluate("recent_prices"), expected)


def test_busiest_channel_minute(sessions: dict[str, plait.Session]) -> None:
    """A query over another: bidders a minute and channel, then the most of them in five minutes."""
    bidders: dict[tuple[int, str], set[int]] = defaultdict(set)
    for _, bidder, _, channel, bid_at in stored("auction/bids"):
        bidders[bid_at.minute, channel].add(bidder)
    most: dict[tuple[int, str], int] = defaultdict(int)
    for (minute, channel), people in bidders.items():
        five = minute // 5
        most[five, channel] = max(most[five, channel], len(people))
    expected = [(at(5 * five + 5), channel, count) for (five, channel), count in most.items()]
    assert not difference(sessions["auction"].evaluate("busiest_channel_minute"), expected)
