"""The database way against the definition: every class of queries, batches cut off and given again.

Hypothesis draws each choice of the query, so that a failing one shrinks; what is around comes from a seed.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.differential import database_way
from tests.differential.database_way import HandedOver
from tests.differential.harness import definition
from tests.differential.queries import KINDS
from tests.differential.workloads import random_workload

from plait.evaluator import difference

MODEST = settings(
    max_examples=int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@MODEST
@given(st.randoms(use_true_random=False), st.integers(0, 2**16), st.sampled_from(KINDS))
def test_a_query_gives_the_rows_of_its_definition(rng: random.Random, seed: int, kind: str) -> None:
    workload = random_workload(seed, (kind,), queries_by=rng)
    note(workload.text())
    expected = definition(workload)["q0"]
    with tempfile.TemporaryDirectory() as folder, HandedOver(workload, Path(folder)) as handed:
        query = handed.loaded.queries["q0"]
        ran = database_way.run(query, handed, Path(folder), disturb=random.Random(seed))
    assert not (found := difference(expected, ran.rows)), found
