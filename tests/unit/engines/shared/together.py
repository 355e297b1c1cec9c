"""Queries of two streams that a trunk computes together, fed by chance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from tests.differential.result_rows import published_rows
from tests.workloads.trunks import trunk_of

from plait import language
from plait.batches import Batch, BatchRows
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result
from plait.deployment.lowering import shared_fragment
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import StreamScan
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.space import stream_of

NOON_US = 1_767_268_800_000_000
STREAMS = """
CREATE STREAM a (k INT, g STRING, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS);
CREATE STREAM b (k INT, g STRING, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS);
"""


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
