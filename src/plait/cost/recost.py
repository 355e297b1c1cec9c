"""All costs of a deployment again, from its document alone.

This is the arithmetic of docs/plan_document.md, written without any code that planners use: it sees plain
data (what `json.loads` would give), so that an error in a planner, or in the model it plans with, cannot
hide. The driver calls `disagreements` for every plan; anyone can do the same with a document from
elsewhere.

Estimates are taken as they stand: rates and row bytes of streams, and rows and bytes of an operator's
state. So are limits and unit costs. That these are right too, `deployment.statements` compares with the
workload and the cost model, which a document alone does not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

RELATIVE_TOLERANCE = 1e-6
MICROSECONDS = 1_000_000

Document = Mapping[str, Any]


def recost(document: Document) -> dict[str, float]:
    """Every cost by a name that says where it belongs: `operators/<id>/cores`, `cost/cores`, …"""
    streams = {stream["id"]: stream for stream in document["streams"]}
    latency_us = {(link["from"], link["to"]): link["latency_us"] for link in document["links"]}
    costs: dict[str, float] = {}
    used: defaultdict[str, float] = defaultdict(float)
    for operator in document["operators"]:
        read = _input_rows_per_s(operator, streams)
        given = streams[operator["output"]]["rate_rows_per_s"]
        unit = document["unit_costs"]["engines"][operator["engine"]][operator["kind"]]
        cores = (sum(read) * unit["input_us_per_row"] + given * unit["output_us_per_row"]) / MICROSECONDS
        path = f"operators/{operator['id']}"
        costs.update({f"{path}/input_rows_per_s/{index}": rows for index, rows in enumerate(read)})
        costs[f"{path}/output_rows_per_s"] = given
        costs[f"{path}/cores"] = cores
        used[f"sites/{operator['site']}/cores_used"] += cores
        used[f"sites/{operator['site']}/memory_bytes_used"] += operator["state_bytes"]
        used["cost/cores"] += cores
        used["cost/state_rows"] += operator["state_rows"]
        used["cost/state_bytes"] += operator["state_bytes"]
        costs["cost/bottleneck_cores"] = max(costs.get("cost/bottleneck_cores", 0.0), cores)
    for index, flow in enumerate(document["flows"]):
        stream = streams[flow["stream"]]
        hop = (flow["from"], flow["to"])
        bytes_per_s = stream["rate_rows_per_s"] * stream["row_bytes"]
        costs[f"flows/{index}/bytes_per_s"] = bytes_per_s
        used[f"sites/{flow['from']}/out_bytes_per_s_used"] += bytes_per_s
        used[f"sites/{flow['to']}/in_bytes_per_s_used"] += bytes_per_s
        used[f"links/{flow['from']}→{flow['to']}/bytes_per_s_used"] += bytes_per_s
        used["cost/network_bytes_per_s"] += bytes_per_s
        used["cost/network_bytes_in_transit"] += bytes_per_s * (latency_us[hop] or 0) / MICROSECONDS
    return {**costs, **used}


def disagreements(document: Document) -> Iterator[str]:
    """What the document states otherwise than it follows from its own numbers."""
    recomputed, all_stated = recost(document), dict(_stated(document))
    yield from (f"{name} is not stated" for name in recomputed if name not in all_stated)
    for name, stated in all_stated.items():
        expected = recomputed.get(name, 0.0)
        if not isclose(stated, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-9):
            yield f"{name} is stated as {stated:g}, but follows as {expected:g}"


def overloads(document: Document) -> Iterator[str]:
    """Limits of sites and links that the document's own use exceeds."""
    for site in document["sites"]:
        for resource in ("cores", "memory_bytes", "in_bytes_per_s", "out_bytes_per_s"):
            yield from _overload(f"{resource} of {site['name']}", site[resource], site[f"{resource}_used"])
    for link in document["links"]:
        name = f"the link from {link['from']} to {link['to']}"
        yield from _overload(name, link["bandwidth_bytes_per_s"], link["bytes_per_s_used"])


def _overload(name: str, limit: float | None, used: float) -> Iterator[str]:
    if limit is not None and used > limit * (1 + RELATIVE_TOLERANCE):
        yield f"{name}: {used:g} of {limit:g}"


def _input_rows_per_s(operator: Document, streams: Mapping[str, Document]) -> list[float]:
    rates = [streams[stream]["rate_rows_per_s"] for stream in operator["inputs"]]
    if operator["kind"] == "aggregate":
        return rates
    return [rate * _times_read(window) for rate, window in zip(rates, operator["windows"], strict=True)]


def _times_read(window: Document | None) -> float:
    """How often a row is read through a window: once, or at every tick that sees it."""
    if window is None or window["kind"] == "range":
        return 1.0
    if window["kind"] == "tick":
        return float(window["range_us"] / window["slide_us"])
    return float(window["rows"] / window["slide_rows"])


def _stated(document: Document) -> Iterator[tuple[str, float]]:
    for operator in document["operators"]:
        path = f"operators/{operator['id']}"
        for index, rows in enumerate(operator["input_rows_per_s"]):
            yield f"{path}/input_rows_per_s/{index}", rows
        yield f"{path}/output_rows_per_s", operator["output_rows_per_s"]
        yield f"{path}/cores", operator["cores"]
    for index, flow in enumerate(document["flows"]):
        yield f"flows/{index}/bytes_per_s", flow["bytes_per_s"]
    for site in document["sites"]:
        for key, value in site.items():
            if key.endswith("_used"):
                yield f"sites/{site['name']}/{key}", value
    for link in document["links"]:
        yield f"links/{link['from']}→{link['to']}/bytes_per_s_used", link["bytes_per_s_used"]
    for key, value in document["cost"].items():
        yield f"cost/{key}", value
