"""A change of the set of queries, as the state folder knows it: what was added, dropped or merged, and from
when on.

A change is there when the manifest says so, as a whole or not at all. What follows from it is found again at
every start, from the text that was added and the set that was there before; only what depended on the moment
is written down: the event times after which added queries see rows, the statistics that they were planned
with, and the batches before which dropped ones have given theirs. Merging queries is two changes: they are
handed over to another fragment, and let go where they were when that has given the last of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plait.deployment.fragments import Way
from plait.errors import ExternalError, PlaitError, Source
from plait.runtime.journal import First
from plait.runtime.observed import statistics_from_json, statistics_to_json
from plait.statistics import NO_STATISTICS, Statistics


@dataclass(frozen=True)
class Addition:
    """A text, and the folder that its paths start from."""

    source: Source
    folder: Path

    def to_json(self) -> dict[str, str]:
        return {"name": self.source.name, "text": self.source.text, "folder": str(self.folder)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Addition:
        return cls(Source(str(document["name"]), str(document["text"])), Path(document["folder"]))


@dataclass(frozen=True)
class Merge:
    """Queries that a fragment takes over, which is new or was there: each with the moment after which it sees
    rows there. Their batches are numbered in a `series` that nobody else has."""

    fragment: str
    way: Way
    queries: Mapping[str, int]
    series: int

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "queries": dict(self.queries)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Merge:
        queries = {str(name): int(us) for name, us in document["queries"].items()}
        return cls(str(document["fragment"]), Way(document["way"]), queries, int(document["series"]))


@dataclass(frozen=True)
class Carried:
    """What was counted of a query where it is not computed any more, by the names that its counts have."""

    counts: Mapping[str, int]
    firsts: Mapping[str, First]

    def with_(self, later: Carried) -> Carried:
        return Carried(Counter(self.counts) + Counter(later.counts), {**later.firsts, **self.firsts})

    def to_json(self) -> dict[str, Any]:
        firsts = {name: astuple(first) for name, first in self.firsts.items()}
        return {"counts": dict(self.counts), "firsts": firsts}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Carried:
        counts = {str(name): int(count) for name, count in document["counts"].items()}
        return cls(counts, {str(name): First(*first) for name, first in document["firsts"].items()})


NOTHING_CARRIED = Carried({}, {})


@dataclass(frozen=True)
class Change:
    """`added` are the names of queries, each with the moment after which it sees rows, if there is one;
    `batches` are those, by fragment, from which on the change counts. Of the `dropped`, some `failed`.
    `statistics` is what had been observed when the queries were planned, and mattered. `merged` are queries
    that were handed over; `let_go` are, by fragment, those that were before, and `carried` what was counted
    of them there."""

    id: int
    addition: Addition | None = None
    added: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    dropped: tuple[str, ...] = ()
    batches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    failed: Mapping[str, PlaitError] = field(default_factory=lambda: MappingProxyType({}))
    statistics: Statistics = NO_STATISTICS
    merged: tuple[Merge, ...] = ()
    let_go: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    carried: Mapping[str, Carried] = field(default_factory=lambda: MappingProxyType({}))

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": None if self.addition is None else self.addition.to_json(),
            "added": dict(self.added),
            "dropped": [*self.dropped],
            "batches": dict(self.batches),
            "failed": {query: error_to_json(error) for query, error in self.failed.items()},
            "statistics": statistics_to_json(self.statistics),
            "merged": [merge.to_json() for merge in self.merged],
            "let_go": {name: [*queries] for name, queries in self.let_go.items()},
            "carried": {name: own.to_json() for name, own in self.carried.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Change:
        text = document["text"]
        return cls(
            int(document["id"]),
            None if text is None else Addition.from_json(text),
            {str(name): None if us is None else int(us) for name, us in document["added"].items()},
            tuple(map(str, document["dropped"])),
            {str(name): int(batch) for name, batch in document["batches"].items()},
            {str(query): error_from_json(error) for query, error in document["failed"].items()},
            statistics_from_json(document["statistics"]),
            tuple(map(Merge.from_json, document["merged"])),
            {str(name): tuple(map(str, queries)) for name, queries in document["let_go"].items()},
            {str(name): Carried.from_json(own) for name, own in document["carried"].items()},
        )


def error_to_json(error: PlaitError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "detail": error.detail, "hint": error.hint}


def error_from_json(document: Mapping[str, str]) -> ExternalError:
    """An error that was told before. By whose fault it was does not matter any more."""
    return ExternalError(
        document["code"], document["message"], detail=document["detail"], hint=document["hint"]
    )
