"""Random queries of every class, computed together in the database: each gives the rows of its definition."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.differential import shared_way
from tests.differential.database_way import HandedOver
from tests.differential.harness import definition
from tests.differential.lateness import late_for_database
from tests.differential.queries import KINDS
from tests.differential.test_late_rows import LATE_ROWS, _queries
from tests.differential.workloads import random_workload

from plait.evaluator import difference


@pytest.mark.parametrize("seed", range(30, 34))
def test_random_queries_give_the_rows_of_their_definition(seed: int, tmp_path: Path) -> None:
    workload = random_workload(seed, [*KINDS] * 2)
    expected = definition(workload)
    with HandedOver(workload, tmp_path) as given:
        ran = shared_way.run(given, tmp_path, disturb=random.Random(seed))
    for query in workload.queries:
        assert not difference(expected[query.name], ran.rows(query.name)), query
        assert not ran.late_rows(query.name)
    assert sum(bool(rows) for rows in expected.values()) >= 0.9 * len(expected)


def test_rows_that_no_query_wants_make_no_difference(tmp_path: Path) -> None:
    """Few queries want few rows: the others are not handed over."""
    handed_over = all_rows = 0
    for seed in range(8):
        workload = random_workload(seed, ("filter", "filter", "aggregate"))
        expected = definition(workload)
        folder = tmp_path / str(seed)
        folder.mkdir()
        with HandedOver(workload, folder) as given:
            ran = shared_way.run(given, folder, disturb=random.Random(seed))
        for query in workload.queries:
            assert not difference(expected[query.name], ran.rows(query.name)), query
        handed_over += ran.handed_over
        all_rows += sum(len(workload.rows[stream]) for stream in ran.streams)
    assert handed_over < all_rows


@pytest.mark.parametrize("seed", [0, 4])
def test_late_rows_are_counted_for_each_query(seed: int, tmp_path: Path) -> None:
    workload = random_workload(seed, (), cuts=5, late_rows=LATE_ROWS)
    workload = replace(workload, queries=tuple(_queries(workload.streams)))
    with HandedOver(workload, tmp_path) as given:
        ran = shared_way.run(given, tmp_path, disturb=random.Random(seed))
    for number, stream in enumerate(workload.streams):
        key = stream.relation.name.lower()
        assert not ran.late_rows(f"rows{number}"), "single rows are given at once"
        for label in ("ticks", "panes"):
            assert ran.late_rows(f"{label}{number}")[key] == late_for_database(stream)
