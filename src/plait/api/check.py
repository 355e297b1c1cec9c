"""What is declared, shown: that it is all right is known since it was opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plait.api.html import html_line, html_table
from plait.notices import Notice
from plait.plan.nodes import sources_of
from plait.quantity_text import counted, number_text
from plait.statistics import Statistics, declared
from plait.table_text import table_text
from plait.workload import Query, Workload


def counts_text(workload: Workload) -> str:
    """How much of everything there is."""
    catalog = workload.catalog
    counts = (
        counted(len(catalog.streams), "stream"),
        counted(len(catalog.tables), "table"),
        counted(len(catalog.sites), "site"),
        counted(len(workload.queries), "query", "queries"),
    )
    return ", ".join(counts)


class Check:
    """What is declared, for reading and for machines."""

    def __init__(self, workload: Workload, sampled: Statistics | None = None) -> None:
        self.workload = workload
        self.sampled = sampled

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to know about the sample."""
        return () if self.sampled is None else self.sampled.notices

    def to_text(self, width: int | None = None) -> str:
        parts = [f"all right: {counts_text(self.workload)}"]
        for columns, rows, numeric in self._tables():
            parts.append(table_text(columns, rows, numeric=numeric, width=width))
        return "\n\n".join(parts)

    def _tables(self) -> Iterator[tuple[list[str], list[list[str]], set[int]]]:
        """Columns, cells, and which columns are numbers."""
        queries = self.workload.queries
        if queries:
            yield ["query", "of", "gives"], query_cells(queries.values()), set()
        if self.sampled is not None:
            rows = [
                [
                    each["relation"],
                    each["statistic"],
                    *map(_estimate_text, (each["declared"], each["sampled"])),
                ]
                for each in self._statistics()
            ]
            yield ["stream or table", "statistic", "declared", "sampled"], rows, {2, 3}

    def _statistics(self) -> list[dict[str, Any]]:
        """What was sampled, beside what is declared."""
        if self.sampled is None:
            return []
        known = declared(self.workload.catalog).estimates
        found = []
        for key, estimate in self.sampled.estimates.items():
            said = known.get(key)
            relation, statistic = key
            found.append(
                {
                    "relation": relation,
                    "statistic": statistic,
                    "declared": None if said is None else said.value,
                    "sampled": estimate.value,
                }
            )
        return found

    def to_json(self) -> dict[str, Any]:
        catalog = self.workload.catalog
        return {
            "streams": [stream.name for stream in catalog.streams.values()],
            "tables": [table.name for table in catalog.tables.values()],
            "sites": [site.name for site in catalog.sites.values()],
            "queries": [
                {
                    "name": query.name,
                    "sources": _sources(query),
                    "site": query.site,
                    "columns": [{"name": name, "type": type_} for name, type_ in _columns(query)],
                }
                for query in self.workload.queries.values()
            ],
            "statistics": self._statistics(),
            "notices": [notice.to_json() for notice in self.notices],
            "errors": [],
        }

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return html_line(f"all right: {counts_text(self.workload)}") + "".join(
            html_table(*table) for table in self._tables()
        )


def query_cells(queries: Iterable[Query]) -> list[list[str]]:
    """Of each query its name, what it reads, and its columns."""
    return [
        [query.name, ", ".join(_sources(query)), ", ".join(f"{n} {t}" for n, t in _columns(query))]
        for query in queries
    ]


def _sources(query: Query) -> list[str]:
    streams, tables = sources_of(query.plan)
    return sorted(streams) + sorted(tables)


def _columns(query: Query) -> list[tuple[str, str]]:
    return [(name, str(type_)) for name, type_ in zip(query.columns, query.plan.types, strict=True)]


def _estimate_text(value: float | None) -> str:
    return "" if value is None else number_text(value)
