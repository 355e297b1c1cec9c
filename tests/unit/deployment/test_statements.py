"""Every number that a planner could lie about is compared with what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plait.cost.model import CostModel
from plait.cost.network import Network
from plait.cost.units import UNCALIBRATED
from plait.deployment.deployment import Deployment, StreamKind
from plait.deployment.statements import false_statements
from plait.planners.driver import PlanReport
from plait.workload import Workload

Change = Callable[[Deployment], Deployment]


def in_stream(**lie: Any) -> Change:
    return lambda d: replace(d, streams=(replace(d.streams[0], **lie), *d.streams[1:]))


def in_operator(**lie: Any) -> Change:
    return lambda d: replace(d, operators=(*d.operators[:-1], replace(d.operators[-1], **lie)))


def in_site(**lie: Any) -> Change:
    return lambda d: replace(d, sites=(replace(d.sites[0], **lie), *d.sites[1:]))


def in_link(**lie: Any) -> Change:
    return lambda d: replace(d, links=(replace(d.links[0], **lie), *d.links[1:]))


def in_join(**lie: Any) -> Change:
    return lambda d: replace(d, joins=(replace(d.joins[0], **lie), *d.joins[1:]))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (in_stream(rate_rows_per_s=0.0), "rate_rows_per_s = 0.0, but it is"),
        (in_stream(rate_rows_per_s=float("nan")), "rate_rows_per_s = nan"),
        (in_stream(rate_rows_per_s=float("inf")), "rate_rows_per_s = inf"),
        (in_stream(row_bytes=1.0), "row_bytes = 1.0"),
        (in_stream(basis="observed"), "basis = observed, but it is declared"),
        (in_stream(kind=StreamKind.TABLE), "kind = table, but it is source"),
        (in_stream(sources=("a", "b")), "sources"),
        (in_operator(state_rows=0.0), "state_rows = 0.0"),
        (in_operator(state_bytes=1.0), "state_bytes = 1.0"),
        (in_operator(engine="magic"), "runs on magic"),
        (in_join(engine="magic"), "runs on magic"),
        (in_join(taken_rows_per_s=1.0), "taken_rows_per_s = 1.0"),
        (in_join(kept_rows=1.0), "kept_rows = 1.0"),
        (in_join(combinations_per_s=1.0), "combinations_per_s = 1.0"),
        (in_join(queries=("pair", "totals")), "the join of pair, totals is not one"),
        (in_site(cores=1e9), "the site here"),
        (in_site(memory_bytes=10**15), "the site here"),
        (in_site(in_bytes_per_s=None), "the site here"),
        (in_site(out_bytes_per_s=1e12), "the site here"),
        (in_site(name="elsewhere"), "the site elsewhere"),
        (lambda d: replace(d, sites=d.sites[1:]), "the site here"),
        (lambda d: replace(d, sites=(*d.sites, d.sites[0])), "the site here"),
        (in_link(bandwidth_bytes_per_s=None), "the link from here to there"),
        (in_link(latency_us=0), "the link from here to there"),
        (lambda d: replace(d, links=d.links[1:]), "the link from here to there"),
        (lambda d: replace(d, links=(*d.links, d.links[0])), "the link from here to there"),
        (lambda d: replace(d, unit_costs=replace(UNCALIBRATED, table_refresh_s=1e9)), "unit costs"),
        (lambda d: replace(d, unit_costs=replace(UNCALIBRATED, costs={"spark": {}})), "unit costs"),
        (lambda d: replace(d, unit_costs=replace(UNCALIBRATED, micro_batch_s={"spark": 0.0})), "unit costs"),
    ],
)
def test_lies(change: Change, complaint: str, report: PlanReport, workload: Workload) -> None:
    network, cost = Network(workload.catalog), CostModel(workload.catalog)
    assert list(false_statements(report.deployment, workload.catalog, network, cost)) == []
    found = list(false_statements(change(report.deployment), workload.catalog, network, cost))
    assert any(complaint in line for line in found), found
