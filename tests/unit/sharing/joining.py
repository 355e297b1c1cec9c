"""Queries that could share a join, as the cost model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait import language
from plait.cost.model import CostModel
from plait.deployment.weaving import whole_scans
from plait.rewrite import canonicalise
from plait.sharing.families import families
from plait.sharing.joins import WovenJoin

RATE = 1_000
DISTINCT = {"k": 100, "v": 100, "w": 100}


def joining(
    *filters: str,
    on: str = "a.k = b.k",
    rate: float = RATE,
    distinct: Mapping[str, int] = DISTINCT,
    ranges_s: Sequence[int] = (),
    names: Sequence[str] = (),
) -> tuple[list[WovenJoin], CostModel]:
    """Queries q0, q1, …, unless they have other names, over two streams; ranges are those of `a`."""
    values = ", ".join(f"distinct.{name} = {count}" for name, count in distinct.items())
    streams = "".join(
        f"CREATE STREAM {name} (k INT, v INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at) "
        f"WITH (rate = {rate}, {values});"
        for name in "ab"
    )
    called = names or [f"q{n}" for n in range(len(filters))]
    ranges = ranges_s or [10] * len(filters)
    queries = "".join(
        f"CREATE CONTINUOUS QUERY {name} AS SELECT a.v, b.w FROM a [RANGE {range_s} SECONDS], "
        f"b [RANGE 10 SECONDS] WHERE {on} AND {each};"
        for name, each, range_s in zip(called, filters, ranges, strict=True)
    )
    return alike(streams + queries)


def alike(sql: str) -> tuple[list[WovenJoin], CostModel]:
    """The queries of a text, which could share a join."""
    workload = language.load_text(sql)
    plans = {query.name: canonicalise(query.plan) for query in workload.queries.values()}
    (members,) = families(plans.items(), whole_scans(plans.values(), workload.catalog)).joins
    return members, CostModel(workload.catalog)
