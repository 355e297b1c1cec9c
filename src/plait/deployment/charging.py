"""The cores that queries take of sites.

An operator is charged once, however many queries need it. What families of queries are computed as one by
(`deployment.weaving`) is charged in place of the operators that it stands for. An operator is **carried** if
it is no scan and all queries that need it are in families at its site. A family is charged

    min(its cores in the database, Σ cores of the operators that it carries)
    its cores on Spark + those for reading its sources once more, if Spark computes it

where an operator that several families need is carried by that of the first query.

In the database the lesser, since a family's cores are an estimate of their own: few queries that want hardly
any rows may be cheaper one by one, and are not dearer together. So no query is charged more than its
operators there. Spark is chosen to save time, and takes what it takes.

`Charges` says it of queries that come one after the other, as if the database computed all families;
`charged` of a deployment as it is. Both are the same arithmetic; `cost.recost` is another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from plait.cost.sharing import JoinWork, reading_cores
from plait.cost.units import DUCKDB, UnitCosts
from plait.deployment.deployment import Deployment, Operator
from plait.deployment.family_sizes import NO_WORK, FamilyKind, FamilySize, kind_of, work_alone
from plait.quantity_text import counted
from plait.sharing.demands import Demand, OneJoin
from plait.space import OperatorKind

ROUNDING = 1e-9  # sums of many floating-point numbers are not exact


class Family(NamedTuple):
    """Which family a query is in."""

    kind: FamilyKind
    number: int


class Member(NamedTuple):
    """A query of a family; `demand` is what it wants of a join."""

    family: Family
    demand: Demand | None = None


class _Place(NamedTuple):
    family: Family
    site: str


@dataclass(frozen=True)
class _Together:
    """A family at a site: so many queries, and what the operators take that it carries."""

    size: FamilySize
    queries: int = 0
    apart_cores: float = 0.0

    def with_query(
        self, needed: Sequence[Operator], carried: Iterable[Operator], work: JoinWork
    ) -> _Together:
        """With a query that needs these operators, some of which were not carried before."""
        own, sources = self.size.kind.own(needed), sources_among(needed)
        apart_cores = self.apart_cores + sum(each.cores for each in carried)
        return _Together(self.size.with_operators(own, sources, work), self.queries + 1, apart_cores)

    def cores(self, unit_costs: UnitCosts) -> float:
        return min(self.size.cores(unit_costs)[DUCKDB], self.apart_cores)


@dataclass(frozen=True)
class Charge:
    """What one query more takes: `cores` by site. `alone` are operators, by their ids, that it is the first
    to be charged for; `carried` those that the family at `place` is to carry from now on, and `demand` what
    is wanted of a join there; `families` is what becomes of all that it concerns."""

    cores: Mapping[str, float]
    alone: Sequence[str] = ()
    carried: Sequence[str] = ()
    place: _Place | None = None
    demand: Demand | None = None
    families: Mapping[_Place, _Together] = field(default_factory=dict)

    @property
    def company(self) -> str:
        """With whom the query is charged, if with anybody."""
        others = 0 if self.place is None else self.families[self.place].queries - 1
        if self.place is None or not others:
            return ""
        return f"as part of the {self.place.family.kind} of {counted(others, 'other')}"


class Charges:
    """What all queries so far take of each site, given the families that queries are in."""

    def __init__(self, unit_costs: UnitCosts, members: Mapping[str, Member]) -> None:
        self.cores: defaultdict[str, float] = defaultdict(float)
        self._unit_costs = unit_costs
        self._members = members
        self._joins: dict[_Place, OneJoin] = {}
        self._alone: set[str] = set()
        self._carrier: dict[str, _Place] = {}
        self._families: dict[_Place, _Together] = {}

    def of(self, query: str, needed: Sequence[Operator]) -> Charge:
        """What a query takes in addition, which needs these operators, the last first."""
        place = self._place(query, needed)
        demand = None if place is None else self._members[query].demand
        uncharged = [each for each in needed if each.id not in self._alone]
        alone = [each for each in uncharged if not _can_carry(place, each)]
        carried = [each for each in uncharged if _can_carry(place, each) and each.id not in self._carrier]
        cores: defaultdict[str, float] = defaultdict(float)
        families: dict[_Place, _Together] = {}
        for each in alone:
            cores[each.site] += each.cores
            if (other := self._carrier.get(each.id)) is not None:
                before = families.get(other) or self._families[other]
                families[other] = replace(before, apart_cores=before.apart_cores - each.cores)
        if place is not None:
            before = (
                families.get(place) or self._families.get(place) or _Together(FamilySize(place.family.kind))
            )
            families[place] = before.with_query(needed, carried, self._work(place, demand))
        for at, together in families.items():
            before_cores = self._families[at].cores(self._unit_costs) if at in self._families else 0.0
            cores[at.site] += together.cores(self._unit_costs) - before_cores
        return Charge(cores, _ids(alone), _ids(carried), place, demand, families)

    def add(self, charge: Charge) -> None:
        """The query of the charge is admitted."""
        for site, cores in charge.cores.items():
            self.cores[site] += cores
        self._alone.update(charge.alone)
        for id_ in charge.alone:
            self._carrier.pop(id_, None)
        if charge.place is not None:
            self._carrier.update(dict.fromkeys(charge.carried, charge.place))
            if charge.demand is not None:
                self._joins.setdefault(charge.place, OneJoin(charge.demand.streams)).add(charge.demand)
        self._families.update(charge.families)

    def _place(self, query: str, needed: Sequence[Operator]) -> _Place | None:
        if query not in self._members:
            return None
        family = self._members[query].family
        return _Place(family, family.kind.own(needed)[0].site)

    def _work(self, place: _Place, demand: Demand | None) -> JoinWork:
        """What the join of a family does with one query more."""
        if demand is None:
            return NO_WORK
        join = OneJoin(demand.streams, over=self._joins.get(place))
        join.add(demand)
        return join.work


def charged(deployment: Deployment, carried: Collection[str]) -> Deployment:
    """The deployment with what it takes of its sites, and what it costs, as its families are charged, which
    carry these operators."""
    parts = [(each.site, each.cores) for each in deployment.operators if each.id not in carried]
    parts += [(each.site, each.cores_used) for each in deployment.shared]
    used: defaultdict[str, float] = defaultdict(float)
    for site, cores in parts:
        used[site] += cores
    return replace(
        deployment,
        sites=tuple(replace(site, cores_used=used[site.name]) for site in deployment.sites),
        cost=replace(
            deployment.cost,
            cores=sum(used.values()),
            bottleneck_cores=max((cores for _, cores in parts), default=0.0),
        ),
    )


def carriers(needed: Mapping[str, Sequence[Operator]], sites: Mapping[str, str]) -> dict[str, str]:
    """For operators that families carry, by their ids, the first query that needs them, given the operators
    that queries need, and the sites where they are part of a family."""
    found: dict[str, str] = {}
    alone: set[str] = set()
    for query, operators in needed.items():
        for operator in operators:
            if operator.kind is OperatorKind.SCAN or sites.get(query) != operator.site:
                alone.add(operator.id)
            found.setdefault(operator.id, query)
    return {id_: query for id_, query in found.items() if id_ not in alone}


def charged_alone(deployment: Deployment) -> dict[str, float]:
    """What each admitted query would take by itself, computed as it is now: its operators, or a family of its
    own."""
    needed = {query.name: deployment.operators_of(query) for query in deployment.admitted}
    family_of = {query: each for each in deployment.shared for query in each.queries}
    carried = carriers(needed, {query: each.site for query, each in family_of.items()})
    alone = {}
    for query, operators in needed.items():
        apart = sum(each.cores for each in operators if each.id in carried)
        alone[query] = sum(each.cores for each in operators if each.id not in carried)
        if (family := family_of.get(query)) is not None:
            kind = kind_of(family)
            own = kind.own(operators)
            work = work_alone(own) if kind is FamilyKind.JOIN else NO_WORK
            size = FamilySize(kind).with_operators(own, sources_among(operators), work)
            reading = reading_cores(size.size.rate_rows_per_s, deployment.unit_costs)
            cores = size.cores(deployment.unit_costs)
            by_itself = replace(family, cores=cores, reading_cores=reading, apart_cores=apart)
            alone[query] += by_itself.cores_used
    return alone


def sources_among(operators: Iterable[Operator]) -> list[Operator]:
    return [each for each in operators if each.kind is OperatorKind.SCAN]


def _can_carry(place: _Place | None, operator: Operator) -> bool:
    return place is not None and operator.kind is not OperatorKind.SCAN and operator.site == place.site


def _ids(operators: Iterable[Operator]) -> tuple[str, ...]:
    return tuple(each.id for each in operators)
