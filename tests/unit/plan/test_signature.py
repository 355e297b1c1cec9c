"""Signatures: every part of a plan that has a meaning enters, and no name that has none."""

from __future__ import annotations

import pytest

from plait.plan.format import parse_plans
from plait.plan.signature import signature

SOURCES = """\
r0 := scan s [x INT, y INT, at TIMESTAMP]
r1 := scan u [x INT, y INT, at TIMESTAMP]
r2 := window r0: range 1 min
r3 := window r1: range 1 min
r4 := window r0: range 1 min slide 1 min
"""


def signature_of(*lines: str) -> str:
    numbered = [f"r{number} := {line}" for number, line in enumerate(lines, start=5)]
    text = "\n".join([SOURCES.rstrip(), *numbered, f"q = r{4 + len(lines)}"])
    return signature(parse_plans(text)["q"])


def test_it_is_a_digest_and_stable() -> None:
    # A changed digest makes every stored signature worthless: change this value knowingly.
    expected = "1b0ec887147172fc8ae680e6d3da46312747dd8465e6055f3b126e0c444fe671"
    assert signature_of("filter r0: (x#0 = 1)") == expected


def test_names_of_columns_on_the_way_do_not_matter() -> None:
    assert signature_of("filter r0: (x#0 = 1)") == signature_of("filter r0: (renamed#0 = 1)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("scan s [x INT]", "scan s [y INT]"),
        ("scan s [x INT]", "scan u [x INT]"),
        ("scan s [x INT]", "scan s [x BIGINT]"),
        ("filter r0: (x#0 = 1)", "filter r0: (y#1 = 1)"),
        ("filter r0: (x#0 = 1)", "filter r1: (x#0 = 1)"),
        ("filter r0: (x#0 = 1)", "filter r0: (x#0 = 2)"),
        ("project r0: 1", "project r0: '1'"),
        ("project r0: 1", "project r0: 1:BIGINT"),
        ("project r0: x#0, y#1", "project r0: y#1, x#0"),
        ("window r0: range 1 min", "window r0: range 2 min"),
        ("window r0: range 1 min", "window r0: range 1 min slide 1 min"),
        ("window r0: range 1 min slide 1 min", "window r0: range 1 min slide 1 min offset 1 s"),
        ("window r0: rows 5 slide 1", "window r0: rows 5 slide 1 partition x#0"),
        ("join r2, r3: (x#0 = x#3)", "join r3, r2: (x#0 = x#3)"),
        ("left join r2, r3: (x#0 = x#3)", "full join r2, r3: (x#0 = x#3)"),
        ("left join r2, r3: (x#0 = x#3)", "join r2, r3: (x#0 = x#3)"),
        ("aggregate r4 by x#0, y#1: count()", "aggregate r4 by x#0: count()"),
        ("aggregate r4: min(x#0)", "aggregate r4: max(x#0)"),
        ("aggregate r4: min(x#0)", "aggregate r4: min(x#0) where (y#1 = 1)"),
        ("aggregate r4: min(x#0), count()", "aggregate r4: count(), min(x#0)"),
        ("top r4: 1 by x#0 asc nulls first", "top r4: 2 by x#0 asc nulls first"),
        ("top r4: 1 by x#0 asc nulls first", "top r4: 1 by x#0 desc nulls first"),
        ("top r4: 1 by x#0 asc nulls first", "top r4: 1 by x#0 asc nulls last"),
        ("union r0, r1", "union r1, r0"),
        ("union r0, r1", "union r0, r1, r1"),
    ],
)
def test_everything_else_matters(one: str, other: str) -> None:
    assert signature_of(one) != signature_of(other)
