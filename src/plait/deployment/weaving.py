"""What the queries of a deployment have in common beyond equal operators: trees of windows, and joins that
differ in constants and ranges. Each is computed once, by the engine that is busy with it for the shortest
time (`cost.sharing`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from plait.catalog import Catalog
from plait.cost.sharing import TreeSize, best_engine, join_cores, tree_cores
from plait.deployment.deployment import DeployedQuery, Deployment, Operator, SharedJoin, Tree
from plait.expressions.types import TIMESTAMP
from plait.plan.nodes import Field, Node, StreamScan, TickWindow, walk_plan
from plait.sharing.families import families
from plait.space import OperatorKind
from plait.windows.edges import edges_of, edges_per_s


def woven(deployment: Deployment, catalog: Catalog) -> Deployment:
    """The deployment with its trees and shared joins."""
    queries = {query.name: query for query in deployment.admitted}
    plans = {name: plan_of(deployment, query) for name, query in queries.items()}
    found = families(plans.items(), whole_scans(plans.values(), catalog))
    return replace(
        deployment,
        trees=tuple(
            _tree(deployment, site, operators)
            for family in found.aggregates
            for site, operators in _by_site(
                deployment, (queries[member.query] for member in family), OperatorKind.AGGREGATE
            )
        ),
        joins=tuple(
            _join(deployment, site, operators)
            for family in found.joins
            for site, operators in _by_site(
                deployment, (queries[member.query] for member in family), OperatorKind.WINDOW_JOIN
            )
        ),
    )


def plan_of(deployment: Deployment, query: DeployedQuery) -> Node:
    assert query.stream is not None, query.name
    return deployment.plans[deployment.stream_by_id[query.stream].signature]


def whole_scans(
    plans: Iterable[Node], catalog: Catalog, *, with_times: bool = False
) -> dict[str, StreamScan]:
    """The streams that plans read, by key, with all columns that any of them needs; with the event time if
    that is asked for, or is all there is."""
    wanted: dict[str, dict[str, Field]] = {}
    for plan in plans:
        for scan in (node for node in walk_plan(plan) if isinstance(node, StreamScan)):
            wanted.setdefault(scan.stream, {}).update({field.name: field for field in scan.columns})
    for stream, fields in wanted.items():
        if with_times or not fields:
            event_time = catalog.stream(stream).event_time
            fields.setdefault(event_time, Field(event_time, TIMESTAMP))
    return {
        stream.lower(): StreamScan(stream, tuple(fields.values()))
        for stream, fields in sorted(wanted.items())
    }


def _by_site(
    deployment: Deployment, queries: Iterable[DeployedQuery], kind: OperatorKind
) -> Iterator[tuple[str, Mapping[str, Sequence[Operator]]]]:
    """The last operators of a kind of each query, by the site that computes them."""
    found: dict[str, dict[str, list[Operator]]] = {}
    for query in queries:
        operators = [each for each in deployment.operators_of(query) if each.kind is kind]
        found.setdefault(operators[0].site, {})[query.name] = operators
    yield from found.items()


def _tree(deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]]) -> Tree:
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
    cores = tree_cores(size, deployment.unit_costs)
    engine = best_engine(cores, _site_cores(deployment, site))
    return Tree(site, engine, tuple(queries), tuple(operators), **asdict(size), cores=cores)


def _join(deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]]) -> SharedJoin:
    operators = {each.id: each for members in queries.values() for each in members}
    given = sum(each.output_rows_per_s for each in operators.values())
    read = _source_rate(deployment, operators)
    cores = join_cores(read, given, deployment.unit_costs)
    engine = best_engine(cores, _site_cores(deployment, site))
    return SharedJoin(site, engine, tuple(queries), tuple(operators), read, given, cores)


def _source_rate(deployment: Deployment, operators: Iterable[str]) -> float:
    """Rows a second of the sources that operators are computed from, each source once."""
    found, stack = set(), [*operators]
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
