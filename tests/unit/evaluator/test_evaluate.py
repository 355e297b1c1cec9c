"""Examples worked by hand, beyond those of docs/semantics.md, for every class of query.

Times are minutes and seconds after noon.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from plait import evaluator as evaluator_module
from plait import language
from plait.engines.duckdb import Database
from plait.errors import InfeasibleError, InternalError
from plait.evaluator import Result, StoredData, difference, evaluate
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE, Column, Literal
from plait.expressions.types import INT
from plait.plan.nodes import Aggregate, Field, Join, StreamScan, TableScan, TickWindow, Window
from plait.workload import Query

DECLARATIONS = """
CREATE STREAM loads (house INT, plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM a (k INT, x INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM b (k INT, y INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM c (k INT, z INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE names (k INT, name STRING);
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as database:
        yield database


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01 12:{text}")


def rows(*lines: str) -> list[tuple[Any, ...]]:
    """`1 NULL 00:30` is (1, None, 12:00:30)."""
    parsed = []
    for line in lines:
        *values, time = line.split()
        parsed.append((*(None if v == "NULL" else int(v) for v in values), at(time)))
    return parsed


def run(database: Database, select: str, data: dict[str, list[tuple[Any, ...]]], **options: Any) -> Result:
    workload = language.load_text(f"{DECLARATIONS} CREATE CONTINUOUS QUERY q AS {select};")
    with StoredData.from_rows(workload.catalog, data, database=database) as stored:
        return evaluate(workload.query("q"), stored, **options)


def check(
    database: Database,
    select: str,
    data: dict[str, list[tuple[Any, ...]]],
    expected: list[tuple[Any, ...]],
    **options: Any,
) -> None:
    result = run(database, select, data, **options)
    assert not (found := difference(expected, result.rows)), found


LOADS = {"loads": rows("1 1 10 00:10", "1 1 30 00:50", "1 2 100 00:30", "2 1 5 01:10", "1 1 20 02:10")}
PLUG_AVERAGE = (
    "(SELECT house, plug, avg(load) AS mean FROM loads [RANGE {} SLIDE 1 MINUTE] GROUP BY house, plug)"
)


def test_cq2_counts_rows_above_the_average_of_their_window(database: Database) -> None:
    # At 12:01 plug 1.1 has 10 and 30 (mean 20), 1.2 has 100. At 12:02 there is also 5 of 2.1, at 12:03 5 and
    # 20 are left, each alone, at 12:04 the 20. Above the mean is only the 30, at 12:01 and 12:02.
    check(
        database,
        f"""SELECT l.house, l.plug, count(*) AS n
            FROM loads l [RANGE 2 MINUTES SLIDE 1 MINUTE], {PLUG_AVERAGE.format("2 MINUTES")} m
            WHERE l.house = m.house AND l.plug = m.plug AND l.load > m.mean GROUP BY l.house, l.plug""",
        LOADS,
        [(1, 1, 1), (1, 1, 1)],
    )


def test_cq6_compares_averages_of_three_ranges(database: Database) -> None:
    # A plug appears while its shortest window has rows: 12:01 (1.1 and 1.2), 12:02 (2.1), 12:03 (1.1).
    check(
        database,
        f"""SELECT s.house, s.plug, s.mean AS one, m.mean AS two, l.mean AS three
            FROM {PLUG_AVERAGE.format("1 MINUTE")} s
            JOIN {PLUG_AVERAGE.format("2 MINUTES")} m ON s.house = m.house AND s.plug = m.plug
            JOIN {PLUG_AVERAGE.format("3 MINUTES")} l ON s.house = l.house AND s.plug = l.plug""",
        LOADS,
        [
            (1, 1, 20.0, 20.0, 20.0),
            (1, 2, 100.0, 100.0, 100.0),
            (2, 1, 5.0, 5.0, 5.0),
            (1, 1, 20.0, 20.0, 20.0),
        ],
    )


def test_cq5_finds_the_highest_total_of_each_house(database: Database) -> None:
    check(
        database,
        """SELECT house, max(total) AS highest
           FROM (SELECT house, plug, sum(load) AS total FROM loads [RANGE 5 MINUTES SLIDE 5 MINUTES]
                 GROUP BY house, plug) t
           GROUP BY house""",
        LOADS,
        [(1, 100), (2, 5)],
    )


def test_a_chain_of_left_joins_keeps_the_first_rows(database: Database) -> None:
    # b is absent for k = 2, so only a and c have to meet there; for k = 1 all three have to.
    check(
        database,
        """SELECT a.x, b.y, c.z FROM a [RANGE 1 MINUTE] LEFT JOIN b [RANGE 1 MINUTE] ON a.k = b.k
           LEFT JOIN c [RANGE 1 MINUTE] ON a.k = c.k""",
        {
            "a": rows("1 10 00:00", "2 20 00:00", "3 30 00:00"),
            "b": rows("1 11 00:30"),
            "c": rows("1 12 00:50", "1 13 01:15", "2 22 00:59", "3 32 01:00"),
        },
        [(10, 11, 12), (20, None, 22), (30, None, None)],
    )


def test_a_right_join_keeps_the_right_side(database: Database) -> None:
    check(
        database,
        "SELECT a.x, b.y FROM a [RANGE 10 SECONDS] RIGHT JOIN b [RANGE 1 SECOND] ON a.k = b.k AND a.x > 5",
        {"a": rows("1 3 00:00", "1 7 00:00"), "b": rows("1 1 00:09", "1 2 00:10", "2 3 00:00")},
        [(7, 1), (None, 2), (None, 3)],
    )


def test_unmatched_rows_wait_for_the_outer_joins_below(database: Database) -> None:
    # The watermark is 12:01:30. That b's row of 12:00:50 has no partner in c is final at 12:01:50 only. So it
    # is not yet there to be the partner of a's row of 12:00:00, which waits though its own window has ended.
    select = """SELECT a.x, d.y FROM a [RANGE 1 MINUTE] LEFT JOIN
      (SELECT b.k, b.y, c.z FROM b [RANGE 1 MINUTE] LEFT JOIN c [RANGE 1 MINUTE] ON b.k = c.k) d
      [RANGE 1 MINUTE] ON a.k = d.k"""
    data = {
        "a": rows("1 10 00:00", "2 20 00:00", "9 0 01:40"),
        "b": rows("1 11 00:50", "2 21 00:10", "9 0 01:40"),
        "c": rows("8 0 01:40"),
    }
    check(database, select, data, [(10, 11), (20, 21), (0, 0)])
    check(database, select, data, [(20, 21)], closed_only=True)


def test_a_filter_on_a_row_window_does_not_change_the_numbers(database: Database) -> None:
    check(
        database,
        "SELECT count(*) AS n, sum(x) AS total FROM a [ROWS 2 SLIDE 1] WHERE x > 1",
        {"a": rows("1 1 00:01", "1 2 00:02", "1 3 00:03")},
        [(1, 2), (2, 5)],
    )


def test_row_windows_slide_further_than_they_reach(database: Database) -> None:
    check(
        database,
        "SELECT sum(x) AS total FROM a [ROWS 1 SLIDE 3]",
        {"a": rows(*(f"1 {k} 00:{k:02}" for k in range(1, 8)))},
        [(3,), (6,)],
    )


def test_row_windows_of_a_query_over_a_query(database: Database) -> None:
    # Minute sums 1, 2, 4 become a stream; every two of them are added.
    check(
        database,
        """SELECT sum(total) AS total FROM
           (SELECT sum(x) AS total FROM a [RANGE 1 MINUTE]) m [ROWS 2 SLIDE 1]""",
        {"a": rows("1 1 00:00", "1 2 01:00", "1 4 02:00")},
        [(1,), (3,), (6,)],
    )


def test_the_best_row_of_each_row_window(database: Database) -> None:
    check(
        database,
        "SELECT k, x FROM a [ROWS 2] ORDER BY x DESC NULLS FIRST LIMIT 1",
        {"a": rows("1 5 00:01", "2 6 00:02", "3 NULL 00:03", "4 9 00:04")},
        [(2, 6), (3, None)],
    )


def test_a_self_join_meets_itself(database: Database) -> None:
    check(
        database,
        "SELECT l.x, r.x AS other FROM a l [RANGE 2 SECONDS], a r [RANGE 1 SECOND] WHERE l.k = r.k",
        {"a": rows("1 1 00:00", "1 2 00:01", "1 3 00:03")},
        [(1, 1), (2, 2), (3, 3), (1, 2)],
    )


def test_a_table_joins_ticks_and_rows(database: Database) -> None:
    data = {
        "a": rows("1 10 00:00", "2 20 00:01", "NULL 30 00:02"),
        "names": [(1, "one"), (1, "uno"), (None, "none")],
    }
    check(database, "SELECT n.name, a.x FROM a, names n WHERE a.k = n.k", data, [("one", 10), ("uno", 10)])
    check(
        database,
        """SELECT t.k, t.total, n.name FROM (SELECT k, sum(x) AS total FROM a [RANGE 1 MINUTE] GROUP BY k) t
           LEFT JOIN names n ON t.k = n.k""",
        data,
        [(1, 10, "one"), (1, 10, "uno"), (2, 20, None), (None, 30, None)],
    )


def test_a_union_of_ticks_ticks_on(database: Database) -> None:
    check(
        database,
        """SELECT sum(n) AS n FROM
           (SELECT count(*) AS n FROM a [RANGE 1 MINUTE]
            UNION ALL SELECT count(*) FROM b [RANGE 1 MINUTE]) t""",
        {"a": rows("1 1 00:00", "1 1 01:00"), "b": rows("1 1 00:59")},
        [(2,), (1,)],
    )


def test_a_union_of_different_ticks_is_a_stream(database: Database) -> None:
    # Events: 12:00:59.999999 (a's minute) and 12:01:59.999999 (b's two minutes).
    check(
        database,
        """SELECT count(*) AS n, window_end FROM
           (SELECT k FROM a [RANGE 1 MINUTE] GROUP BY k
            UNION ALL SELECT k FROM b [RANGE 2 MINUTES] GROUP BY k) t [RANGE 1 MINUTE]""",
        {"a": rows("1 1 00:00"), "b": rows("1 1 00:00")},
        [(1, at("01:00")), (1, at("02:00"))],
    )


def test_constant_keys_are_values_and_no_positions(database: Database) -> None:
    workload = language.load_text(DECLARATIONS)
    window = Window(StreamScan("a", (Field("k", INT),)), TickWindow(60_000_000, 60_000_000))
    plan = Aggregate(
        window, (Literal(1, INT),), (AggregateCall("count"), AggregateCall("max", (Column(0, INT),)))
    )
    with StoredData.from_rows(
        workload.catalog, {"a": rows("5 0 00:00", "6 0 00:01")}, database=database
    ) as data:
        assert evaluate(Query("q", plan, ("one", "n", "greatest")), data).rows == ((1, 2, 6),)


def test_relations_without_columns_still_have_rows(database: Database) -> None:
    workload = language.load_text(DECLARATIONS)
    window = Window(StreamScan("a", ()), TickWindow(60_000_000, 60_000_000))
    plan = Aggregate(Join((window, TableScan("names", ())), TRUE), (), (AggregateCall("count"),))
    data = {"a": rows("1 1 00:00", "2 2 00:01"), "names": [(1, "one"), (2, "two"), (3, "three")]}
    with StoredData.from_rows(workload.catalog, data, database=database) as stored:
        assert evaluate(Query("q", plan, ("n",)), stored).rows == ((6,),)


def test_a_query_without_columns_is_an_error_of_ours(database: Database) -> None:
    workload = language.load_text(DECLARATIONS)
    with (
        StoredData.from_rows(workload.catalog, {}, database=database) as stored,
        pytest.raises(InternalError),
    ):
        evaluate(Query("q", StreamScan("a", ()), ()), stored)


def test_a_late_start_counts_the_range_of_a_join_once_however_joins_are_nested(database: Database) -> None:
    # Combinations of [12:02, 12:03) are of rows after 12:01, all of which were seen since 12:00:45.
    minute = "[RANGE 1 MINUTE]"
    flat = f"SELECT a.k FROM a {minute}, b {minute}, c {minute} WHERE a.k = b.k AND b.k = c.k"
    nested = f"""SELECT q.k FROM (SELECT a.k FROM a {minute}, b {minute} WHERE a.k = b.k) q, c {minute}
                 WHERE q.k = c.k"""
    data = {name: rows(*(f"1 1 0{m}:30" for m in range(4))) for name in "abc"}
    expected = [(1, at("03:00")), (1, at("04:00"))]
    for join in (flat, nested):
        select = f"SELECT count(*) AS n, window_end FROM ({join}) z [RANGE 1 MINUTE]"
        check(database, select, data, expected, start=at("00:45"))


def test_results_are_sorted_with_nulls_first(database: Database) -> None:
    result = run(
        database, "SELECT k, x FROM a", {"a": rows("2 1 00:00", "NULL 5 00:01", "1 NULL 00:02", "1 0 00:03")}
    )
    assert result.rows == ((None, 5), (1, None), (1, 0), (2, 1))
    assert result.columns == ("k", "x")
    assert dict(result.bad_records) == {"a": 0}


def test_an_explosion_is_refused_with_its_size(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator_module, "MAX_WINDOW_ROWS", 100)
    for window in ("[RANGE 1 MINUTE SLIDE 1 SECOND]", "[ROWS 60 SLIDE 1]"):
        with pytest.raises(InfeasibleError) as raised:
            run(database, f"SELECT count(*) AS n FROM a {window}", {"a": rows("1 1 00:00", "1 2 00:01")})
        assert "each of 2 rows at 60 ticks: 120 rows, more than 100" in raised.value.detail
