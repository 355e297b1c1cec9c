"""Every kind of illegal deployment is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plait.cost.network import Network
from plait.deployment.deployment import Deployment, Flow, Operator, StreamKind
from plait.deployment.invariants import violations
from plait.plan.nodes import RangeWindow
from plait.plan.signature import signature
from plait.planners import driver
from plait.planners.driver import PlanReport
from plait.space import OperatorKind, Space
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


def in_query(**lie: Any) -> Callable[[Deployment], Deployment]:
    return lambda d: replace(d, queries=(*d.queries[:-1], replace(d.queries[-1], **lie)))


def with_a_flow_twice(deployment: Deployment) -> Deployment:
    return replace(deployment, flows=(*deployment.flows, deployment.flows[0]))


def with_an_unused_plan(deployment: Deployment) -> Deployment:
    join = deployment.stream_by_id[first(deployment, OperatorKind.WINDOW_JOIN).output]
    plan = deployment.plans[join.signature].inputs[0]
    return replace(deployment, plans={**deployment.plans, signature(plan): plan})


def with_a_window_on_a_source(deployment: Deployment) -> Deployment:
    project = first(deployment, OperatorKind.PROJECT)
    return with_operator(deployment, project, replace(project, windows=(RangeWindow(1),)))


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
        (in_query(columns=("x",)), "has other columns: x"),
        (in_query(sink="/etc/passwd"), "goes somewhere else: /etc/passwd"),
        (in_query(stream="a"), "is refused, but has the stream"),
        (with_a_flow_twice, "is there 2 times"),
        (with_an_unused_plan, "no stream has the plan"),
        (with_a_window_on_a_source, "without windows"),
    ],
)
def test_violations(
    change: Callable[[Deployment], Deployment], complaint: str, report: PlanReport, workload: Workload
) -> None:
    canonical = driver.canonical_workload(workload)
    network, space = Network(workload.catalog), Space()
    assert list(violations(report.deployment, canonical, network, space)) == []
    found = list(violations(change(report.deployment), canonical, network, space))
    assert any(complaint in line for line in found), found
