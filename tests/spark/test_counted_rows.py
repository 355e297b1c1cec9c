"""What a fragment on Spark counts of its streams: all records once, and the bad and late ones among them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from plait.batches import Batch, Processed
from plait.deployment.fragments import Fragment, Way
from plait.deployment.lowering import Engines, fragments
from plait.errors import UnsupportedError
from plait.planners import driver
from plait.runtime.beats import Beats
from plait.runtime.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.catalog import Catalog
    from plait.runtime.fragment_run import Computation

pytestmark = pytest.mark.spark

STREAMS = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = '{folder}/readings', format = '{format}', files_per_batch = 1,
        start = '2026-01-01 11:00:00', max_future = '1 day');
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = '{folder}/alarms', format = 'json');
"""
NATIVE = {
    "sums": "SELECT sum(load) AS total FROM readings [RANGE 10 SECONDS]",
    "self_join": "SELECT l.load, m.load AS other FROM readings l [RANGE 5 SECONDS], "
    "readings m [RANGE 5 SECONDS] WHERE l.plug = m.plug",
    "union": "SELECT load FROM readings WHERE load > 1 UNION ALL SELECT load FROM readings",
    "pairs": "SELECT code, load FROM alarms a [RANGE 5 SECONDS], readings r [RANGE 5 SECONDS] "
    "WHERE a.plug = r.plug",
}
WOVEN = {
    "trees": [
        f"SELECT sum(load) AS total FROM readings [RANGE {n} SECONDS SLIDE 10 SECONDS]" for n in (10, 20)
    ],
    "selects": [f"SELECT load FROM readings WHERE plug = {n}" for n in (1, 2)],
    "joins": [f"{NATIVE['pairs']} AND r.plug = {n}" for n in (1, 2)],
}


def at(second: int) -> str:
    return f"2026-01-01 12:{second // 60:02d}:{second % 60:02d}"


GOOD = [{"plug": 1, "load": 5, "at": at(second)} for second in (0, 5, 60)]
# The watermark is 12:00:50 now. The second row is late for all that keeps state, the last is before the
# stream's start.
LATER: list[dict[str, object]] = [
    {"plug": 1, "load": 6, "at": at(70)},
    {"plug": 1, "load": 7, "at": at(3)},
    {"plug": 2, "load": 8},
    {"plug": 2, "load": 9, "at": "2999-01-01 00:00:00"},
    {"plug": 2, "load": 9, "at": "2025-12-31 00:00:00"},
]


def write(folder: Path, stream: str, number: int, format_: str, rows: list[dict[str, object]]) -> None:
    (folder / stream).mkdir(exist_ok=True)
    file = folder / stream / f"{number}.{format_}"
    if format_ == "json":
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        lines = [",".join(str(row.get(name, "")) for name in ("plug", "load", "at")) for row in rows]
        file.write_text("\n".join(["plug,load,at", *lines, ""]))
    os.utime(file, (number + 1, number + 1))


def lowered(sql: str, *, together: bool) -> tuple[Fragment, Catalog]:
    workload = plait.open_text(sql).workload
    planned = driver.plan(workload, "plait" if together else "independent")
    (only,) = fragments(planned.deployment, workload.catalog, together=together, engines=Engines.SPARK)
    return only, workload.catalog


def processed(
    spark: SparkSession,
    fragment: Fragment,
    catalog: Catalog,
    folder: Path,
    *,
    kept: Sequence[str] = (),
    frames: Mapping[str, DataFrame] | None = None,
) -> list[Processed]:
    """What came of the batches. In the second one, a beat comes along. Of `kept` streams, bad records are
    wanted."""
    from plait.spark.native import NativeComputation
    from plait.spark.sources import Sources
    from plait.spark.woven import WovenComputation

    beats, checkpoint = folder / "beats", folder / "checkpoint"
    beats.mkdir()
    sources = Sources(spark, catalog, frames)
    computation: Computation = (
        NativeComputation(fragment, catalog, sources, beats)
        if fragment.way is Way.NATIVE
        else WovenComputation(fragment, catalog, sources, beats, spark)
    )
    found: list[Processed] = []

    def process(frame: DataFrame, number: int) -> None:
        late_before_us = Checkpoint(checkpoint).watermark_us(number - 1)
        batch = Batch(number, late_before_us, bad_records_of=kept)
        found.append(computation.process(frame, batch, lambda _: None))

    def run_on() -> None:
        writer = computation.frame.writeStream.foreachBatch(process).trigger(availableNow=True)
        writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()

    run_on()
    write(folder, "readings", 1, "csv" if (folder / "readings" / "0.csv").exists() else "json", LATER)
    Beats(beats, None).write({"alarms": 1_767_268_900_000_000, "visits": 1_767_268_900_000_000}, 0)
    run_on()
    return found


@pytest.mark.parametrize("case", [*NATIVE, *WOVEN])
def test_records_are_counted_once_and_late_and_bad_ones_are_found_beside_a_beat(
    case: str, spark: SparkSession, tmp_path: Path
) -> None:
    format_ = "csv" if case in ("sums", "trees") else "json"
    write(tmp_path, "readings", 0, format_, GOOD)
    write(tmp_path, "alarms", 0, "json", [{"plug": 1, "code": "hot", "at": at(second)} for second in (0, 60)])
    queries = WOVEN.get(case) or [NATIVE[case]]
    texts = [f"CREATE CONTINUOUS QUERY q{n} AS {text};" for n, text in enumerate(queries)]
    sql = STREAMS.format(folder=tmp_path, format=format_) + "\n".join(texts)
    fragment, catalog = lowered(sql, together=case in WOVEN)
    assert fragment.way is (Way.WOVEN if case in WOVEN else Way.NATIVE)
    kept = [] if case == "union" else ["readings"]
    batches = processed(spark, fragment, catalog, tmp_path, kept=kept)
    rows = [each.arrived["readings"].rows for each in batches]
    assert [count for count in rows if count] == [3, 2]
    second = next(each for each in batches[1:] if each.arrived["readings"].rows)
    assert second.arrived["readings"].last_us == 1_767_268_870_000_000
    reasons = sorted(record["reason"] for record in second.arrived["readings"].bad)
    assert ["max_future" in reason for reason in reasons] == [True, False][: 2 * len(kept)]
    keeps_state = case not in ("union", "selects")
    late = {query: outcome.late_rows.get("readings", 0) for query, outcome in second.outcomes.items()}
    # Of the joins, one query wants plug 1 and the other plug 2.
    assert late == {q: int(keeps_state and (case, q) != ("joins", "q1")) for q in late}


NOTHING = {
    "lookup": "SELECT load, name FROM readings, tab WHERE readings.plug = tab.plug AND tab.name = NULL",
    "lookup_of_sums": "SELECT n, name FROM (SELECT plug, count(*) AS n FROM readings [RANGE 10 SECONDS] "
    "GROUP BY plug) a, tab WHERE a.plug = tab.plug AND tab.name IS NULL AND tab.name = 'x'",
    "having": "SELECT plug, sum(load) AS total FROM readings [RANGE 10 SECONDS] GROUP BY plug "
    "HAVING sum(load) IS NULL AND sum(load) = 3",
}


@pytest.mark.parametrize("planner", ["plait", "independent"])
def test_records_are_counted_where_spark_sees_that_no_rows_can_come_out(
    planner: str, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "readings", 0, "json", GOOD)
    write(tmp_path, "readings", 1, "json", LATER)
    (tmp_path / "tab.csv").write_text("plug,name\n1,a\n2,b\n")
    stored = f"connector = 'files', path = '{tmp_path}/tab.csv', format = 'csv'"
    table = f"CREATE TABLE tab (plug INT, name STRING) WITH ({stored});"
    streams = STREAMS.format(folder=tmp_path, format="json")
    for name, text in NOTHING.items():
        with plait.open_text(
            f"{streams}{table} CREATE CONTINUOUS QUERY q AS {text};", spark=spark
        ) as session:
            running = session.run(
                planner,
                engines="spark",
                state=tmp_path / f"{name}_state",
                results=tmp_path / f"{name}_results",
                available_now=True,
            )
            running.wait()
            (stream,) = running.progress().streams
            assert (stream.rows, stream.bad_records) == (5, 2), name
            assert running.results("q").rows == []


def test_a_given_frame_that_keeps_state_is_refused_on_spark_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = spark.readStream.format("rate").load().selectExpr("value AS n", "timestamp AS at")
    sql = (
        "CREATE STREAM s (n BIGINT, at TIMESTAMP, WATERMARK FOR at AS at);"
        "CREATE CONTINUOUS QUERY q AS SELECT n FROM s WHERE n > 1;"
    )
    fragment, catalog = lowered(sql, together=False)
    with pytest.raises(UnsupportedError, match="keeps state") as raised:
        processed(spark, fragment, catalog, tmp_path, frames={"s": given.dropDuplicates(["n"])})
    assert raised.value.code == "stream-state"
