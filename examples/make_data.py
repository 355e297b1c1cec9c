"""Makes the stored data that the examples read, the same bytes every time.

    python examples/make_data.py            # writes below examples/data
    python examples/make_data.py FOLDER     # writes below FOLDER

Every stream is a folder, because a running system watches folders for new files; every table is one file.
Event times are UTC. As in real feeds, a few rows arrive out of order, some values are missing and some rows
share their time; all within the delays that the examples' watermarks allow.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import duckdb

Value: TypeAlias = int | str | Decimal | datetime | None
Row: TypeAlias = tuple[Value, ...]

START = datetime(2026, 3, 2, 6, 0, 0)


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_json(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """One JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(dict(zip(columns, row, strict=True)), default=str) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_parquet(path: Path, columns: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        declared = ", ".join(f'"{name}" {type_}' for name, type_ in zip(columns, types, strict=True))
        connection.execute(f"CREATE TABLE made ({declared})")
        connection.executemany(f"INSERT INTO made VALUES ({', '.join('?' * len(columns))})", rows)
        connection.execute(f"COPY made TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def spread(rng: random.Random, count: int, duration_s: int) -> list[datetime]:
    """Times of `count` events spread evenly over the duration, to the second, a few of them out of order."""
    times = [START + seconds(duration_s * number // count) for number in range(count)]
    for _ in range(count // 20):
        at = rng.randrange(count - 1)
        times[at], times[at + 1] = times[at + 1], times[at]
    return times


# The airline: a tenth of Fig. 5, for eight minutes.

AIRLINE_S = 480
CITIES = [
    "BOS",
    "ORD",
    "LAX",
    "SEA",
    "MIA",
    "DEN",
    "SFO",
    "DFW",
    "PHX",
    "DTW",
    "MSP",
    "SLC",
    "JFK",
    "MCO",
    "LAS",
]
CARRIERS = ["DL", "DL", "DL", "UA", "AA"]
OPEN_FLIGHTS = range(11, 24)  # those with check-in open and bags on the belt


def airline(folder: Path) -> None:
    rng = random.Random(20260302)
    destination = {number: CITIES[number % len(CITIES)] for number in range(1, 151)}
    carrier = {number: CARRIERS[number % len(CARRIERS)] for number in range(1, 151)}
    gate = {number: f"{'ABCDE'[number % 5]}{1 + number // 5}" for number in range(1, 151)}

    times = spread(rng, 240, AIRLINE_S)
    flights: list[Row] = []
    for index, at in enumerate(times):
        number = 1 + index % 150
        status = rng.choice(["on time", "on time", "on time", "boarding", "delayed"])
        terminal = "S" if number % 2 else "T"
        flights.append((number, carrier[number], destination[number], terminal, gate[number], status, at))
    write_parquet(
        folder / "flights" / "part-0.parquet",
        ["num", "carrier_code", "dest", "terminal", "gate", "status", "at"],
        ["INTEGER", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "TIMESTAMP"],
        flights,
    )

    checkins: list[Row] = []
    for index, at in enumerate(spread(rng, 192, AIRLINE_S)):
        progress = rng.choice(["checked in", "checked in", "upgraded", "standby", None])
        checkins.append((OPEN_FLIGHTS[index % 12], 1000 + index, progress, at))
    write_csv(folder / "checkins" / "part-0.csv", ["flight", "passenger", "status", "at"], checkins)

    baggage: list[Row] = []
    for index, at in enumerate(spread(rng, 400, AIRLINE_S)):
        status = rng.choice(["tagged", "screened", "loaded", "misrouted"])
        weight = Decimal(rng.randrange(50, 320)) / 10
        baggage.append((OPEN_FLIGHTS[index % 13], 7000 + index, rng.choice("NSEW"), status, weight, at))
    write_parquet(
        folder / "baggage" / "part-0.parquet",
        ["flight", "tag", "area", "status", "weight_kg", "at"],
        ["INTEGER", "INTEGER", "VARCHAR", "VARCHAR", "DECIMAL(5,1)", "TIMESTAMP"],
        baggage,
    )

    weather: list[Row] = []
    for index, at in enumerate(spread(rng, 72, AIRLINE_S)):
        forecast = rng.choice(["clear", "clear", "rain", "fog", "storm", "snow"])
        weather.append((CITIES[index % len(CITIES)], forecast, rng.randrange(-10, 30), at))
    write_json(folder / "weather" / "part-0.json", ["city", "forecast", "celsius", "at"], weather)

    sales: list[Row] = []
    for index, at in enumerate(spread(rng, 56, AIRLINE_S)):
        fare = Decimal(rng.randrange(8000, 90000)) / 100
        sales.append((CITIES[index % 7], rng.choice(["web", "desk", "phone"]), rng.randrange(1, 5), fare, at))
    write_csv(folder / "sales" / "part-0.csv", ["dest", "channel", "seats", "fare", "at"], sales)


# Smart plugs: six plugs in two houses report work and load every five seconds for six and a half minutes.

PLUGS = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 0, 2)]  # house, household, plug


def smart_plugs(folder: Path) -> None:
    rng = random.Random(20140526)
    rows: list[Row] = []
    work_kwh = dict.fromkeys(PLUGS, Decimal("1.000"))
    for second in range(0, 390, 5):
        for house, household, plug in PLUGS:
            peak = 40 if (second // 60 + plug) % 3 == 0 else 0
            load_w = Decimal(20 + 10 * plug + peak) + Decimal(rng.randrange(0, 8000)) / 1000
            work_kwh[house, household, plug] += Decimal("0.001")
            at = START + seconds(second)
            for property_, value in ((0, work_kwh[house, household, plug]), (1, load_w)):
                rows.append((len(rows), at, f"{value:.3f}", property_, plug, household, house))
    columns = ["id", "ts", "value", "property", "plug_id", "household_id", "house_id"]
    write_csv(folder / "measurements" / "part-0.csv", columns, rows)


# The auction: ten minutes of a small Nexmark.

AUCTION_S = 600
STATES = ["OR", "ID", "CA", "WA", "NY", "TX"]


def auction(folder: Path) -> None:
    rng = random.Random(20020801)
    categories: list[Row] = [(10, "books"), (11, "coins"), (12, "cameras"), (13, "maps"), (14, None)]
    write_csv(folder / "categories.csv", ["id", "name"], categories)

    persons: list[Row] = []
    for index, at in enumerate(spread(rng, 60, AUCTION_S)):
        name = rng.choice(["Ada", "Edgar", "Grace", "Jim", "Barbara", "Tony"])
        email = None if index % 9 == 4 else f"{name.lower()}{index}@example.org"
        persons.append((index, name, email, rng.choice(STATES), at))
    write_json(folder / "persons" / "part-0.json", ["id", "name", "email", "state", "at"], persons)

    auctions: list[Row] = []
    for index, at in enumerate(spread(rng, 80, AUCTION_S)):
        seller = max(0, index * 60 // 80 - rng.randrange(0, 4))
        initial = Decimal(rng.randrange(100, 5000)) / 100
        auctions.append((index, f"lot {index}", initial, seller, 10 + rng.randrange(5), at))
    write_parquet(
        folder / "auctions" / "part-0.parquet",
        ["id", "item", "initial_bid", "seller", "category", "at"],
        ["BIGINT", "VARCHAR", "DECIMAL(10,2)", "BIGINT", "INTEGER", "TIMESTAMP"],
        auctions,
    )

    bids: list[Row] = []
    for index, at in enumerate(spread(rng, 600, AUCTION_S)):
        newest = index * 80 // 600
        lot = max(0, newest - min(rng.randrange(0, 6), rng.randrange(0, 6)))
        price = Decimal(rng.randrange(100, 20000)) / 100
        bids.append((lot, rng.randrange(0, 1 + index // 10), price, rng.choice(["web", "app", "desk"]), at))
    write_parquet(
        folder / "bids" / "part-0.parquet",
        ["auction", "bidder", "price", "channel", "at"],
        ["BIGINT", "BIGINT", "DECIMAL(10,2)", "VARCHAR", "TIMESTAMP"],
        bids,
    )


# Traffic: Table 1 of D-CAPE, as printed. T is in minutes.

SENSOR_1 = [
    (0, "9034 TR", "Car", 55),
    (0, "FED 1", "Truck", 42),
    (1, "SOXFAN4", "Car", 50),
    (1, "8325 DL", "Car", 35),
    (1, "1345 DGE", "Car", 65),
    (1, "UMASS1", "SUV", 45),
]
SENSOR_2 = [
    (0, "1345 FD", "Car", 34),
    (1, "MV 1223", "Truck", 53),
    (2, "SOXFAN4", "Car", 65),
    (2, "1492 CC", "Car", 32),
    (3, "UMASS1", "SUV", 23),
    (4, "1353 DW", "SUV", 56),
]


def traffic(folder: Path) -> None:
    for name, table in (("sensor1", SENSOR_1), ("sensor2", SENSOR_2)):
        rows: list[Row] = [(START + seconds(60 * t), car_id, kind, mph) for t, car_id, kind, mph in table]
        write_csv(folder / name / "part-0.csv", ["t", "car_id", "type", "mph"], rows)


def make(folder: Path) -> None:
    airline(folder / "airline")
    smart_plugs(folder / "smart_plugs")
    auction(folder / "auction")
    traffic(folder / "traffic")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
