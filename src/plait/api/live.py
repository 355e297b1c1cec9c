"""What is said of the queries of a running system, and of changes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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


@dataclass(frozen=True)
class Changed:
    """What a change has done: queries that were added, each with the moment after which it sees rows, if
    there is one, and the names of those that were dropped."""

    added: Mapping[str, int | None]
    dropped: tuple[str, ...]

    @classmethod
    def from_json(cls, change: Mapping[str, Any]) -> Changed:
        return cls(dict(change["added"]), tuple(change["dropped"]))
