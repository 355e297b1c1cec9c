"""Queries that others are dropped beside: what was kept for those is nothing to them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.differential.result_rows import published_rows
from tests.unit.engines.shared.together import computed, fragment_of, rows
from tests.workloads.trunks import queries_of, scans_of, trunk_of

from plait.batches import Batch, BatchRows
from plait.runtime.beats import END_OF_TIME_US

# What queries ask of rows of a stream: each kind is told apart in another way.
TERMS = (
    "{0}.v > {1}",
    "{0}.g = 'a' AND {0}.v > {1}",
    "{0}.v > {1} AND {0}.k < 5 - {1}",
    "{0}.v <> {1}",
    "{0}.v + {0}.k > {1}",
    "({0}.v = {1} OR {0}.g = 'x')",
    "CASE WHEN {0}.k > 2 THEN {0}.v > {1} ELSE {0}.v < {1} END",
    "{0}.g LIKE '{1}%' IS NOT TRUE AND {0}.v IN ({1}, 2, 6)",
)
FORMS = (
    "SELECT a.v, b.v AS w FROM a [RANGE {range} SECONDS], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k AND {left} AND {right}",
    "SELECT g, sum(v) AS total, window_end FROM a [RANGE {range} SECONDS SLIDE 1 SECOND] "
    "WHERE {left} GROUP BY g",
    "SELECT v, g FROM a WHERE {left}",
)


def selects(rng: random.Random) -> list[str]:
    form, left, right = rng.choice(FORMS), rng.choice(TERMS), rng.choice(TERMS)
    return [
        form.format(
            range=rng.randint(1, 4),
            left=left.format("a", rng.randint(0, 4)),
            right=right.format("b", rng.randint(0, 4)),
        )
        for _ in range(6)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_those_that_stay_are_as_if_the_others_had_not_been(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    fragment, catalog = fragment_of(selects(rng))
    batches = [{key: rows(scan, rng) for key, scan in scans_of(fragment).items()} for _ in range(5)]
    staying = replace(fragment, results=tuple(rng.sample(fragment.results, rng.randint(1, 3))))
    found = {result.query: Counter[object]() for result in staying.results}

    def publish(results: Sequence[BatchRows]) -> None:
        for name, taken in found.items():
            taken.update(published_rows(results, name))

    with closing(trunk_of(fragment, catalog, tmp_path / "all.duckdb")) as trunk:
        for number, batch in enumerate(batches):
            if number == 2:
                trunk.become(queries_of(staying), scans_of(fragment))
                trunk.let_go()
            trunk.apply(Batch(number), batch, {}, publish)
        nothing = {key: table.slice(0, 0) for key, table in batches[0].items()}
        trunk.apply(Batch(len(batches)), nothing, dict.fromkeys(nothing, END_OF_TIME_US), publish)
    alone = computed(staying, catalog, tmp_path / "alone.duckdb", batches)
    assert found == {name: given for name, (given, _) in alone.items()}
