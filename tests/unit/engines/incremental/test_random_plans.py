"""Random plans over random rows in random micro-batches, against the definition.

As written, a run that ends with its rows gives exactly what is settled by then; drained, it gives everything,
in canonical form too. `PLAIT_FUZZ_EXAMPLES` sets how many are tried.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.unit.engines.incremental.feeding import Feed, run
from tests.workloads.event_times import with_event_times
from tests.workloads.plans import catalog, plans, rows

from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference
from plait.plan.format import format_plans
from plait.plan.nodes import Node
from plait.rewrite import canonicalise

MODEST = settings(
    max_examples=int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "15")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
DATABASE = Database(threads=1)  # starting one for every example would take longer than the example
DELAYS_US = st.sampled_from([0, 1_000_000, 15_000_000])
RANDOMS = st.integers(0, 2**16).map(random.Random)


def compare(
    plan: Node, content: dict[str, list[tuple[object, ...]]], delay_us: int, rng: random.Random, drained: bool
) -> None:
    streams = {name: replace(stream, delay_us=delay_us) for name, stream in catalog().streams.items()}
    delayed = replace(catalog(), streams=streams)
    if not plan.types:  # no query is without columns
        plan = with_event_times(plan)
    note(format_plans({"plan": plan}))
    with (
        TemporaryDirectory() as folder,
        StoredData.from_rows(delayed, content, database=DATABASE) as data,
    ):
        feed = Feed.of(plan, data, Path(folder))
        given_rows = run(feed, feed.batches(rng), drained=drained).rows
        expected = feed.all_rows() if drained else feed.settled_rows()
        assert not difference(expected, given_rows)


@MODEST
@given(plans(), rows(), DELAYS_US, RANDOMS)
def test_what_the_watermark_settles_is_given(
    plan: Node, content: dict[str, list[tuple[object, ...]]], delay_us: int, rng: random.Random
) -> None:
    compare(plan, content, delay_us, rng, drained=False)


@MODEST
@given(plans(), rows(), DELAYS_US, RANDOMS, st.booleans())
def test_everything_is_given_when_the_streams_end(
    plan: Node,
    content: dict[str, list[tuple[object, ...]]],
    delay_us: int,
    rng: random.Random,
    canonical: bool,
) -> None:
    compare(canonicalise(plan) if canonical else plan, content, delay_us, rng, drained=True)
