"""The random workloads are what the other tests take them for."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.differential.harness import Tally, definition
from tests.differential.queries import KINDS
from tests.differential.workloads import RandomWorkload, random_workload

from plait.evaluator import StoredData, difference, evaluate
from plait.language import load

SEEDS = range(2)


@pytest.fixture(scope="module", params=SEEDS)
def workload(request: pytest.FixtureRequest) -> RandomWorkload:
    seed: int = request.param
    return random_workload(seed)


def test_every_class_is_met_and_gives_rows(workload: RandomWorkload) -> None:
    tally = Tally()
    expected = definition(workload)
    for query in workload.queries:
        tally.note(query, expected[query.name])
    assert tuple(tally.queries) == KINDS
    assert tally.bites, tally


def test_a_workload_follows_from_its_seed(workload: RandomWorkload) -> None:
    again = random_workload(workload.seed)
    assert again.text() == workload.text()
    assert str(again.rows) == str(workload.rows)


def test_files_hold_the_rows(workload: RandomWorkload, tmp_path: Path) -> None:
    loaded = load([workload.write(tmp_path)])
    expected = definition(workload)
    with StoredData.from_catalog(loaded.catalog) as data:
        for name, rows in expected.items():
            assert not (found := difference(rows, evaluate(loaded.queries[name], data).rows)), found


def test_rows_come_in_time(workload: RandomWorkload) -> None:
    assert not any(_late(workload).values())


def test_late_rows_are_older_than_the_delay_allows() -> None:
    late = _late(random_workload(0, ("filter",), late_rows=3))
    assert all(late.values()), late


def _late(workload: RandomWorkload) -> dict[str, int]:
    """How many rows of each stream are older than the rows before them and the delay allow."""
    counts = {}
    for stream in workload.streams:
        delay, greatest, late = timedelta(microseconds=stream.delay_us), datetime(1970, 1, 2), 0
        for time in filter(None, map(stream.time_of, stream.rows)):
            if time > datetime(1970, 1, 1):
                late += time < greatest - delay
                greatest = max(greatest, time)
        counts[stream.relation.name] = late
    return counts
