"""Runs a workload on Spark as a user would, in one drained pass over files that are a micro-batch each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from tests.differential.arrivals import Row
from tests.differential.result_rows import outlet_rows
from tests.differential.workloads import RandomWorkload

import plait
from plait.errors import PlaitError
from plait.planners import DEFAULT_PLANNER
from plait.runtime.outlets import recorded
from plait.runtime.snapshot import QueryProgress


@dataclass(frozen=True)
class SparkRun:
    """What a run left, by the queries' keys: rows as any reader of its files sees them, and what it said."""

    rows: dict[str, list[Row]]
    queries: dict[str, QueryProgress]


def run(
    workload: RandomWorkload,
    folder: Path,
    spark: SparkSession,
    *,
    planner: str = DEFAULT_PLANNER,
    engines: str = "any",
) -> SparkRun:
    sql = workload.write(folder)
    with plait.open(sql, spark=spark) as session:
        running = session.run(
            planner,
            engines=engines,
            state=folder / "state",
            results=folder / "results",
            available_now=True,
            drain=True,
        )
        with suppress(PlaitError):  # queries that failed say so in the progress
            running.wait()
        queries = {query.name.lower(): query for query in running.progress().queries}
    outlets = recorded(folder / "state")
    return SparkRun({key: outlet_rows(outlets[key]) for key in queries}, queries)
