"""What the queries of a deployment have in common beyond equal operators: trees of windows, and joins that
differ in constants and ranges. Each is computed once, by the engine with which all queries that are connected
by streams take the shortest time (`cost.sharing`), of those that can."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from plait.catalog import Catalog
from plait.cost.sharing import Family, Group, TreeSize, for_spark, join_cores, reading_cores, tree_cores
from plait.cost.units import DUCKDB, SPARK
from plait.deployment.deployment import (
    DeployedQuery,
    Deployment,
    Operator,
    SharedJoin,
    StreamKind,
    Tree,
)
from plait.deployment.native_lowering import is_in_milliseconds, is_native
from plait.expressions.types import TIMESTAMP
from plait.plan.nodes import Field, Node, StreamScan, TickWindow, sources_of, walk_plan
from plait.sharing.families import families
from plait.sharing.joins import WovenJoin
from plait.sharing.patterns import Selection, selection_of
from plait.sharing.trees import WovenAggregate
from plait.space import OperatorKind
from plait.windows.edges import edges_of, edges_per_s

# Each partial goes to all windows that hold it. A window that holds more of them is left to the database.
MAX_TICKS_A_PIECE = 10_000

_Shared = TypeVar("_Shared", Tree, SharedJoin)


def woven(deployment: Deployment, catalog: Catalog) -> Deployment:
    """The deployment with its trees and shared joins."""
    queries = {query.name: query for query in deployment.admitted}
    plans = {name: plan_of(deployment, query) for name, query in queries.items()}
    found = families(plans.items(), whole_scans(plans.values(), catalog))
    trees = [
        _tree(deployment, site, operators)
        for family in found.aggregates
        for site, operators in _by_site(
            deployment, (queries[member.query] for member in family), OperatorKind.AGGREGATE
        )
    ]
    joins = [
        _join(deployment, site, operators)
        for family in found.joins
        for site, operators in _by_site(
            deployment, (queries[member.query] for member in family), OperatorKind.WINDOW_JOIN
        )
    ]
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
    chosen = _queries_for_spark(deployment, [*trees, *joins], plans, able)
    return replace(deployment, trees=_on_engines(trees, chosen), joins=_on_engines(joins, chosen))


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
        for scan in (node for node in walk_plan(plan) if isinstance(node, StreamScan)):
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


def _by_site(
    deployment: Deployment, queries: Iterable[DeployedQuery], kind: OperatorKind
) -> Iterator[tuple[str, Mapping[str, Sequence[Operator]]]]:
    """The operators of a kind of each query, by the site of the last of them."""
    found: dict[str, dict[str, list[Operator]]] = {}
    for query in queries:
        operators = [each for each in deployment.operators_of(query) if each.kind is kind]
        found.setdefault(operators[0].site, {})[query.name] = operators
    yield from found.items()


def _tree(deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]]) -> Tree:
    """In the database, until an engine is chosen."""
    operators = {each.id: each for members in queries.values() for each in members}
    windows = {each.windows[0] for each in operators.values()}
    ticks = [window for window in windows if isinstance(window, TickWindow)]
    size = TreeSize(
        _source_rate(deployment, operators),
        edges_per_s(edge for window in ticks for edge in edges_of(window)),
        sum(window.range_us / window.slide_us for window in ticks),
        max(each.output_rows_per_s * _slide_s(each) for each in operators.values()),
        sum(each.output_rows_per_s for each in operators.values()),
    )
    return Tree(
        site,
        DUCKDB,
        tuple(queries),
        tuple(operators),
        **asdict(size),
        cores=tree_cores(size, deployment.unit_costs),
        reading_cores=reading_cores(size.rate_rows_per_s, deployment.unit_costs),
    )


def _join(deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]]) -> SharedJoin:
    """In the database, until an engine is chosen."""
    operators = {each.id: each for members in queries.values() for each in members}
    given = sum(each.output_rows_per_s for each in operators.values())
    read = _source_rate(deployment, operators)
    return SharedJoin(
        site,
        DUCKDB,
        tuple(queries),
        tuple(operators),
        read,
        given,
        join_cores(read, given, deployment.unit_costs),
        reading_cores(read, deployment.unit_costs),
    )


def _queries_for_spark(
    deployment: Deployment,
    shared: Iterable[Tree | SharedJoin],
    plans: Mapping[str, Node],
    able: Collection[str],
) -> set[str]:
    """Of the queries that Spark is able to weave, those whose trees and joins it is to compute."""
    groups = connected(plans)
    group_of = {query: number for number, group in enumerate(groups) for query in group}
    found: dict[tuple[int, str], list[Tree | SharedJoin]] = {}
    for each in shared:
        found.setdefault((group_of[each.queries[0]], each.site), []).append(each)
    rates = {
        stream.sources[0].lower(): stream.rate_rows_per_s
        for stream in deployment.streams
        if stream.kind is StreamKind.SOURCE
    }
    chosen: set[str] = set()
    for (number, site), members in found.items():
        families = [
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
        group = Group(families, others, rates)
        for place in for_spark(group, _site_cores(deployment, site), deployment.unit_costs):
            chosen.update(members[place].queries)
    return chosen


def _on_engines(shared: Iterable[_Shared], for_spark: Collection[str]) -> tuple[_Shared, ...]:
    return tuple(replace(each, engine=SPARK) if each.queries[0] in for_spark else each for each in shared)


def _streams(plans: Iterable[Node]) -> frozenset[str]:
    """The keys of the streams that plans read."""
    return frozenset(name.lower() for plan in plans for name in sources_of(plan)[0])


def _source_rate(deployment: Deployment, operators: Mapping[str, Operator]) -> float:
    """Rows a second of the sources that operators are computed from, each source once."""
    found, stack = set(), [each.output for each in operators.values()]
    while stack:
        operator = deployment.producer_of[stack.pop()]
        if operator.kind is OperatorKind.SCAN:
            found.add(operator.output)
        stack.extend(operator.inputs)
    return sum(deployment.stream_by_id[source].rate_rows_per_s for source in sorted(found))


def _site_cores(deployment: Deployment, name: str) -> float | None:
    return next(site.cores for site in deployment.sites if site.name == name)


def _slide_s(operator: Operator) -> float:
    (window,) = operator.windows
    assert isinstance(window, TickWindow), operator.id
    return window.slide_us / 1e6
