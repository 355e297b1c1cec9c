"""Checks a workload by all ways there are: on Spark as a user runs it, with its queries together and each by
itself, in the database without Spark with batches cut off and given again, and as plain Spark.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.differential import plain_spark, shared_way, spark_way
from tests.differential.arrivals import Row
from tests.differential.harness import Finding, Rows, Tally, definition
from tests.differential.shared_way import HandedOver
from tests.differential.workloads import RandomWorkload
from tests.workloads.trunks import compute_by_plans


def check_together(
    workload: RandomWorkload, spark: SparkSession, folder: Path, tally: Tally, *, engines: str = "any"
) -> None:
    """Compare the rows of queries that share what they can with their definitions."""
    expected = definition(workload)
    for query in workload.queries:
        tally.note(query, expected[query.name])
    _check_spark_way(workload, expected, spark, folder, tally, "plait", engines)


def check_alone(workload: RandomWorkload, spark: SparkSession, folder: Path, tally: Tally) -> None:
    """Compare every query's rows, by all ways in which it runs by itself, with its definition."""
    expected = definition(workload)
    for query in workload.queries:
        tally.note(query, expected[query.name])
    _check_plain_spark(workload, expected, spark, tally)
    _check_plans(workload, expected, folder, tally)
    _check_spark_way(workload, expected, spark, folder, tally, "independent", "any")


def _check_spark_way(
    workload: RandomWorkload,
    expected: Rows,
    spark: SparkSession,
    folder: Path,
    tally: Tally,
    planner: str,
    engines: str,
) -> None:
    ran = spark_way.run(workload, folder, spark, planner=planner, engines=engines)
    for query in workload.queries:
        progress = ran.queries[query.name]
        way = f"Plait on Spark, {progress.way}"
        if progress.error is None:
            tally.compare(workload.seed, query, way, expected[query.name], ran.rows[query.name])
        else:
            tally.comparisons[way] += 1
            tally.findings.append(Finding(workload.seed, query, way, str(progress.error)))


def _check_plans(workload: RandomWorkload, expected: Rows, folder: Path, tally: Tally) -> None:
    """Each query by itself, computed by its plan, also where a family would be."""
    own = folder / "database"
    own.mkdir(parents=True)
    with HandedOver(workload, own) as given, pytest.MonkeyPatch.context() as patch:
        compute_by_plans(patch)
        for query in workload.queries:

            def run(name: str = query.name) -> Sequence[Row]:
                disturb = random.Random(f"{workload.seed} {name}")
                return shared_way.run(given, own, name, disturb=disturb).rows(name)

            tally.attempt(workload.seed, query, "its plan in the database", expected[query.name], run)


def _check_plain_spark(workload: RandomWorkload, expected: Rows, spark: SparkSession, tally: Tally) -> None:
    plain_spark.store(workload, spark)
    for query in workload.queries:
        if query.block is not None and plain_spark.can_say(query.block):
            rows = plain_spark.rows_of(query.block, spark)
            tally.compare(workload.seed, query, "plain Spark", expected[query.name], rows)
