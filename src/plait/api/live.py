"""What is said of the queries of a running system, and of changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plait.api.html import html_table
from plait.quantity_text import counted
from plait.runtime.waiting import time_text
from plait.table_text import table_text


@dataclass(frozen=True)
class LiveQuery:
    """A query of a running system. `after_us` is the moment after which it sees rows, in microseconds since
    1970, of one that was added after there were some; `reads` are the queries that it reads. One that is
    handed over to its fragment `leaves` another, which gives its rows before a time. `failed` are
    expressions that were NULL because there is no such value, first what was so first: `expression`,
    `stream`, `rows`, and the first row as `sample`, with its time as `at_us`. `error` is why the query has
    failed: by itself, and was stopped, or with its fragment, which a start brings back."""

    name: str
    way: str
    fragment: str
    after_us: int | None
    state: str
    rows: int
    results: str
    reads: tuple[str, ...] = ()
    failed: tuple[Mapping[str, Any], ...] = ()
    leaves: Mapping[str, Any] | None = None
    error: str | None = None

    @property
    def place(self) -> str:
        """Where it is computed, in words."""
        if self.leaves is None:
            return self.fragment
        return f"{self.fragment}; {self.leaves['fragment']} until {time_text(self.leaves['until_us'])}"

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
        """A table, and why queries have failed, each reason once."""
        table = table_text(self.COLUMNS, self._cells(), numeric=self.NUMERIC, width=width)
        reasons = dict.fromkeys(query.error for query in self if query.error is not None)
        return "\n\n".join([table, *(f"failed: {reason}" for reason in reasons)])

    def _cells(self) -> list[list[str]]:
        return [
            [
                query.name,
                query.way,
                query.place,
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


@dataclass(frozen=True)
class MergedQuery:
    """A query that is handed over to a fragment. The one that it `leaves` gives its rows before `until_us`,
    microseconds since 1970, and ends when its streams have come so far."""

    name: str
    leaves: str
    fragment: str
    until_us: int


@dataclass(frozen=True)
class Merged:
    """What a merge has done: queries that are handed over, and those that could have been part of it, with
    why they are not."""

    queries: tuple[MergedQuery, ...]
    staying: Mapping[str, str]

    @classmethod
    def from_json(cls, merged: Mapping[str, Any]) -> Merged:
        return cls(tuple(MergedQuery(**each) for each in merged["queries"]), dict(merged["staying"]))

    def to_text(self) -> str:
        return "\n".join([*self._merged(), *self._staying()]) or "there is nothing to merge"

    @property
    def headline(self) -> str:
        """The same in a line."""
        return "; ".join(self._merged())

    def _merged(self) -> Iterator[str]:
        by_target: dict[str, list[MergedQuery]] = {}
        for query in self.queries:
            by_target.setdefault(query.fragment, []).append(query)
        for target, queries in by_target.items():
            left = ", ".join(sorted({query.leaves for query in queries}))
            until = time_text(max(query.until_us for query in queries))
            count = counted(len(queries), "query", "queries")
            yield f"merged {count} of {left} into {target}; what they leave goes on until {until}"

    def _staying(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        for name, why in self.staying.items():
            reasons.setdefault(why, []).append(name)
        for why, names in reasons.items():
            shown = names[0] if len(names) == 1 else f"{counted(len(names), 'query', 'queries')}"
            yield f"not merged: {shown}, as {why}"

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        cells = [[each.name, each.leaves, each.fragment, time_text(each.until_us)] for each in self.queries]
        cells += [[name, "", f"not merged, as {why}", ""] for name, why in self.staying.items()]
        return html_table(("query", "leaves", "for", "until"), cells)
