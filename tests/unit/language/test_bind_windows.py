"""The spellings of windows, where they begin and end, and their edges as columns."""

from __future__ import annotations

import pytest
from tests.unit.language.bound import plan, query


def window_line(select: str) -> str:
    return plan(select).splitlines()[1].removeprefix("r1 := window r0: ")


@pytest.mark.parametrize(
    ("source", "window"),
    [
        ("s [RANGE 5 MINUTES]", "range 5 min slide 5 min"),
        ("s AS z [RANGE 5 MINUTES SLIDE 1 MINUTE]", "range 5 min slide 1 min"),
        ("s [RANGE 1 MINUTE SLIDE 5 MINUTES] z", "range 1 min slide 5 min"),
        ("HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)", "range 5 min slide 1 min"),
        (
            "TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 5 MINUTES))",
            "range 5 min slide 5 min",
        ),
        (
            "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 2 MINUTES, INTERVAL 5 MINUTES) z",
            "range 5 min slide 2 min offset 1 min",
        ),
        (
            "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 2 MINUTES, INTERVAL 4 MINUTES, INTERVAL 30 SECONDS)",
            "range 4 min slide 2 min offset 30 s",
        ),
    ],
)
def test_windows_in_from(source: str, window: str) -> None:
    assert window_line(f"SELECT count(*) AS n FROM {source} GROUP BY k") == window


@pytest.mark.parametrize(
    ("call", "window"),
    [
        ("window(ts, '5 minutes')", "range 5 min slide 5 min"),
        ("window(s.ts, INTERVAL 5 MINUTES, INTERVAL '1' MINUTE)", "range 5 min slide 1 min"),
        ("WINDOW(ts, '5 minutes', '2 minutes')", "range 5 min slide 2 min offset 1 min"),
        ("window(ts, '5 minutes', '1 minute', '20 seconds')", "range 5 min slide 1 min offset 20 s"),
        ("window(ts, '5 minutes', '1 minute', '-20 seconds')", "range 5 min slide 1 min offset 40 s"),
        ("window(ts, '5 minutes'), window(s.ts, '300 seconds')", "range 5 min slide 5 min"),
    ],
)
def test_group_by_window(call: str, window: str) -> None:
    select = f"SELECT k, count(*) AS n FROM s GROUP BY {call}, k"
    assert window_line(select) == window
    assert "aggregate r1 by k#0: count()" in plan(select)


def test_group_by_window_of_a_stream_joined_with_a_table() -> None:
    lines = plan(
        "SELECT city, count(*) AS n FROM t JOIN s USING (k) GROUP BY city, window(ts, '1 minute')"
    ).splitlines()
    assert lines[2] == "r2 := window r1: range 1 min slide 1 min"


def test_the_event_time_may_have_another_name() -> None:
    select = "SELECT count(*) AS n FROM r AS z (a, b, time) GROUP BY window(time, '1 minute')"
    assert window_line(select) == "range 1 min slide 1 min"


@pytest.mark.parametrize("edge", ["window_end", "WINDOW_END", "window.end", "s.window_end"])
def test_end_of_the_window(edge: str) -> None:
    text = plan(f"SELECT {edge} AS e, count(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]")
    assert "project r2: window_end, count#0\n" in text


@pytest.mark.parametrize("edge", ["window_start", "window.start", "s.window_start"])
def test_start_of_the_window(edge: str) -> None:
    text = plan(f"SELECT {edge} AS e, count(*) AS n FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]")
    assert "project r2: (window_end - 300000000:INTERVAL), count#0\n" in text


def test_edges_in_group_by_are_the_tick_itself() -> None:
    grouped = plan(
        "SELECT window_start, k, max(v) AS m FROM s [RANGE 1 HOUR] GROUP BY window_start, window_end, k"
    )
    assert grouped == plan("SELECT window_start, k, max(v) AS m FROM s [RANGE 1 HOUR] GROUP BY k")


def test_each_window_of_a_join_has_its_own_start() -> None:
    text = plan("""
        SELECT s.window_start AS a, r.window_start AS b
        FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE], r [RANGE 1 MINUTE] WHERE s.k = r.k GROUP BY s.k
        """)
    assert "project r6: (window_end - 300000000:INTERVAL), (window_end - 60000000:INTERVAL)\n" in text


def test_a_real_column_wins_over_an_edge() -> None:
    inner = "(SELECT k, window_start, count(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k) x"
    text = plan(f"SELECT window_start, max(n) AS m FROM {inner} [RANGE 1 HOUR] GROUP BY window_start")
    assert "aggregate r4 by _#1: max(count#2)" in text


def test_columns_of_edges_are_named_as_selected() -> None:
    assert query("SELECT window.start, window_end FROM s [RANGE 1 HOUR] GROUP BY k").columns == (
        "start",
        "window_end",
    )
