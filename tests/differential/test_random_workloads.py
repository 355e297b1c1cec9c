"""Sixty random queries of every class, on real Spark: each gives the rows of its definition.

`make fuzz N=…` runs as many as wanted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.differential.harness import Tally
from tests.differential.queries import KINDS
from tests.differential.workloads import random_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES_TOGETHER = 15  # run side by side, as one workload
SEEDS = range(4_000, 4_004)


def _kinds(seed: int) -> list[str]:
    first = (seed - SEEDS.start) * QUERIES_TOGETHER
    return [KINDS[k % len(KINDS)] for k in range(first, first + QUERIES_TOGETHER)]


def test_all_classes_are_there() -> None:
    assert {kind for seed in SEEDS for kind in _kinds(seed)} == set(KINDS)


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_give_the_rows_of_their_definition(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential.checking import check  # needs PySpark, which is slow to import

    tally = Tally()
    check(random_workload(seed, _kinds(seed)), spark, tmp_path, tally)
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    assert tally.queries.total() == QUERIES_TOGETHER
    assert tally.bites, tally
