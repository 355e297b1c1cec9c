"""Trees of windows and shared joins in a deployment: their size, their cost on each engine, the choice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait import language
from plait.cost.recost import disagreements
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Way
from plait.deployment.lowering import Engines, fragments
from plait.planners import driver

STREAMS = """
CREATE STREAM readings (plug INT, watts INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'readings', format = 'csv', rate = {rate});
CREATE STREAM alarms (plug INT, code INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'alarms', format = 'csv', rate = 10);
"""
WINDOWS = """
CREATE CONTINUOUS QUERY tens AS SELECT plug, sum(watts) AS s FROM readings [RANGE 10 SECONDS] GROUP BY plug;
CREATE CONTINUOUS QUERY again AS SELECT plug, sum(watts) AS t FROM readings [RANGE 10 SECONDS] GROUP BY plug;
CREATE CONTINUOUS QUERY sliding AS
  SELECT plug, max(watts) AS m FROM readings [RANGE 25 SECONDS SLIDE 10 SECONDS] GROUP BY plug;
CREATE CONTINUOUS QUERY others AS SELECT count(*) AS n FROM readings [RANGE 10 SECONDS];
"""
JOINS = """
CREATE CONTINUOUS QUERY one AS
  SELECT r.watts, a.code FROM readings r [RANGE 5 SECONDS], alarms a [RANGE 9 SECONDS]
  WHERE r.plug = a.plug AND r.plug = 1;
CREATE CONTINUOUS QUERY two AS
  SELECT r.watts, a.code FROM readings r [RANGE 7 SECONDS], alarms a [RANGE 2 SECONDS]
  WHERE r.plug = a.plug AND r.plug = 2;
"""
LARGE_JOINS = JOINS.replace("r.plug = 1", "r.watts > 1").replace("r.plug = 2", "r.watts > 2")
# One join would make combinations that nobody wants: more than another costs in DuckDB, less than on Spark.
PARTED = "".join(
    f"CREATE STREAM {name} (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 100000);"
    for name in "ab"
) + "".join(
    f"CREATE CONTINUOUS QUERY {name} AS SELECT a.v + {n} AS x "
    "FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] "
    f"WHERE a.k = b.k AND a.v = {v} AND b.v = {v + 50};"
    for n, (name, v) in enumerate([("p", 1), ("q", 2), ("r", 1)])
)
SIZE = ("edges_per_s", "overlap", "groups", "finals_per_s", "rate_rows_per_s")
BIG_SITE = "CREATE SITE big WITH (cores = 512);"
MANY = 3_000_000  # rows a second


def planned(text: str, *, rate: int = 1_000, site: str = "", planner: str = "plait") -> Any:
    workload = language.load_text(site + STREAMS.format(rate=rate) + text)
    return workload, driver.plan(workload, planner)


def test_windows_of_one_grouping_are_a_tree() -> None:
    _, report = planned(WINDOWS)
    tree, single = report.deployment.trees
    assert tree.queries == ("tens", "again", "sliding")
    assert len(tree.operators) == 2  # the first two are one
    assert single.queries == ("others",)
    assert tree.rate_rows_per_s == 1_000
    assert tree.edges_per_s == pytest.approx(0.2)  # every 5 seconds: …0, …5
    assert tree.overlap == pytest.approx(1 + 2.5)
    assert tree.finals_per_s == pytest.approx(2 * tree.groups / 10)
    unit = report.deployment.unit_costs.trees["duckdb"]
    partials = min(1_000, 0.2 * tree.groups)
    expected = 1_000 * unit.row_us + partials * 3.5 * unit.merge_us + tree.finals_per_s * unit.final_us
    assert tree.cores["duckdb"] == pytest.approx(expected / 1e6)
    assert tree.engine == "duckdb"


def test_joins_that_differ_in_constants_and_ranges_are_one() -> None:
    _, report = planned(JOINS)
    (join,) = report.deployment.joins
    assert join.queries == ("one", "two")
    assert join.input_rows_per_s == 1_010
    assert join.taken_rows_per_s == pytest.approx(2 * 10.1)  # of a hundred plugs
    assert join.kept_rows == pytest.approx(2 * (7 * 10 + 9 * 0.1))
    assert join.combinations_per_s == pytest.approx(2 * 10 * 0.1 * (7 + 9))  # of each plug with itself
    unit = report.deployment.unit_costs.joins["duckdb"]
    expected = (
        1_010 * unit.arriving_us
        + join.taken_rows_per_s * unit.taken_us
        + join.kept_rows * unit.kept_us
        + join.combinations_per_s * unit.combination_us
        + join.output_rows_per_s * unit.result_us
    )
    assert join.cores["duckdb"] == pytest.approx(expected / 1e6)
    assert join.cores["duckdb"] < join.cores["spark"]
    assert join.engine == "duckdb"


def test_joins_are_in_parts_and_run_so() -> None:
    """The plan lists the joins that run, each with the queries that share it."""
    workload, report = planned(PARTED)
    assert [join.queries for join in report.deployment.joins] == [("p", "r"), ("q",)]
    (running,) = fragments(report.deployment, workload.catalog, together=True)
    assert {result.query: result.part for result in running.results} == {"p": "p", "q": "q", "r": "p"}


def test_on_spark_another_join_costs_more() -> None:
    workload, report = planned(PARTED)
    (running,) = fragments(report.deployment, workload.catalog, together=True, engines=Engines.SPARK)
    assert running.way is Way.WOVEN
    assert {result.part for result in running.results} == {"p"}


def test_queries_by_themselves_have_neither() -> None:
    _, report = planned(WINDOWS + JOINS, planner="independent")
    assert report.deployment.shared == ()


@pytest.mark.parametrize(
    ("site", "rate", "way"),
    [("", MANY, Way.SHARED), (BIG_SITE, 1_000, Way.SHARED), (BIG_SITE, MANY, Way.WOVEN)],
)
def test_spark_takes_over_where_it_has_many_cores_and_rows(site: str, rate: int, way: Way) -> None:
    workload, report = planned(WINDOWS + LARGE_JOINS, site=site, rate=rate)
    running = fragments(report.deployment, workload.catalog, together=True)
    ways = {result.query: each.way for each in running for result in each.results}
    assert {name: ways[name] for name in ("tens", "sliding", "one", "two")} == dict.fromkeys(
        ("tens", "sliding", "one", "two"), way
    )
    assert ways["others"] is (Way.SHARED if way is Way.SHARED else Way.NATIVE)


@pytest.mark.parametrize("together", [True, False])
def test_duckdb_computes_everything_if_it_is_to(together: bool) -> None:
    """Also what the plan has chosen Spark for, and what Spark's operators could compute."""
    planner = "plait" if together else "independent"
    workload, report = planned(WINDOWS + LARGE_JOINS, site=BIG_SITE, rate=MANY, planner=planner)
    assert {each.engine for each in report.deployment.shared} == ({"spark"} if together else set())
    running = fragments(report.deployment, workload.catalog, together=together, engines=Engines.DUCKDB)
    assert {each.way for each in running} == {Way.SHARED}
    names = sorted(query.name for query in workload.queries.values())
    queries = [[result.query for result in each.results] for each in running]
    assert queries == ([names] if together else [[name] for name in names])


@pytest.mark.parametrize("cores", [16, 64, 1_000])
def test_many_small_trees_stay_together(cores: int) -> None:
    """However many cores there are: the stream is read once, and nothing is planned 50 times a second."""
    small = "".join(
        f"CREATE CONTINUOUS QUERY q{n} AS SELECT plug % {n} AS p, sum(watts) AS s "
        f"FROM readings [RANGE 10 SECONDS] GROUP BY plug % {n};"
        for n in range(2, 52)
    )
    workload, report = planned(small, site=f"CREATE SITE here WITH (cores = {cores});", rate=5_000)
    assert len(report.deployment.trees) == 50
    (together,) = fragments(report.deployment, workload.catalog, together=True)
    assert together.way is Way.SHARED


def test_a_huge_tree_goes_to_spark_and_leaves_a_small_one() -> None:
    """Streams that have nothing in common are chosen for apart."""
    small = "CREATE CONTINUOUS QUERY few AS SELECT count(*) AS n FROM alarms [RANGE 10 SECONDS];"
    _, report = planned(WINDOWS + small, site="CREATE SITE here WITH (cores = 128);", rate=MANY)
    engines = {each.queries[0]: each.engine for each in report.deployment.trees}
    assert engines == {"tens": "spark", "others": "spark", "few": "duckdb"}


def test_spark_is_no_choice_for_what_it_cannot_share() -> None:
    itself = "".join(
        f"CREATE CONTINUOUS QUERY s{n} AS SELECT l.watts FROM readings l [RANGE 5 SECONDS], "
        f"readings r [RANGE 5 SECONDS] WHERE l.plug = r.plug AND l.plug = {n};"
        for n in range(3)
    )
    fine = "CREATE CONTINUOUS QUERY fine AS SELECT count(*) AS n FROM readings [RANGE 1500 MICROSECONDS];"
    workload, report = planned(itself + fine, site="CREATE SITE vast WITH (cores = 1e6);", rate=1_000_000)
    assert [each.engine for each in report.deployment.shared] == ["duckdb", "duckdb"]
    running = fragments(report.deployment, workload.catalog, together=True)
    assert [each.way for each in running] == [Way.SHARED]


@pytest.mark.parametrize("changed", [*SIZE, "reading_cores"])
def test_a_wrong_size_is_found_from_the_document_alone(changed: str) -> None:
    document = json.loads(json.dumps(planned(WINDOWS)[1].to_json()))
    assert not list(disagreements(document))
    document["trees"][0][changed] *= 2
    assert any(f"trees/0/{changed}" in line for line in disagreements(document))


@pytest.mark.parametrize("changed", ["input_rows_per_s", "output_rows_per_s", "kept_rows"])
def test_a_wrong_size_of_a_join_is_found_from_the_document_alone(changed: str) -> None:
    """What is kept is taken as it stands, but what follows from it is not."""
    document = json.loads(json.dumps(planned(JOINS)[1].to_json()))
    document["joins"][0][changed] *= 2
    assert any(line.startswith("joins/0/") for line in disagreements(document))


@pytest.mark.parametrize("kind", ["trees", "joins"])
def test_a_wrong_cost_is_found_from_the_document_alone(kind: str) -> None:
    document = json.loads(json.dumps(planned(WINDOWS + JOINS)[1].to_json()))
    document[kind][0]["cores"]["spark"] /= 2
    assert [line.split()[0] for line in disagreements(document)] == [f"{kind}/0/cores/spark"]


def test_the_plan_says_it() -> None:
    from plait.deployment.explain import summary

    deployment: Deployment = planned(WINDOWS + JOINS)[1].deployment
    lines = summary(deployment).splitlines()
    (windows,) = (line for line in lines if "windows of tens and 2 others" in line)
    (joins,) = (line for line in lines if "joins of one and 1 other " in line)
    assert "in duckdb" in windows
    assert " cores instead of " in windows
    assert " in spark" in joins
