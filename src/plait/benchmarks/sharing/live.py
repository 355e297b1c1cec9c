"""Runs that go with the clock: the airline's 300 queries, and how soon the results of a tick can be read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from threading import Event
from time import sleep, time, time_ns

import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait import language
from plait.api import Session
from plait.benchmarks.machine import memory_mb, size_mb
from plait.errors import InfeasibleError
from plait.generators import GENERATORS
from plait.generators.airline import MAX_CITIES
from plait.generators.airline_queries import airline_queries
from plait.spark.execution import Session as SparkSession

AIRLINE_TIMES = 50
AIRLINE_QUERIES = 300
TRIGGER_S = 1.0

PLUG_ROWS_PER_S = 20_000
PLUG_QUERIES = 100
PLUG_TRIGGER_S = 0.1
PLUG_FILE_S = 0.2


@dataclass(frozen=True)
class _Stream:
    """At the airline's real rate. How many flights and cities there are grows with it (`growing`), how many
    different values other columns have does not (`fixed`)."""

    rate: float
    columns: str
    growing: dict[str, int]
    fixed: dict[str, int]


_STREAMS = {
    "flights": _Stream(
        1500 / 300,
        "num INT, carrier_code STRING, dest STRING, terminal STRING, gate STRING, status STRING",
        {"num": 1500, "dest": 450},
        {"terminal": 2, "carrier_code": 3},
    ),
    "checkins": _Stream(
        240 / 60, "flight INT, passenger BIGINT, status STRING", {"flight": 120}, {"status": 3}
    ),
    "baggage": _Stream(
        500 / 60,
        "flight INT, tag INT, area STRING, status STRING, weight_kg DECIMAL(5, 1)",
        {"flight": 125},
        {"area": 4, "status": 4},
    ),
    "weather": _Stream(
        450 / 300, "city STRING, forecast STRING, celsius INT", {"city": 450}, {"forecast": 5}
    ),
    "sales": _Stream(
        70 / 60, "dest STRING, channel STRING, seats INT, fare DECIMAL(8, 2)", {"dest": 70}, {"channel": 3}
    ),
}


@dataclass(frozen=True)
class Airline:
    """Seconds a batch took with all that Spark does around it, the median and the 95th percentile, once the
    windows were full."""

    batch_s: float
    batch_p95_s: float
    rows: int
    memory_mb: float
    state_mb: float


def airline_sql() -> str:
    streams = [_stream_sql(name, stream) for name, stream in _STREAMS.items()]
    return "\n".join([*streams, *airline_queries(AIRLINE_QUERIES, 1, flights=120 * AIRLINE_TIMES)])


def _stream_sql(name: str, stream: _Stream) -> str:
    values = {column: count * AIRLINE_TIMES for column, count in stream.growing.items()} | stream.fixed
    values |= {city: min(MAX_CITIES, values[city]) for city in ("dest", "city") if city in values}
    distinct = ", ".join(f"distinct.{column} = {count}" for column, count in values.items())
    return (
        f"CREATE STREAM {name} ({stream.columns}, at TIMESTAMP, "
        "WATERMARK FOR at AS at - INTERVAL 10 SECONDS) "
        f"WITH (connector = 'generator', generator = 'airline.{name}', seed = 7, "
        f"rate = {stream.rate * AIRLINE_TIMES:g}, {distinct});"
    )


def run_airline(session: SparkSession, seconds: float) -> Airline:
    with TemporaryDirectory(ignore_cleanup_errors=True) as name, _session(airline_sql(), session) as opened:
        folder = Path(name)
        running = opened.run(state=folder / "state", results=folder / "results", trigger_seconds=TRIGGER_S)
        running.wait(seconds / 2)  # for windows to fill, and Java to have compiled
        before = running.whole_batch_seconds()
        running.wait(seconds / 2)
        taken = _slowest_since(before, running.whole_batch_seconds())
        rows = sum(query.rows for query in running.progress().queries)
        state_mb = size_mb(folder / "state")
        running.stop()
        return Airline(median(taken), quantiles(taken, n=20)[-1], rows, memory_mb(), state_mb)


def _slowest_since(
    before: Mapping[str, Mapping[int, float]], after: Mapping[str, Mapping[int, float]]
) -> list[float]:
    """Seconds that batches took of which nothing was known before, of the streaming query that takes
    longest."""
    since = [
        [second for number, second in batches.items() if number not in before[label]]
        for label, batches in after.items()
    ]
    if any(len(seconds) < 2 for seconds in since):
        raise InfeasibleError(
            "sharing",
            "hardly any micro-batch has ended in the time that was to be measured",
            hint="measure where nothing else runs",
        )
    return max(since, key=median)


def plugs_sql(folder: Path) -> str:
    """Windows that end every one to five seconds, so that every second some do."""
    stream = (
        "CREATE STREAM measurements (ts TIMESTAMP, value DECIMAL(9, 3), property INT, plug_id INT, "
        "household_id INT, house_id INT, WATERMARK FOR ts AS ts) WITH (connector = 'files', "
        f"path = '{folder}', format = 'parquet', rate = {PLUG_ROWS_PER_S});\n"
    )
    return stream + "\n".join(
        f"CREATE CONTINUOUS QUERY q{n:03d} AS "
        "SELECT window_end, house_id, count(*) AS n, sum(value) AS total "
        f"FROM measurements [RANGE {(n % 5 + 1) * (n % 7 + 1)} SECONDS SLIDE {n % 5 + 1} SECONDS] "
        "GROUP BY house_id;"
        for n in range(PLUG_QUERIES)
    )


def latencies_s(session: SparkSession, seconds: float) -> list[float]:
    """How long after the row that closes a tick arrived the results of the tick were there to be read, in the
    second half of the time: until then Java warms up."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        arriving, state, results = (folder / each for each in ("measurements", "state", "results"))
        with MeasurementFiles(arriving) as arrivals, _session(plugs_sql(arriving), session) as opened:
            running = opened.run(state=state, results=results, trigger_seconds=PLUG_TRIGGER_S)
            sleep(seconds)
            running.stop()
        files = sorted(results.glob("*/0*.parquet"))
        found = []
        for file in files[len(files) // 2 :]:
            readable_s = file.stat().st_ctime  # when it got its name
            ticks = pc.unique(pq.read_table(file, columns=["window_end"])["window_end"])
            found += [readable_s - arrivals.closing_s(tick.as_py().timestamp()) for tick in ticks]
        return found


class MeasurementFiles:
    """Measurements as files in a folder, several a second, each as soon as its rows have happened."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._newest_us: list[int] = []
        self._arrived_s: list[float] = []
        self._ended = Event()
        self._writer = ThreadPoolExecutor(1)

    def closing_s(self, tick_s: float) -> float:
        """When the first row from the end of a tick on was there."""
        return self._arrived_s[bisect_left(self._newest_us, round(tick_s * 1e6))]

    def _write(self) -> None:
        plugs = GENERATORS["smart_plugs.measurements"]
        began_us = time_ns() // 1000
        while not self._ended.wait(PLUG_FILE_S - time() % PLUG_FILE_S):
            now_us = time_ns() // 1000
            rows = plugs.rows(1, PLUG_ROWS_PER_S, began_us, now_us)
            number = len(self._arrived_s)
            draft, file = (self._folder / f"{prefix}{number:06d}.parquet" for prefix in ("_", ""))
            pq.write_table(rows, draft)
            self._newest_us.append(max([pc.max(rows["ts"]).value, *self._newest_us[-1:]]))
            self._arrived_s.append(time())
            draft.rename(file)
            began_us = now_us

    def __enter__(self) -> MeasurementFiles:
        self._written = self._writer.submit(self._write)
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._written.result()
        self._writer.shutdown()


def _session(sql: str, session: SparkSession) -> Session:
    return Session(language.load_text(sql), session)
