"""Random queries of every class, in the database, together and each by itself: they give the rows of their
definitions, also if batches are cut off and given again.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import given as given_by
from hypothesis import strategies as st
from tests.differential import shared_way
from tests.differential.arrivals import SECOND_US, StoredStream
from tests.differential.harness import definition
from tests.differential.queries import KINDS, RandomQuery
from tests.differential.result_rows import published_rows
from tests.differential.shared_way import HandedOver, Ran
from tests.differential.variants import INTEGERS, with_variants
from tests.differential.workloads import RandomWorkload, random_workload
from tests.workloads.trunks import compute_by_plans

from plait import language
from plait.batches import Batch, BatchRows
from plait.deployment.describe import failing_text
from plait.engines.shared import ticks, tree
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.evaluator import StoredData, difference, evaluate
from plait.expressions.types import INT, TIMESTAMP
from plait.plan.nodes import Field, StreamScan
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.sharing.failing import checks
from plait.space import stream_of

MODEST = settings(
    max_examples=int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "12")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def _failed(workload: RandomWorkload, ran: Ran) -> dict[tuple[str, str, str], int]:
    """On how many rows each expression of each query failed, by stream."""
    found = {}
    for key, query in workload.load().queries.items():
        places = checks(stream_of(canonicalise(query.plan)))
        for place, count in ran.failed(key).items():
            check = places[place]
            found[query.name, check.scan.stream, failing_text(check)] = count
    return found


def _failed_by_definition(workload: RandomWorkload) -> dict[tuple[str, str, str], int]:
    loaded = workload.load()
    with StoredData.from_rows(loaded.catalog, workload.rows) as data:
        return {
            (query.name, check.scan.stream, failing_text(check)): count
            for query in loaded.queries.values()
            for check, count in evaluate(query, data).failed.items()
        }


@MODEST
@given_by(st.randoms(use_true_random=False), st.integers(0, 2**16), st.sampled_from(KINDS), st.booleans())
def test_a_query_by_itself(rng: random.Random, seed: int, kind: str, by_plans: bool) -> None:
    """Hypothesis draws each choice of the query, so that a failing one shrinks; the rest is by a seed."""
    workload = random_workload(seed, (kind,), queries_by=rng)
    note(workload.text())
    expected = definition(workload)["q0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        HandedOver(workload, Path(folder)) as handed,
        pytest.MonkeyPatch.context() as patch,
    ):
        if by_plans:
            compute_by_plans(patch)
        ran = shared_way.run(handed, Path(folder), "q0", disturb=random.Random(seed))
    assert not (found := difference(expected, ran.rows("q0"))), found
    assert _failed(workload, ran) == _failed_by_definition(workload)


@pytest.mark.parametrize(
    "seed", [30, 31, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(32, 40))]
)
def test_random_queries_give_the_rows_of_their_definition(seed: int, tmp_path: Path) -> None:
    workload = random_workload(seed, [*KINDS] * 2)
    expected = definition(workload)
    with HandedOver(workload, tmp_path) as given:
        ran = shared_way.run(given, tmp_path, disturb=random.Random(seed))
    for query in workload.queries:
        assert not difference(expected[query.name], ran.rows(query.name)), query
        assert not ran.late_rows(query.name)
    assert _failed(workload, ran) == _failed_by_definition(workload)
    assert sum(bool(rows) for rows in expected.values()) >= 0.9 * len(expected)


@pytest.mark.slow
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


def test_sums_of_few_pieces_are_those_of_prefix_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefix sums are for groups that have rows most of the time."""
    monkeypatch.setattr(ticks, "_FEW", -1)
    monkeypatch.setattr(ticks, "_SPARSE", 0)
    check_aggregates(40, tmp_path)


@pytest.mark.parametrize(("seed", "block"), [(41, 1), (42, 2), (43, 3), (44, 5)])
def test_sums_of_blocks_are_those_of_pieces(
    seed: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are for windows that hold many pieces."""
    monkeypatch.setattr(ticks, "_FEW", -1)
    monkeypatch.setattr(ticks, "_SPARSE", 0)
    monkeypatch.setattr(ticks, "_BLOCK", block)
    monkeypatch.setattr(ticks, "_LONG", 0)
    check_aggregates(seed, tmp_path)


def check_aggregates(seed: int, folder: Path) -> None:
    workload = with_variants(random_workload(seed, ("aggregate",) * 6), 3, random.Random(seed))
    expected = definition(workload)
    with HandedOver(workload, folder) as given:
        ran = shared_way.run(given, folder)
    for query in workload.queries:
        assert not difference(expected[query.name], ran.rows(query.name)), query


def test_a_backlog_of_long_windows(tmp_path: Path) -> None:
    """A row a second for a day, and windows of a day that move on every 10 seconds."""
    windows = "FROM s [RANGE 1 DAY SLIDE 10 SECONDS]"
    workload = language.load_text(
        "CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at);"
        f"CREATE CONTINUOUS QUERY counts AS SELECT window_end, count(*) AS n {windows};"
        f"CREATE CONTINUOUS QUERY greatest AS SELECT window_end, max(v) AS n {windows};"
    )
    queries = [
        SharedQuery(query.name, stream_of(canonicalise(query.plan))) for query in workload.queries.values()
    ]
    scans = {"s": StreamScan("s", (Field("v", INT),))}
    seconds = range(1, 86_401)
    rows = pa.table(
        {"c0": pa.array(seconds, pa.int32()), "t": pa.array([second * SECOND_US for second in seconds])}
    )
    given: dict[str, dict[object, object]] = {}

    def publish(results: Sequence[BatchRows]) -> None:
        for name in workload.queries:
            given[name] = {row[0]: row[1] for row in published_rows(results, name)}

    with closing(Trunk(queries, workload.catalog.streams, scans, tmp_path / "trunk.duckdb")) as trunk:
        trunk.apply(Batch(0), {"s": rows}, {}, publish)
    before: dict[object, object] = {
        datetime.fromtimestamp(tick, UTC).replace(tzinfo=None): tick - 1 for tick in seconds[9::10]
    }
    assert given == {"counts": before, "greatest": before}


def test_ticks_before_the_offset_of_a_window(tmp_path: Path) -> None:
    """Times below the offset, of which the remainder is negative: another query's edges are there."""
    sql = """
    CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at);
    CREATE CONTINUOUS QUERY days AS SELECT count(*) AS n, window_end FROM s [RANGE 1 DAY];
    CREATE CONTINUOUS QUERY decades AS SELECT count(*) AS n, window_end FROM s
      GROUP BY window(at, '3650 days', '3650 days', '3000 days');
    """
    workload = language.load_text(sql)
    scans = {"s": StreamScan("s", (Field("v", INT), Field("at", TIMESTAMP)))}
    queries = [
        SharedQuery(query.name, stream_of(canonicalise(query.plan))) for query in workload.queries.values()
    ]
    trunk = Trunk(queries, workload.catalog.streams, scans, tmp_path / "trunk.duckdb")
    moment = datetime(1975, 1, 1, tzinfo=UTC)
    row = pa.table(
        {
            "c0": pa.array([1], pa.int32()),
            "c1": pa.array([moment], pa.timestamp("us", "UTC")),
            "t": pa.array([int(moment.timestamp()) * 1_000_000]),
        }
    )
    given: dict[str, list[object]] = {}

    def publish(results: Sequence[BatchRows]) -> None:
        for name in ("days", "decades"):
            given.setdefault(name, []).extend(published_rows(results, name))

    trunk.apply(Batch(0), {"s": row}, {}, publish)
    trunk.apply(Batch(1), {"s": row.slice(1)}, {"s": END_OF_TIME_US}, publish)
    trunk.close()
    with StoredData.from_rows(workload.catalog, {"s": [(1, moment.replace(tzinfo=None))]}) as data:
        for name, rows in given.items():
            assert rows == [*evaluate(workload.query(name), data).rows], name
    assert all(given.values())


def _of_ever_fewer_keys(stream: StoredStream, rng: random.Random) -> Iterator[RandomQuery]:
    """Window aggregates of the same rows, or of those with one value, by two keys, by one, and of all."""
    relation = stream.relation
    integers = [name for name, type_ in relation.columns if type_ in INTEGERS]
    others = [name for name, type_ in relation.columns if name not in (*integers, relation.event_time)]
    first, second, value = integers[0], others[0], integers[-1]
    calls = ("count(*)", f"sum({value})", f"min({value})", f"avg({value})", f"max({second})")
    for number in range(12):
        keys = rng.choice(([first, second], [first], [second], []))
        where = rng.choice(("", f"WHERE {first} = {rng.randint(0, 3)}"))
        range_s, slide_s = rng.randint(1, 9), rng.randint(1, 5)
        items = ", ".join(
            [*keys, "window_end", *(f"{call} AS a{n}" for n, call in enumerate(rng.sample(calls, 2)))]
        )
        grouped = f"GROUP BY {', '.join(keys)}" if keys else ""
        yield RandomQuery(
            f"q{number}",
            "aggregate",
            f"CREATE CONTINUOUS QUERY q{number} AS SELECT {items} FROM {relation.name} "
            f"[RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS] {where} {grouped};",
        )


@pytest.mark.parametrize("seed", [50, *(pytest.param(n, marks=pytest.mark.slow) for n in range(51, 60))])
@pytest.mark.parametrize("worth_it", [-1, 1, 10**6], ids=["always", "maybe", "never"])
def test_coarser_groups_are_made_of_finer_ones(
    seed: int, worth_it: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_WORTH_IT", worth_it)
    made: list[str] = []
    of_finer = tree.Tree._of_finer

    def noted(coarse: tree.Tree, finer: tree.Tree) -> str:
        made.append(of_finer(coarse, finer))
        return made[-1]

    monkeypatch.setattr(tree.Tree, "_of_finer", noted)
    rng = random.Random(seed)
    workload = random_workload(seed, (), cuts=4)
    workload = replace(workload, queries=tuple(_of_ever_fewer_keys(workload.streams[0], rng)))
    expected = definition(workload)
    with HandedOver(workload, tmp_path) as given:
        ran = shared_way.run(given, tmp_path, disturb=rng)
    for query in workload.queries:
        assert not difference(expected[query.name], ran.rows(query.name)), query
    assert any(expected.values())
    assert made or worth_it > 0
