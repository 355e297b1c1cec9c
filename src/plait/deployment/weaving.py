"""What the queries of a deployment have in common beyond equal operators: trees of windows, and joins that
differ in constants and ranges. Each is computed once, by the engine that is busy with it for the shortest
time (`cost.sharing`), of those that can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from plait.catalog import Catalog
from plait.cost.sharing import TreeSize, best_engine, join_cores, tree_cores
from plait.cost.units import SPARK
from plait.deployment.deployment import DeployedQuery, Deployment, Operator, SharedJoin, Tree
from plait.deployment.native_lowering import is_in_milliseconds, is_native
from plait.expressions.types import TIMESTAMP
from plait.plan.nodes import Field, Node, StreamScan, TickWindow, walk_plan
from plait.sharing.families import families
from plait.sharing.joins import WovenJoin
from plait.sharing.trees import WovenAggregate
from plait.space import OperatorKind
from plait.windows.edges import edges_of, edges_per_s

# Each partial goes to all windows that hold it. A window that holds more of them is left to the database.
MAX_TICKS_A_PIECE = 10_000


def woven(deployment: Deployment, catalog: Catalog) -> Deployment:
    """The deployment with its trees and shared joins."""
    queries = {query.name: query for query in deployment.admitted}
    plans = {name: plan_of(deployment, query) for name, query in queries.items()}
    found = families(plans.items(), whole_scans(plans.values(), catalog))
    return replace(
        deployment,
        trees=tuple(
            _tree(deployment, site, operators, on_spark=all(map(can_weave_window, family)))
            for family in found.aggregates
            for site, operators in _by_site(
                deployment, (queries[member.query] for member in family), OperatorKind.AGGREGATE
            )
        ),
        joins=tuple(
            _join(deployment, site, operators, on_spark=can_weave_join(family[0], plans[family[0].query]))
            for family in found.joins
            for site, operators in _by_site(
                deployment, (queries[member.query] for member in family), OperatorKind.WINDOW_JOIN
            )
        ),
    )


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


def _by_site(
    deployment: Deployment, queries: Iterable[DeployedQuery], kind: OperatorKind
) -> Iterator[tuple[str, Mapping[str, Sequence[Operator]]]]:
    """The operators of a kind of each query, by the site of the last of them."""
    found: dict[str, dict[str, list[Operator]]] = {}
    for query in queries:
        operators = [each for each in deployment.operators_of(query) if each.kind is kind]
        found.setdefault(operators[0].site, {})[query.name] = operators
    yield from found.items()


def _tree(
    deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]], *, on_spark: bool
) -> Tree:
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
    engine = best_engine(_able(cores, on_spark), _site_cores(deployment, site))
    return Tree(site, engine, tuple(queries), tuple(operators), **asdict(size), cores=cores)


def _join(
    deployment: Deployment, site: str, queries: Mapping[str, Sequence[Operator]], *, on_spark: bool
) -> SharedJoin:
    operators = {each.id: each for members in queries.values() for each in members}
    given = sum(each.output_rows_per_s for each in operators.values())
    read = _source_rate(deployment, operators)
    cores = join_cores(read, given, deployment.unit_costs)
    engine = best_engine(_able(cores, on_spark), _site_cores(deployment, site))
    return SharedJoin(site, engine, tuple(queries), tuple(operators), read, given, cores)


def _able(cores: Mapping[str, float], on_spark: bool) -> dict[str, float]:
    """The engines that can do it."""
    return {engine: each for engine, each in cores.items() if on_spark or engine != SPARK}


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
