"""The airline's gate queries: three-way joins of rows, each for its own flight, or for its own flights."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plait.benchmarks.sharing.aggregates import START_US, write_in_order
from plait.benchmarks.sharing.plain_spark import PlainQuery, gate_rows
from plait.generators import GENERATORS

# An airline larger than Fig. 5's by this factor, for so long.
SCALE = 20
SECONDS = 600
RANGE_S = 60
DELAY_S = 10

_RATES = {"flights": 1500 / 300, "checkins": 240 / 60, "baggage": 500 / 60}
_COLUMNS = {
    "flights": "num INT, gate STRING, at TIMESTAMP",
    "checkins": "flight INT, status STRING, at TIMESTAMP",
    "baggage": "flight INT, status STRING, at TIMESTAMP",
}


@dataclass(frozen=True)
class Gate:
    """A query for the flights from `first` to `last`."""

    name: str
    first: int
    last: int


def single_flights(count: int) -> list[Gate]:
    return [Gate(f"gate_{number:04d}", number, number) for number in range(1, count + 1)]


def ranges_of_flights(count: int, seed: int = 1) -> list[Gate]:
    """Each with bounds of its own, and as many flights as any other on average."""
    chance = random.Random(seed)
    firsts = (chance.randint(1, 1_000) for _ in range(count))
    return [Gate(f"gates_{n:04d}", first, first + chance.randint(1, 5)) for n, first in enumerate(firsts)]


def write_airline(folder: Path, files: int) -> None:
    """The three streams, in files of the same times."""
    step_us = SECONDS * 1_000_000 // files
    for stream, rate in _RATES.items():
        (folder / stream).mkdir(parents=True)
        for number in range(files):
            begin_us = START_US + number * step_us
            rows = GENERATORS[f"airline.{stream}"].rows(1, rate * SCALE, begin_us, begin_us + step_us)
            write_in_order(rows, folder / stream, number)


def sql(folder: Path, gates: Sequence[Gate]) -> str:
    streams = [
        f"CREATE STREAM {name} ({columns}, WATERMARK FOR at AS at - INTERVAL {DELAY_S} SECONDS) "
        f"WITH (connector = 'files', path = '{folder / name}', format = 'parquet', files_per_batch = 1, "
        f"rate = {_RATES[name] * SCALE:g});"
        for name, columns in _COLUMNS.items()
    ]
    queries = [
        f"CREATE CONTINUOUS QUERY {gate.name} AS "
        "SELECT f.num, f.gate, b.status AS bag, c.status AS passenger "
        f"FROM flights f [RANGE {RANGE_S} SECONDS], baggage b [RANGE {RANGE_S} SECONDS], "
        f"checkins c [RANGE {RANGE_S} SECONDS] "
        f"WHERE f.num = c.flight AND f.num = b.flight AND {_filter(gate)};"
        for gate in gates
    ]
    return "\n".join([*streams, *queries])


def plain_queries(folder: Path, gates: Sequence[Gate]) -> list[PlainQuery]:
    return [_plain_query(gate.name, folder, (gate.first, gate.last)) for gate in gates]


def plain_query_of_all(folder: Path) -> PlainQuery:
    """The rows of all flights: those of any query are among them."""
    return _plain_query("gates", folder, None)


def of_gate(gate: Gate, rows: pa.Table) -> pa.Table:
    """The rows of a query, of those of all flights."""
    return rows.filter((pc.field("num") >= gate.first) & (pc.field("num") <= gate.last))


def _plain_query(name: str, folder: Path, bounds: tuple[int, int] | None) -> PlainQuery:
    return PlainQuery(
        name,
        partial(gate_rows, folder=folder, columns=_COLUMNS, bounds=bounds, range_s=RANGE_S, delay_s=DELAY_S),
    )


def _filter(gate: Gate) -> str:
    if gate.first == gate.last:
        return f"f.num = {gate.first}"
    return f"f.num BETWEEN {gate.first} AND {gate.last}"
