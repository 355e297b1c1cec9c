"""What a planner is: one protocol, what it is given, and what it gives back.

A planner is a pure function from a workload and a context to a result: it reads no clock but the deadline
it is given, uses no randomness but the seed, and does no I/O. The queries it gets are canonical. It need
not check or measure anything about its result: the driver does, and trusts no number that a planner
computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from plait.catalog import Catalog
from plait.cost.model import CostModel
from plait.deployment.deployment import Deployment
from plait.notices import Notice
from plait.space import Space
from plait.statistics import StatisticsOracle
from plait.workload import Workload


class PlannerFeature(StrEnum):
    """What a workload may contain. A planner names what it can plan; a value completes "cannot plan …"."""

    WINDOW_JOINS = "joins of windowed streams"
    OUTER_JOINS = "outer joins"
    TICK_JOINS = "joins of windows at ticks"
    TABLES = "stored tables"
    AGGREGATES = "window aggregates"
    ROW_WINDOWS = "row windows"
    TOP = "ORDER BY … LIMIT"
    UNIONS = "UNION ALL"
    NESTED_WINDOWS = "windows over derived streams"
    SEVERAL_SITES = "several sites"
    REPLANNING = "a deployment that already runs"


ALL_FEATURES = frozenset(PlannerFeature)


class PlanningStatus(StrEnum):
    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    DEADLINE = "deadline"  # the deadline passed first; what was found until then
    INFEASIBLE = "infeasible"  # no query can be admitted


class Observer(Protocol):
    """Is told how far planning has come."""

    def planned(self, done: int, total: int) -> None: ...


class NoObserver:
    def planned(self, done: int, total: int) -> None:
        pass


def no_deadline() -> float:
    return float("inf")


@dataclass(frozen=True)
class PlanningContext:
    """All that a planner may look at. `remaining_s` is the one clock it has: the time until the deadline."""

    catalog: Catalog
    statistics: StatisticsOracle
    cost: CostModel
    current: Deployment | None = None
    remaining_s: Callable[[], float] = no_deadline
    seed: int = 0
    observer: Observer = field(default_factory=NoObserver)
    space: Space = field(default_factory=Space)


@dataclass(frozen=True)
class PlanningResult:
    """`bound` is a lower bound of the deployment's `cost.cores`, if the planner knows one."""

    deployment: Deployment
    status: PlanningStatus
    bound: float | None = None
    notices: tuple[Notice, ...] = ()


class Planner(Protocol):
    """Every planner has one name everywhere, and says what it can plan, and whether queries then run
    together."""

    @property
    def name(self) -> str: ...

    shares: ClassVar[bool]
    features: ClassVar[frozenset[PlannerFeature]]

    def plan(self, workload: Workload, context: PlanningContext) -> PlanningResult: ...
