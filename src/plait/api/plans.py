"""Plans, by one planner or by several side by side: as text, documents and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from plait.api.html import html_table, html_text
from plait.deployment.report import report_text
from plait.picture.deployed import diagram_of
from plait.picture.dot import to_dot
from plait.picture.part import part_of
from plait.picture.svg import to_svg
from plait.planners.base import PlanningStatus
from plait.planners.driver import PlanReport
from plait.quantity_text import bytes_per_s_text, number_text
from plait.table_text import table_text


class Plan:
    """What runs where, for all queries together."""

    def __init__(self, report: PlanReport) -> None:
        self.report = report
        self.deployment = report.deployment

    @property
    def is_feasible(self) -> bool:
        """Whether the machines can carry at least one of the queries."""
        return self.report.status is not PlanningStatus.INFEASIBLE

    def to_text(self, *, full: bool = False, width: int | None = None) -> str:
        return report_text(self.deployment, self.report.planner, full=full, width=width)

    def to_json(self) -> dict[str, Any]:
        """The plan document (docs/plan_document.md)."""
        return self.report.to_json()

    def to_dot(self) -> str:
        return to_dot(diagram_of(self.deployment, self.report.planner))

    def to_svg(self) -> str:
        return to_svg(diagram_of(self.deployment, self.report.planner))

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_svg()


class Explanation(str):
    """How queries run, in words; in a notebook with a picture of their part of the plan."""

    _plan: Plan
    _queries: frozenset[str]

    def __new__(cls, text: str, plan: Plan, queries: Iterable[str]) -> Explanation:
        made = super().__new__(cls, text)
        made._plan, made._queries = plan, frozenset(queries)
        return made

    def to_svg(self) -> str:
        whole = diagram_of(self._plan.deployment, self._plan.report.planner)
        return to_svg(part_of(whole, self._queries))

    def _repr_html_(self) -> str:
        return self.to_svg() + html_text(self)


class Comparison(Sequence[Plan]):
    """Plans of the same queries by several planners, with their costs side by side."""

    COLUMNS = ("planner", "status", "admitted", "operators", "cores", "network", "state", "seconds")

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = tuple(plans)

    @overload
    def __getitem__(self, index: int) -> Plan: ...
    @overload
    def __getitem__(self, index: slice) -> Comparison: ...
    def __getitem__(self, index: int | slice) -> Plan | Comparison:
        return Comparison(self.plans[index]) if isinstance(index, slice) else self.plans[index]

    def __len__(self) -> int:
        return len(self.plans)

    def to_text(self, width: int | None = None) -> str:
        numeric = range(3, len(self.COLUMNS))
        return table_text(self.COLUMNS, self._cells(), numeric=numeric, width=width)

    def to_json(self) -> dict[str, Any]:
        return {"plans": [plan.to_json() for plan in self.plans]}

    def _cells(self) -> list[list[str]]:
        return [
            [
                plan.report.planner,
                plan.report.status.value,
                f"{len(plan.deployment.admitted):,} of {len(plan.deployment.queries):,}",
                f"{len(plan.deployment.operators):,}",
                number_text(plan.deployment.cost.cores),
                bytes_per_s_text(plan.deployment.cost.network_bytes_per_s),
                f"{number_text(plan.deployment.cost.state_rows)} rows",
                f"{plan.report.seconds:.2f}",
            ]
            for plan in self.plans
        ]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return html_table(self.COLUMNS, self._cells())
