"""Runs a workload's queries together in the database, without Spark: hands over the rows of each micro-batch
that any of them wants.

Batches can be disturbed: interrupted after their results are published and before they are committed, with
the state opened anew; and given again after they were committed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
from tests.differential.arrivals import Row
from tests.differential.database_way import DISTURBED, HandedOver, PowerCutError
from tests.differential.result_rows import rows_of

from plait.batches import Batch, BatchRows, Outcome
from plait.deployment import lowering
from plait.deployment.fragments import Result
from plait.deployment.row_by_row import row_by_row
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.plan.nodes import Node, StreamScan
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.space import stream_of


@dataclass
class Ran:
    """What a run gave: the results of each batch by its id, and what was said of each query. `handed_over` is
    how many rows of the `streams` it was given."""

    streams: tuple[str, ...]
    handed_over: int = 0
    published: dict[int, Sequence[BatchRows]] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Outcome]] = field(default_factory=dict)

    def rows(self, query: str) -> list[Row]:
        return [
            row
            for results in self.published.values()
            for result in results
            if query in result.queries
            for row in rows_of(result.of({query}).rows)
        ]

    def late_rows(self, query: str) -> Counter[str]:
        late: Counter[str] = Counter()
        for outcomes in self.outcomes.values():
            late.update(outcomes[query].late_rows)
        return late


def run(given: HandedOver, folder: Path, *, disturb: random.Random | None = None) -> Ran:
    """All queries of the workload, to the end of the streams."""
    catalog = given.loaded.catalog
    loaded = {query.name: given.loaded.queries[query.name] for query in given.workload.queries}
    results = [Result(name, q.columns, stream_of(canonicalise(q.plan))) for name, q in loaded.items()]
    inputs = {each.stream.lower(): each.plan for each in lowering.shared_fragment(0, results, catalog).inputs}
    scans = {key: _scan_of(plan) for key, plan in inputs.items()}
    streams = {key: catalog.stream(key) for key in scans}
    queries = [SharedQuery(result.query, result.plan) for result in results]

    def opened() -> Trunk:
        return Trunk(queries, streams, scans, folder / "trunk.duckdb")

    ran, trunk = Ran(tuple(stream.name for stream in streams.values())), opened()
    for number in range(given.batches + 1):
        batch = Batch(number, None, given.tables)
        rows = {key: given.rows(key, plan, number) for key, plan in inputs.items()}
        ran.handed_over += sum(table.num_rows for table in rows.values())
        ended = number == given.batches
        beats = dict.fromkeys(scans, END_OF_TIME_US) if ended else _reached(given, scans, number)

        def publish(results: Sequence[BatchRows], number: int = number) -> None:
            ran.published[number] = results

        def publish_and_die(results: Sequence[BatchRows], number: int = number) -> None:
            ran.published[number] = results
            raise PowerCutError

        if disturb is not None and disturb.random() < DISTURBED:
            try:
                trunk.apply(batch, rows, beats, publish_and_die)
            except PowerCutError:
                trunk.close()
                trunk = opened()
        ran.outcomes[number] = trunk.apply(batch, rows, beats, publish)
        if disturb is not None and disturb.random() < DISTURBED:
            assert trunk.apply(batch, rows, beats, publish) == ran.outcomes[number]
    trunk.close()
    return ran


def _scan_of(plan: Node) -> StreamScan:
    simple = row_by_row(plan)
    assert simple is not None, plan.kind
    return simple.scan


def _reached(given: HandedOver, scans: Mapping[str, StreamScan], batch: int) -> dict[str, int]:
    """The last event time of each stream in a batch, also of rows that no query wants."""
    times = {key: given.rows(key, scan, batch)["t"] for key, scan in scans.items()}
    return {key: pc.max(each).as_py() for key, each in times.items() if len(each)}
