"""Which way queries run, why, and what is handed to whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

import plait
from plait.catalog import Catalog
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Fragment, Result, Way, sole_readers
from plait.deployment.lowering import Engines, check_engines, fragment, fragments
from plait.deployment.stages import (
    AggregateStage,
    Distinct,
    FinishStage,
    IntervalJoinStage,
    LookupStage,
    Probe,
    Stages,
    TopStage,
)
from plait.errors import ErrorReport, InternalError, UnsupportedError
from plait.expressions.nodes import TRUE
from plait.plan.format import format_expression
from plait.plan.nodes import StreamScan, TickWindow, sources_of, walk_plan
from plait.planners import driver
from plait.rewrite import canonicalise
from plait.sharing.chains import inputs_of
from plait.space import stream_of

CATALOG = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM visits (plug INT, worker STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE TABLE rooms (plug INT, room STRING);
CREATE TABLE floors (room STRING, floor INT);
"""

SUMS = "(SELECT plug, sum(load) AS total FROM readings [RANGE 1 MINUTE] GROUP BY plug)"
PAIRS = (
    "(SELECT r.load FROM alarms a [RANGE 30 SECONDS], readings r [RANGE 20 SECONDS] WHERE a.plug = r.plug)"
)


def lowered(query: str) -> Fragment:
    workload = plait.open_text(f"{CATALOG} CREATE CONTINUOUS QUERY q AS {query};").workload
    bound = workload.query("q")
    result = Result("q", bound.columns, stream_of(canonicalise(bound.plan)))
    return fragment(result, workload.catalog)


def stages_of(query: str) -> Stages:
    stages = lowered(query).stages
    assert stages is not None
    return stages


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT sum(load) AS t FROM readings [ROWS 3 SLIDE 2]", "window of rows"),
        (
            "SELECT count(*) AS n FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND]",
            "a window of 5 min every 1 s holds each row at 300 ticks, and Spark would keep the row 300 times",
        ),
        ("SELECT count(*) AS n FROM readings [RANGE 1500 MICROSECONDS]", "finer than a millisecond"),
        (
            "SELECT plug, load FROM readings [RANGE 1 MINUTE] ORDER BY load LIMIT 1",
            "wait in Spark until a tick",
        ),
        (
            "SELECT m.room, sum(r.load) AS t FROM readings r [RANGE 1 MINUTE], rooms m WHERE r.plug = m.plug "
            "GROUP BY m.room",
            "the table `rooms` is joined below",
        ),
        (
            "SELECT a.code FROM alarms a [RANGE 1 MINUTE], readings r [RANGE 1 MINUTE] WHERE a.plug < r.plug",
            "without an equality",
        ),
        (
            "SELECT a.code FROM alarms a [RANGE 1 MINUTE] LEFT JOIN readings r [RANGE 1 MINUTE] "
            "ON a.plug < r.plug",
            "without an equality",
        ),
        (
            f"SELECT max(total) FROM (SELECT total FROM {SUMS} s ORDER BY total LIMIT 3) f [RANGE 1 HOUR]",
            "ORDER BY … LIMIT is below",
        ),
        (
            f"SELECT total FROM (SELECT total FROM {SUMS} s UNION ALL "
            f"SELECT sum(load) AS total FROM {PAIRS} p [RANGE 1 MINUTE]) u ORDER BY total LIMIT 2",
            "do not come at one time",
        ),
    ],
)
def test_what_spark_cannot_do_goes_to_the_database(query: str, reason: str) -> None:
    made = lowered(query)
    assert (made.name, made.only.query, made.way, made.stages) == ("q", "q", Way.SHARED, None)
    assert any(reason in each for each in made.reasons), made.reasons


def test_all_windows_that_are_too_fine_are_named() -> None:
    made = lowered(
        "SELECT l.n FROM (SELECT count(*) AS n FROM readings [RANGE 1 HOUR SLIDE 1 MINUTE]) l, "
        "(SELECT count(*) AS n FROM readings [RANGE 30 MINUTES SLIDE 1 MINUTE]) s"
    )
    assert len(made.reasons) == 2


PAIRS_AND_ALARM = (
    "SELECT l.load AS a, m.load AS b FROM readings l [RANGE 1 MINUTE], readings m [RANGE 1 MINUTE], "
    "alarms a [RANGE 1 MINUTE] WHERE l.plug {} m.plug AND a.plug = l.plug AND l.load > 5 AND {}"
)


@pytest.mark.parametrize(
    ("compared", "wanted", "way", "kinds"),
    [
        ("=", "m.load > 7", Way.NATIVE, ["scan", "scan"]),
        ("<", "TRUE", Way.SHARED, ["scan", "scan"]),
        ("<", "m.load > 7", Way.SHARED, ["scan", "filter"]),
    ],
)
def test_a_query_by_itself_reads_each_stream_once(
    compared: str, wanted: str, way: Way, kinds: list[str]
) -> None:
    made = lowered(PAIRS_AND_ALARM.format(compared, wanted))
    assert (made.way, made.streams) == (way, ("alarms", "readings"))
    assert [(each.stream, each.plan.kind) for each in made.inputs] == [
        *zip(("alarms", "readings"), kinds, strict=True)
    ]


def test_inputs_of_a_plan_are_the_largest_that_go_row_by_row() -> None:
    plan = lowered(PAIRS_AND_ALARM.format("=", "TRUE")).only.plan
    assert [(node.kind, *sources_of(node)[0]) for node in inputs_of(plan)] == [
        ("scan", "alarms"),
        ("scan", "readings"),
        ("filter", "readings"),
    ]
    rows = lowered("SELECT load + 1 AS more FROM readings WHERE load > 5").only.plan
    assert [*inputs_of(rows)] == [rows]


# Who counts what a stream brings


def test_a_stream_is_counted_by_the_one_fragment_that_reads_it() -> None:
    plugs = "CREATE CONTINUOUS QUERY plugs AS SELECT plug FROM readings;"
    last = "CREATE CONTINUOUS QUERY last AS SELECT max(load) AS m FROM readings [ROWS 3];"
    codes = "CREATE CONTINUOUS QUERY codes AS SELECT max(code) AS m FROM alarms [ROWS 3];"
    for queries, expected in (
        (plugs, {"readings": "plugs"}),
        (last + codes, {"readings": "last", "alarms": "codes"}),
        (last + codes + plugs, {"alarms": "codes"}),
        (last + last.replace("last", "again"), {}),
    ):
        assert sole_readers(fragments(*deployed(queries))) == expected, queries
    together = fragments(*deployed(last + codes + plugs), together=True)
    assert sole_readers(together) == {"alarms": "shared-0", "readings": "shared-1"}
    selects = plugs + plugs.replace("plugs", "loads").replace("plug FROM", "load FROM")
    woven = fragments(*deployed(selects), together=True, engines=Engines.SPARK)
    assert sole_readers(woven) == {"readings": woven[0].name}


# Fragments of a deployment

TWO_QUERIES = (
    "CREATE CONTINUOUS QUERY b AS SELECT load FROM readings;"
    "CREATE CONTINUOUS QUERY a AS SELECT code, load FROM alarms a [RANGE 1 SECOND], "
    "readings r [RANGE 1 SECOND] WHERE a.plug = r.plug;"
)


def deployed(queries: str) -> tuple[Deployment, Catalog]:
    workload = plait.open_text(CATALOG + queries).workload
    return driver.plan(workload, "independent").deployment, workload.catalog


def test_columns_are_those_of_the_plan() -> None:
    deployment, catalog = deployed(TWO_QUERIES)
    first, *others = deployment.queries
    wrong = replace(deployment, queries=(replace(first, columns=("load", "more")), *others))
    with pytest.raises(InternalError, match="has 2 columns, but its plan 1"):
        fragments(wrong, catalog)


def test_each_admitted_query_is_a_fragment() -> None:
    made = fragments(*deployed(TWO_QUERIES))
    assert [(each.name, each.only.query, each.only.columns, each.way) for each in made] == [
        ("a", "a", ("code", "load"), Way.NATIVE),
        ("b", "b", ("load",), Way.NATIVE),
    ]
    assert [each.streams for each in made] == [("alarms", "readings"), ("readings",)]


@pytest.mark.parametrize("engines", Engines)
def test_fragments_do_not_depend_on_the_order_of_declarations(engines: Engines) -> None:
    """State is of fragments as they are: of windows and columns by their places."""
    queries = [
        "CREATE CONTINUOUS QUERY a AS SELECT sum(load) AS t FROM readings [RANGE 2 MINUTES SLIDE 1 MINUTE];",
        "CREATE CONTINUOUS QUERY B AS SELECT max(plug) AS t FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE];",
        "CREATE CONTINUOUS QUERY c AS SELECT a.code FROM alarms a [RANGE 5 SECONDS], "
        "readings r [RANGE 5 SECONDS] WHERE a.plug = r.plug;",
        "CREATE CONTINUOUS QUERY d AS SELECT r.load FROM alarms a [RANGE 5 SECONDS], "
        "readings r [RANGE 9 SECONDS] WHERE a.plug = r.plug;",
        "CREATE CONTINUOUS QUERY e AS SELECT worker FROM visits;",
    ]
    made = [
        fragments(*deployed("".join(ordered)), together=True, engines=engines)
        for ordered in (queries, queries[::-1])
    ]
    assert made[0] == made[1]


def test_queries_that_read_a_stream_in_common_run_together() -> None:
    alone = "CREATE CONTINUOUS QUERY c AS SELECT worker FROM visits;"
    made = fragments(*deployed(alone + TWO_QUERIES), together=True)
    assert [[result.query for result in each.results] for each in made] == [["a", "b"], ["c"]]
    assert [each.streams for each in made] == [("alarms", "readings"), ("visits",)]
    assert {each.way for each in made} == {Way.SHARED}
    assert len({each.name for each in made}) == 2


def test_queries_are_brought_together_by_one_that_reads_the_streams_of_both() -> None:
    queries = (
        "CREATE CONTINUOUS QUERY c AS SELECT code FROM alarms;"
        "CREATE CONTINUOUS QUERY d AS SELECT load FROM readings;"
        "CREATE CONTINUOUS QUERY e AS SELECT worker FROM visits;"
    )
    assert len(fragments(*deployed(queries), together=True)) == 3
    both = queries + TWO_QUERIES
    made = fragments(*deployed(both), together=True)
    assert [[result.query for result in each.results] for each in made] == [["a", "b", "c", "d"], ["e"]]


def test_a_stream_is_read_once_with_all_columns_that_any_query_needs() -> None:
    (made,) = fragments(*deployed(TWO_QUERIES), together=True)
    scans = [node for each in made.inputs for node in walk_plan(each.plan) if isinstance(node, StreamScan)]
    assert [each.stream for each in made.inputs] == [scan.stream for scan in scans] == ["alarms", "readings"]
    columns = [{field.name for field in scan.columns} for scan in scans]
    assert columns == [{"plug", "code"}, {"plug", "load"}]


def test_rows_that_no_query_wants_are_left_to_spark() -> None:
    high = "CREATE CONTINUOUS QUERY high AS SELECT plug FROM readings WHERE load > 5;"
    higher = "CREATE CONTINUOUS QUERY higher AS SELECT plug FROM readings WHERE load > 10;"
    whole = "CREATE CONTINUOUS QUERY whole AS SELECT plug FROM readings;"
    for queries, kind in ((high, "filter"), (high + higher, "filter"), (high + whole, "scan")):
        (made,) = fragments(*deployed(queries), together=True)
        assert [each.plan.kind for each in made.inputs] == [kind], queries


def test_a_fragment_of_several_queries_has_no_single_one() -> None:
    (made,) = fragments(*deployed(TWO_QUERIES), together=True)
    with pytest.raises(ValueError, match="too many values"):
        made.only  # noqa: B018


# On Spark alone


def on_spark(*queries: str) -> list[tuple[Way, list[str]]]:
    """How queries `q0`, `q1`, … run without a database: ways, and who is together."""
    texts = (f"CREATE CONTINUOUS QUERY q{number} AS {query};" for number, query in enumerate(queries))
    workload = plait.open_text("".join([CATALOG, *texts])).workload
    deployment = driver.plan(workload, "independent").deployment
    made = fragments(deployment, workload.catalog, together=True, engines=Engines.SPARK)
    check_engines(made, workload, Engines.SPARK)
    return [(each.way, [result.query for result in each.results]) for each in made]


def test_a_window_that_holds_rows_at_many_ticks_is_a_tree_of_one() -> None:
    counts = "SELECT count(*) AS n FROM readings [RANGE {} SLIDE 1 SECOND]"
    assert on_spark(counts.format("20 SECONDS")) == [(Way.WOVEN, ["q0"])]
    assert on_spark(counts.format("10 SECONDS")) == [(Way.NATIVE, ["q0"])]
    with pytest.raises(UnsupportedError, match="holds each row at 86,400 ticks"):
        on_spark(counts.format("1 DAY"), counts.format("20 SECONDS"))


def test_families_are_woven_and_other_queries_run_alone() -> None:
    pairs = "SELECT a.code FROM alarms a [RANGE {}], readings r [RANGE 5 SECONDS] WHERE a.plug = r.plug"
    assert on_spark(
        "SELECT load FROM readings WHERE plug = 1",
        "SELECT count(*) AS n FROM readings [RANGE 1 HOUR SLIDE 1 SECOND]",
        pairs.format("1 MINUTE"),
        "SELECT worker FROM visits",
        "SELECT sum(load) AS t FROM readings [RANGE 1 MINUTE]",
        pairs.format("2 MINUTES"),
        "SELECT load FROM readings WHERE plug = 2",
    ) == [
        (Way.WOVEN, ["q0", "q6"]),
        (Way.WOVEN, ["q1", "q4"]),
        (Way.WOVEN, ["q2", "q5"]),
        (Way.NATIVE, ["q3"]),
    ]


def test_a_stream_that_is_joined_with_itself_is_not_woven() -> None:
    pairs = "SELECT a.load FROM readings a [RANGE {}], readings b [RANGE 1 SECOND] WHERE a.plug = b.plug"
    alone = [(Way.NATIVE, ["q0"]), (Way.NATIVE, ["q1"])]
    assert on_spark(pairs.format("1 SECOND"), pairs.format("5 SECONDS")) == alone


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT a.code FROM alarms a [RANGE {} SECONDS], readings r [RANGE 5 SECONDS] "
            "WHERE a.plug < r.plug",
            "without an equality",
        ),
        ("SELECT count(*) AS n FROM readings [RANGE {}500 MICROSECONDS]", "finer than a millisecond"),
        ("SELECT sum(load) AS t FROM readings [ROWS {}]", "window of rows"),
    ],
)
def test_what_spark_cannot_do_it_cannot_do_for_several_either(query: str, reason: str) -> None:
    with pytest.raises(ErrorReport) as raised:
        on_spark(query.format(3), "SELECT load FROM readings", query.format(7))
    for error, name in zip(raised.value.errors, ("q0", "q2"), strict=True):
        assert error.message == f"the query `{name}` cannot run on Spark's operators alone"
        assert reason in error.detail
        assert f"QUERY {name}" in error.render()


def test_only_members_that_spark_can_compute_are_woven() -> None:
    count = "SELECT count(*) AS n FROM readings [RANGE {}]"
    with pytest.raises(UnsupportedError, match="the query `q1` cannot run"):
        on_spark(count.format("1 SECOND"), count.format("1500 MICROSECONDS"), count.format("5 SECONDS"))


# Stages


def test_a_join_of_several_streams_takes_the_way_of_the_equalities() -> None:
    """Alarms and visits have nothing in common but the reading."""
    stages = stages_of(
        "SELECT a.code, v.worker, r.load FROM alarms a [RANGE 30 SECONDS], visits v [RANGE 20 SECONDS], "
        "readings r [RANGE 10 SECONDS] WHERE a.plug = r.plug AND v.plug + 1 = r.load"
    )
    joins = [stage for stage in stages.streaming if isinstance(stage, IntervalJoinStage)]
    assert [(join.left_range_us, join.right_range_us) for join in joins] == [
        (30_000_000, 10_000_000),
        (10_000_000, 20_000_000),  # a combination is there until its first window ends
    ]
    assert stages.output.types == lowered("SELECT code, code AS c, plug FROM alarms").only.plan.types
    assert stages.hold_ms == 30_000 + 20_000


def test_of_an_outer_join_the_longest_range_counts() -> None:
    stages = stages_of(
        "SELECT a.code, r.load, v.worker "
        "FROM alarms a [RANGE 30 SECONDS] LEFT JOIN readings r [RANGE 90 SECONDS] ON a.plug = r.plug "
        "LEFT JOIN visits v [RANGE 20 SECONDS] ON a.plug = v.plug"
    )
    last = [stage for stage in stages.streaming if isinstance(stage, IntervalJoinStage)][-1]
    assert (last.left_range_us, last.right_range_us) == (90_000_000, 20_000_000)


@pytest.mark.parametrize(
    ("aggregates", "distinct"),
    [
        ("count(*) AS a", Distinct.NONE),
        ("count(DISTINCT load) AS a", Distinct.TWO_STEPS),
        ("count(DISTINCT load, at) AS a, count(DISTINCT load, at) AS b", Distinct.TWO_STEPS),
        ("count(DISTINCT load) AS a, count(DISTINCT at) AS b", Distinct.SETS),
        ("count(DISTINCT load) AS a, sum(load) AS b", Distinct.SETS),
        ("count(DISTINCT load) FILTER (WHERE load > 1) AS a", Distinct.SETS),
    ],
)
def test_different_values_are_counted_in_two_steps_where_nothing_else_is(
    aggregates: str, distinct: Distinct
) -> None:
    stages = stages_of(f"SELECT plug, {aggregates} FROM readings [RANGE 1 MINUTE] GROUP BY plug")
    (stage,) = [stage for stage in stages.streaming if isinstance(stage, AggregateStage)]
    assert stage.distinct is distinct


def test_tables_and_limits_come_after_all_that_keeps_rows() -> None:
    stages = stages_of(
        f"SELECT s.plug, f.floor FROM {SUMS} s, rooms m, floors f "
        "WHERE s.plug = m.plug AND m.room = f.room ORDER BY s.total LIMIT 3"
    )
    kinds = [type(stage) for stage in stages.epilogue if not isinstance(stage, FinishStage)]
    assert kinds == [LookupStage, LookupStage, TopStage]
    assert not [stage for stage in stages.streaming if "rooms" in str(stage)]


# Probes


def probes_of(query: str) -> list[tuple[str, str, TickWindow | None, int]]:
    return [_shown(probe) for probe in stages_of(query).probes]


def _shown(probe: Probe) -> tuple[str, str, TickWindow | None, int]:
    predicate = "" if probe.predicate == TRUE else format_expression(probe.predicate)
    return probe.scan.stream, predicate, probe.window, probe.hold_ms


def test_rows_of_a_query_without_state_are_never_late() -> None:
    assert not probes_of("SELECT m.room, r.load FROM readings r LEFT JOIN rooms m ON r.plug = m.plug")


def test_rows_are_late_for_the_first_tick_that_holds_them() -> None:
    window = TickWindow(60_000_000, 20_000_000)
    query = "SELECT count(*) AS n FROM readings [RANGE 60 SECONDS SLIDE 20 SECONDS] WHERE load > 5"
    assert probes_of(query) == [("readings", "(#0 >= 6)", window, 0)]


def test_every_part_of_a_union_can_be_late() -> None:
    window = TickWindow(60_000_000, 60_000_000)
    both = "SELECT plug FROM alarms UNION ALL SELECT load FROM readings"
    query = f"SELECT count(*) AS n FROM ({both}) u [RANGE 1 MINUTE]"
    assert sorted(probes_of(query)) == [("alarms", "", window, 0), ("readings", "", window, 0)]


def test_streams_joined_later_are_given_the_time_that_the_joins_before_hold_back() -> None:
    query = (
        "SELECT a.code, r.load, v.worker FROM alarms a [RANGE 30 SECONDS], readings r [RANGE 20 SECONDS], "
        "visits v [RANGE 1500 MICROSECONDS] WHERE a.plug = r.plug AND r.plug = v.plug"
    )
    assert probes_of(query) == [
        ("alarms", "", None, 0),
        ("readings", "", None, 0),
        ("visits", "", None, 30_000),
    ]
    assert stages_of(query).hold_ms == 30_000 + 20_000


def test_rows_behind_an_aggregate_are_not_late_again() -> None:
    query = f"SELECT sum(total) AS t FROM {SUMS} s [RANGE 1 HOUR]"
    assert probes_of(query) == [("readings", "", TickWindow(60_000_000, 60_000_000), 0)]


def test_ranges_hold_back_in_whole_milliseconds() -> None:
    query = (
        "SELECT a.code FROM alarms a [RANGE 1500 MICROSECONDS], readings r [RANGE 1 MICROSECOND] "
        "WHERE a.plug = r.plug"
    )
    assert stages_of(query).hold_ms == 2


def test_a_condition_on_the_tick_says_which_ticks_count() -> None:
    (probe,) = stages_of(
        "SELECT count(*) AS n FROM readings [RANGE 60 SECONDS SLIDE 20 SECONDS] "
        "WHERE window_end > TIMESTAMP '2026-01-01 00:00:00' AND load > 5"
    ).probes
    assert format_expression(probe.predicate) == "(#0 >= 6)"
    assert format_expression(probe.tick_predicate) == "(window_end > 1767225600000000:TIMESTAMP)"
