"""What the queries of a deployment have in common beyond equal operators: trees of windows, joins that differ
in constants and ranges, and selections of rows. Each is computed once; of joins, those are that cost less as
one (`sharing.parts`). Trees and joins are computed by the engine with which all queries that are connected by
streams take the shortest time (`cost.sharing`), of those that can, unless the sites have not the cores for
it; selections by the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import fsum
from typing import Protocol, TypeAlias, TypeVar

from plait.catalog import Catalog
from plait.cost.model import CostModel
from plait.cost.recost import RELATIVE_TOLERANCE
from plait.cost.sharing import Family, Group, JoinWork, for_spark, reading_cores
from plait.cost.units import DUCKDB, SPARK
from plait.deployment import charging
from plait.deployment.charging import carriers, charged, sources_among
from plait.deployment.deployment import (
    DeployedQuery,
    Deployment,
    Operator,
    Shared,
    SharedJoin,
    SharedSelection,
    StreamKind,
    Tree,
)
from plait.deployment.family_sizes import NO_WORK, FamilyKind, FamilySize, window_of
from plait.deployment.native_lowering import is_in_milliseconds, is_native
from plait.expressions.types import TIMESTAMP
from plait.plan.nodes import Field, Node, StreamScan, scans_of, sources_of
from plait.sharing.demands import demands, work_of
from plait.sharing.families import NO_PARTS, Families, families
from plait.sharing.joins import WovenJoin
from plait.sharing.parts import part_name, parted
from plait.sharing.patterns import Selection, selection_of
from plait.sharing.trees import WovenAggregate

# Each partial goes to all windows that hold it. A window that holds more of them is left to the database.
MAX_TICKS_A_PIECE = 10_000

# The operators that queries need, by the query's name.
_Needed: TypeAlias = Mapping[str, Sequence[Operator]]
_Shared = TypeVar("_Shared", bound=Shared)


class _Woven(Protocol):
    @property
    def query(self) -> str: ...


def woven(
    deployment: Deployment, catalog: Catalog, cost: CostModel, parts: Mapping[str, str] = NO_PARTS
) -> Deployment:
    """The deployment with its trees, shared joins and selections, and charged for them. `parts` are those of
    window aggregates that are in several trees, by query."""
    plans = {query.name: plan_of(deployment, query) for query in deployment.admitted}
    needed = {query.name: deployment.operators_of(query) for query in deployment.admitted}
    found = _found(plans, catalog, cost, parts)
    gathered = {kind: [*_at_sites(kind, members, needed)] for kind, members in _by_kind(found).items()}
    sites = {query: site for each in gathered.values() for site, queries in each for query in queries}
    carried = carriers(needed, sites)
    family = _Making(deployment, carried, found.joins, parts, cost)
    trees = [family.tree(*each) for each in gathered[FamilyKind.TREE]]
    joins = [family.join(*each) for each in gathered[FamilyKind.JOIN]]
    selections = [family.selection(*each) for each in gathered[FamilyKind.SELECTION]]
    able = {
        each.query
        for family in found.aggregates
        if all(map(can_weave_window, family)) and _are_one_on_spark([(each.selection,) for each in family])
        for each in family
    }
    able |= {
        each.query
        for family in found.joins
        if can_weave_join(family[0], plans[family[0].query])
        and _are_one_on_spark([each.selections for each in family])
        for each in family
    }
    in_database = charged(
        replace(deployment, trees=tuple(trees), joins=tuple(joins), selections=tuple(selections)), carried
    )
    chosen = _queries_for_spark(deployment, [*trees, *joins], plans, able)
    on_engines = charged(
        replace(in_database, trees=_on_engines(trees, chosen), joins=_on_engines(joins, chosen)), carried
    )
    return on_engines if has_cores(on_engines) else in_database


def has_cores(deployment: Deployment) -> bool:
    """Whether no site lacks cores for what is computed there."""
    return all(
        site.cores is None or site.cores_used <= site.cores * (1 + RELATIVE_TOLERANCE)
        for site in deployment.sites
    )


def family_members(
    plans: Mapping[str, Node], catalog: Catalog, cost: CostModel
) -> dict[str, charging.Member]:
    """Which family each query is in, of those that are in one, by name."""
    found = _found(plans, catalog, cost)
    wanted = {each.query: each for join in found.joins for each in demands(join, cost)}
    return {
        member.query: charging.Member(charging.Family(kind, number), wanted.get(member.query))
        for kind, of_kind in _by_kind(found).items()
        for number, family in enumerate(of_kind)
        for member in family
    }


def _found(
    plans: Mapping[str, Node], catalog: Catalog, cost: CostModel, parts: Mapping[str, str] = NO_PARTS
) -> Families:
    """The families of queries, with joins in parts that are worth it in the database."""
    found = families(plans.items(), whole_scans(plans.values(), catalog), parts=parts)
    found.joins = [part for alike in found.joins for part in parted(alike, cost).values()]
    return found


def _by_kind(found: Families) -> dict[FamilyKind, Sequence[Sequence[_Woven]]]:
    return {
        FamilyKind.TREE: found.aggregates,
        FamilyKind.JOIN: found.joins,
        FamilyKind.SELECTION: found.selects,
    }


def can_weave_window(member: WovenAggregate) -> bool:
    """Whether a tree that Spark computes can serve the query."""
    window = member.window
    return is_in_milliseconds(window) and window.range_us <= MAX_TICKS_A_PIECE * window.slide_us


def can_weave_join(join: WovenJoin, plan: Node) -> bool:
    """Whether Spark can compute the join, which it can for all of a family or for none.

    A stream that is joined with itself is left to each query: whom a late row concerns is not known.
    """
    scans = join.key.scans
    if len({scan.stream for scan in scans}) < len(scans):
        return False
    return is_native(plan)


def _are_one_on_spark(family: Sequence[tuple[Selection, ...]]) -> bool:
    """Whether queries that select like this are one family also where rows are not tagged."""
    patterns = {
        tuple(selection_of(each.terms, each.pattern.width, tagged=False).pattern for each in selections)
        for selections in family
    }
    return len(patterns) == 1


def plan_of(deployment: Deployment, query: DeployedQuery) -> Node:
    assert query.stream is not None, query.name
    return deployment.plans[deployment.stream_by_id[query.stream].signature]


def whole_scans(
    plans: Iterable[Node], catalog: Catalog, *, with_times: bool = False
) -> dict[str, StreamScan]:
    """The streams that plans read, by key, with all columns that any of them needs, as they are declared;
    with the event time if that is asked for, or is all there is."""
    wanted: dict[str, dict[str, Field]] = {}
    for plan in plans:
        for scan in scans_of(plan):
            wanted.setdefault(scan.stream, {}).update({field.name: field for field in scan.columns})
    for stream, fields in wanted.items():
        if with_times or not fields:
            event_time = catalog.stream(stream).event_time
            fields.setdefault(event_time, Field(event_time, TIMESTAMP))
    scans = {}
    for stream, fields in sorted(wanted.items()):
        declared = [column.name for column in catalog.stream(stream).columns]
        scans[stream.lower()] = StreamScan(stream, tuple(fields[name] for name in declared if name in fields))
    return scans


def connected(plans: Mapping[str, Node]) -> list[list[str]]:
    """Queries that read a stream in common, with those that read one in common with them, and so on."""
    groups: list[tuple[frozenset[str], list[str]]] = []
    for query, plan in plans.items():
        streams = _streams([plan])
        met = [group for group in groups if group[0] & streams]
        groups = [group for group in groups if not group[0] & streams]
        members = [member for _, others in met for member in others]
        groups.append((streams.union(*(read for read, _ in met)), [*members, query]))
    return [members for _, members in groups]


def _at_sites(
    kind: FamilyKind, families: Iterable[Sequence[_Woven]], needed: _Needed
) -> Iterator[tuple[str, _Needed]]:
    """Families, each at the sites where its queries have the last of what is one in it."""
    for family in families:
        found: dict[str, dict[str, Sequence[Operator]]] = {}
        for member in family:
            operators = needed[member.query]
            found.setdefault(kind.own(operators)[0].site, {})[member.query] = operators
        yield from found.items()


class _Making:
    """Makes trees, joins and selections of the operators that queries need at a site, some of which they
    carry. They are in the database, until an engine is chosen. `joins` are queries that share one."""

    def __init__(
        self,
        deployment: Deployment,
        carried: Mapping[str, str],
        joins: Sequence[Sequence[WovenJoin]],
        parts: Mapping[str, str],
        cost: CostModel,
    ) -> None:
        self._unit_costs = deployment.unit_costs
        self._carried = carried
        self._joining = {member.query: member for join in joins for member in join}
        self._parts = {
            **parts,
            **{member.query: part_name(join) for join in joins for member in join},
        }
        self._cost = cost

    def tree(self, site: str, needed: _Needed) -> Tree:
        size = _size(FamilyKind.TREE, needed)
        overlap = sum(map(_overlap, needed.values()))
        return Tree(
            *self._common(site, needed, size),
            part=self._parts.get(next(iter(needed)), ""),
            operations_per_s=size.size.rate_rows_per_s + size.size.edges_per_s * overlap,
            **asdict(size.size),
        )

    def join(self, site: str, needed: _Needed) -> SharedJoin:
        work = work_of(demands([self._joining[query] for query in needed], self._cost))
        size = _size(FamilyKind.JOIN, needed, work)
        return SharedJoin(
            *self._common(site, needed, size),
            part=self._parts[next(iter(needed))],
            input_rows_per_s=size.size.rate_rows_per_s,
            **asdict(work),
            output_rows_per_s=size.size.finals_per_s,
        )

    def selection(self, site: str, needed: _Needed) -> SharedSelection:
        size = _size(FamilyKind.SELECTION, needed)
        return SharedSelection(
            *self._common(site, needed, size), size.size.rate_rows_per_s, size.size.finals_per_s
        )

    def _common(
        self, site: str, needed: _Needed, size: FamilySize
    ) -> tuple[str, str, tuple[str, ...], tuple[str, ...], dict[str, float], float, float]:
        """What there is to say of any of them."""
        own = dict.fromkeys(each.id for operators in needed.values() for each in size.kind.own(operators))
        cores = {each.id: each.cores for operators in needed.values() for each in operators}
        return (
            site,
            DUCKDB,
            tuple(needed),
            tuple(own),
            size.cores(self._unit_costs),
            reading_cores(size.size.rate_rows_per_s, self._unit_costs),
            fsum(each for id_, each in cores.items() if self._carried.get(id_) in needed),
        )


def _overlap(operators: Sequence[Operator]) -> float:
    """In how many windows of a query a moment is."""
    (aggregate,) = FamilyKind.TREE.own(operators)
    window = window_of(aggregate)
    return window.range_us / window.slide_us


def _size(kind: FamilyKind, needed: _Needed, work: JoinWork = NO_WORK) -> FamilySize:
    own = [each for operators in needed.values() for each in kind.own(operators)]
    sources = [each for operators in needed.values() for each in sources_among(operators)]
    return FamilySize(kind).with_operators(own, sources, work)


def _queries_for_spark(
    deployment: Deployment,
    shared: Iterable[Shared],
    plans: Mapping[str, Node],
    able: Collection[str],
) -> set[str]:
    """Of the queries that Spark is able to weave, those whose trees and joins it is to compute."""
    groups = connected(plans)
    group_of = {query: number for number, group in enumerate(groups) for query in group}
    found: dict[tuple[int, str], list[Shared]] = {}
    for each in shared:
        found.setdefault((group_of[each.queries[0]], each.site), []).append(each)
    rates = {
        stream.sources[0].lower(): stream.rate_rows_per_s
        for stream in deployment.streams
        if stream.kind is StreamKind.SOURCE
    }
    chosen: set[str] = set()
    for (number, site), members in found.items():
        sized = [
            Family(
                _streams(plans[query] for query in each.queries),
                each.cores,
                each.reading_cores,
                each.queries[0] in able,
            )
            for each in members
        ]
        woven_here = {query for each in members for query in each.queries}
        others = _streams(plans[query] for query in groups[number] if query not in woven_here)
        group = Group(sized, others, rates)
        for place in for_spark(group, _site_cores(deployment, site), deployment.unit_costs):
            chosen.update(members[place].queries)
    return chosen


def _on_engines(shared: Iterable[_Shared], for_spark: Collection[str]) -> tuple[_Shared, ...]:
    return tuple(replace(each, engine=SPARK) if each.queries[0] in for_spark else each for each in shared)


def _streams(plans: Iterable[Node]) -> frozenset[str]:
    """The keys of the streams that plans read."""
    return frozenset(name.lower() for plan in plans for name in sources_of(plan)[0])


def _site_cores(deployment: Deployment, name: str) -> float | None:
    return next(site.cores for site in deployment.sites if site.name == name)
