"""Why there are no rows yet, for each kind of query."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import plait
from plait.plan.nodes import Node
from plait.runtime.beats import END_OF_TIME_US
from plait.runtime.snapshot import StreamProgress
from plait.runtime.waiting import Waiting, waiting

NOON = 1_767_268_800_000_000  # 2026-01-01 12:00:00
MINUTE = 60_000_000


def plan(select: str) -> Node:
    session = plait.open_text(
        "CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at);"
        "CREATE STREAM alarms (plug INT, at TIMESTAMP, WATERMARK FOR at AS at);"
        f"CREATE CONTINUOUS QUERY q AS {select};"
    )
    return session.query("q").plan


def marks(readings: int | None, alarms: int | None = None) -> Mapping[str, StreamProgress]:
    return {
        "readings": StreamProgress("readings", watermark_us=readings),
        "alarms": StreamProgress("alarms", watermark_us=alarms),
    }


TOTALS = "SELECT sum(load) AS total FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]"
JOIN = "SELECT r.load FROM readings r [RANGE 1 MINUTE] {} JOIN alarms a [RANGE 1 MINUTE] ON r.plug = a.plug"


@pytest.mark.parametrize(
    ("watermark_us", "tick"),
    [(NOON, "12:01:00"), (NOON - 1, "12:00:00"), (NOON + MINUTE - 1, "12:01:00")],
)
def test_the_next_window_closes_at_the_tick_after_the_watermark(watermark_us: int, tick: str) -> None:
    found = waiting(plan(TOTALS), 0, marks(watermark_us))
    assert found.words.startswith(f"the next window closes at 2026-01-01 {tick}; the watermark is at ")
    assert found.is_open


def test_no_data_names_the_streams() -> None:
    assert waiting(plan(TOTALS), 0, marks(None)) == Waiting("no data yet in readings")
    assert waiting(plan(JOIN.format("")), 0, marks(NOON, None)) == Waiting("no data yet in alarms")


def test_the_stream_that_holds_others_back_is_named() -> None:
    assert waiting(plan(JOIN.format("LEFT")), 5, marks(NOON, NOON - MINUTE)) == Waiting(
        "rows without a partner from 2026-01-01 11:58:00 on are still open;"
        " the watermark is at 2026-01-01 11:59:00, held back by alarms",
        is_open=True,
        held_back_by="alarms",
    )


def test_a_filter_or_an_inner_join_waits_for_nothing_but_rows() -> None:
    for select in ("SELECT load FROM readings WHERE load > 5", JOIN.format("")):
        assert waiting(plan(select), 0, marks(NOON, NOON)) == Waiting("no row has matched so far")
        assert waiting(plan(select), 1, marks(NOON, NOON)) == Waiting()


def test_row_windows_wait_for_rows() -> None:
    said = waiting(plan("SELECT sum(load) AS total FROM readings [ROWS 100]"), 0, marks(NOON))
    assert said.words.startswith(
        "windows close when enough rows are behind the watermark; the watermark is at"
    )


def test_after_the_end_of_the_streams_nothing_is_open() -> None:
    assert waiting(plan(TOTALS), 3, marks(10**18)) == Waiting()
    assert not waiting(plan(TOTALS), 0, marks(10**18)).is_open


def test_streams_that_ended_without_a_row_are_named() -> None:
    assert waiting(plan(TOTALS), 0, marks(END_OF_TIME_US)) == Waiting("no data in readings")
    streams = {"readings": StreamProgress("readings", rows=3, watermark_us=END_OF_TIME_US)}
    assert waiting(plan(TOTALS), 0, streams) == Waiting("no row has matched so far")


def test_since_when_a_stream_that_holds_others_back_is_silent() -> None:
    streams = {
        **marks(NOON),
        "alarms": StreamProgress("alarms", rows=1, watermark_us=NOON - MINUTE, silent_since_us=NOON + 5),
    }
    found = waiting(plan(JOIN.format("LEFT")), 3, streams)
    assert found.words.endswith(", held back by alarms, silent since 2026-01-01 12:00:00")
