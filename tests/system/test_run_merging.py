"""Queries that came one by one are merged while they run: none of them loses or repeats a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from tests.patience import wait_until

import plait
from plait.errors import ExternalError
from plait.evaluator import Result, StoredData, difference, evaluate
from plait.language import load_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row: TypeAlias = tuple[Any, ...]

STREAMS = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS)
  WITH (connector = 'files', path = 's', format = 'json');
CREATE STREAM r (k INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS)
  WITH (connector = 'files', path = 'r', format = 'json');
"""
ROWS = "CREATE CONTINUOUS QUERY rows_{k} AS SELECT v, at, 10 / (v - {k}) AS q FROM s WHERE k = {k};\n"
SUMS = """CREATE CONTINUOUS QUERY sums_{k} AS
SELECT count(*) AS n, sum(v) AS total, window_end FROM s [RANGE 7 SECONDS SLIDE 2 SECONDS] WHERE k = {k};
"""
JOINS = """CREATE CONTINUOUS QUERY joins_{k} AS SELECT s.v, r.w FROM s [RANGE 3 SECONDS], r [RANGE 5 SECONDS]
WHERE s.k = r.k AND s.k = {k};
"""
# By themselves Spark's operators compute these, each in its own way; together they are no family.
OTHERS = """CREATE CONTINUOUS QUERY outer_{k} AS
SELECT s.v, r.w FROM s [RANGE 3 SECONDS] LEFT JOIN r [RANGE 2 SECONDS] ON s.k = r.k AND s.v = r.w + {k};
"""
NOON = datetime(2026, 1, 1, 12)
EPOCH = datetime(1970, 1, 1)
SUMMED = timedelta(seconds=7)
DELAYS_S = (0, 2, 0, 1)  # rows are late by as much as they may be


@dataclass
class Merging:
    """A run over rows that arrive when they are told to, and may be started again."""

    folder: Path
    spark: SparkSession
    engines: str
    texts: list[str]
    starts_us: dict[str, int | None] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {"s": [], "r": []})
    late: list[Row] = field(default_factory=list)  # of s
    failing: bool = False
    running: plait.Running = field(init=False)
    _files: int = 0

    def __post_init__(self) -> None:
        for name in self.rows:
            (self.folder / name).mkdir()
        (self.folder / "a.sql").write_text(STREAMS + self.texts[0])

    @contextmanager
    def started(self) -> Iterator[plait.Running]:
        with (
            suppress(*[ExternalError] * self.failing),  # told once more when it ends
            plait.open(self.folder / "a.sql", spark=self.spark) as session,
            session.run(
                engines=self.engines,
                trigger_seconds=0.1,
                state=self.folder / "state",
                results=self.folder / "results",
            ) as self.running,
        ):
            self.starts_us |= {query.name: query.after_us for query in self.running.queries()}
            yield self.running

    def drain(self) -> None:
        with plait.open(self.folder / "a.sql", spark=self.spark) as session:
            session.run(
                engines=self.engines,
                available_now=True,
                drain=True,
                state=self.folder / "state",
                results=self.folder / "results",
            ).wait()

    def add(self, text: str) -> None:
        self.texts.append(text)
        self.starts_us |= self.running.add_text(text).added

    def arrive(self, first: int, last: int) -> None:
        """Rows of these seconds, of each stream, and wait until they are read."""
        for name, rows in self.rows.items():
            new = [
                (n % 3, n % 7, NOON + timedelta(seconds=n - DELAYS_S[n % len(DELAYS_S)]))
                for n in range(first, last)
            ]
            self._put(name, new)
            rows += new
        wait_until(self._is_read)

    def arrive_late(self, second: int) -> None:
        """A row that comes too late for all that keep rows."""
        row = (0, 5, NOON + timedelta(seconds=second))
        self._put("s", [row])
        self.late.append(row)
        wait_until(self._is_read)

    def await_watermarks(self, second: int) -> None:
        """Until all places where queries keep rows have come so far."""
        us = (NOON + timedelta(seconds=second) - EPOCH) // timedelta(microseconds=1)
        queries = self.running.progress().queries
        keeping = {query.name for query in queries if not query.name.startswith("rows_")}
        wait_until(
            lambda: all(
                (query.watermark_us or 0) >= us
                for query in self.running.progress().queries
                if query.name in keeping
            )
        )

    def _put(self, name: str, rows: Sequence[Row]) -> None:
        columns = ("k", "v" if name == "s" else "w", "at")
        lines = (json.dumps(dict(zip(columns, map(_written, row), strict=True))) for row in rows)
        draft = self.folder / "draft"
        draft.write_text("\n".join(lines))
        draft.rename(self.folder / name / f"{self._files}.json")
        self._files += 1

    def _is_read(self) -> bool:
        if self.running.error is not None and not self.failing:
            raise self.running.error
        progress = self.running.progress()
        expected = {"s": len(self.rows["s"]) + len(self.late), "r": len(self.rows["r"])}
        are_counted = all(stream.rows == expected[stream.name] for stream in progress.streams)
        return are_counted and not any(query.state == "starting" for query in progress.queries)

    def leaving(self) -> list[str]:
        return [query.name for query in self.running.queries() if query.leaves is not None]

    def counts_agree(self) -> bool:
        """Whether all is counted that was published, and that failed: that comes a moment later."""
        defined = self._defined()
        return all(
            query.rows == len(self.running.results(query.name))
            and sum(each["rows"] for each in query.failed) == sum(defined[query.name].failed.values())
            for query in self.running.queries()
        )

    def check(self) -> None:
        for name, expected in self._defined().items():
            found = [tuple(row) for row in plait.attach(self.folder / "state").results(name)]
            meant = self._certain(name, expected.rows)
            assert meant, name
            assert not (wrong := difference(meant, self._certain(name, found))), f"{name}:\n{wrong}"

    def _certain(self, name: str, rows: Iterable[Row]) -> list[Row]:
        """Without windows that a late row may be in: those that were open took it."""
        times = [row[2] for row in self.late] if name.startswith("sums_") else []
        return [row for row in rows if not any(time < row[2] <= time + SUMMED for time in times)]

    def _defined(self) -> dict[str, Result]:
        """What queries mean over the rows that have come, as if no more did."""
        loaded = load_text(STREAMS + "".join(self.texts))
        found = {}
        everything = {**self.rows, "s": [*self.rows["s"], *self.late]}
        with (
            StoredData.from_rows(loaded.catalog, self.rows) as in_time,
            StoredData.from_rows(loaded.catalog, everything) as all_rows,
        ):
            for name, after_us in self.starts_us.items():
                start = None if after_us is None else EPOCH + timedelta(microseconds=after_us)
                # What keeps no rows finds none too late.
                data = all_rows if name.startswith("rows_") else in_time
                found[name] = evaluate(loaded.query(name), data, start=start)
        return found


def _written(value: object) -> object:
    return str(value) if isinstance(value, datetime) else value


def test_families_on_spark_become_one_streaming_query_each(tmp_path: Path, spark: SparkSession) -> None:
    first = "".join(text.format(k=0) for text in (ROWS, SUMS, JOINS, OTHERS))
    merging = Merging(tmp_path, spark, "spark", [first])
    with merging.started() as running:
        merging.arrive(0, 10)
        for text in (ROWS, SUMS, JOINS):
            merging.add(text.format(k=1))
        merging.arrive(10, 20)
        before = {query.name: query.fragment for query in running.queries()}
        assert len({*before.values()}) == 7
        merged = running.merge()
        assert {query.name: query.leaves for query in merged.queries} == {
            name: before[name] for name in before if name != "outer_0"
        }
        assert len({query.fragment for query in merged.queries}) == 3
        assert merging.leaving() == [name for name in before if name != "outer_0"]
        assert running.merge().queries == ()
        merging.arrive_late(1)  # before the moment of the merge, which is 18
        merging.arrive(20, 26)
        merging.await_watermarks(20)
        merging.arrive_late(19)  # after it
    with merging.started() as running:
        assert running.merged_at_start.queries == ()
        merging.arrive(26, 60)
        merging.arrive(60, 61)
        wait_until(lambda: not merging.leaving())
        assert len({query.fragment for query in running.queries()}) == 4
        assert {query.name: query.after_us for query in running.queries()} == merging.starts_us
        merging.arrive(61, 70)
        wait_until(merging.counts_agree)
        late = {query.name: dict(query.late_rows) for query in running.progress().queries}
        assert late == {name: {} if name[-1] == "1" or name == "rows_0" else {"s": 2} for name in before}
    merging.drain()
    merging.check()


def test_databases_over_streams_in_common_become_one_at_a_start(tmp_path: Path, spark: SparkSession) -> None:
    first = SUMS.format(k=0) + SUMS.format(k=1) + ROWS.format(k=2)
    merging = Merging(tmp_path, spark, "duckdb", [first])
    with merging.started() as running:
        merging.arrive(0, 10)
        merging.add("CREATE CONTINUOUS QUERY of_r AS SELECT w FROM r WHERE k < 2;\n")
        merging.arrive(10, 20)
        merging.add(JOINS.format(k=1) + OTHERS.format(k=0))
        merging.arrive(20, 30)
        assert {query.fragment for query in running.queries()} == {"shared-0", "shared-0-1", "shared-0-2"}
        assert running.merged_at_start.queries == ()
        wanted = running.would_merge()
    with merging.started() as running:
        merged = running.merged_at_start
        assert merged == wanted.merged
        assert {query.name: query.leaves for query in merged.queries} == {
            **dict.fromkeys(("sums_0", "sums_1", "rows_2"), "shared-0"),
            "of_r": "shared-0-1",
        }
        assert {query.fragment for query in running.queries()} == {"shared-0-2"}
        merging.arrive(30, 33)
        running.drop("sums_1")
        merging.add(SUMS.format(k=1).replace("sums_1", "sums_3"))
        assert {query.fragment for query in running.queries()} == {"shared-0-2"}
        merging.arrive(33, 60)
        merging.arrive(60, 61)
        wait_until(lambda: not merging.leaving())
        merging.arrive(61, 70)
        wait_until(merging.counts_agree)
    merging.drain()
    del merging.starts_us["sums_1"]
    merging.check()


def test_a_query_that_fails_while_it_is_handed_over(tmp_path: Path, spark: SparkSession) -> None:
    """Its place goes wrong in both fragments: it is stopped once, with all that was counted of it, and the
    others are handed over."""
    place = tmp_path / "place"
    own = SUMS.format(k=2).replace("sums_2 AS", f"own INTO '{place}' AS")
    merging = Merging(tmp_path, spark, "spark", [SUMS.format(k=0) + own], failing=True)
    with merging.started() as running:
        merging.arrive(0, 10)
        merging.add(SUMS.format(k=1))
        merging.arrive(10, 30)
        wait_until(lambda: len(running.results("own")) > 0)
        assert {query.name for query in running.merge().queries} == {"sums_0", "own", "sums_1"}
        merging.arrive(30, 31)
        wait_until(merging.counts_agree)
        given = len(running.results("own"))
        place.rename(tmp_path / "elsewhere")
        place.write_text("in the way")
        merging.arrive(31, 60)
        merging.arrive(60, 61)
        wait_until(lambda: {query.name for query in running.progress().failed} == {"own"})
        (failed,) = running.progress().failed
        assert failed.rows == given
        assert failed.error is not None
        assert "query `own` was stopped, and the others went on" in failed.error.message
        merging.arrive(61, 70)
        wait_until(lambda: not merging.leaving())
        assert {query.name for query in running.progress().failed} == {"own"}
    with merging.started() as running:
        (failed,) = running.progress().failed
        assert failed.rows == given
        running.drop("own")
    merging.drain()
    del merging.starts_us["own"]
    merging.check()
