"""Every query class on Spark's own operators gives the rows of its definition, however rows are cut into
micro-batches."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.native_runs import Cuts, Rows, check

import plait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = Path(__file__).with_name("native_queries.sql").read_text(encoding="utf-8")
NAMES = plait.open_text(QUERIES).queries

ROOMS = [(1, "kitchen"), (2, "kitchen"), (2, "hall"), (None, "nowhere"), (7, "attic")]

NOON = datetime(2026, 1, 1, 12)
BATCHES = 2
SECONDS_A_BATCH = 60
DISORDER_SECONDS = 9  # below every delay


def some_rows(seed: int, rows_a_batch: int = 25) -> Cuts:
    """Rows out of order by less than the delay; on ticks and off them, with equal times and with NULLs."""
    numbers = random.Random(seed)

    def moment(batch: int) -> datetime:
        earliest_us = (batch * SECONDS_A_BATCH - (DISORDER_SECONDS if batch else 0)) * 1_000_000
        latest_us = (batch + 1) * SECONDS_A_BATCH * 1_000_000
        us = numbers.randrange(earliest_us, latest_us)
        step_us = numbers.choice([1, 1_000_000, 5_000_000, 10_000_000])
        return NOON + timedelta(microseconds=max(us - us % step_us, earliest_us))

    def plug() -> int | None:
        return numbers.choice([1, 1, 2, 3, 4, None])

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.15 else value

    def readings(batch: int) -> Rows:
        return [
            (
                plug(),
                maybe(numbers.randint(0, 50)),
                maybe(Decimal(numbers.randint(0, 999)) / 100),
                maybe(numbers.choice([0.0, 1.5, float("nan"), 2.25])),
                moment(batch),
            )
            for _ in range(rows_a_batch)
        ]

    def events(batch: int, words: list[str]) -> Rows:
        return [(plug(), maybe(numbers.choice(words)), moment(batch)) for _ in range(rows_a_batch // 2)]

    return [
        {
            "readings": readings(batch),
            "alarms": events(batch, ["hot", "odd", "ann"]),
            "visits": events(batch, ["ann", "bob"]),
        }
        for batch in range(BATCHES)
    ]


# Spark gives a row at once that the condition of a join alone leaves without partner.
EARLY = {"left_join_of_some", "full_join_of_high"}


@pytest.mark.parametrize(
    "query",
    [pytest.param(name, marks=[pytest.mark.slow] * (place % 3 > 0)) for place, name in enumerate(NAMES)],
)
def test_query(query: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = some_rows(seed=len(query))
    # Most of them one batch on the heels of the other, which is quicker.
    at_once = NAMES.index(query) % 4 > 0
    tables = {"rooms": ROOMS}
    check(spark, QUERIES, query, rows, tmp_path, tables=tables, at_once=at_once, early=query in EARLY)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["sums_of_sums", "of_a_left_join", "first_room"])
def test_all_that_is_there_and_then_the_end(query: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark is started again for the end, and needs no further batch to close all there is."""
    rows = some_rows(seed=1)
    check(spark, QUERIES, query, rows, tmp_path, tables={"rooms": ROOMS}, available_now=True)
