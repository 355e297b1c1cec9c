"""The check after each rule names the rule, and lets pass what a stream's consumer cannot see."""

from __future__ import annotations

import pytest

from plait.errors import InternalError
from plait.plan.format import parse_plans
from plait.plan.invariants import check_rewrite

PLANS = parse_plans("""\
r0 := scan s [x INT, y STRING]
r1 := project r0: y#1, x#0
r2 := window r0: range 1 min
r3 := window r0: range 1 min slide 1 min
r4 := window r0: range 1 min slide 30 s
r5 := scan u [x INT, y STRING]
r6 := table t [x INT, y STRING]
scan = r0
swapped = r1
windowed = r2
ticking = r3
otherwise = r4
other = r5
table = r6
""")


@pytest.mark.parametrize(
    ("before", "after"),
    [("scan", "scan"), ("windowed", "scan"), ("scan", "windowed"), ("windowed", "ticking")],
)
def test_a_stream_may_stay_a_stream(before: str, after: str) -> None:
    check_rewrite("rule", PLANS[before], PLANS[after])


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("scan", "swapped", "types"),
        ("ticking", "otherwise", "timing"),
        ("ticking", "scan", "timing"),
        ("scan", "table", "timing"),
        ("scan", "other", "sources"),
    ],
)
def test_anything_else_is_a_bug_of_the_rule(before: str, after: str, what: str) -> None:
    with pytest.raises(InternalError, match=f"`guilty` changed the {what}") as caught:
        check_rewrite("guilty", PLANS[before], PLANS[after])
    assert "before = r" in caught.value.detail
