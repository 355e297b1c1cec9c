"""Random queries that are handed over from one place to another: together both give the rows of the
definition, each of them once, whatever the plan is made of.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.differential import handing_way
from tests.differential.handing_way import Handing
from tests.differential.queries import KINDS
from tests.differential.shared_way import HandedOver
from tests.differential.variants import with_variants
from tests.differential.workloads import RandomWorkload, random_workload
from tests.workloads.trunks import compute_by_plans

from plait.deployment.describe import failing_text
from plait.evaluator import StoredData, difference, evaluate


def _check(workload: RandomWorkload, folder: Path, rng: random.Random) -> Handing:
    with HandedOver(workload, folder) as given:
        ran = handing_way.run(given, folder, rng)
        failed: Counter[tuple[str, str]] = Counter()
        with StoredData.from_rows(given.loaded.catalog, workload.rows) as data:
            for name in ran.starts_us:
                expected = evaluate(given.loaded.query(name), data, start=ran.start(name))
                wrong = difference(expected.rows, ran.rows(name))
                assert not wrong, f"{name}, moved: {name in ran.moved}\n{given.loaded.query(name)}\n{wrong}"
                failed.update({(name, failing_text(check)): rows for check, rows in expected.failed.items()})
        assert +ran.failed == +failed
    return ran


def _many(*seeds: int, slow: range) -> list[object]:
    return [*seeds, *(pytest.param(seed, marks=pytest.mark.slow) for seed in slow)]


@pytest.mark.parametrize("seed", _many(1, 2, slow=range(3, 60)))
def test_queries_of_every_class(seed: int, tmp_path: Path) -> None:
    ran = _check(random_workload(seed, [*KINDS], cuts=8), tmp_path, random.Random(seed))
    assert ran.moved


@pytest.mark.parametrize("seed", _many(1, slow=range(2, 30)))
def test_plans_that_differ_in_constants(seed: int, tmp_path: Path) -> None:
    workload = with_variants(random_workload(seed, [*KINDS][seed % 2 :: 2], cuts=8), 2, random.Random(seed))
    _check(workload, tmp_path, random.Random(seed))


@pytest.mark.parametrize("seed", _many(1, slow=range(2, 30)))
def test_by_their_plans(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_by_plans(monkeypatch)
    _check(random_workload(seed, [*KINDS], cuts=6), tmp_path, random.Random(seed))
