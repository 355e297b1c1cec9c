"""Why queries that could share one join are in several, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plait.catalog import Catalog
from plait.cost.model import CostModel
from plait.cost.units import DUCKDB, SPARK
from plait.deployment.fragments import Fragment, Result, Way
from plait.deployment.weaving import whole_scans
from plait.quantity_text import number_text
from plait.sharing.demands import Demand, demands, work_of
from plait.sharing.families import families
from plait.sharing.parts import busy_s


def reasons_apart(fragments: Iterable[Fragment], catalog: Catalog, cost: CostModel) -> dict[str, str]:
    """For queries that could share a join with more than they do, what one for all of them would cost."""
    on_spark: list[Result] = []
    found: dict[str, str] = {}
    for fragment in fragments:
        if fragment.way is Way.SHARED:
            found |= _reasons(fragment.results, catalog, cost, DUCKDB)
        else:
            on_spark += fragment.results
    return found | dict(_reasons(on_spark, catalog, cost, SPARK))


def _reasons(
    results: Iterable[Result], catalog: Catalog, cost: CostModel, engine: str
) -> Iterator[tuple[str, str]]:
    joining = {result.query: result for result in results if result.part}
    plans = {query: result.plan for query, result in joining.items()}
    scans = whole_scans(plans.values(), catalog)
    for alike in families(plans.items(), scans, tagged=engine == DUCKDB).joins:
        everybody = demands(alike, cost)
        parts: dict[str, list[Demand]] = {}
        for demand in everybody:
            parts.setdefault(joining[demand.query].part, []).append(demand)
        if len(parts) > 1:
            text = _reason(everybody, [*parts.values()], cost, engine)
            yield from ((demand.query, text) for demand in everybody)


def _reason(
    everybody: Sequence[Demand], parts: Sequence[Sequence[Demand]], cost: CostModel, engine: str
) -> str:
    streams, unit_costs = everybody[0].streams, cost.unit_costs
    one, several = work_of(everybody), [*map(work_of, parts)]
    kept = (one.kept_rows, sum(work.kept_rows for work in several))
    made = (one.combinations_per_s, sum(work.combinations_per_s for work in several))
    cores = (
        busy_s(streams, one, engine, unit_costs),
        sum(busy_s(streams, work, engine, unit_costs) for work in several),
    )
    return (
        f"{len(everybody):,} queries join these streams likewise, in {len(parts):,} joins: one for all would "
        f"keep {_instead(*kept)} rows, make {_instead(*made)} combinations a second, "
        f"and take {_instead(*cores)} cores"
    )


def _instead(this: float, that: float) -> str:
    return f"{number_text(this)} instead of {number_text(that)}"
