"""Every example of docs/semantics.md, in micro-batches: what the watermark settles, and all in the end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.engines.shared.feeding import Feed, run
from tests.unit.evaluator.test_semantics_document import Example, data_of, examples

from plait import language
from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference
from plait.rewrite import canonicalise
from plait.space import stream_of


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as database:
        yield database


@pytest.mark.parametrize("by_plans", [False, True], ids=["families", "plans"])
@pytest.mark.parametrize("example", list(examples()), ids=lambda example: f"line-{example.line}")
def test_example(example: Example, by_plans: bool, database: Database, tmp_path: Path) -> None:
    workload = language.load_text(example.sql)
    rows, now = data_of(example, workload.catalog)
    rng = random.Random(example.line)
    with StoredData.from_rows(workload.catalog, rows, database=database, now=now) as data:
        for query in workload.queries.values():
            folder = tmp_path / query.name
            folder.mkdir()
            feed = Feed(stream_of(canonicalise(query.plan)), data, folder, by_plans)
            given = run(feed, feed.batches(rng, most=4))
            assert not difference(feed.settled_rows(), given.settled), query.name
            assert not difference(feed.all_rows(), given.all), query.name
