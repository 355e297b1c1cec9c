"""Plans of no family that differ in constants alone are computed as one: their rows, and the late rows
missed, are those of each query by its plan."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.unit.engines.shared.together import computed, fragment_of, rows
from tests.workloads.trunks import compute_by_plans, scans_of

from plait.sharing.tagged import TaggedPlans

TICKS = "[RANGE 4 SECONDS SLIDE 2 SECONDS]"
GAPS = "[RANGE 1 SECONDS SLIDE 3 SECONDS]"
LEFT, RIGHT, FULL = (
    f"SELECT a.v, b.v AS w FROM (SELECT k, v FROM a [RANGE 2 SECONDS] WHERE v > {{n}}) a {kind} JOIN "
    "(SELECT k, v FROM b [RANGE 3 SECONDS] WHERE v < {m}) b ON a.k = b.k"
    for kind in ("LEFT", "RIGHT", "FULL")
)
SUMS = "(SELECT k, sum(v) AS s, count(*) AS n FROM {x} {window} WHERE {condition} GROUP BY k)"


def _sums(stream: str, condition: str = "true", window: str = TICKS) -> str:
    return SUMS.format(x=stream, window=window, condition=condition)


LIKE = "CAST(v AS STRING) LIKE '%{n}' AND k NOT IN ({m}, 9)"
OUTLINES = {
    "an aggregate of a join": f"SELECT b.k, sum(a.v) AS s, window_end FROM a {TICKS}, b {TICKS} "
    "WHERE a.k = b.k AND a.v > {n} GROUP BY b.k HAVING sum(a.v) > {m}",
    "an aggregate of a join, both sides chosen": f"SELECT count(*) AS c, max(b.g) AS g "
    f"FROM a {TICKS}, b {TICKS} "
    "WHERE a.k = b.k AND a.v > {n} AND b.v IN ({m}, 3)",
    "a join of aggregates": f"SELECT x.k, x.s, y.n FROM {_sums('a', 'g = {g}')} x, "
    f"{_sums('b', 'v <> {m}')} y "
    "WHERE x.k = y.k AND x.s > y.n + {n}",
    "one side for all": f"SELECT x.k, x.s, y.n FROM {_sums('a', 'v >= {n}')} x, {_sums('b')} y "
    "WHERE x.n = y.n",
    "outer joins of aggregates": f"SELECT x.k, x.s, y.n FROM {_sums('a', 'v > {n}')} x "
    f"LEFT JOIN {_sums('b', 'g = {g}')} y ON x.k = y.k AND y.n > {{m}}",
    "the kept side chosen": f"SELECT x.k, y.n FROM {_sums('a')} x "
    f"RIGHT JOIN {_sums('b', 'v < {n}')} y ON x.k = y.k",
    "a full join of aggregates": f"SELECT x.k, y.k AS l FROM {_sums('a', 'v > {n}')} x "
    f"FULL JOIN {_sums('b', 'v < {m}')} y ON x.k = y.k",
    "a left join of rows": LEFT,
    "a right join of rows": RIGHT,
    "a full join of rows": FULL,
    "windows of rows": "SELECT k, sum(v) AS s, count(*) AS c "
    "FROM (SELECT k, v FROM a WHERE v > {n}) z [PARTITION BY k ROWS 3 SLIDE 2] GROUP BY k "
    "HAVING sum(v) > {m}",
    "windows of all rows": "SELECT sum(v) AS s, min(k) AS k "
    "FROM (SELECT k, v FROM a WHERE v <> {n}) z [ROWS 4 SLIDE 3]",
    "distinct values": f"SELECT k, count(DISTINCT g) AS d FROM a {TICKS} WHERE v > {{n}} GROUP BY k",
    "an aggregate that is rolled up": f"SELECT max(s) AS m FROM {_sums('a', 'v > {n} AND k <> {m}')} z "
    "[RANGE 6 SECONDS] WHERE s > {n}",
    "gaps between windows": f"SELECT x.k, x.s FROM {_sums('a', 'v > {n}', GAPS)} x, "
    f"{_sums('b', 'true', GAPS)} y WHERE x.k = y.k",
    "rows with aggregates of theirs": f"SELECT a.k, a.v FROM a {TICKS}, {_sums('a', 'g = {g}')} z "
    "WHERE a.k = z.k AND a.v * z.n > z.s AND a.v > {n}",
    "conditions of aggregates": f"SELECT a.k, count(*) FILTER (WHERE b.v > {{m}}) AS c "
    f"FROM a {TICKS}, b {TICKS} WHERE a.k = b.k AND a.v > {{n}} GROUP BY a.k",
    "something computed of the constants": f"SELECT max(a.v > {{m}} AND b.v > 2) AS h "
    f"FROM a {TICKS}, b {TICKS} WHERE a.k = b.k AND a.v <> {{n}}",
    "the first rows of ticks": f"SELECT k, s FROM {_sums('a', 'g = {g} AND v < {m}')} z ORDER BY s LIMIT 2",
    "above the first rows of ticks": f"SELECT max(k) AS k FROM (SELECT k, s FROM {_sums('a', 'v > {n}')} z "
    "ORDER BY s DESC LIMIT 2) y [RANGE 6 SECONDS] WHERE s <> {m}",
    "patterns of text": f"SELECT x.k, y.n FROM {_sums('a', LIKE)} x, {_sums('b')} y WHERE x.k = y.k",
    "a label": f"SELECT 'alert {{n}}' AS alert, x.k, {{m}} AS m FROM {_sums('a', 'v > {n}')} x, "
    f"{_sums('b')} y WHERE x.k = y.k",
    "a condition of the side for all": f"SELECT x.k FROM {_sums('a', 'v > {n}')} x, {_sums('b')} y "
    "WHERE x.k = y.k AND y.n > {m}",
    "conditions of groups alone": f"SELECT b.k, sum(a.v) AS s FROM a {TICKS}, b {TICKS} WHERE a.k = b.k "
    "GROUP BY b.k HAVING sum(a.v) > {n} AND count(*) % 7 < {m}",
    "the side without constants kept": f"SELECT x.k, y.n FROM {_sums('a')} x "
    f"LEFT JOIN {_sums('b', 'v > {n}')} y ON x.k = y.k AND x.n > {{m}}",
    "neither side chosen": f"SELECT x.k, y.k AS l FROM {_sums('a')} x FULL JOIN {_sums('b')} y "
    "ON x.k = y.k AND x.n > {m} AND y.n > {n}",
    "a union with rows for all": "SELECT k, count(DISTINCT v) AS c FROM (SELECT k, v FROM a WHERE v > {n} "
    f"UNION ALL SELECT k, v FROM b) z {TICKS} GROUP BY k",
    "three aggregates": f"SELECT x.k, x.s + y.s - {{m}} AS s FROM {_sums('a', 'v > {n}')} x, "
    f"{_sums('b', 'v > {m}')} y, {_sums('a', 'g <> {g}')} z WHERE x.k = y.k AND y.k = z.k",
    "one side twice": f"SELECT x.k, y.n FROM {_sums('a', 'v > {n}')} x LEFT JOIN {_sums('a', 'v > {n}')} y "
    "ON x.k = y.n",
    "an outer join above another": f"SELECT x.k, y.n, z.s FROM {_sums('a', 'v > {n}')} x "
    f"LEFT JOIN {_sums('b', 'v < {m}')} y ON x.k = y.k LEFT JOIN {_sums('b')} z ON y.k = z.k AND z.n > {{n}}",
    "a union": f"SELECT k, count(DISTINCT v) AS c FROM (SELECT k, v FROM a WHERE v > {{n}} "
    f"UNION ALL SELECT k, v FROM b WHERE v > {{m}}) z {TICKS} GROUP BY k",
}


@pytest.mark.parametrize("outline", OUTLINES.values(), ids=OUTLINES.keys())
def test_rows_and_late_rows_are_those_of_each_query_by_its_plan(
    outline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(outline)
    selects = [
        outline.format(n=rng.randint(0, 4), m=rng.randint(0, 6), g=rng.choice(["'a'", "'x'", "'y'"]))
        for _ in range(12)
    ]
    fragment, catalog = fragment_of(selects)
    scans = scans_of(fragment)
    plans = {each.plan for each in fragment.results}
    merged = TaggedPlans(plans).results
    assert len(merged) <= (len(plans) if "LIMIT" in outline else 2)
    batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(4)]
    together = computed(fragment, catalog, tmp_path / "together.duckdb", batches)
    compute_by_plans(monkeypatch)
    alone = computed(fragment, catalog, tmp_path / "alone.duckdb", batches)
    assert together == alone
    assert any(found for found, _ in together.values())
    assert any(late for _, late in together.values())
