"""The queries of the papers: the airline's templates, the traffic example, CQ1 to CQ6."""

from __future__ import annotations

import pytest

from plait.language import load_text
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Project,
    RangeWindow,
    Ticking,
    TickWindow,
    Window,
    Windowed,
    sources_of,
    walk_plan,
)
from plait.workload import Query

MINUTE_US = 60_000_000

AIRLINE = """
CREATE STREAM flights (num INT, dest STRING, gate STRING, terminal STRING, carrier_code STRING, at TIMESTAMP,
                       WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM checkins (flight INT, status STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM baggage (flight INT, status STRING, area STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM weather (city STRING, forecast STRING, at TIMESTAMP, WATERMARK FOR at AS at);
"""
TRAFFIC = """
CREATE STREAM sensor1 (carid INT, mph INT, type STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM sensor2 (carid INT, mph INT, type STRING, at TIMESTAMP, WATERMARK FOR at AS at);
"""
PLUGS = """
CREATE STREAM loads (house INT, household INT, plug INT, load DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""
# A household's plugs are numbered within it, and households within their house.
KEYS = "house, household, plug"


def bound(catalog: str, select: str) -> Query:
    return load_text(f"{catalog} CREATE CONTINUOUS QUERY q AS {select};").query("q")


def test_gate_agent_query() -> None:
    query = bound(
        AIRLINE,
        """SELECT FL.GATE, BG.STATUS, CI.STATUS
           FROM FLIGHTS FL [RANGE 5 MINUTES], BAGGAGE BG [RANGE 1 MINUTE], CHECKINS CI [RANGE 1 MINUTE]
           WHERE FL.NUM = CI.FLIGHT AND FL.NUM = BG.FLIGHT AND FL.NUM = 17""",
    )
    assert query.columns == ("GATE", "BG_STATUS", "CI_STATUS")
    assert query.plan.timing == Windowed((5 * MINUTE_US, MINUTE_US, MINUTE_US))
    assert isinstance(query.plan, Project)
    assert isinstance(query.plan.input, Filter)
    join = query.plan.input.input
    assert isinstance(join, Join)
    assert [w.window for w in join.inputs if isinstance(w, Window)] == [
        RangeWindow(5 * MINUTE_US),
        RangeWindow(MINUTE_US),
        RangeWindow(MINUTE_US),
    ]


def test_terminal_query() -> None:
    query = bound(
        AIRLINE,
        """SELECT FL.NUM, FL.GATE, BG.AREA, CI.STATUS, WR.FORECAST
           FROM FLIGHTS FL [RANGE 5 MINUTES], WEATHER WR [RANGE 5 MINUTES],
                CHECKINS CI [RANGE 1 MINUTE], BAGGAGE BG [RANGE 1 MINUTE]
           WHERE FL.DEST = WR.CITY AND FL.NUM = CI.FLIGHT AND FL.NUM = BG.FLIGHT
             AND FL.TERMINAL = 'A' AND FL.CARRIER_CODE = 'DL'""",
    )
    assert sources_of(query.plan)[0] == {"flights", "weather", "checkins", "baggage"}
    assert query.columns == ("NUM", "GATE", "AREA", "STATUS", "FORECAST")


def test_traffic_query() -> None:
    query = bound(
        TRAFFIC,
        """SELECT R1.carID, R1.MPH
           FROM Sensor2 as R2 [Range 2min], Sensor1 as R1 [Range 2min]
           WHERE R1.carID = R2.carID AND R1.type = "Car" """,
    )
    assert query.columns == ("carID", "MPH")
    assert query.plan.timing == Windowed((2 * MINUTE_US, 2 * MINUTE_US))


CQ1 = f"""
SELECT l.house, l.household, l.plug, count(*) AS high
FROM loads l [RANGE 5 MINUTES SLIDE 1 SECOND],
     (SELECT {KEYS}, max(load) AS most FROM loads [RANGE 5 MINUTES SLIDE 1 SECOND] GROUP BY {KEYS}) m
WHERE l.house = m.house AND l.household = m.household AND l.plug = m.plug AND l.load > 0.9 * m.most
GROUP BY l.house, l.household, l.plug
"""
CQ2 = CQ1.replace("max(load)", "avg(load)").replace("0.9 * m.most", "m.most")
CQ3 = f"""
WITH five AS (SELECT {KEYS}, max(load) AS most, avg(load) AS mean
              FROM loads [RANGE 5 MINUTES SLIDE 1 SECOND] GROUP BY {KEYS}),
     one AS (SELECT {KEYS}, max(load) AS most, avg(load) AS mean
             FROM loads [RANGE 1 MINUTE SLIDE 1 SECOND] GROUP BY {KEYS})
SELECT {KEYS}, one.most - five.most AS more, one.mean - five.mean AS mean_change
FROM five JOIN one USING ({KEYS})
"""
CQ4 = CQ3.replace("one.most - five.most AS more, ", "")
CQ5 = f"""
SELECT house, household, max(total) AS most
FROM (SELECT {KEYS}, sum(load) AS total FROM loads [RANGE 5 MINUTES SLIDE 1 SECOND] GROUP BY {KEYS}) plugs
GROUP BY house, household
"""
CQ6 = f"""
WITH a AS (SELECT {KEYS}, avg(load) AS mean FROM loads [RANGE 1 MINUTE SLIDE 1 SECOND] GROUP BY {KEYS}),
     b AS (SELECT {KEYS}, avg(load) AS mean FROM loads [RANGE 3 MINUTES SLIDE 1 SECOND] GROUP BY {KEYS}),
     c AS (SELECT {KEYS}, avg(load) AS mean FROM loads [RANGE 5 MINUTES SLIDE 1 SECOND] GROUP BY {KEYS})
SELECT {KEYS}, a.mean AS mean_1, b.mean AS mean_3, c.mean AS mean_5
FROM a JOIN b USING ({KEYS}) JOIN c USING ({KEYS})
"""


@pytest.mark.parametrize(
    ("select", "ranges_minutes", "aggregates"),
    [
        pytest.param(CQ1, {5}, 2, id="CQ1"),
        pytest.param(CQ2, {5}, 2, id="CQ2"),
        pytest.param(CQ3, {1, 5}, 2, id="CQ3"),
        pytest.param(CQ4, {1, 5}, 2, id="CQ4"),
        pytest.param(CQ5, {5}, 2, id="CQ5"),
        pytest.param(CQ6, {1, 3, 5}, 3, id="CQ6"),
    ],
)
def test_smart_plugs(select: str, ranges_minutes: set[int], aggregates: int) -> None:
    query = bound(PLUGS, select)
    assert query.plan.timing == Ticking(1_000_000, 0)
    nodes = list(walk_plan(query.plan))
    windows = {node.window for node in nodes if isinstance(node, Window)}
    assert windows == {TickWindow(minutes * MINUTE_US, 1_000_000) for minutes in ranges_minutes}
    assert sum(isinstance(node, Aggregate) for node in nodes) == aggregates


def test_join_of_rows_with_their_aggregate_is_one_join_below_the_count() -> None:
    plan = bound(PLUGS, CQ1).plan
    assert isinstance(plan, Project)
    count = plan.input
    assert isinstance(count, Aggregate)
    assert isinstance(count.input, Filter)
    join = count.input.input
    assert isinstance(join, Join)
    assert [type(node) for node in join.inputs] == [Window, Project]
