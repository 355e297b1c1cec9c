"""Admission in the order of declaration: each query is planned on top of those before it.

A query is admitted if one of its alternatives fits into what sites and links have left, and is refused as
a whole otherwise, with the resource that lacks and by how much. It takes what it adds: operators that are
there, and what it has in common with a family of queries (`deployment.charging`), are charged already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from plait.cost.network import Network
from plait.deployment.assembly import Assembly, Draft, UnreachableError
from plait.deployment.charging import Charges, Member
from plait.deployment.deployment import DeployedQuery, sink_of
from plait.plan.nodes import Join, walk_plan
from plait.plan.signature import signature
from plait.planners.assembling import Placement, QueryAssembler, Reuse
from plait.planners.base import PlanningContext, PlanningResult, PlanningStatus
from plait.planners.join_order import Order, longest_existing, smallest_first
from plait.workload import Query, Workload


class TreePlace(NamedTuple):
    """The tree of windows that a query is in, by the name of its part, and the site where that is."""

    part: str
    site: str


NO_FAMILIES: Mapping[str, Member] = MappingProxyType({})
NO_REFUSALS: Mapping[str, str] = MappingProxyType({})
NO_PLACES: Mapping[str, TreePlace] = MappingProxyType({})


@dataclass(frozen=True)
class Alternative:
    """A complete way to answer one query."""

    draft: Draft
    stream: str


def plan_one_by_one(
    workload: Workload,
    context: PlanningContext,
    *,
    share: bool,
    families: Mapping[str, Member] = NO_FAMILIES,
    refused: Mapping[str, str] = NO_REFUSALS,
    places: Mapping[str, TreePlace] = NO_PLACES,
) -> PlanningResult:
    """`families` are those of queries, by name, that are charged as such; `refused` says why queries, by
    name, are out of the question; `places` are where some are computed: they share what is of their tree."""
    planning = _Planning(context, share, families, places)
    queries: list[DeployedQuery] = []
    in_time = True
    for done, query in enumerate(workload.queries.values()):
        in_time = in_time and context.remaining_s() > 0
        if query.name in refused:
            queries.append(_refused(query, refused[query.name]))
        elif in_time:
            queries.append(planning.add(query))
        else:
            queries.append(_refused(query, "the deadline passed before its turn"))
        context.observer.planned(done + 1, len(workload.queries))
    status = PlanningStatus.FEASIBLE
    if not in_time:
        status = PlanningStatus.DEADLINE
    elif queries and not any(query.admitted for query in queries):
        status = PlanningStatus.INFEASIBLE
    return PlanningResult(planning.assembly.deployment(queries), status)


class _Planning:
    def __init__(
        self,
        context: PlanningContext,
        share: bool,
        families: Mapping[str, Member],
        places: Mapping[str, TreePlace],
    ) -> None:
        charges = Charges(context.cost.unit_costs, families)
        self.assembly = Assembly(Network(context.catalog), context.cost, charges)
        self._context = context
        self._share = share
        self._places = places
        self._orders: dict[Join, Order] = {}

    def add(self, query: Query) -> DeployedQuery:
        """Admit the query if it fits."""
        reason = ""
        for alternative in self._alternatives(query):
            if isinstance(alternative, UnreachableError):
                reason = reason or str(alternative)
                continue
            overload = alternative.draft.overload()
            if overload is None:
                return self._admitted(query, alternative)
            reason = reason or str(overload)
        return _refused(query, reason)

    def _admitted(self, query: Query, chosen: Alternative) -> DeployedQuery:
        chosen.draft.commit()
        site = chosen.draft.origin(chosen.stream) if query.site is None else self._site(query)
        return DeployedQuery(query.name, True, "", chosen.stream, site, query.columns, sink_of(query))

    def _site(self, query: Query) -> str | None:
        return None if query.site is None else self.assembly.network.name_of(query.site)

    def _alternatives(self, query: Query) -> Iterator[Alternative | UnreachableError]:
        """The best first, as far as that is known without asking what fits."""
        if query.name in self._places:
            yield self._try(query, Placement.AT_SITE)
            return
        plain = self._try(query, Placement.NEAR_INPUTS)
        if self._share and isinstance(plain, Alternative) and self._has_choice(query):
            reusing = self._try(query, Placement.NEAR_INPUTS, Reuse.ANYWHERE)
            if isinstance(reusing, Alternative) and _is_better(reusing, plain):
                yield reusing
        yield plain
        if len(self.assembly.network.sites) > 1:
            yield self._try(query, Placement.AT_SITE)

    def _has_choice(self, query: Query) -> bool:
        """Whether reuse can mean more than taking what is in place: other sites, or other orders of joins."""
        return len(self.assembly.network.sites) > 1 or any(
            isinstance(node, Join) and len(node.inputs) > 2 for node in walk_plan(query.plan)
        )

    def _try(
        self, query: Query, placement: Placement, reuse: Reuse = Reuse.IN_PLACE
    ) -> Alternative | UnreachableError:
        place = self._places.get(query.name)
        assembler = QueryAssembler(
            self._context.catalog,
            self.assembly,
            self._context.space,
            scope=("" if self._share else query.name) if place is None else place.part,
            source_scope="" if self._share else None,
            wanted_at=self._site(query),
            at=None if place is None else place.site,
            placement=placement,
            reuse=reuse,
            join_orders=self._own_order if reuse is Reuse.IN_PLACE else self._reusing_order,
        )
        try:
            stream = assembler.assemble(query.plan)
        except UnreachableError as unreachable:
            return unreachable
        assembler.draft.charge_for(query.name, stream)
        return Alternative(assembler.draft, stream)

    def _reusing_order(self, join: Join, draft: Draft) -> Order:
        """Around the largest sub-join that exists."""
        existing = longest_existing(join, lambda members: self._exists(join, members, draft))
        return (
            smallest_first(join, self._context.cost, existing) if existing else self._own_order(join, draft)
        )

    def _exists(self, join: Join, members: Order, draft: Draft) -> bool:
        inputs = frozenset(signature(join.inputs[member]) for member in members)
        return draft.is_joined(inputs) and bool(
            draft.made(signature(self._context.space.subjoin(join, members)))
        )

    def _own_order(self, join: Join, _: Draft) -> Order:
        order = self._orders.get(join)
        if order is None:
            order = self._orders[join] = smallest_first(join, self._context.cost)
        return order


def _is_better(alternative: Alternative, other: Alternative) -> bool:
    """Cheaper in cores and dearer in nothing: never a trade of one for the other."""
    ours, theirs = alternative.draft, other.draft
    return (
        ours.cores < theirs.cores
        and ours.network_bytes_per_s <= theirs.network_bytes_per_s
        and ours.state_bytes <= theirs.state_bytes
    )


def _refused(query: Query, reason: str) -> DeployedQuery:
    return DeployedQuery(query.name, False, reason, None, query.site, query.columns, sink_of(query))
