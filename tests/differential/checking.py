"""Checks a workload by all ways there are: on Spark as a user runs it, with its queries together and each by
itself, by the database way alone with batches cut off and given again, and as plain Spark.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from tests.differential import database_way, plain_spark, spark_way
from tests.differential.arrivals import Row
from tests.differential.database_way import HandedOver
from tests.differential.harness import Finding, Rows, Tally, definition
from tests.differential.workloads import RandomWorkload

from plait.workload import Query


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
    _check_database_way(workload, expected, folder, tally)
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


def _check_database_way(workload: RandomWorkload, expected: Rows, folder: Path, tally: Tally) -> None:
    own = folder / "database"
    own.mkdir(parents=True)
    with HandedOver(workload, own) as given:
        for query in workload.queries:
            loaded, disturb = given.loaded.queries[query.name], random.Random(f"{workload.seed} {query.name}")

            def run(query: Query = loaded, disturb: random.Random = disturb) -> Sequence[Row]:
                return database_way.run(query, given, own, disturb=disturb).rows

            tally.attempt(workload.seed, query, "the database way alone", expected[query.name], run)


def _check_plain_spark(workload: RandomWorkload, expected: Rows, spark: SparkSession, tally: Tally) -> None:
    plain_spark.store(workload, spark)
    for query in workload.queries:
        if query.block is not None and plain_spark.can_say(query.block):
            rows = plain_spark.rows_of(query.block, spark)
            tally.compare(workload.seed, query, "plain Spark", expected[query.name], rows)
