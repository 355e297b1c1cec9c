"""Random queries that come and go while others are computed: each gives the rows of its definition from the
moment on at which it was added, also if changes and batches are cut off; one that was dropped, those
that were due by then.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.differential import changing_way
from tests.differential.changing_way import Changing
from tests.differential.queries import KINDS
from tests.differential.shared_way import HandedOver
from tests.differential.variants import with_variants
from tests.differential.workloads import RandomWorkload, random_workload
from tests.workloads.trunks import compute_by_plans

from plait.benchmarks.dropped import wrong_until_dropped
from plait.evaluator import StoredData, difference, evaluate


def _check(workload: RandomWorkload, folder: Path, rng: random.Random) -> Changing:
    with HandedOver(workload, folder) as given:
        ran = changing_way.run(given, folder, rng)
        with StoredData.from_rows(given.loaded.catalog, workload.rows) as data:
            live = {each.name for each in ran.live}
            for added in ran.ever:
                query, found = given.loaded.query(added.query), ran.rows(added.name)
                expected = evaluate(query, data, start=added.start)
                if added.name in live:
                    wrong = difference(expected.rows, found)
                else:
                    wrong = wrong_until_dropped(query, expected, found, ran.standing(added.name))
                assert not wrong, f"{added}\n{wrong}"
    return ran


def _many(*seeds: int, slow: range) -> list[object]:
    return [*seeds, *(pytest.param(seed, marks=pytest.mark.slow) for seed in slow)]


@pytest.mark.parametrize("seed", _many(1, 2, 3, slow=range(4, 40)))
def test_queries_of_every_class(seed: int, tmp_path: Path) -> None:
    ran = _check(random_workload(seed, [*KINDS], cuts=8), tmp_path, random.Random(seed))
    assert len(ran.ever) > len(ran.live)


@pytest.mark.parametrize("seed", _many(1, 2, slow=range(3, 30)))
def test_families(seed: int, tmp_path: Path) -> None:
    """Constants, bounds, windows and aggregates that others have not."""
    workload = random_workload(seed, ("aggregate", "aggregate", "filter", "join"), cuts=8)
    workload = with_variants(workload, 4, random.Random(seed))
    ran = _check(workload, tmp_path, random.Random(seed))
    assert any(each.after_us is not None for each in ran.live)


@pytest.mark.parametrize("seed", _many(1, slow=range(2, 20)))
def test_plans_that_differ_in_constants(seed: int, tmp_path: Path) -> None:
    """Of any class: what is computed as one stays right whoever of them goes."""
    workload = with_variants(random_workload(seed, [*KINDS], cuts=8), 3, random.Random(seed))
    _check(workload, tmp_path, random.Random(seed))


@pytest.mark.parametrize("seed", _many(1, slow=range(2, 20)))
def test_by_their_plans(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_by_plans(monkeypatch)
    _check(random_workload(seed, [*KINDS], cuts=6), tmp_path, random.Random(seed))
