from __future__ import annotations

import pytest

from plait import language
from plait.cost.network import Resource, ResourceKind
from plait.deployment.assembly import Overload
from plait.deployment.describe import description
from plait.deployment.explain import sharing, summary
from plait.deployment.report import CHARACTERS_SHOWN, report_text
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


def test_a_latency_that_is_not_declared_is_not_shown() -> None:
    text = """
        CREATE SITE here; CREATE SITE there;
        CREATE STREAM a (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
          WITH (rate = 1, site = 'here');
        CREATE CONTINUOUS QUERY q AT there AS SELECT k FROM a;
    """
    shown = summary(driver.plan(language.load_text(text)).deployment)
    assert "here → there" in shown
    assert " ms" not in shown


def test_too_few_cores_are_said_as_such() -> None:
    overload = Overload(Resource(ResourceKind.CORES, "pi"), needed=2.0, used=0.5, limit=1.0)
    assert str(overload) == "needs 2 cores of `pi`, with 0.5 of 1 left: 1.5 too much"


def test_queries_count_operators_as_the_summary_does(report: PlanReport) -> None:
    needed = len(report.deployment.operators_of(report.deployment.queries[0]))
    lines = report_text(report.deployment, "plait").splitlines()
    assert any(line.startswith("pair ") and f"{needed} operators" in line for line in lines)


def test_all_is_said_if_all_is_asked_for() -> None:
    text = """
        CREATE SITE here; CREATE SITE there; CREATE LINK here TO there WITH (bandwidth = '1 kbps');
        CREATE STREAM a (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
          WITH (rate = 1000, row_bytes = 100, site = 'here');
    """
    condition = " OR ".join(f"k = {1_000_003 * i}" for i in range(1, 12))
    for i in range(30):
        text += f"CREATE CONTINUOUS QUERY far_{i} AT there AS SELECT k + {i} AS k FROM a;\n"
        text += f"CREATE CONTINUOUS QUERY near_{i} AT here AS SELECT k FROM a WHERE {condition};\n"
    deployment = driver.plan(language.load_text(text)).deployment
    assert len(deployment.refused) == 30
    brief = report_text(deployment, "plait")
    assert "  … and 10 more: --full shows all" in brief
    assert " and 27 more" in brief
    full = report_text(deployment, "plait", full=True)
    assert "…" not in full
    assert " more" not in full
    for query in deployment.refused:
        assert f"  {query.name}: {query.reason}" in full
    assert ", ".join(sorted(query.name for query in deployment.admitted)) in full
    longest = max(map(description, deployment.plans.values()), key=len)
    assert len(longest) > CHARACTERS_SHOWN
    assert longest not in brief
    assert longest in full
