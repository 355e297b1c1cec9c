"""Fragments: what of a deployment runs as one unit, and how.

A query by itself is one fragment: one Spark StreamingQuery that reads its streams. Its plan is computed in
one of two ways:

- `native`: Spark's own streaming operators (`stages`), and what needs no state, such as lookups in tables, on
  each micro-batch of their output;
- `database`: Spark reads, filters and projects (`inputs`); the rest is computed in DuckDB once a micro-batch,
  with its state in a file. For what Spark's streaming operators cannot do exactly; `reasons` say what.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from plait.deployment.stages import Stages
from plait.plan.nodes import Node


class Way(StrEnum):
    NATIVE = "native"
    DATABASE = "database"


@dataclass(frozen=True)
class Input:
    """A stream as a fragment reads it: filters and projections over one scan, row by row."""

    stream: str
    plan: Node


@dataclass(frozen=True)
class Fragment:
    """`plan` is canonical; its columns are the query's, in order. The inputs are sub-plans of it.

    `stages` are there if the way is native, and `reasons` why it is not.
    """

    query: str
    columns: tuple[str, ...]
    plan: Node
    inputs: tuple[Input, ...]
    way: Way
    reasons: tuple[str, ...] = ()
    stages: Stages | None = None
