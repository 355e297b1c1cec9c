"""Queries that could share a join, in parts: what they give is the same whatever the parts are, and what is
kept for them stays where it is."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.engines.shared.together import computed, fragment_of, rows
from tests.workloads.trunks import scans_of, trunk_of

from plait.batches import Batch
from plait.observations import OperatorForm

SELECTS = [
    f"SELECT a.v, b.v AS w FROM a [RANGE {1 + n % 3} SECONDS], b [RANGE 3 SECONDS] "
    f"WHERE a.k = b.k AND a.v > {n % 4} AND b.v < {6 - n % 3}"
    for n in range(9)
]


def test_rows_and_late_rows_are_the_same_in_any_parts(tmp_path: Path) -> None:
    rng = random.Random(1)
    fragment, catalog = fragment_of(SELECTS)
    batches = [{key: rows(scan, rng) for key, scan in scans_of(fragment).items()} for _ in range(4)]
    ways = {
        "one": fragment.results,
        "three": tuple(replace(each, part=str(n % 3)) for n, each in enumerate(fragment.results)),
        "each": tuple(replace(each, part=each.query) for each in fragment.results),
    }
    found = {
        name: computed(replace(fragment, results=results), catalog, tmp_path / f"{name}.duckdb", batches)
        for name, results in ways.items()
    }
    assert found["one"] == found["three"] == found["each"]
    assert any(given for given, _ in found["one"].values())
    assert any(late for _, late in found["one"].values())


@pytest.mark.parametrize("then", ["", "other"])
def test_a_query_stays_in_the_join_that_has_its_rows(then: str, tmp_path: Path) -> None:
    fragment, catalog = fragment_of(SELECTS[:2])
    first = replace(fragment, results=tuple(replace(each, part="first") for each in fragment.results))
    rng = random.Random(2)
    batches = [{key: rows(scan, rng) for key, scan in scans_of(fragment).items()} for _ in range(2)]
    with closing(trunk_of(first, catalog, tmp_path / "trunk.duckdb")) as trunk:
        trunk.apply(Batch(0), batches[0], {}, lambda _: None)
        (join,) = (meter.id for meter in trunk.meters if meter.form is OperatorForm.JOIN)
    again = replace(fragment, results=tuple(replace(each, part=then) for each in fragment.results))
    with closing(trunk_of(again, catalog, tmp_path / "trunk.duckdb")) as trunk:
        assert [meter.id for meter in trunk.meters] == [join]
        trunk.apply(Batch(1), batches[1], {}, lambda _: None)
