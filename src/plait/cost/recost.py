"""All costs of a deployment again, from its document alone.

This is the arithmetic of docs/plan_document.md, written without any code that planners use: it sees plain
data (what `json.loads` would give), so that an error in a planner, or in the model it plans with, cannot
hide. The driver calls `disagreements` for every plan; anyone can do the same with a document from
elsewhere.

Estimates are taken as they stand: rates and row bytes of streams, rows and bytes of an operator's state, and
what a shared join takes in, keeps and makes. So are limits and unit costs. That these are right too,
`deployment.statements` compares with the workload and the cost model, which a document alone does not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum, isclose, lcm
from typing import Any

RELATIVE_TOLERANCE = 1e-6
MICROSECONDS = 1_000_000
MOST_COUNTED = 100_000  # edges of the windows of a tree

FAMILIES = ("trees", "joins", "selections")  # queries that are computed as one

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
        used[f"sites/{operator['site']}/memory_bytes_used"] += operator["state_bytes"]
        used["cost/state_rows"] += operator["state_rows"]
        used["cost/state_bytes"] += operator["state_bytes"]
    needed = _needed(document)
    carried = _carriers(document, needed)
    parts = [(each["site"], costs[f"operators/{each['id']}/cores"]) for each in _uncarried(document, carried)]
    for kind, index, family in _families(document):
        size = _family(document, kind, family, needed, carried)
        costs.update({f"{kind}/{index}/{name}": value for name, value in size.items()})
        parts.append((family["site"], _charge(family["engine"], size)))
    for site, cores in parts:
        used[f"sites/{site}/cores_used"] += cores
        used["cost/cores"] += cores
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


def _families(document: Document) -> Iterator[tuple[str, int, Document]]:
    """All trees, joins and selections."""
    for kind in FAMILIES:
        yield from ((kind, index, family) for index, family in enumerate(document[kind]))


def _needed(document: Document) -> dict[str, dict[str, Document]]:
    """The operators that each admitted query needs, by their ids."""
    by_output = {each["output"]: each for each in document["operators"]}
    needed: dict[str, dict[str, Document]] = {}
    for query in document["queries"]:
        found: dict[str, Document] = {}
        streams = [query["stream"]] if query["admitted"] else []
        while streams:
            operator = by_output[streams.pop()]
            if operator["id"] not in found:
                found[operator["id"]] = operator
                streams += operator["inputs"]
        needed[query["name"]] = found
    return needed


def _carriers(document: Document, needed: Mapping[str, Mapping[str, Document]]) -> dict[str, str]:
    """Operators that families stand for, by their ids, with the first query that needs them: no scans, and
    all queries that need them are in families at their sites."""
    sites = {query: family["site"] for _, _, family in _families(document) for query in family["queries"]}
    first: dict[str, str] = {}
    others: set[str] = set()
    for query, operators in needed.items():
        for id_, operator in operators.items():
            first.setdefault(id_, query)
            if operator["kind"] == "scan" or operator["site"] != sites.get(query):
                others.add(id_)
    return {id_: query for id_, query in first.items() if id_ not in others}


def _uncarried(document: Document, carried: Collection[str]) -> Iterator[Document]:
    return (each for each in document["operators"] if each["id"] not in carried)


def _charge(engine: str, size: Mapping[str, float]) -> float:
    """What a family is charged: on Spark with reading, elsewhere no more than the operators that it stands
    for."""
    if engine == "spark":
        return size["cores/spark"] + size["reading_cores"]
    return min(size[f"cores/{engine}"], size["apart_cores"])


def _family(
    document: Document,
    kind: str,
    family: Document,
    needed: Mapping[str, Mapping[str, Document]],
    carried: Mapping[str, str],
) -> dict[str, float]:
    below = {id_: each for query in family["queries"] for id_, each in needed[query].items()}
    rate = sum(each["output_rows_per_s"] for each in below.values() if each["kind"] == "scan")
    operators = [below[id_] for id_ in family["operators"]]
    match kind:
        case "trees":
            size = _tree(document, operators, rate)
            own = [
                needed[query][id_]
                for query in family["queries"]
                for id_ in family["operators"]
                if id_ in needed[query]
            ]
            overlap = sum(map(_times_read, (each["windows"][0] for each in own)))
            size["operations_per_s"] = rate + size["edges_per_s"] * overlap
        case "joins":
            size = _join(document, family, operators, rate)
        case _:
            size = _selection(document, operators, rate)
    return {
        **size,
        "reading_cores": _reading_cores(document, rate),
        "apart_cores": fsum(
            each["cores"] for id_, each in below.items() if carried.get(id_) in family["queries"]
        ),
    }


def _tree(document: Document, operators: Sequence[Document], rate: float) -> dict[str, float]:
    windows = {
        (window["range_us"], window["slide_us"], window["offset_us"])
        for each in operators
        for window in each["windows"]
    }
    overlap = sum(range_us / slide_us for range_us, slide_us, _ in windows)
    slides_s = [each["windows"][0]["slide_us"] / MICROSECONDS for each in operators]
    groups = max(each["output_rows_per_s"] * slide for each, slide in zip(operators, slides_s, strict=True))
    finals = sum(each["output_rows_per_s"] for each in operators)
    edges = _edges_per_s(windows)
    partials = min(rate, edges * groups)
    cores = {
        f"cores/{engine}": (
            rate * unit["row_us"] + partials * overlap * unit["merge_us"] + finals * unit["final_us"]
        )
        / MICROSECONDS
        for engine, unit in document["unit_costs"]["trees"].items()
    }
    return {
        "rate_rows_per_s": rate,
        "edges_per_s": edges,
        "overlap": overlap,
        "groups": groups,
        "finals_per_s": finals,
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


def _join(document: Document, join: Document, operators: Iterable[Document], read: float) -> dict[str, float]:
    work = {key: join[key] for key in ("taken_rows_per_s", "kept_rows", "combinations_per_s")}
    given = sum(each["output_rows_per_s"] for each in operators)
    cores = {
        f"cores/{engine}": (
            read * unit["arriving_us"]
            + work["taken_rows_per_s"] * unit["taken_us"]
            + work["kept_rows"] * unit["kept_us"]
            + work["combinations_per_s"] * unit["combination_us"]
            + given * unit["result_us"]
        )
        / MICROSECONDS
        for engine, unit in document["unit_costs"]["joins"].items()
    }
    return {"input_rows_per_s": read, **work, "output_rows_per_s": given, **cores}


def _selection(document: Document, operators: Iterable[Document], read: float) -> dict[str, float]:
    given = sum(each["output_rows_per_s"] for each in operators)
    units = {engine: kinds["select"] for engine, kinds in document["unit_costs"]["engines"].items()}
    cores = {
        f"cores/{engine}": (read * unit["input_us_per_row"] + given * unit["output_us_per_row"])
        / MICROSECONDS
        for engine, unit in units.items()
    }
    return {"input_rows_per_s": read, "output_rows_per_s": given, **cores}


def _reading_cores(document: Document, read: float) -> float:
    scan = document["unit_costs"]["engines"]["spark"]["scan"]
    return float(read * scan["output_us_per_row"] / MICROSECONDS)


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
    for kind, index, family in _families(document):
        for key, value in family.items():
            if isinstance(value, float):
                yield f"{kind}/{index}/{key}", value
        for engine, cores in family["cores"].items():
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
