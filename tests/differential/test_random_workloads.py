"""Random queries of every class, on real Spark: each gives the rows of its definition.

Hundreds run together, in groups that share what they can, on both engines or on Spark alone; some of them
also by themselves. `make fuzz N=…` runs as many as wanted.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.differential.harness import Tally
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import on_spark, shared_workload, with_variants, woven_workload
from tests.differential.workloads import RandomWorkload, random_workload

from plait.deployment.weaving import whole_scans
from plait.evaluator import difference
from plait.rewrite import canonicalise
from plait.sharing.families import families
from plait.space import stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(4_000, 4_003)
ON_SPARK = 4_036  # has selects, joins and trees
ALONE = {4_000: KINDS[:12], 4_001: KINDS[12:24]}


def _in_families(workload: RandomWorkload) -> int:
    """How many queries are computed together with two others at least."""
    loaded = workload.load()
    plans = {name: stream_of(canonicalise(query.plan)) for name, query in loaded.queries.items()}
    found = families(plans.items(), whole_scans(plans.values(), loaded.catalog))
    kinds = (found.selects, found.aggregates, found.joins)
    return sum(len(family) for kind in kinds for family in kind if len(family) > 2)


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_together_give_the_rows_of_their_definitions(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential.checking import check_together  # needs PySpark, which is slow to import

    tally, workload = Tally(), shared_workload(seed)
    assert _in_families(workload) >= len(workload.queries) / 3
    check_together(workload, spark, tmp_path, tally)
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    assert tally.queries.total() >= 100
    assert set(tally.queries) == set(KINDS)
    assert tally.bites, tally


@pytest.mark.spark
def test_queries_on_spark_alone_give_the_rows_of_their_definitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential.checking import check_together

    tally, workload = Tally(), woven_workload(ON_SPARK)
    check_together(workload, spark, tmp_path, tally, engines="spark")
    assert not tally.findings, "\n\n".join(map(str, tally.findings))
    together = sum(len(part.family) for part in on_spark(workload) if len(part.family) > 2)
    assert tally.comparisons["Plait on Spark, woven"] >= together >= len(workload.queries) / 2
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
