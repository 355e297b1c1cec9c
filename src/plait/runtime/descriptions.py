"""What observed numbers are of, as documents: the plan of each query with what was estimated of it, and the
operators of each fragment with whom they serve. They are kept with the numbers, so that whoever shows them
needs neither the run nor the SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import sleep
from typing import Any

from plait.cost.model import CostModel
from plait.deployment.describe import description
from plait.deployment.fragments import Fragment, Result
from plait.deployment.measured import measured_nodes
from plait.observations import Meter
from plait.plan.nodes import (
    Aggregate,
    Node,
    RangeWindow,
    StreamScan,
    TableScan,
    Ticking,
    TickWindow,
    Window,
    sources_of,
)
from plait.runtime.observed import names_of_rates
from plait.runtime.query_set import QuerySet
from plait.statistics import NO_STATISTICS, declared

FRAGMENT = "fragment"
QUERY = "query"

# Between two queries, for whatever else has to be done.
_PAUSE_SECONDS = 0.001


class Descriptions:
    """The documents of a run. Those of a query are made once for each fragment that computes it. `meters` are
    of a fragment's operators."""

    def __init__(self, meters: Callable[[str], Iterable[Meter]]) -> None:
        self._meters = meters
        self._queries: dict[tuple[str, str], dict[str, Any]] = {}

    def of(self, queries: QuerySet) -> dict[str, dict[str, Any]]:
        """All that describes a set of queries, each of which was planned with statistics beside what is
        declared."""
        catalog = queries.workload.catalog
        models: dict[int, CostModel] = {}
        known, self._queries = self._queries, {}
        for fragment in queries.fragments:
            for result in fragment.results:
                if result.gives.has_end:
                    continue  # it is described where it is handed over to
                key = result.query, fragment.name
                if key not in known:
                    own = queries.planned_with.get(result.query, NO_STATISTICS)
                    if id(own) not in models:
                        models[id(own)] = CostModel(catalog, declared(catalog).with_(own))
                    known[key] = _query(result, fragment, models[id(own)])
                    sleep(_PAUSE_SECONDS)
                self._queries[key] = known[key]
        of_queries = {query: document for (query, _), document in self._queries.items()}
        return {FRAGMENT: self.of_fragments(queries), QUERY: of_queries}

    def of_fragments(self, queries: QuerySet) -> dict[str, dict[str, Any]]:
        return {each.name: self._fragment(each) for each in queries.fragments}

    def _fragment(self, fragment: Fragment) -> dict[str, Any]:
        readers: dict[str, list[str]] = {}
        for result in fragment.results:
            for stream in sources_of(result.plan)[0]:
                readers.setdefault(stream.lower(), []).append(result.query)
        return {
            "way": str(fragment.way),
            "readers": readers,
            "queries": [result.query for result in fragment.results],
            "operators": {meter.id: _operator(meter) for meter in self._meters(fragment.name)},
        }


def _operator(meter: Meter) -> dict[str, Any]:
    document: dict[str, Any] = {
        "form": str(meter.form),
        "queries": [*meter.queries],
        "streams": [*meter.streams],
    }
    if meter.weights is not None:
        document["weights"] = [meter.weights[query] for query in meter.queries]
    if meter.windows_per_s is not None:
        document["windows_per_s"] = meter.windows_per_s
    return document


def _query(result: Result, fragment: Fragment, cost: CostModel) -> dict[str, Any]:
    rates = names_of_rates(result.query, result.plan, measured_nodes(fragment))
    numbers: dict[Node, int] = {}
    return {
        "fragment": fragment.name,
        "steps": [
            _step(node, numbers, cost, rates.get(node)) for node in _inputs_first(result.plan, numbers)
        ],
    }


def _step(node: Node, numbers: Mapping[Node, int], cost: CostModel, rate: str | None) -> dict[str, Any]:
    size = cost.size(node)
    return {
        "number": numbers[node],
        "inputs": [numbers[each] for each in node.inputs],
        "kind": _kind_text(node),
        "text": description(node),
        "stream": node.stream.lower() if isinstance(node, StreamScan) else None,
        "rate": rate,  # where the observed one is found
        "has_groups": isinstance(node, Aggregate),
        "rows_per_s": size.rate_rows_per_s,
        # Of a window what it holds, of an aggregate its groups.
        "rows": size.relation_rows if isinstance(node, Aggregate | Window) else None,
        "seconds": _seconds_held(node),  # so many of them at a time
        "basis": str(size.basis),
    }


def _seconds_held(node: Node) -> float | None:
    """For how long the rows come that are held at once: of a window its range, of groups a slide."""
    match node:
        case Aggregate(timing=Ticking(slide_us)):
            return slide_us / 1e6
        case Window(window=RangeWindow(range_us) | TickWindow(range_us)):
            return range_us / 1e6
        case _:
            return None


def _kind_text(node: Node) -> str:
    match node:
        case StreamScan(stream):
            return f"read {stream}"
        case TableScan(table):
            return f"table {table}"
        case _:
            return str(node.kind)


def _inputs_first(node: Node, numbers: dict[Node, int]) -> Iterator[Node]:
    """All nodes of a plan, each once, inputs before what uses them; numbered so."""
    if node in numbers:
        return
    for each in node.inputs:
        yield from _inputs_first(each, numbers)
    numbers[node] = len(numbers) + 1
    yield node
