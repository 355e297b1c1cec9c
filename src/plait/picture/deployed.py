"""From a deployment to the diagram of it.

A source is one box, the reading of it included. An operator is one box: what it does, how many rows it gives.
A stream that goes to another site is a box at that site, with its bytes a second, from which all readers
there take it: it is sent once. A query is a box at the site that wants it.
"""

from __future__ import annotations

from pathlib import PurePath

from plait.deployment.deployment import (
    DeployedQuery,
    DeployedStream,
    Deployment,
    Operator,
    SiteUse,
    StreamKind,
)
from plait.deployment.describe import description, names_of, window_text
from plait.deployment.report import caption, headline
from plait.picture.diagram import Box, BoxKind, Diagram, Refusal, SiteFrame
from plait.quantity_text import bytes_per_s_text, number_text, rate_text
from plait.space import OperatorKind


def diagram_of(deployment: Deployment, planner: str) -> Diagram:
    """Everything that the deployment has, with nothing folded."""
    users = deployment.users
    boxes: list[Box] = []
    arrows: dict[tuple[str, str], None] = {}
    for operator in deployment.operators:
        boxes.append(_operator_box(deployment, operator, users[operator.id]))
        for stream in operator.inputs:
            arrows[_where_read(deployment, stream, operator.site), _operator_id(operator.id)] = None
    for flow in deployment.flows:
        carried = deployment.stream_by_id[flow.stream]
        boxes.append(
            Box(
                _flow_id(flow.stream, flow.target),
                BoxKind.FLOW,
                f"from {flow.source}",
                (bytes_per_s_text(flow.bytes_per_s),),
                tooltip=f"{', '.join(carried.sources)}: {rate_text(carried.rate_rows_per_s)}",
                site=flow.target,
                queries=users[deployment.producer_of[flow.stream].id],
            )
        )
        arrows[_where_read(deployment, flow.stream, flow.source), boxes[-1].id] = None
    for query in deployment.admitted:
        boxes.append(_query_box(query))
        assert query.stream is not None, query.name
        site = query.site or deployment.producer_of[query.stream].site
        arrows[_where_read(deployment, query.stream, site), boxes[-1].id] = None
    several = len(deployment.sites) > 1
    return Diagram(
        headline(deployment, planner),
        caption(deployment),
        tuple(boxes),
        tuple(arrows),
        tuple(SiteFrame(site.name, _site_caption(site)) for site in deployment.sites) if several else (),
        tuple(Refusal(query.name, query.reason) for query in deployment.refused),
    )


def _where_read(deployment: Deployment, stream: str, site: str) -> str:
    """The box from which a site takes a stream: its producer, or the flow that arrives."""
    producer = deployment.producer_of[stream]
    return _operator_id(producer.id) if producer.site == site else _flow_id(stream, site)


def _operator_id(operator: str) -> str:
    return f"operator {operator}"


def _flow_id(stream: str, site: str) -> str:
    return f"flow {stream} {site}"


def _operator_box(deployment: Deployment, operator: Operator, queries: frozenset[str]) -> Box:
    stream = deployment.stream_by_id[operator.output]
    id_ = _operator_id(operator.id)
    rate = rate_text(operator.output_rows_per_s)
    match stream.kind:
        case StreamKind.SOURCE:
            return Box(id_, BoxKind.STREAM, stream.sources[0], (rate,), site=operator.site, queries=queries)
        case StreamKind.TABLE:
            return Box(id_, BoxKind.TABLE, stream.sources[0], site=operator.site, queries=queries)
        case StreamKind.DERIVED:
            does = description(deployment.plans[stream.signature])
            lines = (does, " ".join((*_windows(deployment, operator), rate)))
            return Box(
                id_,
                BoxKind.OPERATOR,
                operator.kind.value,
                lines,
                tooltip=_tooltip(operator, stream, does, queries),
                site=operator.site,
                queries=queries,
                shared=len(queries) > 1,
                minor=operator.kind is OperatorKind.PROJECT,
            )


def _windows(deployment: Deployment, operator: Operator) -> list[str]:
    """The windows that the operator reads through, equal ones once."""
    texts: dict[str, None] = {}
    for stream, window in zip(operator.inputs, operator.windows, strict=True):
        if window is not None:
            plan = deployment.plans[deployment.stream_by_id[stream].signature]
            texts[window_text(window, [name.text for name in names_of(plan)])] = None
    return list(texts)


def _tooltip(operator: Operator, stream: DeployedStream, does: str, queries: frozenset[str]) -> str:
    cores, rows = number_text(operator.cores), number_text(operator.state_rows)
    lines = [
        f"{operator.kind.value}: {does}",
        f"of {', '.join(stream.sources)}",
        f"{operator.engine}, {cores} cores, {rows} rows kept",
        f"for {', '.join(sorted(queries))}",
    ]
    return "\n".join(lines)


def _query_box(query: DeployedQuery) -> Box:
    return Box(
        f"query {query.name}",
        BoxKind.QUERY,
        query.name,
        (f"into {PurePath(query.sink).name}",) if query.sink else (),  # the folder, wherever it is
        tooltip=f"{query.name} ({', '.join(query.columns)})",
        site=query.site or "",
        queries=frozenset({query.name}),
    )


def _site_caption(site: SiteUse) -> str:
    of = f" of {number_text(site.cores)}" if site.cores is not None else ""
    return f"{site.name} · {number_text(site.cores_used)}{of} cores"
