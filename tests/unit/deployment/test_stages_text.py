"""How a query runs, in words."""

from __future__ import annotations

from textwrap import dedent

import pytest

import plait
from plait.deployment.fragments import Result
from plait.deployment.lowering import fragment, shared_fragment
from plait.deployment.stage_text import fragment_text
from plait.errors import UnsupportedError, UserError
from plait.rewrite import canonicalise
from plait.space import stream_of

CATALOG = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE rooms (plug INT, room STRING);
"""


def text(query: str) -> str:
    workload = plait.open_text(f"{CATALOG} CREATE CONTINUOUS QUERY q AS {query};").workload
    bound = workload.query("q")
    made = fragment(Result("q", bound.columns, stream_of(canonicalise(bound.plan))), workload.catalog)
    return fragment_text(made, "q", workload.catalog)


def test_stages_are_numbered_and_name_what_they_read() -> None:
    shown = text(
        "SELECT plug, count(DISTINCT load) AS n "
        "FROM (SELECT r.plug, r.load FROM alarms a [RANGE 30 SECONDS], readings r [RANGE 20 SECONDS] "
        "WHERE a.plug = r.plug AND r.load > 5) m [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY plug"
    )
    assert shown == dedent(
        """\
        q runs on Spark's own operators

          1. read alarms: plug; watermark at the latest row
          2. keep rows of 1 for 30 s
          3. read readings: plug, load; watermark 10 s behind
          4. rows of 3 where load >= 6
          5. keep rows of 4 for 20 s
          6. join rows of 2 and 5 that meet in time: alarms.plug = readings.plug
          7. put rows of 6 into windows [20 s every 10 s], each up to 2 times
          8. at each tick, of 7: count(DISTINCT load) by alarms.plug; different values by one group \
for every value, then a count of the groups

          the rows of a tick come once the watermark is 30 s past it, for the joins of rows below"""
    )


def test_the_work_on_batches_is_told_apart() -> None:
    shown = text(
        "SELECT s.plug, m.room "
        "FROM (SELECT plug, sum(load) AS total FROM readings [RANGE 1 MINUTE] GROUP BY plug) s "
        "LEFT JOIN rooms m ON s.plug = m.plug ORDER BY s.total DESC LIMIT 3"
    )
    before, after = shown.split("\n\n  on each micro-batch of these rows\n")
    assert "look up" not in before
    assert "look up rooms as of the batch: left outer, readings.plug = rooms.plug" in after
    assert "at each tick, first 3 by sum(load) DESC" in after


@pytest.mark.parametrize(
    ("query", "when"),
    [
        (
            "SELECT load FROM readings",
            "results come at once, with the last of the rows that they are made of",
        ),
        (
            "SELECT count(*) AS n FROM readings [RANGE 1 MINUTE]",
            "the rows of a tick come once the watermark has reached it",
        ),
        (
            "SELECT a.code, r.load FROM alarms a [RANGE 30 SECONDS] LEFT JOIN readings r [RANGE 10 SECONDS] "
            "ON a.plug = r.plug",
            "matches come at once, rows without partner once the watermark is 30 s past them",
        ),
        (
            "SELECT sum(load) AS t FROM readings [ROWS 3]",
            "a result comes once the watermark has made it final",
        ),
    ],
)
def test_when_results_come(query: str, when: str) -> None:
    assert text(query).splitlines()[-1].strip() == when


def test_what_the_database_computes_and_why() -> None:
    shown = text(
        "SELECT m.room, sum(r.load) AS total FROM readings r [RANGE 1 MINUTE], rooms m "
        "WHERE r.plug = m.plug AND r.load > 5 GROUP BY m.room"
    )
    assert shown == dedent(
        """\
        q is computed in DuckDB, from streams that are read once

          the table `rooms` is joined below something that keeps rows, but has to be seen as of the batch \
that gives the result

          1. read readings: plug, load; watermark 10 s behind; rows where load >= 6

          in DuckDB, once a micro-batch
          2. table rooms: plug, room
          3. window of 1: [1 min tumbling]
          4. join of 2 and 3: rooms.plug = readings.plug
          5. aggregate of 4: sum(load) by room

          a result comes once the watermark has made it final"""
    )


def test_why_queries_do_not_share_a_join() -> None:
    streams = "".join(
        f"CREATE STREAM {name} (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 100000);"
        for name in "ab"
    )
    queries = "".join(
        f"CREATE CONTINUOUS QUERY {name} AS SELECT a.at FROM a [RANGE {range_s} SECONDS], "
        f"b [RANGE 10 SECONDS] WHERE a.k = b.k AND a.v = {v} AND b.v = {v + 50};"
        for name, v, range_s in (("p", 1, 10), ("q", 2, 10), ("r", 1, 8))
    )
    session = plait.open_text(streams + queries)
    reason = (
        "3 queries join these streams likewise, in 2 joins: one for all would keep 40k instead of 40k rows, "
        "make 800k instead of 400k combinations a second, and take 0.0556 instead of 0.0496 cores"
    )
    for name, others in (("p", "p, r"), ("q", "")):
        text = str(session.explain(name))
        assert reason in text
        assert (f"one join serves {others};" in text) is bool(others)
    assert "likewise" not in session.explain("p", engines="spark")  # one join there
    assert "likewise" not in session.explain("p", planner="independent")


def test_queries_that_run_together_are_told_apart() -> None:
    session = plait.open_text(
        f"""{CATALOG}
        CREATE CONTINUOUS QUERY high AS SELECT plug FROM readings WHERE load > 5;
        CREATE CONTINUOUS QUERY pairs AS SELECT a.code, r.load
          FROM alarms a [RANGE 30 SECONDS], readings r [RANGE 20 SECONDS] WHERE a.plug = r.plug;"""
    )
    queries = session.workload.queries.values()
    results = [Result(each.name, each.columns, stream_of(canonicalise(each.plan))) for each in queries]
    catalog = session.workload.catalog
    made = shared_fragment("shared-0", results, catalog)
    high, pairs = (fragment_text(made, query, catalog) for query in ("high", "pairs"))
    assert high.startswith("high is computed in DuckDB with 1 other query, from streams that are read once")
    assert "  1. read readings: " in high
    assert "alarms" not in high
    assert "filter of" in high
    assert pairs.startswith("pairs is computed in DuckDB with 1 other query, from streams that are read once")
    assert "  1. read alarms: " in pairs
    assert "  2. read readings: " in pairs
    assert "alarms.plug = readings.plug" in pairs


@pytest.mark.parametrize(
    ("queries", "last"),
    [
        (["SELECT plug FROM readings WHERE load > 5"], "results come at once"),
        (
            ["SELECT plug FROM readings WHERE load > 5", "SELECT at FROM readings WHERE load > 7"],
            "one pass over the rows serves q0, q1; results come at once",
        ),
        (
            [
                "SELECT a.code, r.load FROM alarms a [RANGE 30 SECONDS], readings r [RANGE 20 SECONDS] "
                f"WHERE a.plug = r.plug AND r.load = {load}"
                for load in range(7)
            ],
            "one join serves q0, q1, q2, q3, q4 and 2 more; "
            "results come at once, with the last of the rows that they are made of",
        ),
        (
            [
                "SELECT count(*) AS n FROM readings [RANGE 20 SECONDS]",
                "SELECT sum(load) AS t FROM readings [RANGE 1 MINUTE SLIDE 5 SECONDS]",
            ],
            "one tree of partial aggregates serves q0, q1; "
            "the rows of a tick come once the watermark has reached it",
        ),
        (
            [
                f"SELECT sum(load) AS t FROM readings [ROWS 3] HAVING sum(load) > {least}"
                for least in range(2)
            ],
            "one plan serves q0, q1, which differ in constants; "
            "a result comes once the watermark has made it final",
        ),
        (
            ["SELECT sum(load) AS t FROM readings [ROWS 3]"],
            "a result comes once the watermark has made it final",
        ),
    ],
)
def test_what_queries_that_run_together_share_and_when_results_come(queries: list[str], last: str) -> None:
    texts = (f"CREATE CONTINUOUS QUERY q{number} AS {query};" for number, query in enumerate(queries))
    explained = plait.open_text(CATALOG + "".join(texts)).explain("q0", results="out")
    assert explained.splitlines()[-2].strip() == last


def test_a_query_by_itself_is_computed_in_duckdb_if_that_is_asked_for() -> None:
    session = plait.open_text(
        f"{CATALOG} CREATE CONTINUOUS QUERY high AS SELECT load FROM readings WHERE load > 15;"
    )
    explained = session.explain("high", planner="independent", engines="duckdb")
    assert explained.startswith("high is computed in DuckDB, from streams that are read once\n\n  1. read")
    with pytest.raises(UserError, match="there are no engines `flink`") as raised:
        session.explain("high", engines="flink")
    assert "duckdb" in raised.value.hint


def test_a_query_that_spark_can_compute_is_explained_beside_one_that_it_cannot() -> None:
    session = plait.open_text(
        f"""{CATALOG} CREATE CONTINUOUS QUERY high AS SELECT load FROM readings WHERE load > 15;
        CREATE CONTINUOUS QUERY last_three AS SELECT sum(load) AS t FROM readings [ROWS 3];"""
    )
    assert session.explain("high", engines="spark").startswith("high runs on Spark's own operators")
    for queries in (["last_three"], []):
        with pytest.raises(UnsupportedError, match="`last_three` cannot run on Spark's operators alone"):
            session.explain(*queries, engines="spark")
