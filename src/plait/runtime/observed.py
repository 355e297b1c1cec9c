"""What a run has observed, as statistics for plans that are made from then on.

| observed | known as |
|---|---|
| rows of a stream over the event time that they brought | its rate |
| values of columns, of streams of which all rows come to the database | numbers of distinct values, bytes |
| rows of a query, and rows that its window aggregate takes | the rate of that sub-plan, whoever has it |
| rows of Spark's own operators | the same |

A plan is never changed under a state: statistics decide about queries that are added. Those that a change was
planned with are part of it (`plait.runtime.changes`), so that the next start plans it in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from plait.catalog import Catalog, Stream
from plait.deployment.fragments import Fragment, Result
from plait.deployment.measured import measured_nodes
from plait.expressions.keeping import kept
from plait.expressions.types import Kind
from plait.plan.nodes import Aggregate, Node, Project, StreamScan, Window, scans_of, walk_plan
from plait.plan.signature import signature
from plait.runtime.slots import Slot
from plait.sharing.chains import chain_above
from plait.statistics import Basis, Estimate, Key, Statistics, type_bytes

NO_NODES: Mapping[Node, str] = MappingProxyType({})


def observed_statistics(
    catalog: Catalog,
    recent: Mapping[str, Slot],
    results: Iterable[Result],
    planned: Iterable[Node],
    fragments: Iterable[Fragment] = (),
) -> Statistics:
    """What is known of the streams, and of sub-plans of these plans that queries compute already, or Spark's
    operators in these fragments."""
    estimates: dict[Key, Estimate] = {}

    def know(name: str, what: str, value: float | None) -> None:
        if value is not None:
            estimates[name, what] = Estimate(value, Basis.OBSERVED)

    for slot in recent.values():
        for key, stream in catalog.streams.items():
            know(key, "rate", slot.rate(key))
            for column in stream.columns:
                name = column.name.lower()
                know(key, f"distinct.{name}", slot.last.get(f"distinct {key} {name}"))
            know(key, "row_bytes", _row_bytes(stream, slot))
    wanted = {
        signature(node) for plan in planned for node in walk_plan(plan) if not isinstance(node, StreamScan)
    }
    for result in results:
        if not wanted.isdisjoint(_signatures(result)):
            for node, rate in observed_rates(result.query, result.plan, recent.values()).items():
                if (name := signature(node)) in wanted:
                    know(name, "derived", rate)
    for fragment in fragments:
        for node, operator in measured_nodes(fragment).items():
            if fragment.name in recent and (name := signature(node)) in wanted:
                know(name, "derived", recent[fragment.name].rate(operator))
    return Statistics(MappingProxyType(estimates))


@kept
def _signatures(result: Result) -> tuple[str, ...]:
    """Of the nodes of which the rate may be known."""
    return tuple(map(signature, names_of_rates(result.query, result.plan)))


def observed_rates(query: str, plan: Node, recent: Iterable[Slot]) -> dict[Node, float]:
    """Rows a second of the nodes of a query's plan of which that is known."""
    found: dict[Node, float] = {}
    for node, name in names_of_rates(query, plan).items():
        kind, _, of = name.partition(" ")
        for slot in recent:
            rate = slot.last.get(name) if kind == "selected" else slot.rate(of)
            if rate is not None:
                found[node] = rate
    return found


def names_of_rates(query: str, plan: Node, measured: Mapping[Node, str] = NO_NODES) -> dict[Node, str]:
    """Where the rate of a node is found: `stream KEY`, `query NAME`, `operator ID`, or `selected NAME`. A
    projection has as many rows as what it is of; `measured` are nodes with operators that give them."""
    names: dict[Node, str] = {scan: f"stream {scan.stream.lower()}" for scan in scans_of(plan)}
    for node in walk_plan(plan):
        if node in measured:
            names.setdefault(node, f"operator {measured[node]}")
    aggregate = chain_above(plan).base
    if isinstance(aggregate, Aggregate) and isinstance(aggregate.input, Window):
        _name(names, aggregate.input.input, f"selected {query}")
    _name(names, plan, f"query {query}")
    return names


def _name(names: dict[Node, str], node: Node, name: str) -> None:
    names.setdefault(node, name)
    while isinstance(node, Project):
        node = node.input
        names.setdefault(node, name)


def _row_bytes(stream: Stream, slot: Slot) -> float | None:
    """The bytes of a row, if those of all its texts are known."""
    total = 0.0
    for column in stream.columns:
        if column.type.kind is not Kind.STRING:
            total += type_bytes(column.type)
            continue
        text = slot.last.get(f"bytes {stream.name.lower()} {column.name.lower()}")
        if text is None:
            return None
        total += text
    return total


def statistics_to_json(statistics: Statistics) -> dict[str, dict[str, float]]:
    """By relation, or signature, and what is known of it."""
    document: dict[str, dict[str, float]] = {}
    for (name, what), estimate in statistics.estimates.items():
        document.setdefault(name, {})[what] = estimate.value
    return document


def statistics_from_json(document: Mapping[str, Mapping[str, float]]) -> Statistics:
    return Statistics(
        MappingProxyType(
            {
                (str(name), str(what)): Estimate(float(value), Basis.OBSERVED)
                for name, known in document.items()
                for what, value in known.items()
            }
        )
    )
