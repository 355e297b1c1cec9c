"""Sites, what they have to give, and the way between them.

Links go one way. Without any `CREATE LINK`, every site reaches every other directly and without limit. As
soon as there is one, data travels along links only, by way of other sites where that is the fastest
(least latency, then fewest links, then names; a latency that is not declared counts for nothing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from heapq import heappop, heappush
from itertools import chain, pairwise
from typing import NamedTuple

from plait.catalog import Catalog, Link, Relation, Site
from plait.quantity_text import bytes_per_s_text, bytes_text, number_text

LOCAL = "local"


class ResourceKind(Enum):
    CORES = "cores"
    MEMORY = "memory"
    OUTGOING = "outgoing bandwidth"
    INCOMING = "incoming bandwidth"
    LINK = "link"


class Resource(NamedTuple):
    """What a site has to give, or a link: SQPR's III.6a to d, and memory."""

    kind: ResourceKind
    site: str
    target: str = ""

    def __str__(self) -> str:
        if self.kind is ResourceKind.LINK:
            return f"the link from `{self.site}` to `{self.target}`"
        return f"the {self.kind.value} of `{self.site}`"

    def amount(self, quantity: float) -> str:
        """
        >>> Resource(ResourceKind.CORES, "pi").amount(2), Resource(ResourceKind.MEMORY, "pi").amount(2e9)
        ('2 cores of `pi`', '2 GB of the memory of `pi`')
        """
        if self.kind is ResourceKind.CORES:
            return f"{self.show(quantity)} {self.kind.value} of `{self.site}`"
        return f"{self.show(quantity)} of {self}"

    def show(self, quantity: float) -> str:
        """
        >>> Resource(ResourceKind.LINK, "a", "b").show(12_500_000)
        '12.5 MB/s'
        """
        match self.kind:
            case ResourceKind.CORES:
                return number_text(quantity)
            case ResourceKind.MEMORY:
                return bytes_text(quantity)
            case ResourceKind.OUTGOING | ResourceKind.INCOMING | ResourceKind.LINK:
                return bytes_per_s_text(quantity)


class Network:
    """The sites of a catalog, by name as declared. Without any `CREATE SITE`, there is one: `local`."""

    def __init__(self, catalog: Catalog) -> None:
        declared = list(catalog.sites.values()) or [Site(LOCAL)]
        self.sites: dict[str, Site] = {site.name: site for site in declared}
        self._by_key = {site.name.lower(): site.name for site in declared}
        self.default_site = declared[0].name
        self.links: dict[tuple[str, str], Link] = {
            (self.name_of(link.source), self.name_of(link.target)): link for link in catalog.links
        }
        self._outgoing: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for (source, target), link in sorted(self.links.items()):
            self._outgoing[source].append((target, link.latency_us or 0))
        self._routes: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {}

    @property
    def has_limits(self) -> bool:
        """Whether there can be too little of anything."""
        of_sites = (
            (site.cores, site.memory_bytes, site.in_bytes_per_s, site.out_bytes_per_s)
            for site in self.sites.values()
        )
        of_links = (link.bandwidth_bytes_per_s for link in self.links.values())
        return any(limit is not None for limit in chain(*of_sites, of_links))

    def name_of(self, site: str) -> str:
        return self._by_key[site.lower()]

    def home_of(self, relation: Relation) -> str:
        return self.default_site if relation.site is None else self.name_of(relation.site)

    def route(self, source: str, target: str) -> tuple[tuple[str, str], ...] | None:
        """The hops from one site to another; None if there is no way."""
        if source == target:
            return ()
        if not self.links:
            return ((source, target),)
        if source not in self._routes:
            self._routes[source] = self._fastest(source)
        return self._routes[source].get(target)

    def latency_us(self, hop: tuple[str, str]) -> int | None:
        """As declared; None is unknown."""
        return self.links[hop].latency_us if hop in self.links else None

    def known_latency_us(self, route: Iterable[tuple[str, str]]) -> int:
        """Of all hops together, as far as it is declared."""
        return sum(self.latency_us(hop) or 0 for hop in route)

    def limit(self, resource: Resource) -> float | None:
        """How much there is; None is without limit."""
        match resource:
            case Resource(ResourceKind.LINK, source, target):
                link = self.links.get((source, target))
                return None if link is None else link.bandwidth_bytes_per_s
            case Resource(kind, name):
                site = self.sites[name]
                return {
                    ResourceKind.CORES: site.cores,
                    ResourceKind.MEMORY: site.memory_bytes,
                    ResourceKind.OUTGOING: site.out_bytes_per_s,
                    ResourceKind.INCOMING: site.in_bytes_per_s,
                }[kind]

    def _fastest(self, source: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """Dijkstra's algorithm; a route is compared by latency, length and names."""
        routes: dict[str, tuple[tuple[str, str], ...]] = {}
        queue: list[tuple[int, int, tuple[str, ...]]] = [(0, 0, (source,))]
        while queue:
            latency_us, hops, path = heappop(queue)
            if path[-1] in routes:
                continue
            routes[path[-1]] = tuple(pairwise(path))
            for target, link_latency_us in self._outgoing[path[-1]]:
                if target not in routes:
                    heappush(queue, (latency_us + link_latency_us, hops + 1, (*path, target)))
        return routes
