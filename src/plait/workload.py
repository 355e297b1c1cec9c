"""A workload: the catalog and the bound queries, as every later stage receives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from plait.catalog import Catalog, Sink
from plait.errors import Source, Span
from plait.plan.nodes import Node


@dataclass(frozen=True)
class Query:
    """A continuous query as bound: `plan` computes its rows, `columns` names them in order. `reads` are the
    names of the queries that it reads, whose plans are part of its own."""

    name: str
    plan: Node
    columns: tuple[str, ...]
    site: str | None = None
    sink: Sink = field(default_factory=Sink)
    span: Span | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Queries are keyed by lower-case name, in the order of their declaration. `texts` are what all of it
    was read from, each with the folder that its paths start from."""

    catalog: Catalog
    queries: Mapping[str, Query] = field(default_factory=lambda: MappingProxyType({}))
    texts: tuple[tuple[Path, Source], ...] = field(default=(), compare=False, repr=False)

    def query(self, name: str) -> Query:
        return self.queries[name.lower()]
