"""The canonical form of random plans: it means the same, and is the form of itself."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, note, settings
from tests.workloads.event_times import timed_rows
from tests.workloads.plans import catalog, plans, rows

from plait.engines.duckdb import Database
from plait.evaluator import StoredData, difference
from plait.plan.format import format_plans
from plait.plan.nodes import Node
from plait.plan.signature import signature
from plait.rewrite import RULES, Merger, canonicalise

EXAMPLES = int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "30"))
MODEST = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
DATABASE = Database()  # starting one for every example would take longer than the example


@MODEST
@given(plans(), rows())
def test_rewriting_keeps_rows_and_event_times(
    plan: Node, content: dict[str, list[tuple[object, ...]]]
) -> None:
    canonical = canonicalise(plan)
    note(format_plans({"plan": plan, "canonical": canonical}))
    with StoredData.from_rows(catalog(), content, database=DATABASE) as data:
        assert not difference(timed_rows(plan, data), timed_rows(canonical, data))


@MODEST
@given(plans(), rows())
def test_each_rule_keeps_rows_and_event_times(
    plan: Node, content: dict[str, list[tuple[object, ...]]]
) -> None:
    """A rule that undoes what another one did wrong would hide it in the canonical form."""
    with StoredData.from_rows(catalog(), content, database=DATABASE) as data:
        expected = timed_rows(plan, data)
        for rule in RULES:
            rewritten = rule(plan)
            note(format_plans({"before": plan, rule.__name__: rewritten}))
            if rewritten != plan:
                assert not difference(expected, timed_rows(rewritten, data)), rule.__name__
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
