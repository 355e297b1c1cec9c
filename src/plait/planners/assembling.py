"""How one query becomes operators on sites.

Placement is simple and legal, not yet optimised. Sources are read at home. `NEAR_INPUTS`: an operator
runs where its inputs are if they are all at one site, else at the site that wants the query (or, if none
does, where most of the data is). `AT_QUERY`: everything but the sources runs at the site that wants the
query; it is the way out when a site near the inputs is full.

Within a scope, a stream that exists already is used again instead of computed again; from another site,
if its bytes are no more than those of the inputs that would have to come instead.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from plait.catalog import Catalog, Relation
from plait.deployment.assembly import Assembly, Draft
from plait.plan.nodes import Field, Join, Node, StreamScan, TableScan
from plait.plan.signature import signature
from plait.planners.join_order import Order
from plait.space import Step, input_of, join_step, step_of, stream_of, subjoin

JoinOrders: TypeAlias = Callable[[Join, Draft], Order]


class Placement(Enum):
    NEAR_INPUTS = auto()
    AT_QUERY = auto()


class QueryAssembler:
    """Adds to a draft what a query needs. `wanted_at` is the site that wants it, if one does."""

    def __init__(
        self,
        catalog: Catalog,
        assembly: Assembly,
        *,
        scope: str,
        wanted_at: str | None,
        placement: Placement,
        join_orders: JoinOrders,
    ) -> None:
        self.draft = Draft(assembly, scope)
        self._catalog = catalog
        self._network = assembly.network
        self._cost = assembly.cost
        self._wanted_at = wanted_at
        self._placement = placement
        self._join_orders = join_orders

    def assemble(self, plan: Node) -> str:
        """The id of the stream that answers the query, available where it is wanted."""
        id_ = self._obtain(stream_of(plan))
        if self._wanted_at is not None:
            self.draft.bring(id_, self._wanted_at)
        return id_

    def _obtain(self, node: Node) -> str:
        existing = self._existing(node)
        if existing is not None:
            return existing
        if isinstance(node, StreamScan | TableScan):
            return self._scan(node)
        if isinstance(node, Join):
            return self._join(node, self._join_orders(node, self.draft))
        step = step_of(node)
        return self._run(step, tuple(self._obtain(each.stream) for each in step.inputs))

    def _join(self, join: Join, order: Order) -> str:
        """The sub-join of the order's members, from the one without the last of them."""
        if len(order) == 1:
            return self._obtain(input_of(join.inputs[order[0]]).stream)
        existing = self._existing(subjoin(join, tuple(sorted(order))))
        if existing is not None:
            return existing
        left, right = order[:-1], order[-1:]
        return self._run(join_step(join, left, right), (self._join(join, left), self._join(join, right)))

    def _scan(self, scan: StreamScan | TableScan) -> str:
        relation: Relation
        if isinstance(scan, StreamScan):
            relation = self._catalog.stream(scan.stream)
        else:
            relation = self._catalog.table(scan.table)
        fields = tuple(Field(column.name, column.type) for column in relation.columns)
        whole: Node = type(scan)(relation.name, fields)
        home = self._network.home_of(relation)
        source = self.draft.made(signature(whole)).get(home) or self.draft.add_source(scan, whole, home)
        if whole == scan:
            return source
        site = self._site_for((source,))
        self.draft.bring(source, site)
        return self.draft.add_pruned_source(scan, source, site)

    def _run(self, step: Step, inputs: tuple[str, ...]) -> str:
        return self.draft.add_step(step, inputs, self._site_for(inputs))

    def _existing(self, node: Node) -> str | None:
        """A stream of the same rows that is as good as a new one."""
        made = self.draft.made(signature(node))
        if not made:
            return None
        if self._wanted_at in made:
            return made[self._wanted_at]
        nearest = made[min(made)]
        if self._placement is Placement.AT_QUERY:
            return None if self._wanted_at is not None else nearest
        if self._wanted_at is None or len(node.inputs) <= 1:
            return nearest
        missing = sum(self._missing_bytes_per_s(input_of(each).stream) for each in node.inputs)
        return nearest if self._cost.size(node).bytes_per_s <= missing else None

    def _missing_bytes_per_s(self, node: Node) -> float:
        """What would have to flow to the site that wants the query if the node were read there."""
        assert self._wanted_at is not None
        made = self.draft.made(signature(node)).values()
        if any(self.draft.is_available(id_, self._wanted_at) for id_ in made):
            return 0.0
        return self._cost.size(node).bytes_per_s

    def _site_for(self, inputs: tuple[str, ...]) -> str:
        if self._placement is Placement.AT_QUERY:
            return self._wanted_at or self._network.default_site
        origins = {self.draft.origin(id_) for id_ in inputs}
        if len(origins) == 1:
            return origins.pop()
        if self._wanted_at is not None:
            return self._wanted_at
        return self.draft.origin(max(inputs, key=lambda id_: (self.draft.stream(id_).bytes_per_s, id_)))
