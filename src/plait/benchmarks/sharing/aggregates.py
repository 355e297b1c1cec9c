"""Window aggregates of one stream: as many queries as wanted, with mixed slides and ranges."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plait.benchmarks.sharing.plain_spark import PlainQuery, sums_in_windows

START_US = int(datetime.fromisoformat("2026-01-01 00:00:00+00:00").timestamp() * 1e6)
COLUMNS = "plug INT, watts BIGINT, at TIMESTAMP"
ROWS_PER_S = 1_000
GROUPS = 100
STEP_S = 5
SLIDES_S = range(5, 65, STEP_S)
MOST_OVERLAP = 10
FEW_WINDOWS = ((60, 30), (90, 30), (120, 60), (240, 60))


@dataclass(frozen=True)
class Windowed:
    """A query, by its window."""

    name: str
    range_s: int
    slide_s: int


def random_windows(count: int, seed: int = 1) -> list[Windowed]:
    chance = random.Random(seed)
    found = []
    for number in range(count):
        slide_s = chance.choice(SLIDES_S)
        range_s = STEP_S * chance.randint(slide_s // STEP_S, MOST_OVERLAP * slide_s // STEP_S)
        found.append(Windowed(f"q{number:04d}", range_s, slide_s))
    return found


def write_readings(folder: Path, rows: int, files: int, groups: int = GROUPS, seed: int = 1) -> None:
    """Rows in the order of their times, in files of as many rows each."""
    folder.mkdir()
    chance = np.random.default_rng(seed)
    each = rows // files
    for number in range(files):
        numbers = np.arange(number * each, (number + 1) * each)
        table = pa.table(
            {
                "plug": pa.array(chance.integers(0, groups, each), pa.int32()),
                "watts": pa.array(chance.integers(0, 3_000, each), pa.int64()),
                "at": pa.array(START_US + numbers * (1_000_000 // ROWS_PER_S)).cast(
                    pa.timestamp("us", "UTC")
                ),
            }
        )
        write_in_order(table, folder, number)


def write_in_order(rows: pa.Table, folder: Path, number: int) -> None:
    """A file that is read after those of lesser numbers: files are read in the order of their times."""
    file = folder / f"{number:03d}.parquet"
    pq.write_table(rows, file)
    os.utime(file, (number, number))


def sql(folder: Path, windows: Sequence[Windowed]) -> str:
    stream = (
        f"CREATE STREAM readings ({COLUMNS}, WATERMARK FOR at AS at) "
        f"WITH (connector = 'files', path = '{folder}', format = 'parquet', files_per_batch = 1, "
        f"rate = {ROWS_PER_S});\n"
    )
    return stream + "\n".join(
        f"CREATE CONTINUOUS QUERY {w.name} AS SELECT window_end, plug, sum(watts) AS total, count(*) AS n "
        f"FROM readings [RANGE {w.range_s} SECONDS SLIDE {w.slide_s} SECONDS] GROUP BY plug;"
        for w in windows
    )


def having_sql(folder: Path, rows_per_group: float) -> str:
    """A few queries that give the busiest groups only: what they give does not drown what they cost."""
    queries = [
        f"CREATE CONTINUOUS QUERY busiest_{range_s}_{slide_s} AS "
        "SELECT window_end, plug, sum(watts) AS total, count(*) AS n "
        f"FROM readings [RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS] GROUP BY plug "
        f"HAVING count(*) > {_seldom_exceeded(rows_per_group * range_s)};"
        for range_s, slide_s in FEW_WINDOWS
    ]
    return sql(folder, ()) + "\n".join(queries)


def _seldom_exceeded(mean: float) -> int:
    """A number of rows that one group in fifty has, if the mean is such: two deviations more, or two rows."""
    return max(2, round(mean + 2 * sqrt(mean)))


def plain_queries(folder: Path, windows: Sequence[Windowed]) -> list[PlainQuery]:
    return [
        PlainQuery(
            w.name,
            partial(sums_in_windows, folder=folder, columns=COLUMNS, range_s=w.range_s, slide_s=w.slide_s),
        )
        for w in windows
    ]
