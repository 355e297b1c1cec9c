"""Which queries one operator computes, and that what it knows of each query is the whole query."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.plans import FIELDS, plans
from tests.workloads.predicates import PATIENT, terms_of

import plait
from plait.deployment.fragments import Fragment
from plait.deployment.lowering import fragments
from plait.deployment.row_by_row import row_by_row
from plait.deployment.weaving import whole_scans
from plait.expressions.nodes import FALSE, Column, Expression, conjunction, substitute
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    RangeWindow,
    StreamScan,
    Window,
    walk_plan,
)
from plait.rewrite import canonicalise
from plait.sharing.families import Families, families
from plait.sharing.joins import WovenJoin
from plait.sharing.patterns import Selection
from plait.sharing.selects import WovenSelect
from plait.sharing.shapes import Shaped
from plait.sharing.trees import WovenAggregate

DECLARATIONS = """
CREATE STREAM readings (plug INT, load INT, note STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM alarms (plug INT, code STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE rooms (plug INT, room STRING);
"""
MEETING = "SELECT r.load, a.code FROM readings r [RANGE {}], alarms a [RANGE {}] WHERE r.plug = a.plug"


def found(*queries: str) -> Families:
    """The families of queries that are called `q0`, `q1`, …"""
    texts = (f"CREATE CONTINUOUS QUERY q{number} AS {text};" for number, text in enumerate(queries))
    session = plait.open_text(DECLARATIONS + "\n".join(texts))
    running = fragments(session.plan().deployment, session.workload.catalog, together=True)
    results = [result for fragment in running for result in fragment.results]
    scans = {key: scan for fragment in running for key, scan in scans_of(fragment).items()}
    return families(((result.query, result.plan) for result in results), scans)


def scans_of(fragment: Fragment) -> dict[str, StreamScan]:
    simple = ((each.stream.lower(), row_by_row(each.plan)) for each in fragment.inputs)
    return {key: each.scan for key, each in simple if each is not None}


def names(of_one_kind: Sequence[Sequence[WovenSelect | WovenAggregate | WovenJoin]]) -> list[str]:
    return sorted(" ".join(sorted(member.query for member in family)) for family in of_one_kind)


# Which queries are together


def test_queries_of_single_rows_are_together_if_they_look_the_same_columns_up() -> None:
    together = found(
        "SELECT load FROM readings WHERE plug = 1",
        "SELECT load + 1 AS more, note FROM readings WHERE 2 = plug",
        "SELECT load FROM readings WHERE load = 1",
        "SELECT load FROM readings WHERE plug = 1 AND load = 1",
        "SELECT plug FROM readings WHERE load = 5 AND plug = 7",
        "SELECT plug FROM alarms WHERE plug = 1",
    )
    assert names(together.selects) == ["q0 q1", "q2", "q3 q4", "q5"]
    assert together == Families(selects=together.selects)


def test_queries_of_single_rows_are_together_if_they_bound_the_same_column() -> None:
    together = found(
        "SELECT load FROM readings WHERE load > 1",
        "SELECT load FROM readings WHERE load BETWEEN 3 AND 7",
        "SELECT load FROM readings WHERE plug > 1",
        "SELECT load FROM readings WHERE load > 1 AND plug > 1",
    )
    assert names(together.selects) == ["q0 q1", "q2", "q3"]


def test_what_needs_its_constants_as_written_may_differ_where_rows_are_tagged() -> None:
    together = found(
        "SELECT load FROM readings WHERE plug = 1 AND note LIKE 'a%'",
        "SELECT load FROM readings WHERE note LIKE 'a%' AND plug = 2",
        "SELECT load FROM readings WHERE plug = 3 AND note LIKE 'b%'",
        "SELECT load FROM readings WHERE note LIKE 'a%'",
        "SELECT plug FROM readings WHERE note LIKE 'a%'",
        "SELECT plug FROM readings",
    )
    assert names(together.selects) == ["q0 q1 q2", "q3 q4", "q5"]


def test_aggregates_are_together_whatever_their_windows_functions_and_constants() -> None:
    together = found(
        "SELECT plug, count(*) AS n FROM readings [RANGE 1 MINUTE] GROUP BY plug",
        "SELECT plug, sum(load) AS s FROM readings [RANGE 5 MINUTES SLIDE 7 SECONDS] "
        "GROUP BY plug HAVING max(load) > 3",
        "SELECT count(*) AS n FROM readings [RANGE 1 MINUTE]",
        "SELECT plug, count(*) AS n FROM readings [RANGE 1 MINUTE] WHERE load > 3 GROUP BY plug",
        "SELECT plug, avg(load) AS n FROM readings [RANGE 2 MINUTES] WHERE load < 9 GROUP BY plug",
    )
    assert names(together.aggregates) == ["q0 q1", "q2", "q3 q4"]


def test_joins_are_together_whatever_their_ranges_and_constants() -> None:
    together = found(
        MEETING.format("1 MINUTE", "1 MINUTE"),
        MEETING.format("5 MINUTES", "1 SECOND"),
        MEETING.format("1 MINUTE", "1 MINUTE") + " AND a.code = 'hot'",
        MEETING.format("2 MINUTES", "1 MINUTE") + " AND a.code = 'cold'",
        MEETING.format("1 MINUTE", "1 MINUTE") + " AND r.load = 3",
        "SELECT r.load, a.code FROM readings r [RANGE 1 MINUTE], alarms a [RANGE 1 MINUTE] "
        "WHERE r.load = a.plug",
    )
    assert names(together.joins) == ["q0 q1", "q2 q3", "q4", "q5"]


def test_joins_of_different_parts_are_apart() -> None:
    session = plait.open_text(
        f"{DECLARATIONS} CREATE CONTINUOUS QUERY q AS {MEETING.format('1 MINUTE', '1 MINUTE')};"
    )
    plans = dict.fromkeys("abc", canonicalise(session.query("q").plan))
    scans = whole_scans(plans.values(), session.workload.catalog)
    assert names(families(plans.items(), scans).joins) == ["a b c"]
    parts = {"a": "x", "b": "y", "c": "x"}
    assert names(families(plans.items(), scans, parts=parts).joins) == ["a c", "b"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT load) AS n FROM readings [RANGE 1 MINUTE]",
        "SELECT stddev(load) AS n FROM readings [RANGE 1 MINUTE]",
        "SELECT count(*) AS n FROM readings [ROWS 10]",
        "SELECT max(load) FILTER (WHERE at > window_start) AS n FROM readings [RANGE 1 MINUTE]",
        "SELECT sum(CAST(load AS DECIMAL(38, 0))) AS n FROM readings [RANGE 1 MINUTE]",
        "SELECT r.load, m.room FROM readings r JOIN rooms m ON r.plug = m.plug",
        "SELECT r.load FROM readings r [RANGE 1 MINUTE] "
        "LEFT JOIN alarms a [RANGE 1 MINUTE] ON r.plug = a.plug",
        "SELECT sum(r.load) AS n FROM readings r [RANGE 1 MINUTE], alarms a [RANGE 1 MINUTE] "
        "WHERE r.plug = a.plug",
        "SELECT max(n) AS most FROM (SELECT count(*) AS n FROM readings [RANGE 1 MINUTE]) c [RANGE 1 HOUR]",
        "SELECT load FROM readings UNION ALL SELECT plug FROM alarms",
        "SELECT plug, count(*) AS n FROM readings [RANGE 1 MINUTE] GROUP BY plug ORDER BY n LIMIT 1",
    ],
)
def test_everything_else_is_in_no_family(query: str) -> None:
    together = found(query, query)
    assert together == Families(others=["q0", "q1"])


def test_queries_keep_the_order_of_their_declaration() -> None:
    together = found(*(f"SELECT load FROM readings WHERE plug = {number}" for number in (3, 1, 2)))
    assert [member.query for member in together.selects[0]] == ["q0", "q1", "q2"]


# What is known of a query


WHOLE_SCANS = {name: StreamScan(name, FIELDS) for name in ("p", "q")}


@PATIENT
@given(st.lists(plans(), min_size=1, max_size=4))
def test_each_query_is_in_one_family_and_its_member_says_all_of_it(given_plans: list[Node]) -> None:
    queries = {f"q{number}": canonicalise(plan) for number, plan in enumerate(given_plans)}
    together = families(queries.items(), WHOLE_SCANS)
    kinds = (together.selects, together.aggregates, together.joins)
    members = [member for kind in kinds for family in kind for member in family]
    assert sorted([*together.others, *(member.query for member in members)]) == sorted(queries)
    for family in (family for kind in kinds for family in kind):
        assert len({member.key for member in family}) == 1
    for member in members:
        if not is_empty(queries[member.query]):  # no rows are written in several ways
            assert canonicalise(plan_of(member)) == queries[member.query]


def is_empty(plan: Node) -> bool:
    return any(isinstance(node, Filter) and node.predicate == FALSE for node in walk_plan(plan))


def plan_of(member: WovenSelect | WovenAggregate | WovenJoin) -> Node:
    """A query as its member says it."""
    match member:
        case WovenSelect(_, key, selection, shaped):
            return finished(selected(key.scan, selection), shaped)
        case WovenAggregate(_, key, selection, window, aggregates, shaped):
            rows = Window(selected(key.scan, selection), window)
            return finished(Aggregate(rows, key.keys, aggregates), shaped)
        case WovenJoin(_, key, selections, ranges_us, shaped, _):
            inputs = tuple(
                Window(selected(scan, selection), RangeWindow(range_us))
                for scan, selection, range_us in zip(key.scans, selections, ranges_us, strict=True)
            )
            return finished(Join(inputs, key.predicate), shaped)


def selected(scan: StreamScan, selection: Selection) -> Node:
    return Filter(scan, conjunction(terms_of(selection)))


def finished(node: Node, shaped: Shaped) -> Node:
    """What is above the operator, with the query's constants where the shape has columns for them."""
    columns = [Column(index, type_) for index, type_ in enumerate(node.types)]
    given_values: list[Expression] = [*columns, *shaped.constants]

    def whole(expression: Expression) -> Expression:
        return substitute(expression, given_values.__getitem__)

    terms = [*map(whole, shaped.shape.terms)]
    return Project(Filter(node, conjunction(terms)), tuple(map(whole, shaped.shape.expressions)))
