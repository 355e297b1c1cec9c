"""The canonical form of random plans: it means the same, and is the form of itself."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, note, settings
from tests.workloads.plans import catalog, plans, rows

from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference, evaluate
from plait.expressions.nodes import Column, Literal
from plait.expressions.types import INT
from plait.plan.format import format_plans
from plait.plan.nodes import Node, Project
from plait.plan.signature import signature
from plait.rewrite import RULES, Merger, canonicalise
from plait.workload import Query

EXAMPLES = int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "30"))
MODEST = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
DATABASE = Database()  # starting one for every example would take longer than the example


def rows_of(plan: Node, data: StoredData) -> tuple[tuple[object, ...], ...]:
    """The rows, with a column added since a query has at least one."""
    columns = [Column(index, type_) for index, type_ in enumerate(plan.types)]
    plan = Project(plan, (*columns, Literal(1, INT)))
    return evaluate(Query("q", plan, tuple(f"c{i}" for i in range(len(plan.types)))), data).rows


@MODEST
@given(plans(), rows())
def test_rewriting_keeps_the_rows(plan: Node, content: dict[str, list[tuple[object, ...]]]) -> None:
    canonical = canonicalise(plan)
    note(format_plans({"plan": plan, "canonical": canonical}))
    with StoredData.from_rows(catalog(), content, database=DATABASE) as data:
        assert not difference(rows_of(plan, data), rows_of(canonical, data))


@MODEST
@given(plans(), rows())
def test_each_rule_keeps_the_rows(plan: Node, content: dict[str, list[tuple[object, ...]]]) -> None:
    """A rule that undoes what another one did wrong would hide it in the canonical form."""
    with StoredData.from_rows(catalog(), content, database=DATABASE) as data:
        expected = rows_of(plan, data)
        for rule in RULES:
            rewritten = rule(plan)
            note(format_plans({"before": plan, rule.__name__: rewritten}))
            if rewritten != plan:
                assert not difference(expected, rows_of(rewritten, data)), rule.__name__
            plan = rewritten


@settings(MODEST, max_examples=2 * EXAMPLES)
@given(plans())
def test_the_canonical_form_is_its_own(plan: Node) -> None:
    canonical = canonicalise(plan)
    note(format_plans({"plan": plan, "canonical": canonical}))
    assert canonicalise(canonical) == canonical


@settings(MODEST, max_examples=2 * EXAMPLES)
@given(plans(), plans())
def test_one_merger_keeps_one_copy(first: Node, second: Node) -> None:
    merger = Merger()
    merged = [canonicalise(plan, merger) for plan in (first, second)]
    assert merged == [canonicalise(first), canonicalise(second)]
    assert (merged[0] is merged[1]) == (signature(merged[0]) == signature(merged[1]))
