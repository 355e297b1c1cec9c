"""A change of the set of queries, as the state folder knows it: what was added or dropped, and from when on.

A change is there when the manifest says so, as a whole or not at all. What follows from it is found again at
every start, from the text that was added and the set that was there before; only what depended on the moment
is written down: the event times after which added queries see rows, the statistics that they were planned
with, and the batches before which dropped ones have given theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plait.errors import ExternalError, PlaitError, Source
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
class Change:
    """`added` are the names of queries, each with the moment after which it sees rows, if there is one;
    `batches` are those, by fragment, from which on the change counts. Of the `dropped`, some `failed`.
    `statistics` is what had been observed when the queries were planned, and mattered."""

    id: int
    addition: Addition | None = None
    added: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    dropped: tuple[str, ...] = ()
    batches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    failed: Mapping[str, PlaitError] = field(default_factory=lambda: MappingProxyType({}))
    statistics: Statistics = NO_STATISTICS

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": None if self.addition is None else self.addition.to_json(),
            "added": dict(self.added),
            "dropped": [*self.dropped],
            "batches": dict(self.batches),
            "failed": {query: error_to_json(error) for query, error in self.failed.items()},
            "statistics": statistics_to_json(self.statistics),
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
        )


def error_to_json(error: PlaitError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "detail": error.detail, "hint": error.hint}


def error_from_json(document: Mapping[str, str]) -> ExternalError:
    """An error that was told before. By whose fault it was does not matter any more."""
    return ExternalError(
        document["code"], document["message"], detail=document["detail"], hint=document["hint"]
    )
