"""Which families of a group Spark computes: what they gain there against what it costs to tear it apart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plait.cost.sharing import Family, Group, for_spark, reading_cores
from plait.cost.units import DUCKDB, SPARK, UNCALIBRATED


def family(
    in_database: float, on_spark: float | None = None, *, rate: float = 1_000, able: bool = True
) -> Family:
    """Over the stream s. Spark's unit costs for rows are five times those of the database."""
    cores = {SPARK: 5 * in_database if on_spark is None else on_spark, DUCKDB: in_database}
    return Family(frozenset("s"), cores, reading_cores(rate, UNCALIBRATED), able)


def chosen(
    families: Sequence[Family], cores: float | None, *, others: str = "", rate: float = 1_000
) -> set[int]:
    return set(for_spark(Group(families, frozenset(others), {"s": rate}), cores, UNCALIBRATED))


@pytest.mark.parametrize("number", [1, 50])
@pytest.mark.parametrize("cores", [None, 1, 2, 4, 16, 1_000])
def test_what_is_small_stays_in_the_database(cores: float | None, number: int) -> None:
    assert chosen([family(0.01)] * number, cores) == set()


@pytest.mark.parametrize(("cores", "expected"), [(None, set()), (2, set()), (5, set()), (16, {0}), (64, {0})])
def test_what_is_huge_goes_where_more_cores_are(cores: float | None, expected: set[int]) -> None:
    assert chosen([family(4.0)], cores) == expected


@pytest.mark.parametrize("cores", [64, 1_000])
def test_small_ones_stay_together_when_a_huge_one_goes(cores: float) -> None:
    assert chosen([family(0.01), family(4.0), family(0.01)], cores) == {1}


def test_many_that_are_too_much_for_the_database_go() -> None:
    """Each gains less than a micro-batch takes, but all have theirs at the same time."""
    assert chosen([family(1.0)], 64) == set()
    assert chosen([family(1.0)] * 10, 64) == set(range(10))


def test_the_last_one_goes_along_where_reading_is_dear() -> None:
    """It gains less than it costs; but nothing has to be read for the database any more."""
    rate = 1_000_000
    huge, last = family(8.0, rate=rate), family(0.6, 1.0, rate=rate)
    assert chosen([huge, last], 16, rate=rate) == {0, 1}
    assert chosen([huge, last], 16, rate=rate, others="s") == {0}


def test_a_stream_that_the_database_still_needs_is_read_again_for_spark() -> None:
    """And once more, to be counted: that takes more cores to pay."""
    rate = 1_000_000
    huge = family(2.0, rate=rate)
    alone = min(cores for cores in range(2, 100) if chosen([huge], cores, rate=rate))
    beside = min(cores for cores in range(2, 100) if chosen([huge], cores, rate=rate, others="s"))
    assert alone < beside


def test_what_spark_cannot_compute_stays() -> None:
    assert chosen([family(4.0, able=False), family(4.0)], 64) == {1}
