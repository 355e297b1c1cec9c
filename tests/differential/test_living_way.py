"""Queries that come and go on Spark while others run: each gives the rows of its definition from the moment
on at which it was added, on both engines and on Spark alone; one that is dropped, those that were due by
then.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import on_spark, with_variants, woven_workload
from tests.differential.workloads import RandomWorkload, random_workload

from plait.benchmarks.dropped import wrong_until_dropped
from plait.deployment.fragments import Way
from plait.evaluator import StoredData, difference, evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.differential.living_way import Living

PLAIN = [kind for kind in KINDS if kind != OVER_A_QUERY]


def _lived(
    workload: RandomWorkload, seed: int, spark: SparkSession, folder: Path, engines: str = "any"
) -> Living:
    from tests.differential.living_way import Living  # needs PySpark, which is slow to import

    living = Living(workload, folder, spark, random.Random(seed), engines)
    living.run()
    loaded = workload.load()
    with StoredData.from_rows(loaded.catalog, workload.rows) as data:
        for lived in (*living.live, *living.dropped):
            query = loaded.query(lived.query)
            expected, given = evaluate(query, data, start=lived.start), living.rows(lived)
            if lived in living.dropped:
                standing, beside = living.dropped[lived], loaded.queries.values()
                wrong = wrong_until_dropped(query, expected, given, standing, beside)
            else:
                wrong = difference(expected.rows, given)
            assert not wrong, f"{lived}\n{wrong}"
    return living


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 5))])
def test_queries_come_and_go(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    workload = with_variants(random_workload(seed, PLAIN, cuts=5), 1, random.Random(seed))
    living = _lived(workload, seed, spark, tmp_path)
    assert living.dropped
    assert any(lived.after_us is not None for lived in living.live)


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 4))])
def test_on_spark_alone(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    workload = woven_workload(seed, cuts=4)
    families = [[r.query for r in each.results] for each in on_spark(workload) if each.way is Way.WOVEN]
    names = {name for family in sorted(families, key=len)[-2:] for name in family[:3]}
    few = [query for query in workload.queries if query.name in names]

    living = _lived(replace(workload, queries=tuple(few)), seed, spark, tmp_path, "spark")
    assert any(lived.after_us is not None for lived in living.live)
    assert living.merged
