"""What every registered planner must do, on every small workload. To register a planner is to test it."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plait import language, planners
from plait.cost.recost import disagreements, overloads
from plait.errors import UnsupportedError
from plait.planners import PLANNERS, driver
from plait.planners.base import PlannerFeature, PlanningStatus
from plait.planners.driver import PlanReport
from plait.planners.weaving import OPTIMIZERS
from plait.planners.window_trees import OPTIMIZERS as NAMES
from plait.workload import Workload

EXAMPLES = Path(__file__).parents[2] / "examples"

STREAMS = """
CREATE STREAM a (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (rate = 10, row_bytes = 100, distinct.k = 50, distinct.v = 10, site = 'here');
CREATE STREAM b (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (rate = 20, row_bytes = 100, distinct.k = 50, distinct.v = 10, site = 'here');
CREATE STREAM c (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)
  WITH (rate = 5, row_bytes = 100, distinct.k = 50, distinct.v = 10, site = 'there');
CREATE TABLE t (k INT, name STRING) WITH (rows = 50, distinct.k = 50, row_bytes = 20, site = 'there');
"""

QUERIES = """
CREATE CONTINUOUS QUERY plain AS SELECT * FROM a;
CREATE CONTINUOUS QUERY filtered AT there AS SELECT k FROM a WHERE v = 3;
CREATE CONTINUOUS QUERY pair AT here AS
  SELECT a.v, b.v AS w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k;
CREATE CONTINUOUS QUERY same_pair AT there AS
  SELECT x.v, y.v AS w FROM b [RANGE 1 MINUTE] y, a [RANGE 1 MINUTE] x WHERE y.k = x.k;
CREATE CONTINUOUS QUERY triple AT there AS
  SELECT a.v, b.v AS w, c.v AS u FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE], c [RANGE 5 SECONDS]
  WHERE a.k = b.k AND b.k = c.k;
CREATE CONTINUOUS QUERY outer_pair AS
  SELECT a.v, c.v AS w FROM a [RANGE 1 MINUTE] LEFT JOIN c [RANGE 1 MINUTE] ON a.k = c.k;
CREATE CONTINUOUS QUERY named AT here AS SELECT a.v, t.name FROM a, t WHERE a.k = t.k;
CREATE CONTINUOUS QUERY totals AT there AS
  SELECT k, sum(v) AS total FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k;
CREATE CONTINUOUS QUERY best AS
  SELECT k, sum(v) AS total FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k ORDER BY total DESC LIMIT 3;
CREATE CONTINUOUS QUERY last_rows AS SELECT avg(v) AS mean FROM a [PARTITION BY k ROWS 10 SLIDE 5] GROUP BY k;
CREATE CONTINUOUS QUERY above_average AS
  SELECT a.k, a.v FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS],
    (SELECT avg(v) AS mean FROM a [RANGE 1 MINUTE SLIDE 10 SECONDS]) m
  WHERE a.v > m.mean;
CREATE CONTINUOUS QUERY both AS SELECT k FROM a UNION ALL SELECT k FROM c;
CREATE CONTINUOUS QUERY rolled_up AS
  SELECT sum(total) AS total FROM totals [RANGE 1 HOUR];
"""

# What planners of window aggregates can plan.
WINDOWS = "".join(
    f"CREATE CONTINUOUS QUERY w{n}{' AT there' * (n % 3 == 1)} AS SELECT {'k, ' * (n % 2)}max(v) AS most "
    f"FROM a [RANGE {3 + 2 * n} SECONDS SLIDE {1 + n % 5} SECONDS]{' GROUP BY k' * (n % 2)};\n"
    for n in range(14)
)
OF_WINDOWS = "window aggregates, "

SITES = {
    "one implicit site": "",
    "two sites without links": "CREATE SITE here; CREATE SITE there;",
    "a slow link": """
        CREATE SITE here WITH (cores = 4); CREATE SITE there WITH (cores = 4);
        CREATE LINK here TO there WITH (bandwidth = '20 kbps', latency = '20 ms');
        CREATE LINK there TO here WITH (bandwidth = '20 kbps', latency = '20 ms');""",
    "hardly any cores": "CREATE SITE here WITH (cores = 0.0005); CREATE SITE there WITH (cores = 0.0002);",
    "next to no cores": "CREATE SITE here WITH (cores = 1e-9); CREATE SITE there WITH (cores = 1e-9);",
    "by way of a third site": """
        CREATE SITE here; CREATE SITE there; CREATE SITE halfway WITH (bandwidth = '1 Mbps');
        CREATE LINK here TO halfway WITH (latency = '5 ms');
        CREATE LINK halfway TO there WITH (latency = '5 ms');
        CREATE LINK there TO halfway WITH (latency = '5 ms');
        CREATE LINK halfway TO here WITH (latency = '5 ms');""",
    "no way back": "CREATE SITE here; CREATE SITE there; CREATE LINK here TO there;",
}

EXAMPLE_NAMES = ("airline", "auction", "smart_plugs", "traffic")
UNLIMITED = (*EXAMPLE_NAMES, "one implicit site", "two sites without links", "by way of a third site")


@cache
def workload(name: str) -> Workload:
    if name in EXAMPLE_NAMES:
        return language.load([EXAMPLES / f"{name}.sql"])
    sites = SITES[name.removeprefix(OF_WINDOWS)]
    text = sites + STREAMS + (WINDOWS if name.startswith(OF_WINDOWS) else QUERIES)
    if not sites:
        text = text.replace(", site = 'here'", "").replace(", site = 'there'", "")
        text = text.replace(" AT here", "").replace(" AT there", "")
    return language.load_text(text)


@cache
def planned(planner: str, name: str) -> PlanReport:
    return driver.plan(workload(name), planner)


@cache
def document(planner: str, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(planned(planner, name).to_json()))
    return read


def can_plan(planner: str, name: str) -> bool:
    return planner not in OPTIMIZERS or name.startswith(OF_WINDOWS)


def usual(planner: str, sites: str = "one implicit site") -> str:
    """A workload that the planner can plan."""
    return f"{OF_WINDOWS}{sites}" if planner in OPTIMIZERS else sites


every_planner = pytest.mark.parametrize("planner", PLANNERS)
# Those that know what Plait's operators cost; the paper's go by its own cost.
ours = pytest.mark.parametrize("planner", [name for name in PLANNERS if name not in OPTIMIZERS])
every_planner_and_workload = pytest.mark.parametrize(
    ("planner", "name"),
    [
        (planner, name)
        for planner in PLANNERS
        for name in (*EXAMPLE_NAMES, *SITES, *(f"{OF_WINDOWS}{sites}" for sites in SITES))
        if can_plan(planner, name)
    ],
)


@every_planner_and_workload
def test_a_deployment_is_legal_and_covers_all_queries(planner: str, name: str) -> None:
    deployment = planned(planner, name).deployment  # the driver raises if it is not legal
    assert {query.name for query in deployment.queries} == {q.name for q in workload(name).queries.values()}
    assert all(query.reason for query in deployment.refused)


@every_planner_and_workload
def test_costs_follow_from_the_document_alone(planner: str, name: str) -> None:
    assert list(disagreements(document(planner, name))) == []
    assert list(overloads(document(planner, name))) == []


@every_planner_and_workload
def test_the_same_seed_gives_the_same_plan(planner: str, name: str) -> None:
    once, again = planned(planner, name), driver.plan(workload(name), planner)
    assert once.deployment == again.deployment
    assert (once.status, once.bound, once.notices) == (again.status, again.bound, again.notices)


@every_planner_and_workload
def test_a_document_reads_back(planner: str, name: str) -> None:
    assert PlanReport.from_json(document(planner, name)) == planned(planner, name)


@ours
@pytest.mark.parametrize("name", UNLIMITED)
def test_no_planner_costs_more_than_independent(planner: str, name: str) -> None:
    ours, alone = planned(planner, name).deployment, planned("independent", name).deployment
    assert not ours.refused
    assert not alone.refused
    assert ours.cost.cores <= alone.cost.cores * (1 + 1e-9)
    assert ours.cost.network_bytes_per_s <= alone.cost.network_bytes_per_s * (1 + 1e-9)
    assert ours.cost.state_rows <= alone.cost.state_rows * (1 + 1e-9)


@ours
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a WHERE v = {n}",
        "SELECT k, count(*) AS c FROM a [RANGE {n} MINUTES SLIDE 1 MINUTE] GROUP BY k",
        "SELECT a.v FROM a [RANGE 1 MINUTE], b [RANGE {n} SECONDS] WHERE a.k = b.k AND a.k = {n}",
    ],
    ids=["filters", "windows", "joins"],
)
def test_what_is_computed_as_one_is_charged_as_one(planner: str, query: str) -> None:
    """No two operators of these queries are equal, but for those that read and prune."""
    streams = STREAMS.replace(", site = 'here'", "").replace(", site = 'there'", "")
    queries = [f"CREATE CONTINUOUS QUERY q{n} AS {query.format(n=n)};" for n in range(1, 21)]
    alone = [driver.plan(language.load_text(streams + each), planner).deployment for each in queries]
    together = driver.plan(language.load_text(streams + "".join(queries)), planner).deployment
    apart_cores = sum(each.cost.cores for each in alone)
    if not PLANNERS[planner].shares:
        assert together.cost.cores == pytest.approx(apart_cores)
        return
    (family,) = together.shared
    operators = sum(operator.cores for operator in together.operators)
    assert together.cost.cores < operators < apart_cores
    assert together.cost.cores > family.cores_used
    assert together.sites[0].cores_used == pytest.approx(together.cost.cores)


@every_planner
def test_without_any_resources_nothing_is_admitted(planner: str) -> None:
    report = planned(planner, usual(planner, "next to no cores"))
    assert report.status is PlanningStatus.INFEASIBLE
    assert not report.deployment.admitted
    assert not report.deployment.operators
    assert "cores" in report.deployment.refused[0].reason


@every_planner
def test_a_bound_is_not_above_the_cost(planner: str) -> None:
    for name in filter(lambda name: can_plan(planner, name), UNLIMITED):
        report = planned(planner, name)
        assert report.bound is None or report.bound <= report.deployment.cost.cores * (1 + 1e-9)


@every_planner
def test_a_deadline_in_the_past_ends_planning(planner: str) -> None:
    report = driver.plan(workload(usual(planner)), planner, deadline_s=0)
    assert report.status is PlanningStatus.DEADLINE
    assert all("deadline" in query.reason for query in report.deployment.refused)


@every_planner
def test_an_empty_workload_is_planned(planner: str) -> None:
    report = driver.plan(
        language.load_text(STREAMS.replace(", site = 'here'", "").replace(", site = 'there'", "")), planner
    )
    assert report.deployment.operators == ()


@every_planner
def test_a_planner_touches_nothing_outside(planner: str) -> None:
    name = usual(planner, "two sites without links")
    planned(planner, name)  # so that everything is imported
    with forbidden_input_and_output():
        driver.plan(workload(name), planner)


def test_planner_modules_import_no_input_or_output() -> None:
    pure = {
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "math",
        "random",
        "numpy",
        "types",
    }
    allowed = {"__future__", "plait", "typing", *pure}
    for file in Path(planners.__path__[0]).rglob("*.py"):
        if file.name == "driver.py":
            continue  # the driver measures time; planners do not
        for module in imported_modules(file):
            assert module.split(".")[0] in allowed, f"{file.name} imports {module}"
            assert not module.startswith(("plait.engines", "plait.spark", "plait.cli", "plait.language")), (
                file.name
            )


@every_planner
def test_what_a_planner_cannot_plan_is_refused_by_name(planner: str) -> None:
    report = planned(planner, usual(planner))
    if PlannerFeature.REPLANNING in PLANNERS[planner].features:
        pytest.skip("plans on top of a running deployment")
    with pytest.raises(UnsupportedError, match=f"`{planner}` cannot plan"):
        driver.plan(workload(usual(planner)), planner, current=report.deployment)


def test_every_optimizer_of_windows_is_a_planner() -> None:
    assert [*NAMES] == [*OPTIMIZERS]
    assert {*NAMES} <= PLANNERS.keys()


@pytest.mark.parametrize("planner", OPTIMIZERS)
def test_a_planner_of_windows_refuses_what_is_not_one(planner: str) -> None:
    with pytest.raises(UnsupportedError, match=f"`{planner}` cannot plan .*query `"):
        planned(planner, "one implicit site")


def test_comparing_takes_all_planners_that_can() -> None:
    def names(name: str) -> list[str]:
        return [report.planner for report in driver.compare(workload(name))]

    assert names("one implicit site") == ["plait", "independent"]
    assert names(f"{OF_WINDOWS}two sites without links") == [*PLANNERS]


@contextmanager
def forbidden_input_and_output() -> Iterator[None]:
    """Any file, socket or process that is opened meanwhile fails the test."""
    _audit.armed = True
    try:
        yield
    finally:
        _audit.armed = False


class _Audit:
    armed = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.armed and (event == "open" or event.startswith(("os.", "socket.", "subprocess."))):
            self.armed = False
            raise AssertionError(f"{event}{arguments} while planning")


_audit = _Audit()
sys.addaudithook(_audit)  # hooks cannot be removed: it stays, disarmed


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
