"""Families of queries on Spark's own operators: the rows of each query's definition, and its late rows."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.api import Running, Session
from plait.evaluator import StoredData, difference, evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12)
DECLARATIONS = """
CREATE STREAM readings (plug INT, room STRING, watts BIGINT, price DECIMAL(8, 2), load DOUBLE, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL 5 SECONDS)
  WITH (connector = 'files', path = '{folder}/readings', format = 'parquet', files_per_batch = 1);
CREATE STREAM switches (plug INT, state STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 5 SECONDS)
  WITH (connector = 'files', path = '{folder}/switches', format = 'parquet', files_per_batch = 1);
"""
SELECTS = {
    "of_plug_1": "SELECT at, watts FROM readings WHERE plug = 1",
    "of_plug_2": "SELECT at, watts + 1 AS watts FROM readings WHERE plug = 2",
    "of_no_plug": "SELECT at, watts FROM readings WHERE plug = 99",
    "above_10": "SELECT at, plug FROM readings WHERE watts > 10",
    "above_20": "SELECT at, plug FROM readings WHERE watts >= 20",
    "middling": "SELECT at, plug FROM readings WHERE watts BETWEEN 5 AND 20",
    "below_5": "SELECT at, plug FROM readings WHERE watts < 5",
}
AGGREGATES = {
    "sums": "SELECT window_end, plug, sum(watts) AS total, count(*) AS n FROM readings "
    "[RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY plug",
    "means": "SELECT window_end, plug, avg(watts) AS mean, max(price) AS top FROM readings "
    "[RANGE 7 SECONDS SLIDE 3 SECONDS] GROUP BY plug HAVING count(*) > 1",
    "many": "SELECT window_end, plug, sum(price) AS paid, min(load) AS least FROM readings "
    "[RANGE 20 SECONDS SLIDE 4 SECONDS] GROUP BY plug HAVING sum(watts) > 30",
    "gaps": "SELECT window_start, plug, sum(load) AS load FROM readings "
    "[RANGE 2 SECONDS SLIDE 5 SECONDS] GROUP BY plug",
    "some": "SELECT window_end, plug, count(watts) FILTER (WHERE watts > 10) AS high FROM readings "
    "[RANGE 10 SECONDS] GROUP BY plug",
    "kitchen": "SELECT window_end, plug, count(*) AS n FROM readings [RANGE 10 SECONDS] "
    "WHERE room = 'kitchen' GROUP BY plug",
    "hall": "SELECT window_end, plug, count(*) AS n FROM readings [RANGE 5 SECONDS] "
    "WHERE room = 'hall' GROUP BY plug",
    "low": "SELECT window_end, count(*) AS n FROM readings [RANGE 10 SECONDS] WHERE watts < 15",
    "high": "SELECT window_end, count(*) AS n FROM readings [RANGE 6 SECONDS SLIDE 2 SECONDS] "
    "WHERE watts > 5",
}
JOINS = {
    f"with_{name}": "SELECT r.plug, r.watts, s.state FROM readings r [RANGE {} SECONDS], "
    "switches s [RANGE {} SECONDS] WHERE r.plug = s.plug AND {}".format(*parts)
    for name, parts in {
        "plug_1": (4, 3, "r.plug = 1"),
        "plug_2": (2, 6, "r.plug = 2"),
        "few_watts": (3, 3, "r.watts < 12"),
        "watts": (5, 1, "r.watts BETWEEN 8 AND 25"),
    }.items()
}
# So many bounds of one column that neither all cells nor all branches are listed.
MANY = {
    "selects": [f"SELECT at, plug FROM readings WHERE load > {k / 300}" for k in range(300)],
    "aggregates": [
        f"SELECT window_end, count(*) AS n FROM readings [RANGE 10 SECONDS] WHERE load < {k / 120}"
        for k in range(1, 121)
    ],
    "joins": [
        "SELECT r.watts, s.state FROM readings r [RANGE 3 SECONDS], switches s [RANGE 3 SECONDS] "
        f"WHERE r.plug = s.plug AND r.load >= {k / 120}"
        for k in range(120)
    ],
}
FAMILIES = {"selects": SELECTS, "aggregates": AGGREGATES, "joins": JOINS}


def _readings(chance: random.Random, seconds: Sequence[float]) -> pa.Table:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    rows = [
        {
            "plug": maybe(chance.randint(1, 4)),
            "room": maybe(chance.choice(("kitchen", "hall", "cellar"))),
            "watts": maybe(chance.randint(0, 30)),
            "price": maybe(chance.randint(0, 9_999)),
            "load": maybe(chance.random()),
            "at": NOON + timedelta(seconds=second),
        }
        for second in seconds
    ]
    return pa.table(
        {
            "plug": pa.array([row["plug"] for row in rows], pa.int32()),
            "room": pa.array([row["room"] for row in rows], pa.string()),
            "watts": pa.array([row["watts"] for row in rows], pa.int64()),
            "price": pa.array([row["price"] for row in rows], pa.int64())
            .cast(pa.decimal128(19, 0))
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(8, 2)),
            "load": pa.array([row["load"] for row in rows], pa.float64()),
            "at": pa.array([row["at"] for row in rows], pa.timestamp("us", "UTC")),
        }
    )


def _switches(chance: random.Random, seconds: Sequence[float]) -> pa.Table:
    return pa.table(
        {
            "plug": pa.array([chance.randint(1, 4) for _ in seconds], pa.int32()),
            "state": pa.array([chance.choice(("on", "off")) for _ in seconds], pa.string()),
            "at": pa.array([NOON + timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
        }
    )


def _write(folder: Path, batches: int, *, late: Sequence[float] = ()) -> None:
    """Batches of half a minute, their rows up to four seconds out of order; the last has late rows."""
    chance = random.Random(7)
    for name, make, each in (("readings", _readings, 60), ("switches", _switches, 25)):
        (folder / name).mkdir()
        for batch in range(batches):
            seconds = sorted(30 * batch + 30 * chance.random() for _ in range(each))
            disordered = [max(0.0, second - 4 * (chance.random() < 0.2)) for second in seconds]
            rows = make(chance, [*disordered, *(late if batch == batches - 1 and name == "readings" else ())])
            file = folder / name / f"{batch}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (batch, batch))  # files are read in the order of their times


def _sql(folder: Path, queries: dict[str, str]) -> str:
    declared = (f"CREATE CONTINUOUS QUERY {name} AS {select};" for name, select in queries.items())
    return DECLARATIONS.format(folder=folder) + "\n".join(declared)


def _done(session: Session, folder: Path, *, engines: str = "spark", drain: bool = False) -> Running:
    """A run over the data that is there."""
    state, results = folder / "state", folder / "results"
    running = session.run(engines=engines, state=state, results=results, available_now=True, drain=drain)
    running.wait()
    return running


@pytest.mark.spark
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_those_of_the_definitions(family: str, spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 2)
    sql = _sql(tmp_path, FAMILIES[family])
    with plait.open_text(sql, spark=spark) as session:
        running = _done(session, tmp_path, drain=True)
        progress = running.progress().queries
        assert {query.way for query in progress} == {"woven"}
        with StoredData.from_catalog(session.workload.catalog) as data:
            for name in FAMILIES[family]:
                expected = evaluate(session.query(name), data).rows
                assert not difference(expected, running.results(name).rows), name
                assert bool(expected) == (name != "of_no_plug")
        assert not any(query.late_rows for query in progress)


@pytest.mark.spark
@pytest.mark.parametrize("family", MANY)
def test_hundreds_of_bounds(family: str, spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 2)
    queries = {f"q{number}": select for number, select in enumerate(MANY[family])}
    with plait.open_text(_sql(tmp_path, queries), spark=spark) as session:
        running = _done(session, tmp_path, drain=True)
        assert {query.way for query in running.progress().queries} == {"woven"}
        with StoredData.from_catalog(session.workload.catalog) as data:
            expected = {name: evaluate(session.query(name), data).rows for name in queries}
        for name, rows in expected.items():
            assert not difference(rows, running.results(name).rows), name
    assert sum(map(bool, expected.values())) > 0.9 * len(expected)


@pytest.mark.spark
def test_late_rows_of_hundreds_of_bounds(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 3, late=[1.0, 1.5, 2.0, 2.5, 3.0] * 4)
    loads = pq.read_table(tmp_path / "readings" / "2.parquet").slice(60)["load"].to_pylist()
    queries = {f"q{k}": select for k, select in enumerate(MANY["aggregates"], start=1)}
    with plait.open_text(_sql(tmp_path, queries), spark=spark) as session:
        running = _done(session, tmp_path)
        counted = {query.name: query.late_rows.get("readings", 0) for query in running.progress().queries}
    assert counted == {
        f"q{k}": sum(load is not None and load < k / 120 for load in loads) for k in range(1, 121)
    }


@pytest.mark.spark
def test_late_rows_are_counted_for_whom_they_concern(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark of the batch before is 55 s, so what is at 1 to 3 s is late for whoever wants it."""
    _write(tmp_path, 3, late=[1.0, 1.5, 2.0, 2.5, 3.0] * 4)
    late = pq.read_table(tmp_path / "readings" / "2.parquet").slice(60)
    rooms = late["room"].to_pylist()
    queries = {name: AGGREGATES[name] for name in ("sums", "some", "kitchen", "hall")}
    with plait.open_text(_sql(tmp_path, queries), spark=spark) as session:
        running = _done(session, tmp_path)
        counted = {query.name: query.late_rows.get("readings", 0) for query in running.progress().queries}
    assert counted == {
        "sums": 20,
        "some": 20,
        "kitchen": rooms.count("kitchen"),
        "hall": rooms.count("hall"),
    }


@pytest.mark.spark
@pytest.mark.parametrize("engines", ["spark", "any"])
def test_a_late_row_in_a_gap_between_windows_is_late_for_nobody(
    engines: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Of the late rows, 2 s is in no window of three seconds, 8 s in one of each query."""
    _write(tmp_path, 3, late=[2.0, 8.0, 8.5])
    window = "SELECT window_end, count(*) AS n FROM readings [RANGE {} SECONDS SLIDE 10 SECONDS]"
    queries = {"short": window.format(3), "long": window.format(20), "tumbling": window.format(10)}
    with plait.open_text(_sql(tmp_path, queries), spark=spark) as session:
        running = _done(session, tmp_path, engines=engines)
        counted = {query.name: query.late_rows.get("readings", 0) for query in running.progress().queries}
    assert counted == {"short": 2, "long": 3, "tumbling": 3}


@pytest.mark.spark
def test_bad_records_are_counted_and_kept_with_what_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    """The family is the only reader of its streams, so nobody else looks at them."""
    _write(tmp_path, 2)
    bad = _readings(random.Random(1), [5.0, 6.0])
    bad = bad.set_column(5, "at", pa.array([None, datetime(1960, 1, 1)], pa.timestamp("us", "UTC")))
    pq.write_table(bad, tmp_path / "readings" / "bad.parquet")
    os.utime(tmp_path / "readings" / "bad.parquet", (9, 9))
    with plait.open_text(_sql(tmp_path, JOINS | {"sums": AGGREGATES["sums"]}), spark=spark) as session:
        running = _done(session, tmp_path)
        alone = {stream.name: (stream.rows, stream.bad_records) for stream in running.progress().streams}
    assert alone == {"readings": (120, 2), "switches": (50, 0)}
    with plait.open_text(_sql(tmp_path, dict([*AGGREGATES.items()][:4])), spark=spark) as session:
        running = _done(session, tmp_path / "again")
        (readings,) = running.progress().streams
    assert (readings.rows, readings.bad_records) == (120, 2)
    assert readings.bad_folder is not None
    reasons = [line for file in readings.bad_folder.iterdir() for line in file.read_text().splitlines()]
    assert sorted("NULL" in line for line in reasons) == [False, True]
    assert not (tmp_path / "again" / "state" / "streams" / "readings" / "checkpoint").exists()


@pytest.mark.spark
def test_sums_of_the_largest_numbers_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    """As long as the sum itself is a BIGINT; if it is none, there is none."""
    (tmp_path / "readings").mkdir()
    (tmp_path / "switches").mkdir()
    largest, least = 2**63 - 1, -(2**63)
    watts = [largest, least, largest, -5, None, least, least, 7, -(2**31), 2**32 - 1, -(2**32)]
    rows = _readings(random.Random(2), [float(k) for k in range(len(watts))])
    rows = rows.set_column(0, "plug", pa.array([1, 1, 1, 1, 2, 3, 3, 4, 4, 4, 4], pa.int32()))
    pq.write_table(rows.set_column(2, "watts", pa.array(watts, pa.int64())), tmp_path / "readings" / "0")
    select = "SELECT window_end, plug, sum(watts) AS total FROM readings [RANGE {} SECONDS] GROUP BY plug"
    with plait.open_text(
        _sql(tmp_path, {f"of_{n}": select.format(n) for n in (20, 4)}), spark=spark
    ) as session:
        running = _done(session, tmp_path, drain=True)
        with StoredData.from_catalog(session.workload.catalog) as data:
            for name in ("of_20", "of_4"):
                assert not difference(evaluate(session.query(name), data).rows, running.results(name).rows)
        totals = {row[1]: row[2] for row in running.results("of_20").rows}
    assert totals == {1: largest - 6, 2: None, 3: None, 4: 7 - 2**31 - 1}
