"""What is declared: streams, tables, sites, links. Immutable, so that planners can only read it.

A value of a `WITH` option that came from the environment (`${NAME}`) is a `Secret`: it prints as its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from plait.expressions.types import Type


@dataclass(frozen=True)
class Secret:
    """A text with values from the environment in it, which only `reveal()` shows: `str` and `repr` do not."""

    template: str
    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return self.template


OptionValue: TypeAlias = str | int | float | bool | Secret

EMPTY: Mapping[str, OptionValue] = MappingProxyType({})


@dataclass(frozen=True)
class ColumnDefinition:
    """`storage` differs from `type` where a column is widened on reading (FLOAT)."""

    name: str
    type: Type
    distinct: int | None = None  # declared number of distinct values
    storage: str = ""


@dataclass(frozen=True)
class Relation:
    """What streams and tables have in common: a schema and where the data is."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    connector: str
    # The connector's own: path, format, …
    options: Mapping[str, OptionValue] = field(default_factory=lambda: EMPTY)
    site: str | None = None
    row_bytes: int | None = None

    def column(self, name: str) -> ColumnDefinition | None:
        """The column of that name, whatever its case."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Stream(Relation):
    event_time: str = ""
    delay_us: int = 0
    rate_rows_per_s: float | None = None
    start: str = "earliest"
    idle_timeout_us: int | None = None
    max_future_us: int | None = None


@dataclass(frozen=True)
class Table(Relation):
    rows: int | None = None


@dataclass(frozen=True)
class Site:
    """None: not declared, which limits nothing."""

    name: str
    cores: float | None = None
    memory_bytes: int | None = None
    in_bytes_per_s: float | None = None
    out_bytes_per_s: float | None = None
    database: str | None = None


@dataclass(frozen=True)
class Link:
    source: str
    target: str
    bandwidth_bytes_per_s: float | None = None
    latency_us: int | None = None


@dataclass(frozen=True)
class Sink:
    """Where a query's rows go: a folder."""

    target: str


@dataclass(frozen=True)
class Catalog:
    """Names are matched without regard to case and shown as declared; keys are lower case."""

    streams: Mapping[str, Stream] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    sites: Mapping[str, Site] = field(default_factory=lambda: MappingProxyType({}))
    links: tuple[Link, ...] = ()

    def stream(self, name: str) -> Stream:
        return self.streams[name.lower()]

    def table(self, name: str) -> Table:
        return self.tables[name.lower()]
