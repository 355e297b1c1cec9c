"""Random queries of every class, on real Spark: each gives the rows of its definition.

Hundreds run together, in groups that share what they can; some of them also alone. `make fuzz N=…` runs as
many as wanted.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.differential.harness import Tally
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import with_variants
from tests.differential.workloads import RandomWorkload, random_workload

from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(4_000, 4_003)
VARIANTS = 4  # of each query
ALONE = {4_000: KINDS[:12], 4_001: KINDS[12:24]}


def _workload(seed: int) -> RandomWorkload:
    """In half of them all streams are Parquet, which the database reads itself."""
    made = with_variants(random_workload(seed), VARIANTS, random.Random(seed))
    return made.of_parquet() if seed % 2 else made


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_together_give_the_rows_of_their_definitions(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential.checking import check_together  # needs PySpark, which is slow to import

    tally = Tally()
    check_together(_workload(seed), spark, tmp_path, tally)
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    assert tally.queries.total() >= 100
    assert set(tally.queries) == set(KINDS)
    assert tally.bites, tally


@pytest.mark.spark
@pytest.mark.parametrize("seed", ALONE)
def test_queries_alone_give_the_rows_of_their_definitions(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential.checking import check_alone

    tally = Tally()
    check_alone(random_workload(seed, ALONE[seed], cuts=2), spark, tmp_path, tally)
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    assert tally.queries.total() == len(ALONE[seed])
    assert tally.bites, tally


@pytest.mark.slow
@pytest.mark.spark
def test_neither_the_order_of_queries_nor_the_cuts_of_batches_matter(
    spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential import spark_way

    workload = with_variants(random_workload(4_002), 1, random.Random(2))
    first = spark_way.run(workload, tmp_path / "first", spark)
    order = [query for query in workload.queries if query.kind != OVER_A_QUERY]
    random.Random(3).shuffle(order)
    streams = tuple(replace(stream, cuts=(sum(stream.cuts, ()),)) for stream in workload.streams)
    other = replace(workload, queries=tuple(order), streams=streams)
    second = spark_way.run(other, tmp_path / "second", spark)
    for query in order:
        key = query.name.lower()
        assert not difference(first.rows[key], second.rows[key]), query
