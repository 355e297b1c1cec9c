"""Signatures against meaning: what is equal in disguise has one signature, and one signature has one meaning.

The queries, their disguises and their variations come from code that shares nothing with `plait.rewrite`.
Hypothesis draws the random generator itself, so that a failing example shrinks. `make fuzz N=…` runs more.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from plait.benchmarks.planning.data import random_rows
from tests.workloads.variations import vary

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

EXAMPLES = int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "60"))
MODEST = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
RANDOMS = st.randoms(use_true_random=False)
DATABASE = Database()  # starting one for every example would take longer than the example


@dataclass(frozen=True)
class Drawn:
    """Three queries (the third may read the others), each plainly and in disguise as `d0`, `d1`, `d2`."""

    catalog: GeneratedCatalog
    blocks: dict[str, Block]
    statements: list[str]

    def load(self, *more: str) -> Workload:
        text = "\n".join((*self.statements, *more))
        note(text)
        return load_text(text)


def draw(rng: random.Random) -> Drawn:
    catalog = generate_catalog(rng)
    generator = QueryGenerator(rng, catalog)
    statements = [print_relation(relation) for relation in (*catalog.streams, *catalog.tables)]
    for index in range(3):
        block = generator.query()
        generator.named[f"q{index}"] = block
        statements.append(Printer().query(f"q{index}", block))
        statements.append(Printer(rng).query(f"d{index}", disguise(block, rng)))
    return Drawn(catalog, generator.named, statements)


@MODEST
@given(RANDOMS)
def test_a_disguised_query_has_the_same_signature(rng: random.Random) -> None:
    workload = draw(rng).load()
    for index in range(3):
        plain, disguised = (canonicalise(workload.query(f"{kind}{index}").plan) for kind in "qd")
        assert signature(plain) == signature(disguised), f"q{index}"


@MODEST
@given(RANDOMS)
def test_a_disguised_query_and_the_canonical_plan_have_the_same_rows(rng: random.Random) -> None:
    drawn = draw(rng)
    workload = drawn.load()
    rows = random_rows(drawn.catalog, rng)
    note(str(rows))
    with StoredData.from_rows(workload.catalog, rows, database=DATABASE) as data:
        for index in range(3):
            query = workload.query(f"q{index}")
            expected = evaluate(query, data).rows
            disguised = evaluate(workload.query(f"d{index}"), data).rows
            assert not difference(expected, disguised), f"q{index} and its disguise"
            canonical = evaluate(replace(query, plan=canonicalise(query.plan)), data).rows
            assert not difference(expected, canonical), f"q{index} and its canonical plan"


@MODEST
@given(RANDOMS)
def test_queries_of_one_signature_have_the_same_rows(rng: random.Random) -> None:
    drawn = draw(rng)
    names = list(drawn.blocks)
    varied = [Printer(rng).query(f"v{name}", vary(drawn.blocks[name], rng)) for name in names]
    workload = drawn.load(*varied)
    rows = random_rows(drawn.catalog, rng)
    note(str(rows))
    with StoredData.from_rows(workload.catalog, rows, database=DATABASE) as data:
        for name in names:
            query, other = workload.query(name), workload.query(f"v{name}")
            if signature(canonicalise(query.plan)) == signature(canonicalise(other.plan)):
                found = difference(evaluate(query, data).rows, evaluate(other, data).rows)
                assert not found, f"{name} and its variation"


def test_variations_usually_have_other_signatures() -> None:
    """Otherwise the property above would say nothing."""
    rng = random.Random(7)
    different = total = 0
    while total < 60:
        drawn = draw(rng)
        varied = [Printer().query(f"v{name}", vary(block, rng)) for name, block in drawn.blocks.items()]
        workload = drawn.load(*varied)
        for name in drawn.blocks:
            plans = (workload.query(name).plan, workload.query(f"v{name}").plan)
            total += 1
            different += len({signature(canonicalise(plan)) for plan in plans}) == 2
    assert different > 0.8 * total


def test_results_are_usually_not_empty() -> None:
    """Otherwise equal rows would say little."""
    rng = random.Random(11)
    filled = total = 0
    while total < 60:
        drawn = draw(rng)
        workload = drawn.load()
        with StoredData.from_rows(
            workload.catalog, random_rows(drawn.catalog, rng, most=30), database=DATABASE
        ) as data:
            for name in drawn.blocks:
                total += 1
                filled += bool(evaluate(workload.query(name), data).rows)
    assert filled > 0.6 * total
