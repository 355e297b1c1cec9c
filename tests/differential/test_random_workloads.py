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

QUERIES = 60
QUERIES_TOGETHER = 15  # run side by side, as one workload
FIRST_SEED = 4_000


@pytest.mark.spark
def test_random_queries_give_the_rows_of_their_definition(spark: SparkSession, tmp_path: Path) -> None:
    from tests.differential.checking import check  # needs PySpark, which is slow to import

    tally = Tally()
    for number in range(QUERIES // QUERIES_TOGETHER):
        first = number * QUERIES_TOGETHER
        kinds = [KINDS[k % len(KINDS)] for k in range(first, first + QUERIES_TOGETHER)]
        check(random_workload(FIRST_SEED + number, kinds), spark, tmp_path / str(number), tally)
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    assert tally.queries.total() == QUERIES
    assert set(tally.queries) == set(KINDS)
    assert tally.bites, tally
