"""What is known about streams and tables: rates, sizes, numbers of distinct values, and how each is
known.

A planner asks an oracle. "Unknown" is `None`, never zero: who needs a number anyway takes an
`Assumption`, which says what was assumed and how the real number can be given; `notices_of` turns
assumptions into notices.

Where several sources know the same number, what was observed while running wins over what was declared,
and what was declared wins over a sample of stored data: a declaration is deliberate, stored data may be
old.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Protocol, TypeAlias

from plait.catalog import Catalog, Relation, Stream, Table
from plait.expressions.types import Kind, Type
from plait.notices import Notice


class Basis(IntEnum):
    """How a number is known. A number made of several is known as the least of them."""

    ASSUMED = 0
    SAMPLED = 1
    DECLARED = 2
    OBSERVED = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Estimate:
    value: float
    basis: Basis


# Which number: (relation in lower case, `rate` | `rows` | `row_bytes` | `distinct.<column in lower case>`);
# or (signature, `derived`), the rows a second of what a plan gives.
Key: TypeAlias = tuple[str, str]


class StatisticsOracle(Protocol):
    """What a planner may ask. `None` is "unknown"."""

    def rate_rows_per_s(self, stream: str) -> Estimate | None: ...
    def rows(self, table: str) -> Estimate | None: ...
    def row_bytes(self, relation: str) -> Estimate | None: ...
    def distinct(self, relation: str, column: str) -> Estimate | None: ...
    def derived_rate(self, signature: str) -> Estimate | None: ...


@dataclass(frozen=True)
class Statistics:
    """An oracle that answers from a table of numbers.

    >>> known = Statistics({("flights", "rate"): Estimate(5, Basis.DECLARED)})
    >>> known.rate_rows_per_s("Flights")
    Estimate(value=5, basis=<Basis.DECLARED: 2>)
    >>> known.distinct("flights", "num") is None
    True
    """

    estimates: Mapping[Key, Estimate]
    notices: tuple[Notice, ...] = ()  # what to know about the rows that the numbers come from

    def rate_rows_per_s(self, stream: str) -> Estimate | None:
        return self.estimates.get((stream.lower(), "rate"))

    def rows(self, table: str) -> Estimate | None:
        return self.estimates.get((table.lower(), "rows"))

    def row_bytes(self, relation: str) -> Estimate | None:
        return self.estimates.get((relation.lower(), "row_bytes"))

    def distinct(self, relation: str, column: str) -> Estimate | None:
        return self.estimates.get((relation.lower(), f"distinct.{column.lower()}"))

    def derived_rate(self, signature: str) -> Estimate | None:
        """What a plan of that signature was seen to give, rows a second."""
        return self.estimates.get((signature, "derived"))

    def with_(self, other: Statistics) -> Statistics:
        """Both; where both know a number, the one that is known better."""
        merged = dict(self.estimates)
        for key, estimate in other.estimates.items():
            if key not in merged or estimate.basis >= merged[key].basis:
                merged[key] = estimate
        return Statistics(MappingProxyType(merged), (*self.notices, *other.notices))


NO_STATISTICS = Statistics(MappingProxyType({}))


def declared(catalog: Catalog) -> Statistics:
    """What the `WITH (…)` options of streams and tables say."""
    estimates: dict[Key, Estimate] = {}

    def declare(relation: Relation, name: str, value: float | None) -> None:
        if value is not None:
            estimates[relation.name.lower(), name] = Estimate(value, Basis.DECLARED)

    for relation in (*catalog.streams.values(), *catalog.tables.values()):
        declare(relation, "row_bytes", relation.row_bytes)
        for column in relation.columns:
            declare(relation, f"distinct.{column.name.lower()}", column.distinct)
    for stream in catalog.streams.values():
        declare(stream, "rate", stream.rate_rows_per_s)
    for table in catalog.tables.values():
        declare(table, "rows", table.rows)
    return Statistics(MappingProxyType(estimates))


# Assumptions: round numbers that make plans possible, and are said to be assumptions wherever they are used.
ASSUMED_RATE_ROWS_PER_S = 100.0
ASSUMED_TABLE_ROWS = 1_000.0
ASSUMED_DISTINCT = 100.0
ASSUMED_STRING_BYTES = 16.0

TYPE_BYTES = {
    Kind.BOOLEAN: 1.0,
    Kind.TINYINT: 1.0,
    Kind.SMALLINT: 2.0,
    Kind.INT: 4.0,
    Kind.BIGINT: 8.0,
    Kind.DOUBLE: 8.0,
    Kind.STRING: ASSUMED_STRING_BYTES,
    Kind.DATE: 4.0,
    Kind.TIMESTAMP: 8.0,
    Kind.INTERVAL: 8.0,
}


def type_bytes(type_: Type) -> float:
    """Bytes of a value, uncompressed.

    >>> from plait.expressions.types import INT, decimal
    >>> type_bytes(INT), type_bytes(decimal(10, 2)), type_bytes(decimal(20, 2))
    (4.0, 8.0, 16.0)
    """
    if type_.kind is Kind.DECIMAL:
        return 8.0 if type_.precision <= 18 else 16.0
    return TYPE_BYTES[type_.kind]


@dataclass(frozen=True, order=True)
class Assumption:
    """A number that nobody gave: `statistic` is spelled as the option that gives it."""

    relation: str
    statistic: str
    value: float

    @property
    def option(self) -> str:
        return f"{self.statistic} = {self.value:g}"


class Known:
    """The oracle's answers, with assumptions in place of what it does not know."""

    def __init__(self, oracle: StatisticsOracle) -> None:
        self._oracle = oracle

    def rate_rows_per_s(self, stream: Stream) -> Estimate | Assumption:
        known = self._oracle.rate_rows_per_s(stream.name)
        return known or Assumption(stream.name, "rate", ASSUMED_RATE_ROWS_PER_S)

    def rows(self, table: Table) -> Estimate | Assumption:
        return self._oracle.rows(table.name) or Assumption(table.name, "rows", ASSUMED_TABLE_ROWS)

    def row_bytes(self, relation: Relation) -> Estimate | Assumption:
        """From the types if nothing else is known: an assumption only where there are strings."""
        known = self._oracle.row_bytes(relation.name)
        if known is not None:
            return known
        width = sum(type_bytes(column.type) for column in relation.columns)
        if any(column.type.kind is Kind.STRING for column in relation.columns):
            return Assumption(relation.name, "row_bytes", width)
        return Estimate(width, Basis.DECLARED)

    def derived_rate(self, signature: str) -> Estimate | None:
        return self._oracle.derived_rate(signature)

    def distinct(self, relation: Relation, column: str) -> Estimate | Assumption:
        known = self._oracle.distinct(relation.name, column)
        if known is not None:
            return known
        definition = relation.column(column)
        if definition is not None and definition.type.kind is Kind.BOOLEAN:
            return Estimate(2.0, Basis.DECLARED)
        rows = self._oracle.rows(relation.name) if isinstance(relation, Table) else None
        most = ASSUMED_DISTINCT if rows is None else max(1.0, min(ASSUMED_DISTINCT, rows.value))
        return Assumption(relation.name, f"distinct.{column}", most)


def notices_of(assumptions: Iterable[Assumption]) -> tuple[Notice, ...]:
    """One notice for each relation, naming every number that was assumed and how to give it.

    >>> print(notices_of([Assumption("flights", "rate", 100.0)])[0].render())
    notice[assumed-statistics]: the plan rests on assumptions about `flights`: rate = 100
      hint: declare them: WITH (rate = …), or let `plait plan --sample` estimate them from stored data
    """
    by_relation: dict[str, list[Assumption]] = defaultdict(list)
    for assumption in sorted(set(assumptions)):
        by_relation[assumption.relation].append(assumption)
    return tuple(
        Notice(
            "assumed-statistics",
            f"the plan rests on assumptions about `{relation}`: {', '.join(a.option for a in assumed)}",
            f"declare them: WITH ({', '.join(f'{a.statistic} = …' for a in assumed)}), "
            "or let `plait plan --sample` estimate them from stored data",
        )
        for relation, assumed in by_relation.items()
    )
