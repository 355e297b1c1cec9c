"""What a query must have given by the time it was dropped.

Rows that come after that are nobody's, so it cannot have all rows of its definition. What is certain follows
from what the system told right before: it has at least as many rows as were counted, and all rows of the
definition whose event times the watermark had passed, less what its plan holds back. All of them are of the
definition, and none is there more often than there. Between the two moments more may have come, which is
neither asked for nor wrong.

Rows are held back where it takes time to know that they belong there. DuckDB holds back the rows of outer
joins. Spark's operators go by one watermark that each join of streams delays by its ranges, and a family by
those of all its members; as it counts in milliseconds, one more is allowed for. A query that is being handed
over goes by two watermarks, of which one is told: there the counted rows are all that is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from plait.api.live import LiveQueries
from plait.deployment.fragments import Way
from plait.engines.incremental.bands import held_back_us
from plait.evaluator import Result, only_in_one
from plait.plan.nodes import Join, Node, OuterJoin, Windowed
from plait.runtime.load import Load
from plait.workload import Query

SHOWN_ROWS = 3

_MILLISECOND_US = 1_000
_BEGINNING_US = -(2**61)


class Told(Protocol):
    """A system that says how far its queries are: a run here, or in another process."""

    def queries(self) -> LiveQueries: ...
    def statistics(self) -> Load: ...


@dataclass(frozen=True)
class Standing:
    """How far a query is: rows that it has given, and the watermark that it goes by, if that is certain."""

    rows: int
    watermark_us: int | None
    in_database: bool = True

    def certain_before_us(self, query: Query, beside: Iterable[Query]) -> int:
        """The rows of the query with event times before that are given; `beside` are those of which some may
        be computed with it."""
        if self.watermark_us is None:
            return _BEGINNING_US
        if self.in_database:
            return self.watermark_us - held_back_us(query.plan)
        held_back = max(_held_back_by_spark_us(each.plan) for each in (query, *beside))
        return self.watermark_us - held_back - _MILLISECOND_US


def standings(system: Told) -> dict[str, Standing]:
    """Of all queries of a system, by the names that it gave them, in lower case."""
    listed = {query.name: query for query in system.queries()}
    return {
        each.name.lower(): Standing(
            each.rows,
            each.watermark_us if listed[each.name].leaves is None else None,
            listed[each.name].way == Way.SHARED,
        )
        for each in system.statistics().queries
        if each.name in listed
    }


def wrong_until_dropped(
    query: Query,
    expected: Result,
    given: Sequence[Sequence[Any]],
    standing: Standing,
    beside: Iterable[Query] = (),
) -> str:
    """What is wrong with the rows of a query that was dropped after it stood like that; empty if nothing is.
    `expected` are the rows of its definition."""
    _, extra = only_in_one(expected.rows, given)
    missing, _ = only_in_one(expected.before(standing.certain_before_us(query, beside)), given)
    found = [
        f"{len(rows)} rows {what}: {', '.join(map(str, rows[:SHOWN_ROWS]))}"
        for what, rows in (
            ("are not of its definition", extra),
            ("are missing that were due before it was dropped", missing),
        )
        if rows
    ]
    if len(given) < standing.rows:
        found.append(f"{standing.rows} rows were counted before it was dropped, and {len(given)} are there")
    return "; ".join(found)


def _held_back_by_spark_us(node: Node) -> int:
    """At most: joins of streams are chains of joins of two, and each waits for as long as rows stay."""
    below = max(map(_held_back_by_spark_us, node.inputs), default=0)
    if not isinstance(node, Join | OuterJoin) or not isinstance(node.timing, Windowed):
        return below
    ranges_us = node.timing.ranges_us
    return below + (len(ranges_us) - 1) * (max(ranges_us) + _MILLISECOND_US)
