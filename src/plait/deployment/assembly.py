"""Putting a deployment together, one query at a time.

An `Assembly` is what is decided so far. A `Draft` adds what one more query needs; it is checked against
the limits of sites and links (SQPR's III.6: cores, bandwidth in and out, links; and memory) and then
committed as a whole or dropped as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count

from plait.cost.model import CostModel, OperatorCost
from plait.cost.network import Network, Resource, ResourceKind
from plait.cost.sizes import MICROSECONDS, Size
from plait.cost.units import SPARK
from plait.deployment.charging import ROUNDING, Charge, Charges
from plait.deployment.deployment import (
    Cost,
    DeployedQuery,
    DeployedStream,
    Deployment,
    Flow,
    LinkUse,
    Operator,
    SiteUse,
    StreamKind,
)
from plait.plan.nodes import Node, StreamScan, TableScan, WindowSpecification
from plait.plan.signature import signature
from plait.space import OperatorKind, Step


class UnreachableError(Exception):
    """A stream cannot get to a site."""

    def __init__(self, stream: str, source: str, target: str) -> None:
        super().__init__(f"`{stream}` cannot get from `{source}` to `{target}`: there is no link")


@dataclass(frozen=True)
class Overload:
    """A resource that does not suffice. `company` says with whom a query is charged for it, if it is."""

    resource: Resource
    needed: float
    used: float
    limit: float
    company: str = ""

    def __str__(self) -> str:
        show = self.resource.show
        free = max(0.0, self.limit - self.used)
        needed = f"needs {self.resource.amount(self.needed)}"
        return (
            f"{f'{self.company} it {needed} more' if self.company else needed}, "
            f"with {show(free)} of {show(self.limit)} left: {show(self.needed - free)} too much"
        )


class Usage:
    """What operators and flows take of each site and link, cores aside."""

    def __init__(self) -> None:
        self.taken: defaultdict[Resource, float] = defaultdict(float)

    def add_operator(self, operator: Operator) -> None:
        self.taken[Resource(ResourceKind.MEMORY, operator.site)] += operator.state_bytes

    def add_flow(self, flow: Flow) -> None:
        self.taken[Resource(ResourceKind.OUTGOING, flow.source)] += flow.bytes_per_s
        self.taken[Resource(ResourceKind.INCOMING, flow.target)] += flow.bytes_per_s
        self.taken[Resource(ResourceKind.LINK, flow.source, flow.target)] += flow.bytes_per_s

    def add(self, other: Usage) -> None:
        for resource, quantity in other.taken.items():
            self.taken[resource] += quantity


class Assembly:
    """All that is decided so far; `charges` says what queries take of the sites' cores."""

    def __init__(self, network: Network, cost: CostModel, charges: Charges) -> None:
        self.network = network
        self.cost = cost
        self.charges = charges
        self.usage = Usage()
        self.streams: dict[str, DeployedStream] = {}
        self.operators: dict[str, Operator] = {}
        self.flows: dict[tuple[str, str, str], Flow] = {}
        self.plans: dict[str, Node] = {}
        # Stream id by (scope, signature) and the site where it is produced.
        self.made: dict[tuple[str, str], dict[str, str]] = {}
        self.available: dict[str, set[str]] = {}
        # Sets of signatures that some operator joins: a quick answer to "could there be such a join?".
        self.joined: set[tuple[str, frozenset[str]]] = set()

    def deployment(self, queries: Iterable[DeployedQuery]) -> Deployment:
        operators, flows = tuple(self.operators.values()), tuple(self.flows.values())
        return Deployment(
            tuple(queries),
            tuple(self.streams.values()),
            operators,
            flows,
            self._sites(),
            self._links(),
            Cost(
                cores=sum(self.charges.cores.values()),
                bottleneck_cores=max((operator.cores for operator in operators), default=0.0),
                network_bytes_per_s=sum(flow.bytes_per_s for flow in flows),
                network_bytes_in_transit=sum(
                    flow.bytes_per_s
                    * self.network.known_latency_us([(flow.source, flow.target)])
                    / MICROSECONDS
                    for flow in flows
                ),
                state_rows=sum(operator.state_rows for operator in operators),
                state_bytes=sum(operator.state_bytes for operator in operators),
            ),
            self.cost.unit_costs,
            self.plans,
        )

    def _sites(self) -> tuple[SiteUse, ...]:
        def used(kind: ResourceKind, site: str) -> float:
            return self.usage.taken[Resource(kind, site)]

        return tuple(
            SiteUse(
                site.name,
                site.cores,
                self.charges.cores[site.name],
                site.memory_bytes,
                used(ResourceKind.MEMORY, site.name),
                site.in_bytes_per_s,
                used(ResourceKind.INCOMING, site.name),
                site.out_bytes_per_s,
                used(ResourceKind.OUTGOING, site.name),
            )
            for site in self.network.sites.values()
        )

    def _links(self) -> tuple[LinkUse, ...]:
        """All that are declared; where none is, those that are used."""
        in_use = sorted({(flow.source, flow.target) for flow in self.flows.values()})
        return tuple(
            LinkUse(
                source,
                target,
                self.network.limit(Resource(ResourceKind.LINK, source, target)),
                self.network.latency_us((source, target)),
                self.usage.taken[Resource(ResourceKind.LINK, source, target)],
            )
            for source, target in dict.fromkeys((*self.network.links, *in_use))
        )


class Draft:
    """What one more query adds. Streams are found by scope: queries of one scope share, others do not.
    Sources have a scope of their own, if one is given."""

    def __init__(self, assembly: Assembly, scope: str, source_scope: str | None = None) -> None:
        self.assembly = assembly
        self.scope = scope
        self._source_scope = scope if source_scope is None else source_scope
        self.usage = Usage()
        self.charge = Charge({})
        self.cores = 0.0
        self.network_bytes_per_s = 0.0
        self.state_bytes = 0.0
        self._streams: dict[str, DeployedStream] = {}
        self._operators: dict[str, Operator] = {}
        self._flows: dict[tuple[str, str, str], Flow] = {}
        self._plans: dict[str, Node] = {}
        self._made: dict[tuple[str, str], dict[str, str]] = {}
        self._available: dict[str, set[str]] = defaultdict(set)
        self._joined: set[tuple[str, frozenset[str]]] = set()

    def made(self, signature_: str) -> dict[str, str]:
        """Where the stream of a signature is produced: its id by site."""
        return self._made_in(self.scope, signature_)

    def read(self, signature_: str) -> dict[str, str]:
        """The same of a source."""
        return self._made_in(self._source_scope, signature_)

    def _made_in(self, scope: str, signature_: str) -> dict[str, str]:
        before = self.assembly.made.get((scope, signature_), {})
        new = self._made.get((scope, signature_), {})
        return {**before, **new} if before and new else before or new

    def stream(self, id_: str) -> DeployedStream:
        return self._streams.get(id_) or self.assembly.streams[id_]

    def origin(self, id_: str) -> str:
        """The site where a stream is produced."""
        return self._producer(id_).site

    def is_available(self, id_: str, site: str) -> bool:
        return site in self._available[id_] or site in self.assembly.available.get(id_, ())

    def operators_of(self, id_: str) -> list[Operator]:
        """All operators that a stream needs, the last first."""
        found: dict[str, Operator] = {}
        stack = [id_]
        while stack:
            operator = self._producer(stack.pop())
            if operator.id not in found:
                found[operator.id] = operator
                stack.extend(operator.inputs)
        return list(found.values())

    def is_joined(self, inputs: frozenset[str]) -> bool:
        return (self.scope, inputs) in self.assembly.joined

    def add_source(self, scan: StreamScan | TableScan, whole: Node, site: str) -> str:
        """Read a stream or table at its home."""
        name = scan.stream if isinstance(scan, StreamScan) else scan.table
        kind = StreamKind.SOURCE if isinstance(scan, StreamScan) else StreamKind.TABLE
        cost = self.assembly.cost
        size = cost.source_size(scan)
        return self._add(name, whole, kind, size, site, OperatorKind.SCAN, cost.scan(scan))

    def add_pruned_source(self, scan: StreamScan | TableScan, source: str, site: str) -> str:
        """Leave out the columns that a scan does not name."""
        self.bring(source, site)
        cost = self.assembly.cost
        return self._add(
            OperatorKind.PROJECT,
            scan,
            StreamKind.DERIVED,
            cost.size(scan),
            site,
            OperatorKind.PROJECT,
            cost.pruned_scan(scan),
            inputs=(source,),
            windows=(None,),
        )

    def add_step(self, step: Step, inputs: tuple[str, ...], site: str) -> str:
        """Run an operator at a site; its inputs flow there."""
        for each in inputs:
            self.bring(each, site)
        cost = self.assembly.cost
        if step.covers:
            self._joined.add((self.scope, frozenset(map(signature, step.output.inputs))))
        return self._add(
            step.kind.replace(" ", "_"),
            step.output,
            StreamKind.DERIVED,
            cost.size(step.output),
            site,
            step.kind,
            cost.operator(step),
            inputs=inputs,
            windows=tuple(each.window for each in step.inputs),
            covers=step.covers,
        )

    def bring(self, id_: str, site: str) -> None:
        """Make a stream available at a site, from the site that has it over the fewest links."""
        if self.is_available(id_, site):
            return
        network = self.assembly.network
        holders = sorted(self._available[id_] | self.assembly.available.get(id_, set()))
        routes = [route for holder in holders if (route := network.route(holder, site)) is not None]
        if not routes:
            raise UnreachableError(id_, self.origin(id_), site)
        bytes_per_s = self.stream(id_).bytes_per_s
        for source, target in min(routes, key=lambda r: (len(r), network.known_latency_us(r))):
            flow = Flow(id_, source, target, bytes_per_s)
            self._flows[id_, source, target] = flow
            self._available[id_].add(target)
            self.network_bytes_per_s += bytes_per_s
            self.usage.add_flow(flow)

    def charge_for(self, query: str, id_: str) -> None:
        """The draft is to answer a query by a stream."""
        self.charge = self.assembly.charges.of(query, self.operators_of(id_))

    def overload(self) -> Overload | None:
        """The resource that the draft would exceed most, in proportion to what there is of it."""
        assembly = self.assembly
        taken = [
            (resource, needed, assembly.usage.taken[resource], "")
            for resource, needed in self.usage.taken.items()
        ]
        taken += [
            (Resource(ResourceKind.CORES, site), needed, assembly.charges.cores[site], self.charge.company)
            for site, needed in self.charge.cores.items()
        ]
        overloads = []
        for resource, needed, used, company in taken:
            limit = assembly.network.limit(resource)
            if limit is not None and used + needed > limit * (1 + ROUNDING):
                overloads.append(Overload(resource, needed, used, limit, company))
        return max(overloads, key=lambda o: (o.used + o.needed) / o.limit, default=None)

    def commit(self) -> None:
        """Decide for the draft."""
        assembly = self.assembly
        assembly.streams.update(self._streams)
        assembly.operators.update(self._operators)
        assembly.flows.update(self._flows)
        assembly.plans.update(self._plans)
        assembly.joined |= self._joined
        assembly.usage.add(self.usage)
        assembly.charges.add(self.charge)
        for key, sites in self._made.items():
            assembly.made.setdefault(key, {}).update(sites)
        for id_, sites_with_it in self._available.items():
            assembly.available.setdefault(id_, set()).update(sites_with_it)

    def _add(
        self,
        label: str,
        plan: Node,
        kind: StreamKind,
        size: Size,
        site: str,
        operator_kind: OperatorKind,
        cost: OperatorCost,
        *,
        inputs: tuple[str, ...] = (),
        windows: tuple[WindowSpecification | None, ...] = (),
        covers: tuple[tuple[int, ...], ...] = (),
    ) -> str:
        signature_ = signature(plan)
        scope = self.scope if kind is StreamKind.DERIVED else self._source_scope
        id_ = self._new_id(
            scope, label if kind is not StreamKind.DERIVED else f"{label}_{signature_[:12]}", site
        )
        self._streams[id_] = DeployedStream(
            id_,
            signature_,
            kind,
            (label,) if not inputs else self._sources(inputs),
            size.rate_rows_per_s,
            size.row_bytes,
            str(size.basis),
        )
        operator = Operator(
            id_,
            operator_kind,
            inputs,
            windows,
            covers,
            id_,
            site,
            SPARK,
            cost.input_rows_per_s,
            cost.output_rows_per_s,
            cost.cores,
            cost.state_rows,
            cost.state_bytes,
        )
        self._operators[id_] = operator
        self._plans[signature_] = plan
        self._made.setdefault((scope, signature_), {})[site] = id_
        self._available[id_].add(site)
        self.cores += operator.cores
        self.state_bytes += operator.state_bytes
        self.usage.add_operator(operator)
        return id_

    def _producer(self, id_: str) -> Operator:
        return self._operators.get(id_) or self.assembly.operators[id_]

    def _sources(self, inputs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({source for each in inputs for source in self.stream(each).sources}))

    def _new_id(self, scope: str, label: str, site: str) -> str:
        """Readable, stable from plan to plan, and unique: by scope, then by site, then by number."""
        base = f"{scope}/{label}" if scope else label
        candidates = chain((base, f"{base}@{site}"), (f"{base}@{site}#{number}" for number in count(2)))
        return next(c for c in candidates if c not in self._streams and c not in self.assembly.streams)
