"""Queries that could share a join or a tree of windows, in parts: what they give is the same whatever the
parts are, and what is kept for them stays where it is."""

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

JOINS = [
    f"SELECT a.v, b.v AS w FROM a [RANGE {1 + n % 3} SECONDS], b [RANGE 3 SECONDS] "
    f"WHERE a.k = b.k AND a.v > {n % 4} AND b.v < {6 - n % 3}"
    for n in range(9)
]
# By two groupings, of which the coarser can be made of the finer one's partials.
TREES = [
    f"SELECT {'k, ' * (n % 2)}g, sum(v) AS total, max(v) AS most, window_end "
    f"FROM a [RANGE {2 + n} SECONDS SLIDE {1 + n % 4} SECONDS] GROUP BY {'k, ' * (n % 2)}g"
    for n in range(9)
]


@pytest.mark.parametrize("selects", [JOINS, TREES])
def test_rows_and_late_rows_are_the_same_in_any_parts(selects: list[str], tmp_path: Path) -> None:
    rng = random.Random(1)
    fragment, catalog = fragment_of(selects)
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
@pytest.mark.parametrize(("selects", "form"), [(JOINS, OperatorForm.JOIN), (TREES[::2], OperatorForm.TREE)])
def test_a_query_stays_where_its_rows_are(
    selects: list[str], form: OperatorForm, then: str, tmp_path: Path
) -> None:
    fragment, catalog = fragment_of(selects[:2])
    first = replace(fragment, results=tuple(replace(each, part="first") for each in fragment.results))
    rng = random.Random(2)
    batches = [{key: rows(scan, rng) for key, scan in scans_of(fragment).items()} for _ in range(2)]
    with closing(trunk_of(first, catalog, tmp_path / "trunk.duckdb")) as trunk:
        trunk.apply(Batch(0), batches[0], {}, lambda _: None)
        (one,) = (meter.id for meter in trunk.meters if meter.form is form)
    again = replace(fragment, results=tuple(replace(each, part=then) for each in fragment.results))
    with closing(trunk_of(again, catalog, tmp_path / "trunk.duckdb")) as trunk:
        assert [meter.id for meter in trunk.meters] == [one]
        trunk.apply(Batch(1), batches[1], {}, lambda _: None)
