"""Plan text parses back to the plan it was printed from."""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.plans import plans

from plait.expressions.nodes import Call, Literal
from plait.expressions.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_RANGE_US,
    decimal,
)
from plait.plan.format import format_plans, parse_plans
from plait.plan.nodes import Field, Filter, Node, StreamScan

EXAMPLES = int(os.environ.get("PLAIT_FUZZ_EXAMPLES", "30"))

LITERALS = st.one_of(
    st.text().map(lambda value: Literal(value, STRING)),
    st.floats().map(lambda value: Literal(value, DOUBLE)),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Literal(value, BIGINT)),
    st.integers(*TIMESTAMP_RANGE_US).map(lambda value: Literal(value, TIMESTAMP)),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Literal(value, INTERVAL)),
    st.dates(date.min, date.max).map(lambda value: Literal(value, DATE)),
    st.decimals(-999, 999, places=3, allow_nan=False).map(
        lambda value: Literal(Decimal(value), decimal(6, 3))
    ),
    st.sampled_from([STRING, DOUBLE, BIGINT, DATE, decimal(6, 3)]).map(lambda type_: Literal(None, type_)),
)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.lists(plans(), min_size=1, max_size=3))
def test_plans_parse_back(many: list[Node]) -> None:
    named = {f"q{number}": plan for number, plan in enumerate(many)}
    text = format_plans(named)
    assert parse_plans(text) == named
    assert format_plans(parse_plans(text)) == text


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(LITERALS, st.text(min_size=1), st.text(min_size=1))
def test_any_literal_and_any_name_parse_back(literal: Literal, column: str, name: str) -> None:
    scan = (
        StreamScan(name, (Field(column, literal.type),)) if literal.type != INTERVAL else StreamScan(name, ())
    )
    plan = Filter(scan, Call("is_null", (literal,)))
    assert parse_plans(format_plans({name: plan})) == {name: plan}
