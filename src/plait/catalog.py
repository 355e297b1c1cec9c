"""What is declared: streams, tables, sites, links. Immutable, so that planners can only read it.

A value of a `WITH` option that came from the environment (`${NAME}`) is a `Secret`: it prints as its name.

| connector | of | options |
|---|---|---|
| `` | streams, tables | none: for planning only, or rows given in Python |
| `files` | streams, tables | `path`, `format`, `header`, `delimiter`; of a stream `files_per_batch` |
| `spark` | streams | `format`, `path`, `value_format` (`json`); `option.NAME` for each option of Spark's |
| `generator` | streams | `generator`, `seed` |
| `duckdb` | tables | `path`, `table` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from plait.errors import Span
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

# What the names of options begin with that Spark is given as they are, their case kept.
PASSED_ON = "option."


def revealed(value: OptionValue) -> str:
    """A value as whoever needs it is given it."""
    match value:
        case Secret():
            return value.reveal()
        case bool():
            return str(value).lower()
        case _:
            return str(value)


@dataclass(frozen=True)
class ColumnDefinition:
    """`storage` differs from `type` where a column is widened on reading (FLOAT)."""

    name: str
    type: Type
    distinct: int | None = None  # declared number of distinct values
    storage: str = ""


@dataclass(frozen=True)
class Relation:
    """What streams and tables have in common: a schema and where the data is.

    The keys of `options` are in lower case, except for the NAME in `option.NAME`.
    """

    name: str
    columns: tuple[ColumnDefinition, ...]
    connector: str
    # The connector's own.
    options: Mapping[str, OptionValue] = field(default_factory=lambda: EMPTY)
    site: str | None = None
    row_bytes: int | None = None

    def column(self, name: str) -> ColumnDefinition | None:
        """The column of that name, whatever its case."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    @property
    def spark_options(self) -> Mapping[str, str]:
        """What connector `spark` gives to Spark, secrets revealed."""
        return {
            key.removeprefix(PASSED_ON): revealed(value)
            for key, value in self.options.items()
            if key.startswith(PASSED_ON)
        }


@dataclass(frozen=True)
class Stream(Relation):
    """`start` is 'earliest', 'latest' or a time; `end` is the time before which a generator ends, if it does.

    Times are written `YYYY-MM-DD HH:MM:SS[.ffffff]`, in UTC. `span` is where it is declared.
    """

    event_time: str = ""
    delay_us: int = 0
    rate_rows_per_s: float | None = None
    start: str = "earliest"
    end: str | None = None
    idle_timeout_us: int | None = None
    max_future_us: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


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


class SinkKind(StrEnum):
    PARQUET = "parquet"
    JSON = "json"  # one object a line
    CONSOLE = "console"
    MEMORY = "memory"
    SPARK = "spark"  # any format that Spark writes

    @property
    def writes_files(self) -> bool:
        """Whether the results are files of ours, in a folder."""
        return self in (SinkKind.PARQUET, SinkKind.JSON)


@dataclass(frozen=True)
class Keeping:
    """How long results that are files are kept, and how: rows for `age_us` after they were published, files
    of `size_bytes` in all; small files are merged when they are `merge_after_us` old. None: not asked for."""

    age_us: int | None = None
    size_bytes: int | None = None
    merge_after_us: int | None = None

    @property
    def has_limit(self) -> bool:
        return self.age_us is not None or self.size_bytes is not None

    def or_else(self, other: Keeping) -> Keeping:
        """What is not asked for here is as there. A limit of one's own takes the place of both."""
        limits = self if self.has_limit else other
        merge_after_us = other.merge_after_us if self.merge_after_us is None else self.merge_after_us
        return Keeping(limits.age_us, limits.size_bytes, merge_after_us)


AS_THEY_ARE = Keeping()


@dataclass(frozen=True)
class Sink:
    """Where a query's rows go.

    `target` is the folder of results (None: the query's own, below that of all results), or the path that
    `spark` writes to. `format` and `options` are those of `spark`; option names are as written. `keeping` is
    for files of ours.
    """

    kind: SinkKind = SinkKind.PARQUET
    target: str | None = None
    format: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=lambda: EMPTY)
    keeping: Keeping = AS_THEY_ARE

    @property
    def spark_options(self) -> Mapping[str, str]:
        """What Spark is given, secrets revealed."""
        return {name: revealed(value) for name, value in self.options.items()}

    @property
    def is_delta(self) -> bool:
        """Delta recognises a batch that it has been given before."""
        return self.format is not None and self.format.lower() == "delta"

    def __str__(self) -> str:
        """In words, without secrets; Parquet files are their folder, and nothing without one."""
        kind = "" if self.kind is SinkKind.PARQUET else self.kind
        return " ".join(filter(None, (kind, self.format, self.target)))


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
