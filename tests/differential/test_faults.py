"""Every planted fault is caught, and without one there is nothing to catch: the comparison bites."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.differential import shared_way
from tests.differential.arrivals import Row
from tests.differential.faults import FAULTS, Fault
from tests.differential.harness import Rows, Tally, definition
from tests.differential.queries import RandomQuery
from tests.differential.shared_way import HandedOver
from tests.differential.workloads import random_workload
from tests.workloads.trunks import compute_by_plans

WORKLOADS = 12  # a fault must show in one of so many


@dataclass(frozen=True)
class Prepared:
    """A workload with everything computed that a fault must not reach."""

    given: HandedOver
    expected: Rows


class Preparation:
    """Prepares each workload once, for all faults that show in the same classes of queries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prepared: dict[tuple[int, tuple[str, ...]], Prepared] = {}

    def workload(self, seed: int, kinds: tuple[str, ...]) -> Prepared:
        if (seed, kinds) not in self._prepared:
            workload = random_workload(seed, kinds, rows=24)
            given = HandedOver(workload, self._folder)
            given.prepare()
            self._prepared[seed, kinds] = Prepared(given, definition(workload))
        return self._prepared[seed, kinds]

    def close(self) -> None:
        for each in self._prepared.values():
            each.given.close()


@pytest.fixture(scope="module")
def preparation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preparation]:
    made = Preparation(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[pytest.mark.slow] * (place % 2))
        for place, fault in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_is_caught(
    fault: Fault, preparation: Preparation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute_by_plans(monkeypatch)  # most faults are in the statements for plans
    for seed in range(WORKLOADS):
        prepared = preparation.workload(seed, fault.kinds)
        for query in prepared.given.workload.queries:
            with monkeypatch.context() as patch:
                fault.plant(patch)
                is_caught = _difference(query, prepared, tmp_path)
            if is_caught:
                assert not (found := _difference(query, prepared, tmp_path)), found
                return
    pytest.fail(f"nobody noticed that {fault.name}")


def _difference(query: RandomQuery, prepared: Prepared, folder: Path) -> str:
    """What is wrong with a query that is run with batches cut off and given again."""
    tally, given = Tally(), prepared.given
    seed = given.workload.seed

    def run() -> list[Row]:
        disturb = random.Random(f"{seed} {query.name}")
        return shared_way.run(given, folder, query.name, disturb=disturb).rows(query.name)

    tally.attempt(seed, query, "in the database", prepared.expected[query.name], run)
    return "\n".join(map(str, tally.findings))
