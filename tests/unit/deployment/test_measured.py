"""Which operators of fragments on Spark are measured, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait import language
from plait.deployment.fragments import Fragment
from plait.deployment.lowering import Engines, fragments
from plait.deployment.measured import Measured, measured, measured_family, measured_nodes
from plait.deployment.native_lowering import native_stages
from plait.plan.nodes import Aggregate, Filter, Window, walk_plan
from plait.planners import driver
from plait.sharing.trees import WovenAggregate

STREAMS = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 10);
CREATE STREAM r (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 10);
"""
SUMS = "SELECT k, sum(v) AS n FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] WHERE v > {} GROUP BY k"


def on_spark(*queries: str) -> tuple[Fragment, ...]:
    texts = (f"CREATE CONTINUOUS QUERY q{n} AS {query};" for n, query in enumerate(queries))
    workload = language.load_text(STREAMS + "".join(texts))
    deployment = driver.plan(workload, "plait").deployment
    return fragments(deployment, workload.catalog, together=True, engines=Engines.SPARK)


def shown(operator: Measured) -> str:
    below = ", ".join(map(shown, operator.inputs))
    return f"{operator.form} of {operator.stream or below}"


def native(query: str) -> Measured:
    (found,) = on_spark(query)
    assert found.stages is not None
    return measured(found.stages.streaming)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT v FROM s", "reading of s"),
        ("SELECT v FROM s WHERE k = 1", "reading of s"),
        (SUMS.format(5), "aggregation of reading of s"),
        (f"{SUMS.format(5)} HAVING sum(v) > 7", "filter of aggregation of reading of s"),
        (
            "SELECT k, count(DISTINCT v) AS n FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k",
            "aggregation of different values of reading of s",
        ),
        (
            "SELECT s.v, r.v AS w FROM s [RANGE 5 SECONDS], r [RANGE 5 SECONDS] WHERE s.k = r.k AND r.v > 1",
            "join of rows of reading of r, reading of s",
        ),
        ("SELECT v FROM s WHERE k = 1 UNION ALL SELECT v FROM r", "union of reading of r, reading of s"),
    ],
)
def test_stages_are_put_together_as_spark_does(query: str, expected: str) -> None:
    assert shown(native(query)) == expected


def test_nodes_of_a_plan_have_the_operators_that_give_their_rows() -> None:
    (fragment,) = on_spark(f"{SUMS.format(5)} HAVING sum(v) > 7")
    assert fragment.stages is not None
    having, aggregation, reading = _from_the_top(measured(fragment.stages.streaming))
    known = measured_nodes(fragment)
    plan = fragment.only.plan
    filters = [node for node in walk_plan(plan) if isinstance(node, Filter)]
    assert {known[node] for node in filters} == {having.id, reading.id}
    assert {known[node] for node in walk_plan(plan) if isinstance(node, Window)} == {reading.id}
    assert {known[node] for node in walk_plan(plan) if isinstance(node, Aggregate)} == {aggregation.id}
    assert aggregation.windows_per_s == pytest.approx(0.1)
    assert having.keeps_state
    assert not reading.keeps_state
    assert {each.id for each in native(SUMS.format(5)).walk()} == {aggregation.id, reading.id}


def _from_the_top(operator: Measured) -> Iterator[Measured]:
    yield operator
    for each in operator.inputs:
        yield from _from_the_top(each)


def tree(*queries: str) -> tuple[Fragment, Measured]:
    (fragment,) = on_spark(*queries)
    first = fragment.family[0]
    assert isinstance(first, WovenAggregate)
    return fragment, measured_family(fragment.family, native_stages(first.key.scan).streaming)


def test_a_tree_is_called_the_same_whoever_is_in_it() -> None:
    _, two = tree(SUMS.format(5), SUMS.format(6))
    fragment, three = tree(SUMS.format(5), SUMS.format(6), SUMS.format(7).replace("20", "30"))
    assert [each.id for each in two.walk()] == [each.id for each in three.walk()]
    assert shown(three) == "final aggregation of partial aggregation of reading of s"
    assert three.windows_per_s == pytest.approx(0.3)
    assert three.weights == {"q0": 2, "q1": 2, "q2": 3}
    assert measured_nodes(fragment) == {}  # nobody knows how many rows each of them selects


def test_queries_that_select_the_same_know_how_many_rows_that_is() -> None:
    fragment, operators = tree(
        SUMS.format(5), SUMS.format(5).replace("20", "10"), SUMS.format(5) + " HAVING sum(v) > 1"
    )
    reading, *_ = operators.walk()
    assert {*measured_nodes(fragment).values()} == {reading.id}
    assert operators.weights == {"q0": 1, "q1": 1, "q2": 1}  # the first and the last have one window
