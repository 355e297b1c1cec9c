"""Plan text: what it looks like, and what the parser says of text that is none."""

from __future__ import annotations

import pytest

from plait.errors import UserError
from plait.plan.format import format_plans, parse_plans

EVERYTHING = """\
r0 := scan flights [num INT, gate STRING, `at night` BOOLEAN, fare DECIMAL(10,2), at TIMESTAMP]
r1 := filter r0: ((num#0 = 17) and not(`at night`#2) and (fare#3 > -1.50:DECIMAL(10,2)))
r2 := window r1: range 5 min
r3 := table airports [code STRING, opened DATE]
r4 := filter r3: (opened#1 <> 1999-12-31:DATE)
r5 := left join r2, r4: (gate#1 = code#5)
r6 := project r5: (num#0 + 1), cast(num#0 as BIGINT), case(is_null(code#5), 'it\\'s', code#5)
r7 := window r0: range 1 h slide 90 s offset 1 ms
r8 := join r7, r3: ((gate#1 = code#5) and (at#4 < (window_end - 5000000:INTERVAL)))
r9 := aggregate r8 by gate#1, in(num#0, 1, 2): count(), sum(num#0) where (num#0 >= null:INT)
r10 := top r9: 3 by count#2 desc nulls last, gate#0 asc nulls first
r11 := project r10: gate#0, count#2, nan:DOUBLE, window_end
r12 := window r0: rows 100 slide 10 partition num#0, gate#1
r13 := aggregate r12: min(fare#3)
r14 := project r13: window_start
r15 := union r0, r0
joined = r6
`most, first` = r11
rows = r14
both = r15
"""


def test_every_node_prints_and_parses_back() -> None:
    assert format_plans(parse_plans(EVERYTHING)) == EVERYTHING


def test_a_shared_sub_plan_is_printed_once() -> None:
    separate = (
        "r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 1)\nr2 := scan s [x INT]\nr3 := filter r2: (x#0 = 1)\n"
    )
    text = format_plans(parse_plans(f"{separate}r4 := union r1, r3\na = r4\nb = r3\n"))
    assert text == "r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 1)\nr2 := union r1, r1\na = r2\nb = r1\n"


def test_only_the_position_of_a_column_counts() -> None:
    scan = "r0 := scan s [x INT]\n"
    plans = [parse_plans(f"{scan}r1 := filter r0: ({name}#0 = 1)\nq = r1") for name in ("x", "y", "")]
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("r0 := scan s [x INT", (1, 20), "expected `]`"),
        ("r0 := scan s [x INTEGER]", (1, 17), "INTEGER"),
        ("r0 := scan s [x INT]\nq = r1", (2, 5), "`r1` is not defined before its use"),
        ("r0 := scan s [x INT]\nr0 := scan s [x INT]", (2, 1), "`r0` is there twice"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#1 = 1)", (2, 19), "there is no column 1"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 'a')", (2, 23), "cannot take"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 1 and 2 = x#0)", (2, 27), "expected `)`"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 + 1)", (2, 7), "a filter's predicate is boolean"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 1) x", (2, 28), "`x` is too much"),
        ("r0 := scan s [x INT]\nr1 := sort r0: x#0", (2, 7), "there is no operator `sort`"),
        ("r0 := scan s [x INT]\nr1 := window r0: range 5 years", (2, 26), "there is no unit `years`"),
        ("r0 := scan s [x INT]\nr1 := window r0: range 0 s", (2, 18), "a window's range is positive"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 = 12345678901)", (2, 25), "is not a INT"),
        ("r0 := scan s [x INT]\nr1 := filter r0: (x#0 = ¡)", (2, 25), "no such sign"),
        ("r0 := scan s [x INT]\nr1 := join r0: true", (2, 7), "a join has two inputs or more"),
    ],
)
def test_errors_have_a_place(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_plans(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.source.position(caught.value.span.start) == place
