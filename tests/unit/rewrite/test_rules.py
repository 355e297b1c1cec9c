"""Every rule on pairs of queries: those that must get one plan, and those that must not.

`fixtures/<rule>.sql` holds blocks `-- equal: title` and `-- different: title` of two queries each, over the
catalog in `fixtures/catalog.sql`. Both queries are also executed, as they are and as rewritten, over data
with NULLs, duplicates and equal timestamps: equal pairs must give equal rows, different pairs different ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from plait.evaluator import StoredData, difference, evaluate
from plait.language import load_text
from plait.plan.format import format_plans, parse_plans
from plait.plan.nodes import Node
from plait.plan.signature import signature
from plait.rewrite import RULES, Rule, canonicalise
from plait.workload import Workload

FIXTURES = Path(__file__).parent / "fixtures"
CATALOG = (FIXTURES / "catalog.sql").read_text()
NOON = datetime(2026, 3, 2, 6, 0, 0)


@dataclass(frozen=True)
class Pair:
    rule: str
    title: str
    is_equal: bool
    queries: tuple[str, str]

    def load(self) -> Workload:
        statements = [f"CREATE CONTINUOUS QUERY q{i} AS {query};" for i, query in enumerate(self.queries)]
        return load_text("\n".join([CATALOG, *statements]))


def pairs_of(rule: str) -> list[Pair]:
    pairs = []
    for block in (FIXTURES / f"{rule}.sql").read_text().split("\n\n"):
        title, _, text = block.strip().partition("\n")
        kind, _, words = title.removeprefix("-- ").partition(": ")
        first, second, rest = text.split(";")
        assert kind in ("equal", "different"), title
        assert not rest.strip(), title
        pairs.append(Pair(rule, words, kind == "equal", (first, second)))
    return pairs


RULE_NAMES = [rule.__name__ for rule in RULES]
PAIRS = [pair for rule in RULE_NAMES for pair in pairs_of(rule)]


@pytest.fixture(scope="module")
def data() -> Iterator[StoredData]:
    rng = random.Random(17)

    def times(count: int) -> list[datetime]:
        # Few different moments, so that many rows have the same.
        return [NOON + timedelta(seconds=5 * rng.randrange(30)) for _ in range(count)]

    def number() -> int | None:
        return rng.choice([None, 1, 2, 2, 3, 4, 5])

    def text() -> str | None:
        return rng.choice([None, "A", "A", "B", "ok"])

    fares = [None, 0.0, 1.5, 2.0, 2.5, float("nan")]
    rows: dict[str, list[tuple[object, ...]]] = {
        "flights": [(number(), text(), text(), number(), rng.choice(fares), at) for at in times(24)],
        "baggage": [
            (number(), text(), rng.choice([None, Decimal("9.50"), Decimal("12.00")]), at) for at in times(16)
        ],
        "checkins": [(number(), text(), number(), rng.choice([None, True, False]), at) for at in times(14)],
        "airports": [("A", "Atlanta", 1), ("B", None, 2), (None, "Nowhere", 2), ("A", "Athens", None)],
    }
    for name in ("flights", "baggage", "checkins"):
        rows[name] += rows[name][:2]
    with StoredData.from_rows(load_text(CATALOG).catalog, rows) as stored:
        yield stored


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}: {pair.title}")
def test_pair(pair: Pair, data: StoredData) -> None:
    queries = list(pair.load().queries.values())
    canonical = [canonicalise(query.plan) for query in queries]
    shown = format_plans({query.name: plan for query, plan in zip(queries, canonical, strict=True)})
    assert (signature(canonical[0]) == signature(canonical[1])) == pair.is_equal, shown

    rows = [evaluate(query, data).rows for query in queries]
    assert bool(difference(*rows)) != pair.is_equal
    for query, plan, expected in zip(queries, canonical, rows, strict=True):
        assert canonicalise(plan) == plan
        assert parse_plans(format_plans({"q": plan}))["q"] == plan
        found = difference(expected, evaluate(replace(query, plan=plan), data).rows)
        assert not found, f"{found}\n{shown}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_fixture_exercises_its_rule(rule: Rule) -> None:
    def applies(plan: Node) -> bool:
        for earlier in RULES[: RULES.index(rule)]:
            plan = earlier(plan)
        return rule(plan) is not plan

    equal = [pair for pair in pairs_of(rule.__name__) if pair.is_equal]
    assert any(applies(query.plan) for pair in equal for query in pair.load().queries.values())
