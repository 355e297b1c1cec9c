"""Random plans over random rows in random micro-batches, against the definition.

A run gives exactly what is settled when the rows have come, and everything once it is drained. Plans are
computed as drawn, in canonical form, and as families. `PLAIT_FUZZ_EXAMPLES` sets how many are tried.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.unit.engines.shared.feeding import Feed, run
from tests.workloads.event_times import with_event_times
from tests.workloads.plans import catalog, plans, rows

from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference
from plait.plan.format import format_plans
from plait.plan.nodes import Node
from plait.rewrite import canonicalise
from plait.space import stream_of

MODEST = settings(
    max_examples=int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "15")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
DATABASE = Database(threads=1)  # starting one for every example would take longer than the example
DELAYS_US = st.sampled_from([0, 1_000_000, 15_000_000])
RANDOMS = st.integers(0, 2**16).map(random.Random)


@MODEST
@given(plans(), rows(), DELAYS_US, RANDOMS, st.sampled_from(["drawn", "canonical", "family"]))
def test_micro_batches_give_what_the_definition_does(
    plan: Node,
    content: dict[str, list[tuple[object, ...]]],
    delay_us: int,
    rng: random.Random,
    form: str,
) -> None:
    if form != "drawn":
        plan = stream_of(canonicalise(plan))
    if not plan.types:  # no query is without columns
        plan = with_event_times(plan)
    note(format_plans({"plan": plan}))
    streams = {name: replace(stream, delay_us=delay_us) for name, stream in catalog().streams.items()}
    delayed = replace(catalog(), streams=streams)
    with (
        TemporaryDirectory() as folder,
        StoredData.from_rows(delayed, content, database=DATABASE) as data,
    ):
        feed = Feed(plan, data, Path(folder), by_plans=form != "family")
        given_rows = run(feed, feed.batches(rng, most=4))
        assert not difference(feed.settled_rows(), given_rows.settled)
        assert not difference(feed.all_rows(), given_rows.all)
