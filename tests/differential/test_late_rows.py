"""Rows later than the delay: results lie between those without and those with them, and what is left out is
reported, exactly.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.differential import shared_way
from tests.differential.arrivals import Row, StoredStream
from tests.differential.harness import definition
from tests.differential.lateness import late_for_database, late_for_ticks
from tests.differential.queries import RandomQuery
from tests.differential.shared_way import HandedOver
from tests.differential.workloads import RandomWorkload, random_workload
from tests.workloads.trunks import compute_by_plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.differential.spark_way import SparkRun

SECOND_US = 1_000_000
LATE_ROWS = 6
FINE, COARSE = (7, 3), (40, 1)  # range and slide in seconds: on Spark's operators, and in the database
SEEDS = (0, 4)


def _queries(streams: Sequence[StoredStream]) -> Iterator[RandomQuery]:
    for number, stream in enumerate(streams):
        relation = stream.relation
        name, time = relation.name, relation.event_time
        key = next(column for column, type_ in relation.columns if type_ == "INT")
        selected = f"SELECT {key} AS k, {time} AS t FROM {name}"
        yield _query(f"rows{number}", "filter", selected)
        for label, (range_s, slide_s) in (("ticks", FINE), ("panes", COARSE)):
            window = f"[RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS]"
            counted = f"SELECT {key} AS k, window_end AS e, count(*) AS n FROM {name} {window} GROUP BY {key}"
            yield _query(f"{label}{number}", label, counted)
    left, right = (stream.relation for stream in streams[:2])
    keys = [next(c for c, type_ in r.columns if type_ == "INT") for r in (left, right)]
    joined = (
        f"SELECT l.{keys[0]} AS k, l.{left.event_time} AS s, r.{right.event_time} AS t "
        f"FROM {left.name} l [RANGE 5 SECONDS], {right.name} r [RANGE 3 SECONDS] "
        f"WHERE l.{keys[0]} = r.{keys[1]}"
    )
    yield _query("pairs", "join", joined)


def _query(name: str, kind: str, select: str) -> RandomQuery:
    return RandomQuery(name, kind, f"CREATE CONTINUOUS QUERY {name} AS {select};")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("seed", "planner"),
    [
        (0, "plait"),
        pytest.param(4, "plait", marks=pytest.mark.slow),
        pytest.param(4, "independent", marks=pytest.mark.slow),
    ],
)
def test_late_rows_are_counted_and_results_lie_between(
    seed: int, planner: str, spark: SparkSession, tmp_path: Path
) -> None:
    from tests.differential import spark_way

    alone = planner == "independent"
    kinds = ("ticks", "join") if alone else ("filter", "ticks", "panes", "join")
    in_time = _with_queries(random_workload(seed, (), cuts=5), kinds)
    late = _with_queries(random_workload(seed, (), cuts=5, late_rows=LATE_ROWS), kinds)
    ran = spark_way.run(late, tmp_path, spark, planner=planner)
    without, everything = definition(in_time), definition(late)
    for query in late.queries:
        least, given, most = without[query.name], ran.rows[query.name], everything[query.name]
        assert ran.queries[query.name].error is None
        assert _lies_between(query, least, given, most), query
    left_out: Counter[str] = Counter()
    for number in range(len(late.streams)):
        left_out.update(_checked_counts(late, ran, number, alone=alone))
    assert left_out["ticks"], "no row was too late for a window of few ticks"
    assert alone or left_out["panes"], "no row was too late for a window of many"


@pytest.mark.parametrize("by_plans", [False, True])
@pytest.mark.parametrize("seed", [SEEDS[0], pytest.param(SEEDS[1], marks=pytest.mark.slow)])
def test_the_database_counts_late_rows_exactly(
    seed: int, by_plans: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_plans:
        compute_by_plans(monkeypatch)
    workload = _with_queries(random_workload(seed, (), cuts=5, late_rows=LATE_ROWS))
    with HandedOver(workload, tmp_path) as given:
        together = shared_way.run(given, tmp_path, disturb=random.Random(seed))
        for number, stream in enumerate(workload.streams):
            for label in ("rows", "ticks", "panes"):
                name = f"{label}{number}"
                alone = shared_way.run(given, tmp_path, name, disturb=random.Random(seed))
                # Single rows are given at once, so that none is too late.
                expected = 0 if label == "rows" else late_for_database(stream)
                assert alone.late_rows(name).total() == expected
                assert together.late_rows(name).total() == expected


def _with_queries(
    workload: RandomWorkload, kinds: Sequence[str] = ("filter", "ticks", "panes")
) -> RandomWorkload:
    queries = (query for query in _queries(workload.streams) if query.kind in kinds)
    return replace(workload, queries=tuple(queries))


def _lies_between(
    query: RandomQuery, least: Sequence[Row], given: Sequence[Row], most: Sequence[Row]
) -> bool:
    few, some, many = (_counts(query, rows) for rows in (least, given, most))
    return few <= some <= many


def _counts(query: RandomQuery, rows: Sequence[Row]) -> Counter[Row]:
    """Each row, or each group at each tick with its count, as a bag."""
    if query.kind not in ("ticks", "panes"):
        return Counter(rows)
    return Counter({row[:2]: int(str(row[2])) for row in rows})


def _checked_counts(workload: RandomWorkload, ran: SparkRun, number: int, *, alone: bool) -> dict[str, int]:
    """How many rows of a stream its queries say they left out: as many as the rules of lateness say.

    Windows of few ticks run on Spark's operators if their query is alone.
    """
    stream = workload.streams[number]
    key = stream.relation.name.lower()
    expected = {
        "rows": 0,
        "ticks": late_for_ticks(stream, FINE[0] * SECOND_US, FINE[1] * SECOND_US)
        if alone
        else late_for_database(stream),
        "panes": late_for_database(stream),
    }
    running = [label for label in expected if f"{label}{number}" in ran.queries]
    reported = {label: ran.queries[f"{label}{number}"].late_rows.get(key, 0) for label in running}
    assert reported == {label: expected[label] for label in running}, (key, stream.delay_us)
    return reported
