"""What a deployment states about the world, compared with the world: nothing that can be computed from the
workload and the cost model is taken from whoever planned.

| of | must be |
|---|---|
| streams | kind and sources as their plan says; rate, row bytes and basis as the cost model estimates |
| operators | an engine that has unit costs; the state that the cost model estimates |
| trees, shared joins | an engine that has unit costs |
| shared joins | queries that can share one; what it takes in, keeps and makes as the cost model estimates |
| sites, links | all that are declared (and links in use where none is), each once, with their limits |
| unit costs | those of the cost model |

Costs follow from these by `cost.recost`. Only for a deployment without `invariants.violations`: everything is
looked up by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import isclose

from plait.catalog import Catalog
from plait.cost.model import CostModel, OperatorCost
from plait.cost.network import Network, Resource, ResourceKind
from plait.cost.recost import RELATIVE_TOLERANCE
from plait.deployment.deployment import DeployedStream, Deployment, Operator, StreamKind
from plait.deployment.weaving import plan_of, whole_scans
from plait.plan.nodes import Node, StreamScan, TableScan, sources_of
from plait.sharing.demands import demands, work_of
from plait.sharing.joins import woven_join
from plait.space import Input, OperatorKind, Step


def false_statements(
    deployment: Deployment, catalog: Catalog, network: Network, cost: CostModel
) -> Iterator[str]:
    """What is stated otherwise than it is, in words."""
    if deployment.unit_costs != cost.unit_costs:
        yield f"the unit costs are not those of the profile {cost.unit_costs.profile}"
    yield from _site_statements(deployment, network)
    yield from _link_statements(deployment, network)
    for stream in deployment.streams:
        yield from _stream_statements(deployment, stream, cost)
    for operator in deployment.operators:
        yield from _operator_statements(deployment, operator, cost)
    for shared in deployment.shared:
        if shared.engine not in shared.cores:
            queries = ", ".join(shared.queries)
            yield f"what {queries} share runs on {shared.engine}, which has no unit costs for it"
    yield from _join_statements(deployment, catalog, cost)


def _join_statements(deployment: Deployment, catalog: Catalog, cost: CostModel) -> Iterator[str]:
    plans = {query.name: plan_of(deployment, query) for query in deployment.admitted}
    scans = whole_scans(plans.values(), catalog)
    for join in deployment.joins:
        members = [woven_join(query, plans[query], scans) for query in join.queries]
        able = [member for member in members if member is not None]
        of = f"the join of {', '.join(join.queries)}"
        if len(able) < len(members) or len({member.key for member in able}) > 1:
            yield f"{of} is not one"
            continue
        work = asdict(work_of(demands(able, cost)))
        yield from _differences(of, {name: (getattr(join, name), true) for name, true in work.items()})


def _site_statements(deployment: Deployment, network: Network) -> Iterator[str]:
    stated = Counter(
        (site.name, site.cores, site.memory_bytes, site.in_bytes_per_s, site.out_bytes_per_s)
        for site in deployment.sites
    )
    declared = Counter(
        (site.name, site.cores, site.memory_bytes, site.in_bytes_per_s, site.out_bytes_per_s)
        for site in network.sites.values()
    )
    for name, *_ in (stated - declared) + (declared - stated):
        yield f"the site {name} is not stated as it is declared"


def _link_statements(deployment: Deployment, network: Network) -> Iterator[str]:
    stated = Counter(
        (link.source, link.target, link.bandwidth_bytes_per_s, link.latency_us) for link in deployment.links
    )
    declared = Counter(
        (*hop, network.limit(Resource(ResourceKind.LINK, *hop)), network.latency_us(hop))
        for hop in {*network.links, *((flow.source, flow.target) for flow in deployment.flows)}
    )
    for source, target, *_ in (stated - declared) + (declared - stated):
        yield f"the link from {source} to {target} is not stated as it is declared"


def _stream_statements(deployment: Deployment, stream: DeployedStream, cost: CostModel) -> Iterator[str]:
    plan = deployment.plans[stream.signature]
    size = cost.size(plan)
    streams, tables = sources_of(plan)
    yield from _differences(
        f"the stream {stream.id}",
        {
            "kind": (stream.kind, _kind(plan, deployment.producer_of[stream.id])),
            "sources": (stream.sources, tuple(sorted(streams | tables))),
            "rate_rows_per_s": (stream.rate_rows_per_s, size.rate_rows_per_s),
            "row_bytes": (stream.row_bytes, size.row_bytes),
            "basis": (stream.basis, str(size.basis)),
        },
    )


def _kind(plan: Node, producer: Operator) -> StreamKind:
    if producer.kind is not OperatorKind.SCAN:
        return StreamKind.DERIVED
    return StreamKind.SOURCE if isinstance(plan, StreamScan) else StreamKind.TABLE


def _operator_statements(deployment: Deployment, operator: Operator, cost: CostModel) -> Iterator[str]:
    if operator.kind not in cost.unit_costs.costs.get(operator.engine, {}):
        yield f"operator {operator.id} runs on {operator.engine}, which has no unit costs for it"
        return
    expected = _cost(deployment, operator, cost)
    yield from _differences(
        f"operator {operator.id}",
        {
            "state_rows": (operator.state_rows, expected.state_rows),
            "state_bytes": (operator.state_bytes, expected.state_bytes),
        },
    )


def _cost(deployment: Deployment, operator: Operator, cost: CostModel) -> OperatorCost:
    def plan_of(stream: str) -> Node:
        return deployment.plans[deployment.stream_by_id[stream].signature]

    output = plan_of(operator.output)
    if isinstance(output, StreamScan | TableScan):
        reads_all = operator.kind is OperatorKind.SCAN
        return cost.scan(output, operator.engine) if reads_all else cost.pruned_scan(output, operator.engine)
    inputs = tuple(
        Input(plan_of(stream), window)
        for stream, window in zip(operator.inputs, operator.windows, strict=True)
    )
    return cost.operator(Step(operator.kind, output, inputs, operator.covers), operator.engine)


def _differences(of: str, stated_and_true: Mapping[str, tuple[object, object]]) -> Iterator[str]:
    for name, (stated, true) in stated_and_true.items():
        if isinstance(stated, float | int) and isinstance(true, float):
            is_same = isclose(stated, true, rel_tol=RELATIVE_TOLERANCE)
        else:
            is_same = stated == true
        if not is_same:
            yield f"{of} has {name} = {stated}, but it is {true}"
