"""Queries of one family, whatever tells them apart: the rows, and the late rows missed, are those of each
query by its plan."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.differential.result_rows import published_rows
from tests.workloads.trunks import compute_by_plans, scans_of, trunk_of

from plait import language
from plait.batches import Batch, BatchRows
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result
from plait.deployment.lowering import shared_fragment
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import StreamScan
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.sharing.families import families
from plait.space import stream_of

NOON_US = 1_767_268_800_000_000
STREAMS = """
CREATE STREAM a (k INT, g STRING, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS);
CREATE STREAM b (k INT, g STRING, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS);
"""
CONDITIONS = {
    "an equality and a bound": "{x}.k = {n} AND {x}.v > {m}",
    "bounds of two columns": "{x}.v > {n} AND {x}.k <= {m}",
    "alternatives": "{x}.k IN ({n}, {m})",
    "alternatives of two columns, and a bound": "{x}.k IN ({n}, {m}) AND {x}.g IN ('x', 'y') AND {x}.v < {m}",
    "no equality": "{x}.v <> {n}",
    "a disjunction": "({x}.v = {n} OR {x}.k > {m})",
    "something computed": "{x}.v + {x}.k > {m}",
    "a term that all have": "{x}.k = {n} AND {x}.v <> 3 AND {x}.g > 'a'",
}
SHAPES = {
    "rows": "SELECT k, g, v FROM a WHERE {condition}",
    "windows": "SELECT k, count(*) AS n, sum(v) + {n} AS s, window_end "
    "FROM a [RANGE {r} SECONDS SLIDE 2 SECONDS] WHERE {condition} GROUP BY k",
    "gaps": "SELECT g, max(v) AS m, window_end FROM a [RANGE 1 SECONDS SLIDE 3 SECONDS] "
    "WHERE {condition} GROUP BY g",
    "a join": "SELECT a.v, b.v AS w FROM a [RANGE {r} SECONDS], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k AND {condition}",
    "a self join": "SELECT a.v, z.v AS w FROM a [RANGE {r} SECONDS], a [RANGE 3 SECONDS] AS z "
    "WHERE a.k = z.k AND {condition}",
}


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS.keys())
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_rows_and_late_rows_are_those_of_each_query_by_its_plan(
    shape: str, condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(shape + condition)
    selects = []
    for number in range(12):
        n, m = rng.randint(0, 4), rng.randint(0, 6)
        own = condition.format(x="a", n=n, m=m)
        selects.append(shape.format(condition=own, n=n, r=2 + 2 * (number % 3)))
    fragment, catalog = fragment_of(selects)
    scans = scans_of(fragment)
    found = families(((each.query, each.plan) for each in fragment.results), scans)
    assert not found.others
    assert len([*found.selects, *found.aggregates, *found.joins]) <= len(selects) / 2
    batches = [{key: rows(scan, rng) for key, scan in scans.items()} for _ in range(4)]
    together = computed(fragment, catalog, tmp_path / "together.duckdb", batches)
    compute_by_plans(monkeypatch)
    alone = computed(fragment, catalog, tmp_path / "alone.duckdb", batches)
    assert together == alone
    assert "RANGE" not in shape or any(late for _, late in together.values())


def fragment_of(selects: Sequence[str]) -> tuple[Fragment, Catalog]:
    texts = [f"CREATE CONTINUOUS QUERY q{n} AS {select};" for n, select in enumerate(selects)]
    workload = language.load_text("\n".join([STREAMS, *texts]))
    results = [
        Result(query.name, query.columns, stream_of(canonicalise(query.plan)))
        for query in workload.queries.values()
    ]
    return shared_fragment("shared-0", results, workload.catalog), workload.catalog


def rows(scan: StreamScan, rng: random.Random) -> pa.Table:
    """Of ten seconds in which batches overlap, so that some come late."""
    values = {"k": (None, 0, 1, 2, 3, 4), "g": (None, "a", "x", "y"), "v": (None, 0, 1, 2, 3, 4, 5, 6)}
    seconds = rng.randint(0, 6)
    times = [NOON_US + (seconds * 4 + rng.randint(0, 16)) * 250_000 for _ in range(40)]
    columns = [
        times if field.name == "at" else [rng.choice(values[field.name]) for _ in times]
        for field in scan.columns
    ]
    schema = arrow_schema([f"c{n}" for n in range(len(columns))], scan.types)
    return pa.table(columns, schema=schema).append_column("t", pa.array(times, pa.int64()))


def computed(
    fragment: Fragment, catalog: Catalog, path: Path, batches: Sequence[Mapping[str, pa.Table]]
) -> dict[str, tuple[Counter[object], Counter[str]]]:
    """The rows of each query, and the late rows that it missed, by stream."""
    found = {result.query: (Counter[object](), Counter[str]()) for result in fragment.results}

    def publish(results: Sequence[BatchRows]) -> None:
        for name in found:
            found[name][0].update(published_rows(results, name))

    with closing(trunk_of(fragment, catalog, path)) as trunk:
        for number, batch in enumerate(batches):
            for name, outcome in trunk.apply(Batch(number), batch, {}, publish).items():
                found[name][1].update(outcome.late_rows)
        nothing = {key: table.slice(0, 0) for key, table in batches[0].items()}
        trunk.apply(Batch(len(batches)), nothing, dict.fromkeys(nothing, END_OF_TIME_US), publish)
    return found
