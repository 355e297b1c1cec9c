"""What is said of the queries of a running system, and of changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plait.api.html import html_table
from plait.runtime.waiting import time_text
from plait.table_text import table_text


@dataclass(frozen=True)
class LiveQuery:
    """A query of a running system. `after_us` is the moment after which it sees rows, in microseconds since
    1970, of one that was added after there were some; `reads` are the queries that it reads. `failed` are
    expressions that were NULL because there is no such value, first what was so first: `expression`,
    `stream`, `rows`, and the first row as `sample`, with its time as `at_us`."""

    name: str
    way: str
    fragment: str
    after_us: int | None
    state: str
    rows: int
    results: str
    reads: tuple[str, ...] = ()
    failed: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> LiveQuery:
        return cls(**{**entry, "reads": tuple(entry["reads"]), "failed": tuple(entry["failed"])})


class LiveQueries(tuple[LiveQuery, ...]):
    """All queries of a running system, which show themselves as a table."""

    COLUMNS = ("query", "way", "fragment", "sees what comes after", "state", "rows", "results")
    NUMERIC = frozenset({5})

    @classmethod
    def from_json(cls, entries: Iterable[Mapping[str, Any]]) -> LiveQueries:
        return cls(map(LiveQuery.from_json, entries))

    def to_text(self, width: int | None = None) -> str:
        return table_text(self.COLUMNS, self._cells(), numeric=self.NUMERIC, width=width)

    def _cells(self) -> list[list[str]]:
        return [
            [
                query.name,
                query.way,
                query.fragment,
                "" if query.after_us is None else time_text(query.after_us),
                query.state,
                f"{query.rows:,}",
                query.results,
            ]
            for query in self
        ]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return html_table(self.COLUMNS, self._cells(), self.NUMERIC)


@dataclass(frozen=True)
class Changed:
    """What a change has done: queries that were added, each with the moment after which it sees rows, if
    there is one, and the names of those that were dropped."""

    added: Mapping[str, int | None]
    dropped: tuple[str, ...]

    @classmethod
    def from_json(cls, change: Mapping[str, Any]) -> Changed:
        return cls(dict(change["added"]), tuple(change["dropped"]))

    def _repr_html_(self) -> str:
        since = {name: "" if us is None else time_text(us) for name, us in self.added.items()}
        cells = [["added", name, after] for name, after in since.items()]
        return html_table(
            ("", "query", "sees what comes after"), cells + [["dropped", name, ""] for name in self.dropped]
        )
