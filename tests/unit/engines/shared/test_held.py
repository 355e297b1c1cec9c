"""What several queries compute, in part or whole, is computed once a batch: their rows are those of each
query by itself."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.engines.shared.together import computed, fragment_of, rows
from tests.workloads.trunks import scans_of, trunk_of

from plait.batches import Batch, BatchRows
from plait.engines.duckdb import Database
from plait.engines.incremental.increments import Increments
from plait.errors import ExternalError
from plait.runtime.beats import END_OF_TIME_US
from plait.sharing.chains import inputs_of
from plait.sharing.tagged import TaggedPlans

TICKS = "[RANGE 4 SECONDS SLIDE 2 SECONDS]"
SUMS = f"(SELECT k, sum(v) AS s, count(*) AS n FROM {{x}} {TICKS} GROUP BY k)"
A, B = SUMS.format(x="a"), SUMS.format(x="b")
BOTH = f"(SELECT x.k, x.s + y.s AS s FROM {A} x, {B} y WHERE x.k = y.k)"
LEFT = "a [RANGE 2 SECONDS] LEFT JOIN b [RANGE 3 SECONDS] ON a.k = b.k"
HIGH = f"SELECT k, sum(v) AS s FROM a {TICKS} WHERE v <> 2 GROUP BY k HAVING count(DISTINCT g) > "
SHARING = {
    "an aggregate of a join": [
        f"SELECT b.k, sum(a.v) AS s FROM a {TICKS}, b {TICKS} WHERE a.k = b.k GROUP BY b.k "
        f"HAVING sum(a.v) > {n}"
        for n in range(4)
    ],
    "a join of aggregates": [
        f"SELECT x.k, x.s + y.s AS s FROM {A} x, {B} y WHERE x.k = y.k",
        f"SELECT x.k, x.n FROM {A} x, {B} y WHERE x.k = y.k AND x.n > y.n",
        f"SELECT x.k, y.n FROM {A} x LEFT JOIN {B} y ON x.k = y.k",
        f"SELECT x.s FROM {A} x, {B} y WHERE x.s = y.s",
    ],
    "one in another": [
        f"SELECT k, s FROM {BOTH} z WHERE s > 1",
        f"SELECT k, s FROM {BOTH} z ORDER BY s LIMIT 1",
        f"SELECT x.k FROM {A} x FULL JOIN {B} y ON x.k = y.k AND x.s = y.s",
    ],
    "an outer join of rows": [
        f"SELECT a.v, b.v AS w FROM {LEFT} WHERE b.v > {n} OR b.v IS NULL" for n in range(3)
    ],
    "waits that differ": [
        f"SELECT a.k, b.v AS w FROM {LEFT}",
        f"SELECT a.k, b.v AS w FROM {LEFT} WHERE a.k < b.v OR b.v IS NULL",
        f"SELECT k, max(w) AS w FROM (SELECT a.k, b.v AS w FROM {LEFT}) z {TICKS} GROUP BY k",
    ],
    "windows of rows": [
        f"SELECT k, sum(v) AS s FROM a [PARTITION BY k ROWS 3 SLIDE 2] GROUP BY k HAVING sum(v) > {n}"
        for n in range(3)
    ],
    "an aggregate that is rolled up, and is a result": [
        f"{HIGH} 0",
        f"{HIGH} 1",
        f"SELECT k, max(s) AS m FROM ({HIGH} 1) z [RANGE 6 SECONDS] GROUP BY k",
    ],
}


@pytest.mark.parametrize("selects", SHARING.values(), ids=SHARING.keys())
def test_rows_are_those_of_each_query_by_itself(selects: list[str], tmp_path: Path) -> None:
    rng = random.Random(selects[0])
    fragment, catalog = fragment_of(selects)
    plans = [result.plan for result in fragment.results]
    merged = [*TaggedPlans(plans).results]
    layout = Increments(merged, [node for plan in merged for node in inputs_of(plan)], "")._layout
    assert len(merged) < len(plans) or any(layout.shared.values())
    scans = scans_of(fragment)
    batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(4)]
    together = computed(fragment, catalog, tmp_path / "together.duckdb", batches)
    for number, select in enumerate(selects):
        alone, _ = fragment_of([select])
        own = {key: scan.columns for key, scan in scans_of(alone).items()}
        given = [
            {
                key: table.select(
                    [*(f"c{scans[key].columns.index(column)}" for column in own[key]), "t"]
                ).rename_columns([*(f"c{n}" for n in range(len(own[key]))), "t"])
                for key, table in batch.items()
                if key in own
            }
            for batch in batches
        ]
        expected = computed(alone, catalog, tmp_path / f"alone{number}.duckdb", given)
        assert together[f"q{number}"] == expected["q0"]


def test_after_an_error_a_batch_can_be_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selects = SHARING["a join of aggregates"]
    fragment, catalog = fragment_of(selects)
    scans = scans_of(fragment)
    rng = random.Random(0)
    batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(2)]
    expected = computed(fragment, catalog, tmp_path / "well.duckdb", batches)
    fetch_arrow, calls = Database.fetch_arrow, count()

    def failing(database: Database, sql: str) -> pa.Table:
        return fetch_arrow(database, "SELECT error('no more')" if next(calls) == 1 else sql)

    monkeypatch.setattr(Database, "fetch_arrow", failing)
    published: list[BatchRows] = []
    with (
        closing(trunk_of(fragment, catalog, tmp_path / "again.duckdb")) as trunk,
        pytest.raises(ExternalError, match="no more"),
    ):
        trunk.apply(Batch(0), batches[0], dict.fromkeys(scans, END_OF_TIME_US), published.extend)
    monkeypatch.undo()
    assert not published
    assert computed(fragment, catalog, tmp_path / "again.duckdb", batches) == expected
