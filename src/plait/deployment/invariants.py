"""What must hold of every deployment, whoever planned it.

- Every query of the workload is answered once: admitted with a stream of its own signature that is at the
  site which wants it, or refused with a reason.
- Every stream has one producer; every operator's inputs are at its site, where they are produced or flow
  to; a flow starts where its stream is. (So nothing feeds itself: availability is followed from the
  producers on, which is SQPR's acyclicity, III.7.)
- Every operator computes what its output's signature says from what its inputs' signatures say.
- Sources are read at home. No operator, stream or plan is there for nothing.

Whether the numbers are right is the business of `statements` and `cost.recost`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

from plait.catalog import Catalog
from plait.cost.network import Network
from plait.deployment.deployment import DeployedQuery, Deployment, Operator, sink_of
from plait.plan.nodes import Join, Node, StreamScan, TableScan
from plait.plan.signature import signature
from plait.space import OperatorKind, Space, input_of, kind_of, relation_of, stream_of, whole_scan
from plait.workload import Workload


def violations(deployment: Deployment, workload: Workload, network: Network, space: Space) -> Iterator[str]:
    """Everything that is wrong, in words; nothing for a legal deployment."""
    broken = list(_broken_references(deployment, network))
    yield from broken
    if broken:
        return  # what follows looks things up by id
    available = _availability(deployment)
    yield from _query_violations(deployment, workload, available)
    for operator in deployment.operators:
        for stream in operator.inputs:
            if operator.site not in available[stream]:
                yield f"operator {operator.id} at {operator.site} reads {stream}, which is not there"
        yield from _computation_violations(deployment, operator, workload.catalog, network, space)
    for flow in deployment.flows:
        if flow.source not in available[flow.stream]:
            yield f"{flow.stream} flows from {flow.source}, where it is not"
    yield from _idle(deployment)


def _broken_references(deployment: Deployment, network: Network) -> Iterator[str]:
    streams = Counter(stream.id for stream in deployment.streams)
    yield from _repeated("stream", streams)
    yield from _repeated("operator", Counter(operator.id for operator in deployment.operators))
    producers = Counter(operator.output for operator in deployment.operators)
    yield from _repeated("output", producers)
    for id_ in streams.keys() - producers.keys():
        yield f"nothing produces the stream {id_}"
    for stream in deployment.streams:
        if stream.signature not in deployment.plans:
            yield f"the stream {stream.id} has no plan"
        elif signature(deployment.plans[stream.signature]) != stream.signature:
            yield f"the plan of the stream {stream.id} has another signature"
    for operator in deployment.operators:
        yield from _unknown(f"operator {operator.id}", (*operator.inputs, operator.output), streams)
        yield from _unknown(f"operator {operator.id}", [operator.site], network.sites)
    flows = Counter(f"of {flow.stream} from {flow.source} to {flow.target}" for flow in deployment.flows)
    yield from _repeated("flow", flows)
    for flow in deployment.flows:
        yield from _unknown("a flow", [flow.stream], streams)
        yield from _unknown(f"the flow of {flow.stream}", (flow.source, flow.target), network.sites)
        if network.links and (flow.source, flow.target) not in network.links:
            yield f"{flow.stream} flows from {flow.source} to {flow.target}, where no link is"
    for query in deployment.admitted:
        yield from _unknown(f"query {query.name}", [query.stream or "(none)"], streams)


def _repeated(what: str, count: Counter[str]) -> Iterator[str]:
    return (f"the {what} {id_} is there {number} times" for id_, number in count.items() if number > 1)


def _unknown(where: str, names: Iterable[str], known: Mapping[str, object]) -> Iterator[str]:
    return (f"{where} refers to {name}, which does not exist" for name in names if name not in known)


def _availability(deployment: Deployment) -> dict[str, set[str]]:
    """The sites where each stream is, followed from its producer along its flows."""
    available = {operator.output: {operator.site} for operator in deployment.operators}
    hops: dict[tuple[str, str], list[str]] = {}
    for flow in deployment.flows:
        hops.setdefault((flow.stream, flow.source), []).append(flow.target)
    for stream, sites in available.items():
        reached = list(sites)
        while reached:
            for target in hops.get((stream, reached.pop()), ()):
                if target not in sites:
                    sites.add(target)
                    reached.append(target)
    return available


def _query_violations(
    deployment: Deployment, workload: Workload, available: Mapping[str, set[str]]
) -> Iterator[str]:
    answers = Counter(query.name for query in deployment.queries)
    yield from _repeated("query", answers)
    wanted = {query.name: query for query in workload.queries.values()}
    for name in answers.keys() ^ wanted.keys():
        yield f"the query {name} is in the workload or in the deployment, but not in both"
    for query in deployment.queries:
        if query.name in wanted:
            yield from _answer_violations(query, deployment, wanted[query.name].plan, available)
            if query.columns != wanted[query.name].columns:
                yield f"the query {query.name} has other columns: {', '.join(query.columns)}"
            if query.sink != sink_of(wanted[query.name]):
                yield f"the query {query.name} goes somewhere else: {query.sink}"
            asked = wanted[query.name].site
            if asked is not None and query.site is not None and asked.lower() != query.site.lower():
                yield f"the query {query.name} is wanted at {asked}, not at {query.site}"


def _answer_violations(
    query: DeployedQuery, deployment: Deployment, plan: Node, available: Mapping[str, set[str]]
) -> Iterator[str]:
    if not query.admitted:
        if not query.reason:
            yield f"the query {query.name} is refused without a reason"
        if query.stream is not None:
            yield f"the query {query.name} is refused, but has the stream {query.stream}"
        return
    if query.stream is None or query.site is None:
        yield f"the query {query.name} is admitted without a stream or a site"
        return
    if deployment.stream_by_id[query.stream].signature != signature(stream_of(plan)):
        yield f"the query {query.name} gets {query.stream}, which is something else"
    if query.site not in available[query.stream]:
        yield f"the query {query.name} wants {query.stream} at {query.site}, where it is not"


def _computation_violations(
    deployment: Deployment, operator: Operator, catalog: Catalog, network: Network, space: Space
) -> Iterator[str]:
    streams = deployment.stream_by_id
    output = deployment.plans[streams[operator.output].signature]
    claimed = [streams[stream].signature for stream in operator.inputs]
    if operator.kind is OperatorKind.SCAN:
        if operator.inputs or operator.windows or operator.covers or not _is_whole(output, catalog):
            yield f"operator {operator.id} does not read a whole source"
        elif operator.site != network.home_of(relation_of(output, catalog)):
            yield f"operator {operator.id} reads {_name(output)} away from its home"
        return
    if operator.kind is not kind_of(output):
        yield f"operator {operator.id} is a {operator.kind}, but its output is made by a {kind_of(output)}"
        return
    if isinstance(output, StreamScan | TableScan):
        if claimed != [signature(whole_scan(output, catalog))]:
            yield f"operator {operator.id} leaves out columns of something else than {_name(output)}"
        elif operator.windows != (None,) or operator.covers:
            yield f"operator {operator.id} only leaves out columns, without windows"
        return
    if isinstance(output, Join):
        if sorted(m for covered in operator.covers for m in covered) != [*range(len(output.inputs))]:
            yield f"operator {operator.id} does not join every input once"
            return
        expected = [space.subjoin(output, covered) for covered in operator.covers]
    else:
        expected = list(output.inputs)
        if operator.covers:
            yield f"operator {operator.id} is no join, but covers inputs of one"
    reads = [input_of(node) for node in expected]
    if claimed != [signature(read.stream) for read in reads]:
        yield f"operator {operator.id} does not compute {operator.output} from its inputs"
    elif list(operator.windows) != [read.window for read in reads]:
        yield f"operator {operator.id} reads through other windows than {operator.output} says"


def _name(scan: StreamScan | TableScan) -> str:
    return scan.stream if isinstance(scan, StreamScan) else scan.table


def _is_whole(node: Node, catalog: Catalog) -> TypeGuard[StreamScan | TableScan]:
    match node:
        case StreamScan(name):
            return name.lower() in catalog.streams and node == whole_scan(node, catalog)
        case TableScan(name):
            return name.lower() in catalog.tables and node == whole_scan(node, catalog)
        case _:
            return False


def _idle(deployment: Deployment) -> Iterator[str]:
    """What no admitted query needs."""
    users = deployment.users
    yield from (f"no query needs operator {o.id}" for o in deployment.operators if not users[o.id])
    for signature_ in deployment.plans.keys() - {stream.signature for stream in deployment.streams}:
        yield f"no stream has the plan {signature_}"
