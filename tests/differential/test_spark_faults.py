"""Faults planted in what runs on Spark: each shows in the rows of a query that is made to notice it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.differential.arrivals import StoredStream, arriving
from tests.differential.harness import definition
from tests.differential.queries import RandomQuery
from tests.differential.workloads import RandomWorkload

from plait.benchmarks.planning.model import Relation
from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLUGS = Relation("plugs", (("plug", "INT"), ("load", "INT"), ("at", "TIMESTAMP")), "at")
VISITS = Relation("visits", (("plug", "INT"), ("at", "TIMESTAMP")), "at")


@dataclass(frozen=True)
class SparkFault:
    """`select` is a query in whose rows the fault shows."""

    name: str
    select: str
    plant: Callable[[pytest.MonkeyPatch], None]


def _longer_intervals(patch: pytest.MonkeyPatch) -> None:
    from plait.spark import stage_frames

    correct = stage_frames._interval
    patch.setattr(stage_frames, "_interval", lambda us: correct(us + 1))


def _no_offsets(patch: pytest.MonkeyPatch) -> None:
    from plait.spark import stage_frames

    correct = stage_frames._ticks
    patch.setattr(stage_frames, "_ticks", lambda window: correct(replace(window, offset_us=0)))


def _null_equals_null(patch: pytest.MonkeyPatch) -> None:
    from plait.spark import stage_frames

    correct = stage_frames._predicate
    patch.setattr(stage_frames, "_predicate", lambda node: correct(node)[-1:])


def _lists_for_sets(patch: pytest.MonkeyPatch) -> None:
    from plait.spark import stage_frames

    correct = stage_frames._set_size

    def faulty(*arguments: Any) -> str:
        return correct(*arguments).replace("collect_set", "collect_list")

    patch.setattr(stage_frames, "_set_size", faulty)


def _no_delay(patch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    correct = DataFrame.withWatermark
    patch.setattr(DataFrame, "withWatermark", lambda frame, time, _: correct(frame, time, "0 seconds"))


def _other_ties(patch: pytest.MonkeyPatch) -> None:
    from plait.spark import epilogue

    patch.setattr(epilogue, "column_names", lambda node: [f"c{k}" for k in range(len(node.types))][::-1])


def _bad_records_pass(patch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions

    from plait.spark import sources
    from plait.spark.records import judged

    late = functions.expr("coalesce(t, TIMESTAMP '2026-03-02 06:00:00')")
    patch.setattr(
        sources,
        "judged",
        lambda frame, stream: judged(frame, stream).withColumns({"reason": functions.lit(None), "t": late}),
    )


def _lose_a_file(patch: pytest.MonkeyPatch) -> None:
    from plait.runtime.sinks import FileSink

    correct = FileSink._take

    def faulty(sink: FileSink, batch_id: int, rows: Any) -> None:
        if batch_id != 1:
            correct(sink, batch_id, rows)

    patch.setattr(FileSink, "_take", faulty)


FAULTS = (
    SparkFault(
        "rows exactly a range apart meet",
        "SELECT l.load, r.load AS other FROM plugs l [RANGE 1 SECOND], plugs r [RANGE 1 SECOND] "
        "WHERE l.plug = r.plug",
        _longer_intervals,
    ),
    SparkFault(
        "a window's offset is ignored",
        "SELECT count(*) AS n, window.end AS e FROM plugs "
        "GROUP BY window(at, '6 seconds', '3 seconds', '1 second')",
        _no_offsets,
    ),
    SparkFault(
        "NULL keys meet in full joins",
        "SELECT p.at, v.at AS visited FROM plugs p [RANGE 1 MINUTE] "
        "FULL JOIN visits v [RANGE 1 MINUTE] ON p.plug = v.plug",
        _null_equals_null,
    ),
    SparkFault(
        "DISTINCT is ignored",
        "SELECT count(*) AS n, count(DISTINCT plug) AS plugs FROM plugs [RANGE 5 SECONDS]",
        _lists_for_sets,
    ),
    SparkFault(
        "rows within the delay are late",
        "SELECT plug, count(*) AS n FROM plugs [RANGE 1 SECOND] GROUP BY plug",
        _no_delay,
    ),
    SparkFault(
        "ties are ordered otherwise",
        "SELECT plug, load, count(*) AS n FROM plugs [RANGE 10 SECONDS] GROUP BY plug, load "
        "ORDER BY n DESC LIMIT 2",
        _other_ties,
    ),
    SparkFault("bad records pass", "SELECT plug, load FROM plugs", _bad_records_pass),
    SparkFault("a batch's results are lost", "SELECT plug, load FROM plugs", _lose_a_file),
)


def _workload(select: str) -> RandomWorkload:
    query = RandomQuery("q", "", f"CREATE CONTINUOUS QUERY q AS {select};")
    return RandomWorkload(0, (_stream(PLUGS, 60), _stream(VISITS, 20)), (), (query,))


def _stream(relation: Relation, rows: int) -> StoredStream:
    return arriving(relation, 5_000_000, "parquet", random.Random(rows), rows=rows, cuts=3)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[pytest.mark.slow] * (place % 2))
        for place, fault in enumerate(FAULTS)
    ],
)
def test_a_fault_planted_on_spark_is_caught(
    fault: SparkFault, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.differential import spark_way

    workload = _workload(fault.select)
    expected = definition(workload)["q"]
    with monkeypatch.context() as patch:
        fault.plant(patch)
        ran = spark_way.run(workload, tmp_path, spark, planner="independent")
    assert ran.queries["q"].error is None
    assert difference(expected, ran.rows["q"]), f"nobody noticed that {fault.name}"


def test_without_a_fault_there_is_nothing_to_notice(spark: SparkSession, tmp_path: Path) -> None:
    from tests.differential import spark_way

    queries = tuple(
        RandomQuery(f"q{k}", "", f"CREATE CONTINUOUS QUERY q{k} AS {fault.select};")
        for k, fault in enumerate(FAULTS)
    )
    workload = replace(_workload(FAULTS[0].select), queries=queries)
    expected, ran = definition(workload), spark_way.run(workload, tmp_path, spark, planner="independent")
    for query in queries:
        assert not (found := difference(expected[query.name], ran.rows[query.name])), found
