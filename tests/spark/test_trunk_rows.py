"""Spark's part of what a database computes: with a real one behind it, the rows of the definition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.native_runs import FileStreams, Run, declared, evaluated, started, store_tables
from tests.spark.test_native import NOON, ROOMS, some_rows
from tests.workloads.trunks import trunk_of

from plait.batches import Batch, Outcome, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result, Way
from plait.deployment.lowering import fragment
from plait.deployment.row_by_row import row_by_row
from plait.evaluator import difference
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.space import stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait.spark.trunk_rows import Queries, TrunkRows

pytestmark = pytest.mark.spark

QUERIES = """
CREATE STREAM readings (plug INT, load INT, price DECIMAL(8,2), level DOUBLE, at TIMESTAMP,
                        WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 20 SECONDS);
CREATE STREAM visits (plug INT, worker STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE rooms (plug INT, room STRING);
CREATE CONTINUOUS QUERY last_three AS
  SELECT sum(load) AS total, max(level) AS top, window_end FROM readings [ROWS 3 SLIDE 2] WHERE plug > 1;
CREATE CONTINUOUS QUERY by_room AS
  SELECT m.room, sum(r.price) AS total, max(a.code) AS code
  FROM readings r [RANGE 10 SECONDS], alarms a [RANGE 10 SECONDS], rooms m
  WHERE r.plug = m.plug AND a.plug = r.plug AND r.load > 5 GROUP BY m.room;
CREATE CONTINUOUS QUERY ordered AS
  SELECT l.load AS less, m.load AS more FROM readings l [RANGE 5 SECONDS], readings m [RANGE 5 SECONDS]
  WHERE l.load < m.load AND l.plug = 1 AND m.level > 1.0;
"""


def lowered(name: str) -> tuple[Catalog, Fragment]:
    catalog, query = declared(QUERIES, name)
    made = fragment(Result(name, query.columns, stream_of(canonicalise(query.plan))), catalog)
    assert made.way is Way.SHARED
    return catalog, made


def trunk_rows(made: Fragment, catalog: Catalog, streams: FileStreams, queries: Queries) -> TrunkRows:
    from plait.spark.trunk_rows import TrunkRows

    inputs = {each.stream.lower(): row_by_row(each.plan) for each in made.inputs}
    return TrunkRows(inputs, catalog, streams, streams.beats, queries)


@pytest.mark.parametrize("name", ["last_three", "by_room", "ordered"])
def test_query(name: str, spark: SparkSession, tmp_path: Path) -> None:
    catalog, made = lowered(name)
    streams, done, stored = FileStreams(spark, catalog, tmp_path), Run(made), dict[str, Path]()
    store_tables(stored, catalog, {"rooms": ROOMS}, tmp_path)
    trunk = trunk_of(made, catalog, tmp_path / "state.duckdb")
    computation = trunk_rows(made, catalog, streams, trunk)
    running = started(computation, done, stored, tmp_path / "checkpoint")
    rows = some_rows(seed=5)
    for cut in rows:
        streams.add_all(cut)
        running.processAllAvailable()
    streams.end()
    running.processAllAvailable()
    running.stop()
    trunk.close()
    wanted = evaluated(QUERIES, name, rows, tables={"rooms": ROOMS})
    assert wanted
    assert not difference(wanted, done.rows)


class _Recorder:
    """Stands in for the database: keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[tuple[dict[str, pa.Table], dict[str, int]]] = []

    def apply(
        self, batch: Batch, rows: Mapping[str, pa.Table], beats: Mapping[str, int], publish: Publish
    ) -> Mapping[str, Outcome]:
        assert batch.id == len(self.batches)
        self.batches.append((dict(rows), dict(beats)))
        publish([])
        return {"ordered": Outcome(0)}


def test_what_is_handed_over(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that the query may want only, each once although the stream is joined with itself; and every
    event time."""
    catalog, made = lowered("ordered")
    streams, recorder = FileStreams(spark, catalog, tmp_path), _Recorder()
    computation = trunk_rows(made, catalog, streams, recorder)
    running = started(computation, Run(made), {}, tmp_path / "checkpoint")
    later = NOON + timedelta(seconds=30)
    streams.add("readings", [(1, 5, None, 2.0, NOON), (2, 6, None, 0.5, later)])
    running.processAllAvailable()
    streams.end()
    running.processAllAvailable()
    running.stop()
    (first, seen), (nothing, end) = recorder.batches
    noon_us = 1_767_268_800_000_000
    assert seen == {"readings": noon_us + 30_000_000}
    assert end == {"readings": END_OF_TIME_US}
    assert [table.num_rows for table in nothing.values()] == [0]
    (row,) = first["readings"].to_pylist()
    assert row["t"] == noon_us
