"""Rows that come too late for an operator are counted exactly, each once; what can be in time is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.native_runs import Cuts, Rows, Run, evaluated, run

from plait.evaluator import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# After a row of 12:01:00 Spark's watermark is 12:00:50; under joins of rows, a millisecond less.
QUERIES = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM visits (plug INT, worker STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE CONTINUOUS QUERY tumbling AS
  SELECT count(*) AS n, window_end FROM readings [RANGE 10 SECONDS] WHERE load > 1;
CREATE CONTINUOUS QUERY sliding AS
  SELECT count(*) AS n, window_end FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS];
CREATE CONTINUOUS QUERY gaps AS
  SELECT count(*) AS n, window_end FROM readings [RANGE 2 SECONDS SLIDE 10 SECONDS];
CREATE CONTINUOUS QUERY some_ticks AS
  SELECT count(*) AS n, window_end FROM readings [RANGE 20 SECONDS SLIDE 10 SECONDS]
  WHERE window_end > TIMESTAMP '2026-01-01 12:00:50';
CREATE CONTINUOUS QUERY twice AS
  SELECT l.load, m.load AS other FROM readings l [RANGE 5 SECONDS], readings m [RANGE 5 SECONDS]
  WHERE l.plug = m.plug AND l.load > 1;
CREATE CONTINUOUS QUERY three AS
  SELECT a.code, r.load, v.worker
  FROM alarms a [RANGE 20 SECONDS], readings r [RANGE 20 SECONDS], visits v [RANGE 20 SECONDS]
  WHERE a.plug = r.plug AND r.plug = v.plug;
"""


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01 12:{text}")


def readings(*rows: tuple[int, str]) -> Rows:
    return [(1, load, at(text)) for load, text in rows]


def checked(session: SparkSession, query: str, cuts: Cuts, in_time: Cuts, folder: Path) -> Run:
    """A run over all rows, with the results of those alone that are in time."""
    done = run(session, QUERIES, query, cuts, folder)
    assert not difference(evaluated(QUERIES, query, in_time), done.rows)
    return done


@pytest.mark.parametrize(
    ("query", "newest", "late", "in_time"),
    [
        # A window is closed when the watermark has reached its end.
        ("tumbling", "01:00", [(5, "00:05"), (1, "00:06"), (5, "00:49.999999")], [(5, "00:50")]),
        ("tumbling", "00:59.999", [(5, "00:39")], [(5, "00:40"), (5, "00:49.999999")]),
        # One that is open takes rows that are older than the delay allows.
        ("tumbling", "01:05", [(5, "00:49")], [(5, "00:50"), (5, "00:54")]),
        ("sliding", "01:00", [(5, "00:05")], [(5, "00:50")]),
        # A row that is in no window is not late.
        ("gaps", "01:00", [(5, "00:09"), (5, "00:38"), (5, "00:48")], [(5, "00:05"), (5, "00:58")]),
    ],
)
def test_rows_are_late_for_a_window_that_is_closed(
    query: str,
    newest: str,
    late: list[tuple[int, str]],
    in_time: list[tuple[int, str]],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    first, rest = readings((7, "00:00"), (7, newest)), readings(*in_time)
    done = checked(
        spark,
        query,
        [{"readings": first}, {"readings": [*readings(*late), *rest]}],
        [{"readings": first}, {"readings": rest}],
        tmp_path,
    )
    counted = sum(load > 1 for load, _ in late) if query == "tumbling" else len(late)
    assert done.late_rows == {"readings": counted}


@pytest.mark.slow
def test_late_for_one_of_two_windows_is_late(spark: SparkSession, tmp_path: Path) -> None:
    first, second = readings((7, "00:00"), (7, "01:00")), readings((5, "00:45"))
    done = run(spark, QUERIES, "sliding", [{"readings": first}, {"readings": second}], tmp_path)
    assert done.late_rows == {"readings": 1}
    assert (1, at("01:00")) in done.rows


@pytest.mark.slow
def test_ticks_that_do_not_count_make_no_row_late(spark: SparkSession, tmp_path: Path) -> None:
    """The row of 00:39 is in the windows up to 00:40 and 00:50 only, of which none counts."""
    first, second = readings((7, "00:00"), (7, "01:20")), readings((5, "00:39"), (5, "00:45"), (5, "01:15"))
    done = run(spark, QUERIES, "some_ticks", [{"readings": first}, {"readings": second}], tmp_path)
    assert done.late_rows == {"readings": 1}


def test_a_row_that_two_sides_of_a_join_miss_is_one_late_row(spark: SparkSession, tmp_path: Path) -> None:
    first, late = readings((7, "00:00"), (7, "01:00")), readings((5, "00:05"), (1, "00:06"))
    rest = readings((6, "00:50"), (5, "00:52"))
    done = checked(
        spark,
        "twice",
        [{"readings": first}, {"readings": [*late, *rest]}],
        [{"readings": first}, {"readings": rest}],
        tmp_path,
    )
    assert done.late_rows == {"readings": 2}


def test_a_later_join_has_more_time(spark: SparkSession, tmp_path: Path) -> None:
    """Visits meet what the join of alarms and readings gives, which holds back by 20 seconds."""
    first: dict[str, Rows] = {
        "alarms": [(1, "hot", at("00:31")), (9, "hot", at("01:00"))],
        "readings": [(1, 5, at("00:30")), (9, 5, at("01:00"))],
        "visits": [(9, "ann", at("01:00"))],
    }
    late = {"alarms": [(1, "late", at("00:49.999"))], "visits": [(1, "late", at("00:29.999"))]}
    rest = {"visits": [(1, "bob", at("00:29.999001")), (1, "ann", at("00:40"))]}
    both = {"alarms": late["alarms"], "visits": [*late["visits"], *rest["visits"]]}
    done = checked(spark, "three", [first, both], [first, rest], tmp_path)
    assert done.late_rows == {"alarms": 1, "visits": 1}
