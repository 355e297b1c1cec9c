"""How one query becomes operators on sites.

Placement is simple and legal, not yet optimised. Sources are read at home. `NEAR_INPUTS`: an operator runs
where its inputs are if they are all at one site, else at the site that wants the query (or, if none does,
where the largest of them is). `AT_SITE`: everything but the sources runs at one site; that of the query is
the way out when a site near the inputs is full.

A stream that exists already in the query's scope is used again instead of computed again: always where the
operator would run anyway, and from other sites too if `Reuse.ANYWHERE` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from plait.catalog import Catalog
from plait.deployment.assembly import Assembly, Draft
from plait.plan.nodes import Join, Node, StreamScan, TableScan
from plait.plan.signature import signature
from plait.planners.join_order import Order
from plait.space import Space, input_of, relation_of, step_of, stream_of, whole_scan

JoinOrders: TypeAlias = Callable[[Join, Draft], Order]


class Placement(Enum):
    NEAR_INPUTS = auto()
    AT_SITE = auto()


class Reuse(Enum):
    IN_PLACE = auto()
    ANYWHERE = auto()


class QueryAssembler:
    """Adds to a draft what a query needs. `wanted_at` is the site that wants it, if one does, and `at` where
    it is computed, if that is given. Sources may have a scope of their own."""

    def __init__(
        self,
        catalog: Catalog,
        assembly: Assembly,
        space: Space,
        *,
        scope: str,
        source_scope: str | None = None,
        wanted_at: str | None,
        at: str | None = None,
        placement: Placement,
        reuse: Reuse,
        join_orders: JoinOrders,
    ) -> None:
        self.draft = Draft(assembly, scope, source_scope)
        self._catalog = catalog
        self._network = assembly.network
        self._cost = assembly.cost
        self._space = space
        self._wanted_at = wanted_at
        self._at = at or wanted_at or assembly.network.default_site
        self._placement = placement
        self._reuse = reuse
        self._join_orders = join_orders
        self._sites: dict[Node, str] = {}

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
        inputs = tuple(self._obtain(each.stream) for each in step.inputs)
        return self.draft.add_step(step, inputs, self._site(node))

    def _join(self, join: Join, order: Order) -> str:
        """The join of all its inputs, from the one without the last of the order."""
        existing = self._existing(join)
        if existing is not None:
            return existing
        *before, last = order
        if len(before) == 1:
            left = self._obtain(input_of(join.inputs[before[0]]).stream)
        else:
            smaller, members = self._space.members_joined(join, tuple(sorted(before)))
            left = self._join(smaller, tuple(members.index(member) for member in before))
        right = self._obtain(input_of(join.inputs[last]).stream)
        return self.draft.add_step(
            self._space.join_step(join, before, (last,)), (left, right), self._site(join)
        )

    def _scan(self, scan: StreamScan | TableScan) -> str:
        whole = whole_scan(scan, self._catalog)
        home = self._network.home_of(relation_of(scan, self._catalog))
        source = self.draft.read(signature(whole)).get(home) or self.draft.add_source(scan, whole, home)
        if whole == scan:
            return source
        return self.draft.add_pruned_source(scan, source, self._site(scan))

    def _existing(self, node: Node) -> str | None:
        """A stream of the same rows that can be used."""
        made = self.draft.made(signature(node))
        if not made:
            return None
        site = self._site(node)
        if site in made or self._reuse is Reuse.IN_PLACE:
            return made.get(site)
        return made[min(made, key=lambda other: (len(self._network.route(other, site) or ()), other))]

    def _site(self, node: Node) -> str:
        """Where the operator that computes the node runs."""
        if len(self._network.sites) == 1:
            return self._network.default_site
        if node not in self._sites:
            self._sites[node] = self._choose_site(node)
        return self._sites[node]

    def _choose_site(self, node: Node) -> str:
        if self._placement is Placement.AT_SITE:
            return self._at
        if isinstance(node, StreamScan | TableScan):
            return self._network.home_of(relation_of(node, self._catalog))
        inputs = [input_of(each).stream for each in node.inputs]
        sites = {self._site(each) for each in inputs}
        if len(sites) == 1:
            return sites.pop()
        if self._wanted_at is not None:
            return self._wanted_at
        return self._site(max(inputs, key=lambda each: self._cost.size(each).bytes_per_s))
