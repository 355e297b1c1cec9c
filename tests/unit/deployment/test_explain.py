from __future__ import annotations

import pytest

from plait.deployment.explain import Compared, comparison, sharing, summary
from plait.planners import driver
from plait.planners.driver import PlanReport
from plait.workload import Workload


def test_sharing_is_counted_by_query(report: PlanReport) -> None:
    shared = sharing(report.deployment)
    both_pairs = report.deployment.operators_of(report.deployment.queries[0])
    assert shared.operators == len(report.deployment.operators)
    assert shared.shared_operators == len(both_pairs)
    # `pair_again` would need all that `pair` has once more, and `totals` would read `a` once more.
    totals = report.deployment.operators_of(report.deployment.queries[2])
    assert shared.unshared_operators == 2 * len(both_pairs) + len(totals)
    assert 0 < shared.saved_share < 1


def test_every_query_for_itself_shares_nothing(workload: Workload) -> None:
    shared = sharing(driver.plan(workload, "independent").deployment)
    assert shared.shared_operators == 0
    assert shared.saved_share == pytest.approx(0)


def test_the_summary_says_what_matters(report: PlanReport) -> None:
    text = summary(report.deployment)
    assert "3 admitted, 1 refused" in text
    assert "serve several queries" in text
    assert "too_much: needs 1 MB/s of the link from `here` to `there`" in text
    assert "% saved" in text
    assert "of 4 cores" in text


def test_planners_are_compared_line_by_line(workload: Workload) -> None:
    reports = driver.compare(workload)
    text = comparison([Compared(r.planner, r.status, r.seconds, r.deployment) for r in reports])
    header, *lines = text.splitlines()
    assert header.split()[:3] == ["planner", "status", "admitted"]
    assert [line.split()[0] for line in lines] == [report.planner for report in reports]
