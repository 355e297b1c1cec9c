"""Queries that a micro-batch fails by, in the database: named, and the others are as if they had not been."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.differential.result_rows import published_rows

from plait import language
from plait.batches import Batch, BatchRows, Publish
from plait.engines.shared.culprits import culprits
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.errors import InfeasibleError, PlaitError, QueriesFailedError
from plait.expressions.types import INT
from plait.plan.nodes import Field, StreamScan
from plait.rewrite import canonicalise
from plait.space import stream_of

SQL = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY pairs AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 MINUTE], s y [RANGE 1 MINUTE] WHERE x.v = y.v AND x.k = 2;
CREATE CONTINUOUS QUERY all_pairs AS
  SELECT x.v, y.v AS w FROM s x [RANGE 1 MINUTE], s y [RANGE 1 MINUTE] WHERE x.v <> y.v;
CREATE CONTINUOUS QUERY sums AS SELECT sum(v) AS total, window_end FROM s [RANGE 10 SECONDS];
"""
SCANS = {"s": StreamScan("s", (Field("k", INT), Field("v", INT)))}


@pytest.mark.parametrize("seed", range(30))
def test_whoever_fails_is_found(seed: int) -> None:
    rng = random.Random(seed)
    queries = [*range(rng.randint(1, 40))]
    failing = {*rng.sample(queries, min(len(queries), rng.randint(0, 8)))}

    def tried(some: Sequence[int]) -> PlaitError | None:
        return PlaitError("failed", str(some)) if failing & {*some} else None

    found = culprits(queries, tried)
    assert {query for query, _ in found} == failing
    assert all(error.message == f"[{query}]" for query, error in found)


@pytest.mark.parametrize("seed", range(30))
def test_those_that_fail_together_are_found_and_no_others(seed: int) -> None:
    rng = random.Random(seed)
    queries = [*range(rng.randint(8, 60))]
    rng.shuffle(queries)
    sets = [{*queries[:2]}, {*queries[2:5]}, {queries[5]}]

    def tried(some: Sequence[int]) -> PlaitError | None:
        return PlaitError("failed", str(some)) if any(each <= {*some} for each in sets) else None

    assert {query for query, _ in culprits(sorted(queries), tried)} == {*queries[:6]}


def test_more_are_looked_for_if_each_needs_too_much() -> None:
    for most, kind in ((8, PlaitError), (64, InfeasibleError)):
        for number in (most, most + 1):
            failing = {*range(0, 2 * number, 2)}

            def tried(
                some: Sequence[int], kind: type = kind, failing: set[int] = failing
            ) -> PlaitError | None:
                return kind("", "") if failing & {*some} else None

            found = {query for query, _ in culprits(range(200), tried)}
            assert found == (failing if number == most else set())


def test_nobody_is_to_blame_for_what_is_wrong_with_all() -> None:
    trials = 0

    def tried(some: Sequence[int]) -> PlaitError:
        nonlocal trials
        trials += 1
        return PlaitError("", str(some))

    assert culprits(range(1000), tried) == []
    assert trials < 200


def rows(first: int, last: int) -> pa.Table:
    seconds = range(first, last)
    return pa.table(
        {
            "c0": pa.array([n % 3 for n in seconds], pa.int32()),
            "c1": pa.array(seconds, pa.int32()),
            "t": pa.array([n * 1_000_000 + 1 for n in seconds]),
        }
    )


def queries_of(names: Sequence[str]) -> list[SharedQuery]:
    workload = language.load_text(SQL)
    return [SharedQuery(name, stream_of(canonicalise(workload.query(name).plan))) for name in names]


def trunk_of(names: Sequence[str], path: Path) -> Trunk:
    streams = language.load_text(SQL).catalog.streams
    return Trunk(queries_of(names), streams, SCANS, path, most_rows=500)


def test_a_join_that_explodes_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    names = ("ones", "pairs", "all_pairs", "sums")
    others = tuple(name for name in names if name != "all_pairs")
    given: dict[str, list[object]] = {}
    alone: dict[str, list[object]] = {}

    def into(found: dict[str, list[object]]) -> Publish:
        def publish(results: Sequence[BatchRows]) -> None:
            for name in others:
                found.setdefault(name, []).extend(published_rows(results, name))

        return publish

    with (
        closing(trunk_of(names, tmp_path / "all.duckdb")) as trunk,
        closing(trunk_of(others, tmp_path / "others.duckdb")) as expected,
    ):
        for id_, (first, last) in enumerate([(0, 10), (10, 70), (70, 100)]):
            batch = rows(first, last)
            expected.apply(Batch(id_), {"s": batch}, {}, into(alone))
            if id_ == 1:
                with pytest.raises(QueriesFailedError) as raised:
                    trunk.apply(Batch(id_), {"s": batch}, {}, into(given))
                assert [*raised.value.failed] == ["all_pairs"]
                assert isinstance(raised.value.failed["all_pairs"], InfeasibleError)
                trunk.become(queries_of(others), SCANS)
                trunk.let_go()
            trunk.apply(Batch(id_), {"s": batch}, {}, into(given))
    assert {name: sorted(found, key=str) for name, found in given.items()} == {
        name: sorted(found, key=str) for name, found in alone.items()
    }
    assert all(given.values())


def test_the_only_query_that_needs_too_much_is_named(tmp_path: Path) -> None:
    with (
        closing(trunk_of(["all_pairs"], tmp_path / "one.duckdb")) as trunk,
        pytest.raises(QueriesFailedError) as raised,
    ):
        trunk.apply(Batch(0), {"s": rows(0, 60)}, {}, lambda _: None)
    assert "more than 500 rows at once" in raised.value.failed["all_pairs"].message


def test_memory_may_be_set_between_batches(tmp_path: Path) -> None:
    with closing(trunk_of(["ones"], tmp_path / "one.duckdb")) as trunk:
        trunk.apply(Batch(0), {"s": rows(0, 10)}, {}, lambda _: None)
        trunk.memory_bytes = 512 * 1024**2
        trunk.apply(Batch(1), {"s": rows(10, 20)}, {}, lambda _: None)
        ((limit,),) = trunk._database.fetch("SELECT current_setting('memory_limit')")
    assert limit == "512.0 MiB"
