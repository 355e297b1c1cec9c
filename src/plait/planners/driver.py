"""Runs planners, and trusts none of them.

The driver alone brings queries into canonical form, checks that a planner can plan what the workload
contains, measures time, verifies the deployment's invariants, compares every estimate, limit and unit cost
in it with the workload and the cost model, and computes all costs again from the document. What a planner
gets wrong, an exception included, ends in an `InternalError` that names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic, perf_counter
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from plait.cost.model import CostModel
from plait.cost.network import Network
from plait.cost.recost import RELATIVE_TOLERANCE, disagreements, overloads
from plait.cost.units import UNCALIBRATED, UnitCosts
from plait.deployment.deployment import Deployment
from plait.deployment.document import VERSION, deployment_from_json, deployment_to_json, tables_to_json
from plait.deployment.invariants import violations
from plait.deployment.statements import false_statements
from plait.errors import ErrorReport, InternalError, PlaitError, UnsupportedError, UserError, closest
from plait.notices import Notice
from plait.plan.nodes import (
    Aggregate,
    Flowing,
    Join,
    Node,
    OuterJoin,
    RowTicking,
    RowWindow,
    TableScan,
    Ticking,
    Top,
    Union,
    Window,
    Windowed,
    walk_plan,
)
from plait.planners import DEFAULT_PLANNER, PLANNERS
from plait.planners.base import (
    NoObserver,
    Observer,
    Planner,
    PlannerFeature,
    PlanningContext,
    PlanningResult,
    PlanningStatus,
    no_deadline,
)
from plait.rewrite import Merger, canonicalise
from plait.statistics import Statistics, declared, notices_of
from plait.workload import Workload

FAULTS_SHOWN = 10
REPORT_IT = "this is a bug in Plait: please report it with the queries"


@dataclass(frozen=True)
class PlanReport:
    """A verified deployment, who planned it, and how that went."""

    planner: str
    status: PlanningStatus
    bound: float | None
    seconds: float
    deployment: Deployment
    notices: tuple[Notice, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan document (docs/plan_document.md)."""
        return {
            "version": VERSION,
            "planner": self.planner,
            "status": self.status.value,
            "bound": self.bound,
            "seconds": self.seconds,
            "notices": [notice.to_json() for notice in self.notices],
            **deployment_to_json(self.deployment),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> PlanReport:
        deployment = deployment_from_json(document)
        return cls(
            document["planner"],
            PlanningStatus(document["status"]),
            document["bound"],
            document["seconds"],
            deployment,
            tuple(Notice(**notice) for notice in document["notices"]),
        )


class Options(TypedDict, total=False):
    """What planning may be told; `statistics` is what is known beyond the declarations."""

    statistics: Statistics | None
    unit_costs: UnitCosts
    current: Deployment | None
    deadline_s: float | None
    seed: int
    observer: Observer


def plan(workload: Workload, planner: str = DEFAULT_PLANNER, **options: Unpack[Options]) -> PlanReport:
    """Plan a workload as it was bound."""
    return compare(workload, [planner], **options)[0]


def compare(
    workload: Workload, planners: Sequence[str] | None = None, **options: Unpack[Options]
) -> list[PlanReport]:
    """Plan one workload with several planners, all that can unless named, under the same statistics and
    costs."""
    canonical = canonical_workload(workload)
    if planners is None:
        planners = _able(_needed(canonical, options.get("current")))
    chosen = [find_planner(name) for name in planners]
    known = declared(workload.catalog)
    statistics = options.get("statistics")
    if statistics is not None:
        known = known.with_(statistics)
    reports = []
    for planner in chosen:
        # A context of its own for each: estimates that another has computed would make this one look faster.
        context = PlanningContext(
            workload.catalog,
            known,
            CostModel(workload.catalog, known, options.get("unit_costs", UNCALIBRATED)),
            options.get("current"),
            seed=options.get("seed", 0),
            observer=options.get("observer", NoObserver()),
        )
        report = run(planner, canonical, context, options.get("deadline_s"))
        reports.append(replace(report, notices=(*known.notices, *report.notices)))
    return reports


def find_planner(name: str) -> Planner:
    if name not in PLANNERS:
        raise UserError("unknown-planner", f"there is no planner `{name}`", hint=closest(name, PLANNERS))
    return PLANNERS[name]


def canonical_workload(workload: Workload) -> Workload:
    """The same queries with canonical plans, in which equal sub-plans are one object."""
    merger = Merger()
    queries = {
        key: replace(query, plan=canonicalise(query.plan, merger)) for key, query in workload.queries.items()
    }
    return replace(workload, queries=MappingProxyType(queries))


def run(
    planner: Planner, workload: Workload, context: PlanningContext, deadline_s: float | None = None
) -> PlanReport:
    """One planner on a canonical workload, measured and verified."""
    _check_features(planner, workload, context)
    started = perf_counter()
    end = monotonic() + deadline_s if deadline_s is not None else None
    remaining_s = no_deadline if end is None else (lambda: end - monotonic())
    with _blamed(planner):
        result = planner.plan(workload, replace(context, remaining_s=remaining_s))
        seconds = perf_counter() - started
        wrong = list(islice(_faults(workload, context, result), FAULTS_SHOWN))
    if wrong:
        raise InternalError(
            "planner",
            f"the planner `{planner.name}` made a deployment that does not hold",
            detail="\n".join(wrong),
            hint=REPORT_IT,
        )
    assumptions = (
        assumption
        for query in workload.queries.values()
        for assumption in context.cost.size(query.plan).assumptions
    )
    return PlanReport(
        planner.name,
        result.status,
        result.bound,
        seconds,
        result.deployment,
        (*result.notices, *notices_of(assumptions)),
    )


def _check_features(planner: Planner, workload: Workload, context: PlanningContext) -> None:
    needed = _needed(workload, context.current)
    for feature, where in needed.items():
        if feature not in planner.features:
            able = _able(needed)
            raise UnsupportedError(
                "planner-feature",
                f"the planner `{planner.name}` cannot plan {feature} ({where})",
                hint=f"use {' or '.join(f'`{name}`' for name in able)}" if able else "",
            )


def _needed(workload: Workload, current: Deployment | None) -> dict[PlannerFeature, str]:
    """What a planner has to know, and where that is."""
    needed: dict[PlannerFeature, str] = {}
    for query in workload.queries.values():
        for feature in _features_of(query.plan):
            needed.setdefault(feature, f"query `{query.name}`")
    if len(workload.catalog.sites) > 1:
        needed[PlannerFeature.SEVERAL_SITES] = "the catalog"
    if current is not None:
        needed[PlannerFeature.REPLANNING] = "the current deployment"
    return needed


def _able(needed: Collection[PlannerFeature]) -> list[str]:
    return [name for name, planner in PLANNERS.items() if planner.features.issuperset(needed)]


def _features_of(plan_: Node) -> Iterator[PlannerFeature]:
    for node in walk_plan(plan_):
        match node:
            case TableScan():
                yield PlannerFeature.TABLES
            case OuterJoin():
                yield PlannerFeature.OUTER_JOINS
            case Join() if isinstance(node.timing, Windowed):
                yield PlannerFeature.WINDOW_JOINS
            case Join() if isinstance(node.timing, Ticking | RowTicking):
                yield PlannerFeature.TICK_JOINS
            case Aggregate():
                yield PlannerFeature.AGGREGATES
            case Top():
                yield PlannerFeature.TOP
            case Union():
                yield PlannerFeature.UNIONS
            case Window(input_, window):
                if isinstance(window, RowWindow):
                    yield PlannerFeature.ROW_WINDOWS
                if not isinstance(input_.timing, Flowing):
                    yield PlannerFeature.NESTED_WINDOWS
            case _:
                pass


@contextmanager
def _blamed(planner: Planner) -> Iterator[None]:
    """Errors name the planner. Whatever else a planner raises, or what it returns makes the checks raise, is
    a bug of that planner: this is the boundary where no kind of exception can be ruled out."""
    try:
        yield
    except PlaitError as error:
        raise _named(error, planner) from error
    except Exception as error:
        raise InternalError(
            "planner",
            f"the planner `{planner.name}` failed",
            detail=f"{type(error).__name__}: {error}",
            hint=REPORT_IT,
        ) from error


def _named(error: PlaitError, planner: Planner) -> PlaitError:
    if isinstance(error, ErrorReport):
        return ErrorReport([_named(each, planner) for each in error.errors])
    detail = "\n".join(filter(None, (error.detail, f"planner: {planner.name}")))
    return type(error)(error.code, error.message, detail=detail, hint=error.hint, span=error.span)


def _faults(workload: Workload, context: PlanningContext, result: PlanningResult) -> Iterator[str]:
    """What is wrong with a result. Each check relies on those before it: the first to fail speaks alone."""
    deployment = result.deployment
    network = Network(workload.catalog)
    found = list(violations(deployment, workload, network, context.space))
    found = found or list(false_statements(deployment, workload.catalog, network, context.cost))
    if not found:
        document = tables_to_json(deployment)
        found = [*disagreements(document), *overloads(document)]
    yield from found or _false_status(result)


def _false_status(result: PlanningResult) -> Iterator[str]:
    cores = result.deployment.cost.cores
    if result.status is PlanningStatus.INFEASIBLE and result.deployment.admitted:
        yield "the status is infeasible, but queries are admitted"
    if result.bound is not None and not result.bound <= cores * (1 + RELATIVE_TOLERANCE):
        yield f"the bound {result.bound:g} is above the {cores:g} cores of the deployment"
