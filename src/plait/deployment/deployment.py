"""A deployment: which operators run on which site and engine, which streams flow where, and which queries
are admitted. Immutable, and complete: every cost can be computed again from it
(docs/plan_document.md).

A stream has one operator that produces it. Two streams of equal signature have equal rows; a planner that
does not share keeps them apart by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from plait.cost.units import SPARK, UnitCosts
from plait.plan.nodes import Node, WindowSpecification
from plait.space import OperatorKind
from plait.workload import Query


class StreamKind(StrEnum):
    SOURCE = "source"
    TABLE = "table"
    DERIVED = "derived"


@dataclass(frozen=True)
class DeployedQuery:
    """A query and the stream that answers it, at the site that wants it; or why there is none."""

    name: str
    admitted: bool
    reason: str
    stream: str | None
    site: str | None
    columns: tuple[str, ...]
    sink: str | None = None


def sink_of(query: Query) -> str | None:
    """Where a query's rows go, as the document says it."""
    return str(query.sink) or None


@dataclass(frozen=True)
class DeployedStream:
    """`sources` are the streams and tables it is made of; `basis` says how its rate is known."""

    id: str
    signature: str
    kind: StreamKind
    sources: tuple[str, ...]
    rate_rows_per_s: float
    row_bytes: float
    basis: str

    @property
    def bytes_per_s(self) -> float:
        return self.rate_rows_per_s * self.row_bytes


@dataclass(frozen=True)
class Operator:
    """`windows` and `input_rows_per_s` stand beside `inputs`, one each.

    Of a join, `covers` says which of the inputs of the joined plan each input has joined already.
    """

    id: str
    kind: OperatorKind
    inputs: tuple[str, ...]
    windows: tuple[WindowSpecification | None, ...]
    covers: tuple[tuple[int, ...], ...]
    output: str
    site: str
    engine: str
    input_rows_per_s: tuple[float, ...]
    output_rows_per_s: float
    cores: float
    state_rows: float
    state_bytes: float


@dataclass(frozen=True)
class Shared:
    """Queries that are computed as one at a site, and the operators, by their ids, that are one in it.

    `cores` says what that costs on each engine, `reading_cores` what it takes to read its sources once more,
    as Spark would; `engine` is the one that computes it. `apart_cores` is what the operators take that it
    stands for: those at its site that such queries alone need, sources aside.
    """

    site: str
    engine: str
    queries: tuple[str, ...]
    operators: tuple[str, ...]
    cores: Mapping[str, float]
    reading_cores: float
    apart_cores: float

    @property
    def cores_used(self) -> float:
        """What it is charged for the operators: in the database never more than they would be."""
        if self.engine == SPARK:
            return self.cores[SPARK] + self.reading_cores
        return min(self.cores[self.engine], self.apart_cores)


@dataclass(frozen=True)
class Tree(Shared):
    """Window aggregates that share partials; their size is that of `cost.sharing.TreeSize`. Those that could
    share a tree do so if they are of one `part`. `operations_per_s` is what a tree costs by Eq. 1 of the
    aggregates paper, where every query counts for itself."""

    part: str
    operations_per_s: float
    rate_rows_per_s: float
    edges_per_s: float
    overlap: float
    groups: float
    finals_per_s: float


@dataclass(frozen=True)
class SharedJoin(Shared):
    """Joins that are one, by the greatest ranges: rows that arrive, what `cost.sharing.JoinWork` says, and
    rows that queries get. `part` is the same for those at other sites that would be one with it."""

    part: str
    input_rows_per_s: float
    taken_rows_per_s: float
    kept_rows: float
    combinations_per_s: float
    output_rows_per_s: float


@dataclass(frozen=True)
class SharedSelection(Shared):
    """Filters and projections that are one pass over a stream; the operators are the last of each query."""

    input_rows_per_s: float
    output_rows_per_s: float


@dataclass(frozen=True)
class Flow:
    """A stream on its way from one site to the next."""

    stream: str
    source: str
    target: str
    bytes_per_s: float


@dataclass(frozen=True)
class SiteUse:
    """A site's limits (None: no limit) and what the deployment uses of them."""

    name: str
    cores: float | None
    cores_used: float
    memory_bytes: int | None
    memory_bytes_used: float
    in_bytes_per_s: float | None
    in_bytes_per_s_used: float
    out_bytes_per_s: float | None
    out_bytes_per_s_used: float


@dataclass(frozen=True)
class LinkUse:
    """A link's limit and latency (None: not declared) and what the deployment sends over it."""

    source: str
    target: str
    bandwidth_bytes_per_s: float | None
    latency_us: int | None
    bytes_per_s_used: float


@dataclass(frozen=True)
class Cost:
    """`cores` is Eq. 6 of the federation paper, `bottleneck_cores` Eq. 5, with what is computed as one in
    place of the operators that it stands for; `network_bytes_in_transit` is the network usage of the
    hierarchical paper (rate × latency), as far as latencies are declared."""

    cores: float
    bottleneck_cores: float
    network_bytes_per_s: float
    network_bytes_in_transit: float
    state_rows: float
    state_bytes: float


@dataclass(frozen=True)
class Deployment:
    """`plans` says for each signature what its streams mean. `trees`, `joins` and `selections` are what
    queries have in common beyond equal operators."""

    queries: tuple[DeployedQuery, ...]
    streams: tuple[DeployedStream, ...]
    operators: tuple[Operator, ...]
    flows: tuple[Flow, ...]
    sites: tuple[SiteUse, ...]
    links: tuple[LinkUse, ...]
    cost: Cost
    unit_costs: UnitCosts
    plans: Mapping[str, Node] = field(repr=False)
    trees: tuple[Tree, ...] = ()
    joins: tuple[SharedJoin, ...] = ()
    selections: tuple[SharedSelection, ...] = ()

    @cached_property
    def stream_by_id(self) -> Mapping[str, DeployedStream]:
        return {stream.id: stream for stream in self.streams}

    @cached_property
    def producer_of(self) -> Mapping[str, Operator]:
        """The operator that produces a stream, by the stream's id."""
        return {operator.output: operator for operator in self.operators}

    @property
    def shared(self) -> tuple[Shared, ...]:
        return (*self.trees, *self.joins, *self.selections)

    @property
    def admitted(self) -> tuple[DeployedQuery, ...]:
        return tuple(query for query in self.queries if query.admitted)

    @property
    def refused(self) -> tuple[DeployedQuery, ...]:
        return tuple(query for query in self.queries if not query.admitted)

    @cached_property
    def users(self) -> Mapping[str, frozenset[str]]:
        """For each operator, by its id, the names of the admitted queries that need it."""
        users: dict[str, set[str]] = {operator.id: set() for operator in self.operators}
        for query in self.admitted:
            for operator in self.operators_of(query):
                users[operator.id].add(query.name)
        return {id_: frozenset(names) for id_, names in users.items()}

    def operators_of(self, query: DeployedQuery) -> tuple[Operator, ...]:
        """All operators that a query needs."""
        found: dict[str, Operator] = {}
        stack = [] if query.stream is None else [query.stream]
        while stack:
            stream = stack.pop()
            operator = self.producer_of[stream]
            if operator.id not in found:
                found[operator.id] = operator
                stack.extend(operator.inputs)
        return tuple(found.values())
