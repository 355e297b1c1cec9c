"""Streams that have always more to read, and queries of known shapes over them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PLUGS = 1_000
HOUSES = 40
READINGS = 10_000  # a second of event time, which is a file
ALARMS = 200
FILES_PER_BATCH = 2
# So many files are there beyond those that were read.
AHEAD = 20

_BEGIN_US = 1_767_268_800_000_000  # 2026-01-01 12:00:00
_SECOND_US = 1_000_000


def streams_sql(folder: Path) -> str:
    def stream(name: str, column: str, rate: int) -> str:
        return (
            f"CREATE STREAM {name} (plug INT, {column} INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH ("
            f"connector = 'files', path = '{folder / name}', format = 'parquet', rate = {rate}, "
            f"files_per_batch = {FILES_PER_BATCH});\n"
        )

    return stream("readings", "house INT, load", READINGS) + stream("alarms", "code", ALARMS)


class Queries:
    """Of five shapes, in turn, each with constants of its own."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._shapes: tuple[Callable[[], str], ...] = (
            self._of_a_plug,
            self._in_bounds,
            self._windows,
            self._windows_above,
            self._alarmed,
        )
        self._number = 0

    def next(self) -> tuple[str, str]:
        """A name, and the declaration."""
        name = f"q{self._number:04d}"
        select = self._shapes[self._number % len(self._shapes)]()
        self._number += 1
        return name, f"CREATE CONTINUOUS QUERY {name} AS {select};"

    def _of_a_plug(self) -> str:
        return f"SELECT at, load FROM readings WHERE plug = {self._rng.randrange(PLUGS)}"

    def _in_bounds(self) -> str:
        least = self._rng.randrange(10_000)
        return f"SELECT plug, load FROM readings WHERE load BETWEEN {least} AND {least + 9}"

    def _windows(self) -> str:
        slide = self._rng.randint(1, 10)
        return (
            "SELECT window_end, house, count(*) AS n, sum(load) AS total, max(load) AS most "
            f"FROM readings [RANGE {slide * self._rng.randint(1, 4)} SECONDS SLIDE {slide} SECONDS] "
            "GROUP BY house"
        )

    def _windows_above(self) -> str:
        slide = self._rng.randint(1, 10)
        return (
            f"SELECT window_end, plug, sum(load) AS total FROM readings [RANGE {slide} SECONDS] "
            f"GROUP BY plug HAVING sum(load) > {self._rng.randint(90_000, 150_000) * slide}"
        )

    def _alarmed(self) -> str:
        return (
            "SELECT r.at, r.load, a.code FROM readings r [RANGE 3 SECONDS], alarms a [RANGE 3 SECONDS] "
            f"WHERE r.plug = a.plug AND r.plug = {self._rng.randrange(PLUGS)}"
        )


class Feeder:
    """Writes files of both streams, a second of event time each, ahead of what `read` says was read."""

    def __init__(self, folder: Path, read: Callable[[], int]) -> None:
        self._folder = folder
        self._read = read
        self._files = 0
        self._ended = Event()
        for name in ("readings", "alarms"):
            (folder / name).mkdir()
        self.feed()
        self._thread = Thread(target=self._go_on, name="feeder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def feed(self) -> None:
        """Have enough files there."""
        read = self._read() // READINGS
        while self._files < read + AHEAD:
            self._write(self._files)
            self._files += 1

    def _go_on(self) -> None:
        while not self._ended.wait(0.1):
            self.feed()

    def _write(self, second: int) -> None:
        rng = np.random.default_rng(second)
        plugs = rng.integers(0, PLUGS, READINGS, dtype=np.int32)
        readings = {
            "plug": plugs,
            "house": plugs % HOUSES,
            "load": rng.integers(0, 10_000, READINGS, dtype=np.int32),
            "at": _times(second, READINGS, rng),
        }
        alarms = {
            "plug": rng.integers(0, PLUGS, ALARMS, dtype=np.int32),
            "code": rng.integers(0, 9, ALARMS, dtype=np.int32),
            "at": _times(second, ALARMS, rng),
        }
        for name, columns in (("alarms", alarms), ("readings", readings)):
            draft = self._folder / name / f"_{second:06d}.parquet"
            pq.write_table(pa.table(columns), draft)
            draft.rename(draft.with_name(draft.name[1:]))


def _times(second: int, count: int, rng: np.random.Generator) -> pa.Array:
    us = _BEGIN_US + second * _SECOND_US + np.sort(rng.integers(0, _SECOND_US, count))
    return pa.array(us, pa.timestamp("us", "UTC"))
