"""Queries of one family, whatever tells them apart: the rows, and the late rows missed, are those of each
query by its plan."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.unit.engines.shared.together import computed, fragment_of, rows
from tests.workloads.trunks import compute_by_plans, scans_of

from plait.sharing.families import families

CONDITIONS = {
    "an equality and a bound": "{x}.k = {n} AND {x}.v > {m}",
    "bounds of two columns": "{x}.v > {n} AND {x}.k <= {m}",
    "alternatives": "{x}.k IN ({n}, {m})",
    "alternatives of two columns, and a bound": "{x}.k IN ({n}, {m}) AND {x}.g IN ('x', 'y') AND {x}.v < {m}",
    "no equality": "{x}.v <> {n}",
    "a disjunction": "({x}.v = {n} OR {x}.k > {m})",
    "patterns of text": "(CAST({x}.v AS STRING) LIKE '{n}%' OR CAST({x}.k AS STRING) NOT LIKE '%{m}')",
    "a pattern, and a bound": "CAST({x}.k AS STRING) LIKE '%{n}' AND {x}.v > {m}",
    "lists among others": "({x}.v IN ({m}, 9, 10) OR {x}.k IN ({n}, {m}))",
    "something else of constants": "coalesce({x}.v, {n}) > {m} AND {x}.k <> {n}",
    "something computed": "{x}.v + {x}.k > {m}",
    "a term that all have": "{x}.k = {n} AND {x}.v <> 3 AND {x}.g > 'a'",
}
SHAPES = {
    "rows": "SELECT k, g, v FROM a WHERE {condition}",
    "windows": "SELECT k, count(*) AS n, sum(v) + {n} AS s, window_end "
    "FROM a [RANGE {r} SECONDS SLIDE 2 SECONDS] WHERE {condition} GROUP BY k",
    "gaps": "SELECT g, max(v) AS m, window_end FROM a [RANGE 1 SECONDS SLIDE 3 SECONDS] "
    "WHERE {condition} GROUP BY g",
    "a join": "SELECT a.v, b.v AS w FROM a [RANGE {r} SECONDS], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k AND {condition}",
    "a self join": "SELECT a.v, z.v AS w FROM a [RANGE {r} SECONDS], a [RANGE 3 SECONDS] AS z "
    "WHERE a.k = z.k AND {condition}",
}


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS.keys())
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_rows_and_late_rows_are_those_of_each_query_by_its_plan(
    shape: str, condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(shape + condition)
    selects = []
    for number in range(12):
        n, m = rng.randint(0, 4), rng.randint(0, 6)
        own = condition.format(x="a", n=n, m=m)
        selects.append(shape.format(condition=own, n=n, r=2 + 2 * (number % 3)))
    fragment, catalog = fragment_of(selects)
    scans = scans_of(fragment)
    found = families(((each.query, each.plan) for each in fragment.results), scans)
    assert not found.others
    assert len([*found.selects, *found.aggregates, *found.joins]) <= len(selects) / 2
    batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(4)]
    together = computed(fragment, catalog, tmp_path / "together.duckdb", batches)
    compute_by_plans(monkeypatch)
    alone = computed(fragment, catalog, tmp_path / "alone.duckdb", batches)
    assert together == alone
    assert "RANGE" not in shape or any(late for _, late in together.values())
