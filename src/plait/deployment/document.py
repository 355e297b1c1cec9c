"""The stable, versioned document of a plan, and back (docs/plan_document.md explains every key).

`version` grows when a key changes its meaning or goes; new keys may come at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, assert_never

from plait.cost.units import JoinUnitCost, TreeUnitCost, UnitCost, UnitCosts
from plait.deployment.deployment import (
    Cost,
    DeployedQuery,
    DeployedStream,
    Deployment,
    Flow,
    LinkUse,
    Operator,
    Shared,
    SharedJoin,
    SharedSelection,
    SiteUse,
    StreamKind,
    Tree,
)
from plait.errors import UserError
from plait.plan.format import format_plans, parse_plans
from plait.plan.nodes import RangeWindow, RowWindow, TickWindow, WindowSpecification
from plait.space import OperatorKind

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VERSION = 3

Json: TypeAlias = dict[str, Any]
_Shared = TypeVar("_Shared", bound=Shared)


def deployment_to_json(deployment: Deployment) -> Json:
    """Everything about the deployment, with keys in a fixed order."""
    return {**tables_to_json(deployment), "plans": format_plans(deployment.plans)}


def tables_to_json(deployment: Deployment) -> Json:
    """Everything but what the streams mean: all that costs are computed from."""
    return {
        "queries": [_query_to_json(query) for query in deployment.queries],
        "streams": [_stream_to_json(stream) for stream in deployment.streams],
        "operators": [_operator_to_json(operator) for operator in deployment.operators],
        "flows": [
            {"stream": flow.stream, "from": flow.source, "to": flow.target, "bytes_per_s": flow.bytes_per_s}
            for flow in deployment.flows
        ],
        "sites": [_by_field(site) for site in deployment.sites],
        "links": [_link_to_json(link) for link in deployment.links],
        "trees": [_shared_to_json(tree) for tree in deployment.trees],
        "joins": [_shared_to_json(join) for join in deployment.joins],
        "selections": [_shared_to_json(selection) for selection in deployment.selections],
        "cost": _by_field(deployment.cost),
        "unit_costs": _unit_costs_to_json(deployment.unit_costs),
    }


def deployment_from_json(document: Mapping[str, Any]) -> Deployment:
    """The inverse of `deployment_to_json`; a `UserError` if it is no such document."""
    if document.get("version") != VERSION:
        raise UserError(
            "plan-version",
            f"this is no plan document of version {VERSION}",
            hint="make a new one with `plait plan --format json`",
        )
    try:
        return Deployment(
            queries=tuple(
                DeployedQuery(**{**query, "columns": tuple(query["columns"])})
                for query in document["queries"]
            ),
            streams=tuple(_stream_from_json(stream) for stream in document["streams"]),
            operators=tuple(_operator_from_json(operator) for operator in document["operators"]),
            flows=tuple(
                Flow(flow["stream"], flow["from"], flow["to"], flow["bytes_per_s"])
                for flow in document["flows"]
            ),
            sites=tuple(SiteUse(**site) for site in document["sites"]),
            links=tuple(_link_from_json(link) for link in document["links"]),
            trees=tuple(_shared_from_json(Tree, tree) for tree in document["trees"]),
            joins=tuple(_shared_from_json(SharedJoin, join) for join in document["joins"]),
            selections=tuple(_shared_from_json(SharedSelection, each) for each in document["selections"]),
            cost=Cost(**document["cost"]),
            unit_costs=_unit_costs_from_json(document["unit_costs"]),
            plans=parse_plans(document["plans"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError("plan-document", f"the plan document is damaged: {error!r}") from error


def _by_field(record: DataclassInstance) -> Json:
    """The declared fields alone: values that an object keeps for itself are no part of the document."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _query_to_json(query: DeployedQuery) -> Json:
    return {**_by_field(query), "columns": list(query.columns)}


def _stream_to_json(stream: DeployedStream) -> Json:
    return {**_by_field(stream), "kind": stream.kind.value, "sources": list(stream.sources)}


def _stream_from_json(stream: Mapping[str, Any]) -> DeployedStream:
    return DeployedStream(
        **{**stream, "kind": StreamKind(stream["kind"]), "sources": tuple(stream["sources"])}
    )


def _operator_to_json(operator: Operator) -> Json:
    return {
        **_by_field(operator),
        "kind": operator.kind.value,
        "inputs": list(operator.inputs),
        "windows": [_window_to_json(window) for window in operator.windows],
        "covers": [list(covered) for covered in operator.covers],
        "input_rows_per_s": list(operator.input_rows_per_s),
    }


def _operator_from_json(operator: Mapping[str, Any]) -> Operator:
    return Operator(
        **{
            **operator,
            "kind": OperatorKind(operator["kind"]),
            "inputs": tuple(operator["inputs"]),
            "windows": tuple(_window_from_json(window) for window in operator["windows"]),
            "covers": tuple(tuple(covered) for covered in operator["covers"]),
            "input_rows_per_s": tuple(operator["input_rows_per_s"]),
        }
    )


def _window_to_json(window: WindowSpecification | None) -> Json | None:
    match window:
        case None:
            return None
        case RangeWindow(range_us):
            return {"kind": "range", "range_us": range_us}
        case TickWindow(range_us, slide_us, offset_us):
            return {"kind": "tick", "range_us": range_us, "slide_us": slide_us, "offset_us": offset_us}
        case RowWindow(rows, slide_rows, partition):
            return {"kind": "rows", "rows": rows, "slide_rows": slide_rows, "partition": list(partition)}
        case _:
            assert_never(window)


def _window_from_json(window: Mapping[str, Any] | None) -> WindowSpecification | None:
    if window is None:
        return None
    match window["kind"]:
        case "range":
            return RangeWindow(window["range_us"])
        case "tick":
            return TickWindow(window["range_us"], window["slide_us"], window["offset_us"])
        case "rows":
            return RowWindow(window["rows"], window["slide_rows"], tuple(window["partition"]))
        case kind:
            raise ValueError(f"no such window: {kind}")


def _shared_to_json(shared: Shared) -> Json:
    return {
        **_by_field(shared),
        "queries": list(shared.queries),
        "operators": list(shared.operators),
        "cores": dict(shared.cores),
    }


def _shared_from_json(kind: type[_Shared], shared: Mapping[str, Any]) -> _Shared:
    tuples = {"queries": tuple(shared["queries"]), "operators": tuple(shared["operators"])}
    return kind(**{**shared, **tuples})


def _link_to_json(link: LinkUse) -> Json:
    return {
        "from": link.source,
        "to": link.target,
        "bandwidth_bytes_per_s": link.bandwidth_bytes_per_s,
        "latency_us": link.latency_us,
        "bytes_per_s_used": link.bytes_per_s_used,
    }


def _link_from_json(link: Mapping[str, Any]) -> LinkUse:
    return LinkUse(
        link["from"],
        link["to"],
        link["bandwidth_bytes_per_s"],
        link["latency_us"],
        link["bytes_per_s_used"],
    )


def _unit_costs_to_json(unit_costs: UnitCosts) -> Json:
    return {
        "profile": unit_costs.profile,
        "table_refresh_s": unit_costs.table_refresh_s,
        "engines": {
            engine: {kind.value: _by_field(cost) for kind, cost in costs.items()}
            for engine, costs in unit_costs.costs.items()
        },
        "trees": {engine: _by_field(cost) for engine, cost in unit_costs.trees.items()},
        "joins": {engine: _by_field(cost) for engine, cost in unit_costs.joins.items()},
        "micro_batch_s": dict(unit_costs.micro_batch_s),
    }


def _unit_costs_from_json(document: Mapping[str, Any]) -> UnitCosts:
    return UnitCosts(
        document["profile"],
        {
            engine: {OperatorKind(kind): UnitCost(**cost) for kind, cost in costs.items()}
            for engine, costs in document["engines"].items()
        },
        {engine: TreeUnitCost(**cost) for engine, cost in document["trees"].items()},
        {engine: JoinUnitCost(**cost) for engine, cost in document["joins"].items()},
        document["micro_batch_s"],
        document["table_refresh_s"],
    )
