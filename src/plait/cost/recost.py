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
from collections.abc import Collection, Iterator, Mapping
from math import isclose, lcm
from typing import Any

RELATIVE_TOLERANCE = 1e-6
MICROSECONDS = 1_000_000
MOST_COUNTED = 100_000  # edges of the windows of a tree

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
    for index, tree in enumerate(document["trees"]):
        for name, value in _tree(document, tree).items():
            costs[f"trees/{index}/{name}"] = value
    for index, join in enumerate(document["joins"]):
        for name, value in _shared_join(document, join).items():
            costs[f"joins/{index}/{name}"] = value
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


def _tree(document: Document, tree: Document) -> dict[str, float]:
    operators = [each for each in document["operators"] if each["id"] in tree["operators"]]
    windows = {
        (window["range_us"], window["slide_us"], window["offset_us"])
        for each in operators
        for window in each["windows"]
    }
    rate = _source_rate(document, tree["operators"])
    overlap = sum(range_us / slide_us for range_us, slide_us, _ in windows)
    slides_s = [each["windows"][0]["slide_us"] / MICROSECONDS for each in operators]
    groups = max(each["output_rows_per_s"] * slide for each, slide in zip(operators, slides_s, strict=True))
    finals = sum(each["output_rows_per_s"] for each in operators)
    partials = min(rate, tree["edges_per_s"] * groups)
    cores = {
        f"cores/{engine}": (
            rate * unit["row_us"] + partials * overlap * unit["merge_us"] + finals * unit["final_us"]
        )
        / MICROSECONDS
        for engine, unit in document["unit_costs"]["trees"].items()
    }
    return {
        "rate_rows_per_s": rate,
        "edges_per_s": _edges_per_s(windows),
        "overlap": overlap,
        "groups": groups,
        "finals_per_s": finals,
        "reading_cores": _reading_cores(document, rate),
        **cores,
    }


def _edges_per_s(windows: Collection[tuple[int, int, int]]) -> float:
    """Edges in the time after which all windows stand as before, counted one by one; where these are very
    many, as many as if no two windows had one in common."""
    cycle_us = lcm(*(slide_us for _, slide_us, _ in windows))
    phases = {
        (slide_us, edge % slide_us)
        for range_us, slide_us, offset_us in windows
        for edge in (offset_us, offset_us - range_us)
    }
    if sum(cycle_us // slide_us for slide_us, _ in phases) > MOST_COUNTED:
        return sum(MICROSECONDS / slide_us for slide_us, _ in phases)
    edges = {edge for slide_us, phase in phases for edge in range(phase, cycle_us, slide_us)}
    return len(edges) * MICROSECONDS / cycle_us


def _shared_join(document: Document, join: Document) -> dict[str, float]:
    operators = [each for each in document["operators"] if each["id"] in join["operators"]]
    read = _source_rate(document, join["operators"])
    given = sum(each["output_rows_per_s"] for each in operators)
    units = {engine: kinds["window join"] for engine, kinds in document["unit_costs"]["engines"].items()}
    cores = {
        f"cores/{engine}": (read * unit["input_us_per_row"] + given * unit["output_us_per_row"])
        / MICROSECONDS
        for engine, unit in units.items()
    }
    reading = _reading_cores(document, read)
    return {"input_rows_per_s": read, "output_rows_per_s": given, "reading_cores": reading, **cores}


def _reading_cores(document: Document, read: float) -> float:
    scan = document["unit_costs"]["engines"]["spark"]["scan"]
    return float(read * scan["output_us_per_row"] / MICROSECONDS)


def _source_rate(document: Document, operators: Collection[str]) -> float:
    """Of all sources that operators are computed from, each source once."""
    by_output = {each["output"]: each for each in document["operators"]}
    rates = {stream["id"]: stream["rate_rows_per_s"] for stream in document["streams"]}
    reached = {each["output"] for each in document["operators"] if each["id"] in operators}
    while more := {stream for output in reached for stream in by_output[output]["inputs"]} - reached:
        reached |= more
    return float(sum(rates[output] for output in reached if by_output[output]["kind"] == "scan"))


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
    for kind in ("trees", "joins"):
        for index, shared in enumerate(document[kind]):
            for key, value in shared.items():
                if isinstance(value, float):
                    yield f"{kind}/{index}/{key}", value
            for engine, cores in shared["cores"].items():
                yield f"{kind}/{index}/cores/{engine}", cores
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
