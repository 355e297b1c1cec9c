"""Fragments: what of a deployment runs as one unit, and how.

A fragment is one Spark StreamingQuery that reads its streams, for one query or for many. What they need is
computed in one of these ways:

- `native`: Spark's own streaming operators (`stages`), and what needs no state, such as lookups in tables, on
  each micro-batch of their output;
- `shared`: streams are read, each once, and filtered; all queries over them are computed together in DuckDB,
  once a micro-batch, with their state in a file. A query by itself is too, if Spark's streaming operators
  cannot compute it exactly; `reasons` say why;
- `woven`: Spark's own streaming operators compute once what the queries of a `family` have in common, and
  each micro-batch of that goes to the queries in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from plait.deployment.stages import Stages
from plait.plan.nodes import Node
from plait.sharing.joins import WovenJoin
from plait.sharing.selects import WovenSelect
from plait.sharing.trees import WovenAggregate
from plait.windows.stretches import ALWAYS, Stretch

# Queries that have all but windows, constants and what is above in common.
Family: TypeAlias = tuple[WovenSelect, ...] | tuple[WovenAggregate, ...] | tuple[WovenJoin, ...]


class Way(StrEnum):
    NATIVE = "native"
    SHARED = "shared"
    WOVEN = "woven"


@dataclass(frozen=True)
class Input:
    """A stream as a fragment reads it: a scan, or a filter over it."""

    stream: str
    plan: Node


@dataclass(frozen=True)
class Result:
    """A query that a fragment computes. Its plan is canonical; the plan's columns are the query's, in
    order. `after_us` is the moment after which it sees rows, if it was added to a running system. Of the
    queries that it could share a join with, it does so with those of the same `part`.

    One that is handed over is a result of two fragments: the new one sees what comes `after_us`, the old one
    counts what was there `until_us`, and each `gives` the rows of a stretch of event time."""

    query: str
    columns: tuple[str, ...]
    plan: Node
    after_us: int | None = None
    part: str = ""
    until_us: int | None = None
    gives: Stretch = ALWAYS


@dataclass(frozen=True)
class Fragment:
    """The inputs are the streams, each once, with all columns that any query needs.

    `stages` are there if the way is native, and `reasons` why a query by itself is not computed that way;
    `family` if the way is woven. `name` tells fragments apart.
    """

    name: str
    results: tuple[Result, ...]
    inputs: tuple[Input, ...]
    way: Way
    reasons: tuple[str, ...] = ()
    stages: Stages | None = None
    family: Family = ()

    @property
    def only(self) -> Result:
        """The query of a fragment that computes one."""
        (result,) = self.results
        return result

    @property
    def streams(self) -> tuple[str, ...]:
        """The keys of the streams that are read."""
        return tuple(sorted({each.stream.lower() for each in self.inputs}))


def sole_readers(fragments: Iterable[Fragment]) -> dict[str, str]:
    """The streams, by key, that one fragment alone reads, and its name.

    What it reads is counted with what it computes. Every other stream is read once more, to be counted.
    """
    readers: dict[str, list[str]] = {}
    for fragment in fragments:
        for key in fragment.streams:
            readers.setdefault(key, []).append(fragment.name)
    return {key: names[0] for key, names in sorted(readers.items()) if len(names) == 1}
