"""Every kind of illegal deployment is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from plait.deployment.deployment import Deployment, Flow, Operator, StreamKind
from plait.deployment.invariants import violations
from plait.planners import driver
from plait.planners.driver import PlanReport
from plait.space import OperatorKind
from plait.workload import Workload


def first(deployment: Deployment, kind: OperatorKind) -> Operator:
    return next(operator for operator in deployment.operators if operator.kind is kind)


def with_operator(deployment: Deployment, old: Operator, new: Operator) -> Deployment:
    return replace(deployment, operators=tuple(new if o is old else o for o in deployment.operators))


def moved(deployment: Deployment, kind: OperatorKind) -> Deployment:
    operator = first(deployment, kind)
    return with_operator(
        deployment, operator, replace(operator, site="there" if operator.site == "here" else "here")
    )


def without_flows(deployment: Deployment) -> Deployment:
    return replace(deployment, flows=())


def with_circular_flow(deployment: Deployment) -> Deployment:
    """A stream that two sites send to each other, and neither gets from elsewhere."""
    stream = first(deployment, OperatorKind.AGGREGATE).output
    return replace(deployment, flows=(*deployment.flows, Flow(stream, "nowhere", "here", 1.0)))


def with_swapped_inputs(deployment: Deployment) -> Deployment:
    join = first(deployment, OperatorKind.WINDOW_JOIN)
    return with_operator(deployment, join, replace(join, inputs=join.inputs[::-1]))


def with_other_windows(deployment: Deployment) -> Deployment:
    join = first(deployment, OperatorKind.WINDOW_JOIN)
    return with_operator(deployment, join, replace(join, windows=(None, None)))


def with_one_input_twice(deployment: Deployment) -> Deployment:
    join = first(deployment, OperatorKind.WINDOW_JOIN)
    return with_operator(deployment, join, replace(join, covers=((0,), (0,))))


def with_other_kind(deployment: Deployment) -> Deployment:
    join = first(deployment, OperatorKind.WINDOW_JOIN)
    return with_operator(deployment, join, replace(join, kind=OperatorKind.TICK_JOIN))


def without_an_operator(deployment: Deployment) -> Deployment:
    scan = first(deployment, OperatorKind.SCAN)
    return replace(deployment, operators=tuple(o for o in deployment.operators if o is not scan))


def with_an_operator_twice(deployment: Deployment) -> Deployment:
    return replace(deployment, operators=(*deployment.operators, deployment.operators[0]))


def without_a_stream(deployment: Deployment) -> Deployment:
    return replace(deployment, streams=deployment.streams[1:])


def without_a_query(deployment: Deployment) -> Deployment:
    return replace(deployment, queries=deployment.queries[1:])


def with_an_idle_operator(deployment: Deployment) -> Deployment:
    queries = (replace(q, admitted=False, reason="no", stream=None) for q in deployment.queries)
    return replace(deployment, queries=tuple(queries))


def with_another_answer(deployment: Deployment) -> Deployment:
    source = next(stream for stream in deployment.streams if stream.kind is StreamKind.SOURCE)
    query, *rest = deployment.queries
    return replace(deployment, queries=(replace(query, stream=source.id), *rest))


def with_the_answer_elsewhere(deployment: Deployment) -> Deployment:
    query, *rest = deployment.queries
    return replace(deployment, queries=(replace(query, site="there"), *rest))


def refused_without_reason(deployment: Deployment) -> Deployment:
    return replace(deployment, queries=tuple(replace(q, reason="") for q in deployment.queries))


def with_another_plan(deployment: Deployment) -> Deployment:
    signatures = list(deployment.plans)
    swapped = dict(deployment.plans) | {signatures[0]: deployment.plans[signatures[1]]}
    return replace(deployment, plans=swapped)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: moved(d, OperatorKind.SCAN), "away from its home"),
        (lambda d: moved(d, OperatorKind.WINDOW_JOIN), "which is not there"),
        (without_flows, "which is not there"),
        (with_circular_flow, "refers to nowhere"),
        (with_swapped_inputs, "does not compute"),
        (with_other_windows, "other windows"),
        (with_one_input_twice, "every input once"),
        (with_other_kind, "is a tick join"),
        (without_an_operator, "nothing produces"),
        (with_an_operator_twice, "is there 2 times"),
        (without_a_stream, "does not exist"),
        (without_a_query, "not in both"),
        (with_an_idle_operator, "no query needs"),
        (with_another_answer, "something else"),
        (with_the_answer_elsewhere, "is wanted at here"),
        (refused_without_reason, "without a reason"),
        (with_another_plan, "another signature"),
    ],
)
def test_violations(
    change: Callable[[Deployment], Deployment], complaint: str, report: PlanReport, workload: Workload
) -> None:
    canonical = driver.canonical_workload(workload)
    assert list(violations(report.deployment, canonical)) == []
    found = list(violations(change(report.deployment), canonical))
    assert any(complaint in line for line in found), found
