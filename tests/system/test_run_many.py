"""Changes among five hundred queries: how many micro-batches and entries of the manifest they take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until

import plait
from plait.runtime.state_key import MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12)
QUERIES = 500
TOGETHER = 100
FILE_SECONDS = 10
KEYS = 10
# With each file all shapes have new rows: windows are shorter than a file, and each key has a row a second.
SHAPES = (
    "SELECT at, v FROM s WHERE k = {key}",
    "SELECT k, v FROM s WHERE v BETWEEN -{number} AND {number} + 1000000",
    "SELECT k, count(*) AS n, max(v) AS most FROM s [RANGE {seconds} SECONDS SLIDE 1 SECOND] GROUP BY k",
    "SELECT k, sum(v) AS total FROM s [RANGE {seconds} SECONDS] GROUP BY k HAVING sum(v) > -{number}",
    "SELECT x.v, y.v AS w FROM s x [RANGE 2 SECONDS], s y [RANGE 2 SECONDS] WHERE x.k = y.k AND x.k = {key}",
)


def declared(numbers: range) -> str:
    return "\n".join(
        f"CREATE CONTINUOUS QUERY q{number} AS "
        + SHAPES[number % len(SHAPES)].format(number=number, key=number % KEYS, seconds=1 + number % 4)
        + ";"
        for number in numbers
    )


def names(numbers: range) -> list[str]:
    return [f"q{number}" for number in numbers]


class Many:
    """A run of five hundred queries over a stream of which each file is a micro-batch."""

    def __init__(self, folder: Path, running: plait.Running, spark: SparkSession) -> None:
        self.running = running
        self._folder = folder
        self._spark = spark
        self._files = 0

    @property
    def batches(self) -> int:
        return self.running.batches("q0")

    @property
    def changes(self) -> int:
        """How many entries of the manifest there are of changes."""
        return len(json.loads((self._folder / "state" / MANIFEST).read_text())["changes"])

    @property
    def started(self) -> frozenset[str]:
        """Which starts of streaming queries there are."""
        from plait.spark.session import started_queries  # needs PySpark, which is slow to import

        return started_queries(self._spark)

    def put(self) -> int:
        """The next file; its first value."""
        first = self._files * FILE_SECONDS * KEYS
        rows = (
            {"k": v % KEYS, "v": v, "at": str(NOON + timedelta(seconds=v // KEYS))}
            for v in range(first, first + FILE_SECONDS * KEYS)
        )
        (self._folder / "draft").write_text("\n".join(map(json.dumps, rows)))
        (self._folder / "draft").rename(self._folder / "in" / f"{self._files:03}.json")
        self._files += 1
        return first

    def arrive(self) -> int:
        """The next file, when it is done; its first value."""
        first = self.put()
        wait_until(lambda: self.batches == self._files)
        return first

    def values(self, query: str) -> list[int]:
        return sorted(row[-1] for row in self.running.results(query))


@pytest.fixture
def many(tmp_path: Path, spark: SparkSession) -> Iterator[Many]:
    (tmp_path / "in").mkdir()
    stream = (
        "CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) "
        f"WITH (connector = 'files', path = '{tmp_path / 'in'}', format = 'json', files_per_batch = 1);\n"
    )
    session = plait.open_text(stream + declared(range(QUERIES)), spark=spark)
    with session.run(state=tmp_path / "state", results=tmp_path / "results", trigger_seconds=0.1) as running:
        yield Many(tmp_path, running, spark)


def test_changes_among_five_hundred_queries(many: Many) -> None:
    many.arrive()
    started, running = many.started, many.running
    assert len(started) == 1

    # Two micro-batches: one that may be going on when the query is added, and one that it is part of.
    before = many.batches
    many.put()
    added = running.add_text(declared(range(QUERIES, QUERIES + 1)))
    assert [*added.added] == names(range(QUERIES, QUERIES + 1))
    first = many.put()
    wait_until(lambda: many.batches == before + 2)
    assert {*range(first, first + FILE_SECONDS * KEYS, KEYS)} <= {*many.values(f"q{QUERIES}")}
    assert many.changes == 1

    together = range(QUERIES + 1, QUERIES + 1 + TOGETHER)
    changed = running.add_text(declared(together))
    assert [*changed.added] == names(together)
    assert len({*changed.added.values()}) == 1  # they see the same rows
    assert many.changes == 2
    assert len(running.queries()) == QUERIES + 1 + TOGETHER
    first = many.arrive()
    for number in together:
        if number % len(SHAPES) == 0:
            wanted = range(first + number % KEYS, first + FILE_SECONDS * KEYS, KEYS)
            assert many.values(f"q{number}") == [*wanted], number
    many.arrive()  # what closes the windows of the one before
    assert all(query.rows for query in running.queries())

    counted = {query.name: query.rows for query in running.queries()}
    assert sorted(running.drop(*names(together)).dropped) == sorted(names(together))
    assert many.changes == 3
    assert [query.name for query in running.queries()] == names(range(QUERIES + 1))
    many.arrive()
    for name in names(together):
        assert len(running.results(name)) == counted[name]
    assert all(query.rows > counted[query.name] for query in running.queries())
    assert many.started == started  # nothing was started again, and nothing new
