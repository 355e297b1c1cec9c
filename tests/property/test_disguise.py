"""Signatures against meaning: what is equal in disguise has one signature, and one signature has one meaning.

The queries, their disguises and their variations come from code that shares nothing with `plait.rewrite`.
Hypothesis draws the random generator itself, so that a failing example shrinks. `make fuzz N=…` runs more.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.workloads.event_times import timed_rows
from tests.workloads.variations import vary

from plait.benchmarks.planning.data import random_rows
from plait.benchmarks.planning.disguise import disguise
from plait.benchmarks.planning.generator import GeneratedCatalog, QueryGenerator, generate_catalog
from plait.benchmarks.planning.model import Block
from plait.benchmarks.planning.printer import Printer, print_relation
from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference, evaluate
from plait.language import load_text
from plait.plan.signature import signature
from plait.rewrite import canonicalise
from plait.workload import Workload

EXAMPLES = int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "40"))
MODEST = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
# Hypothesis draws every choice of the query and its disguise, and shrinks them; what is around (catalog, a
# query to read, spelling, rows) comes from a seed, because it would need thousands of draws.
RANDOMS = st.randoms(use_true_random=False)
SEEDS = st.integers(0, 2**16)
DATABASE = Database()  # starting one for every example would take longer than the example


@dataclass(frozen=True)
class Drawn:
    """A query `q`, which may read the query `base`, and other spellings of it."""

    catalog: GeneratedCatalog
    block: Block
    statements: tuple[str, ...]

    def load(self, **others: Block) -> Workload:
        """The workload of the query and others by their names, each spelled by chance."""
        spelling = random.Random(len(self.statements[-1]))
        more = [Printer(spelling).query(name, block) for name, block in others.items()]
        return load_text("\n".join((*self.statements, *more)))


def draw(rng: random.Random, seed: int) -> Drawn:
    around = random.Random(seed)
    catalog = generate_catalog(around)
    base = QueryGenerator(around, catalog).query()
    generator = QueryGenerator(rng, catalog)
    generator.named["base"] = base
    block = generator.query()
    return Drawn(
        catalog,
        block,
        (
            *(print_relation(relation) for relation in (*catalog.streams, *catalog.tables)),
            Printer().query("base", base),
            Printer().query("q", block),
        ),
    )


@MODEST
@given(RANDOMS, SEEDS)
def test_a_disguised_query_has_the_same_signature(rng: random.Random, seed: int) -> None:
    drawn = draw(rng, seed)
    workload = drawn.load(disguised=disguise(drawn.block, rng))
    note_texts(workload, "q", "disguised")
    plain, disguised = (canonicalise(workload.query(name).plan) for name in ("q", "disguised"))
    assert signature(plain) == signature(disguised)


@MODEST
@given(RANDOMS, SEEDS)
def test_a_disguised_query_and_the_canonical_plan_have_the_same_rows(rng: random.Random, seed: int) -> None:
    drawn = draw(rng, seed)
    workload = drawn.load(disguised=disguise(drawn.block, rng))
    rows = random_rows(drawn.catalog, random.Random(seed))
    note_texts(workload, "q", "disguised")
    note(str(rows))
    with StoredData.from_rows(workload.catalog, rows, database=DATABASE) as data:
        plan = workload.query("q").plan
        expected = timed_rows(plan, data)
        assert not difference(expected, timed_rows(workload.query("disguised").plan, data))
        assert not difference(expected, timed_rows(canonicalise(plan), data))


@MODEST
@given(RANDOMS, SEEDS)
def test_queries_of_one_signature_have_the_same_rows(rng: random.Random, seed: int) -> None:
    drawn = draw(rng, seed)
    workload = drawn.load(varied=vary(drawn.block, rng))
    note_texts(workload, "q", "varied")
    if is_of_one_signature(workload):
        assert_same_rows(workload, random_rows(drawn.catalog, random.Random(seed)))


def test_variations_sometimes_have_the_same_signature() -> None:
    """Otherwise the property above would say nothing; nor would it if they mostly had."""
    rng = random.Random(7)
    equal = 0
    for seed in range(80):
        drawn = draw(rng, seed)
        workload = drawn.load(varied=vary(drawn.block, rng))
        if is_of_one_signature(workload):
            equal += 1
            assert_same_rows(workload, random_rows(drawn.catalog, rng))
    assert 5 <= equal <= 20


def is_of_one_signature(workload: Workload) -> bool:
    plans = (workload.query(name).plan for name in ("q", "varied"))
    return len({signature(canonicalise(plan)) for plan in plans}) == 1


def assert_same_rows(workload: Workload, rows: dict[str, list[tuple[object, ...]]]) -> None:
    with StoredData.from_rows(workload.catalog, rows, database=DATABASE) as data:
        first, second = (timed_rows(workload.query(name).plan, data) for name in ("q", "varied"))
    assert not difference(first, second), rows


def note_texts(workload: Workload, *names: str) -> None:
    for name in names:
        span = workload.query(name).span
        assert span is not None
        note(span.source.text[span.start : span.end])


def test_results_are_usually_not_empty() -> None:
    """Otherwise equal rows would say little."""
    rng = random.Random(11)
    filled = 0
    for seed in range(40):
        drawn = draw(rng, seed)
        workload = drawn.load()
        rows = random_rows(drawn.catalog, rng, most=16)
        with StoredData.from_rows(workload.catalog, rows, database=DATABASE) as data:
            filled += bool(evaluate(workload.query("q"), data).rows)
    assert filled > 0.5 * 40
