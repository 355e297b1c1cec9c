from __future__ import annotations

import pytest

from plait.cost.model import CostModel
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Call, Column, Literal
from plait.expressions.types import INT, STRING
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    RangeWindow,
    RowWindow,
    StreamScan,
    TickWindow,
    Window,
)
from plait.space import OperatorKind, step_of

SECOND = 1_000_000

FLIGHTS = StreamScan("flights", (Field("num", INT), Field("dest", STRING)))
CHECKINS = StreamScan("checkins", (Field("flight", INT), Field("status", STRING)))
SAME_FLIGHT = Call("eq", (Column(0, INT), Column(2, INT)))


def test_equation_4_reads_every_row_of_every_input(cost: CostModel) -> None:
    join = Join(
        (Window(FLIGHTS, RangeWindow(300 * SECOND)), Window(CHECKINS, RangeWindow(60 * SECOND))), SAME_FLIGHT
    )
    operator = cost.operator(step_of(join))
    unit = cost.unit_costs.of("spark", OperatorKind.WINDOW_JOIN)
    given = cost.size(join).rate_rows_per_s
    assert operator.input_rows_per_s == pytest.approx((5, 4))
    assert operator.output_rows_per_s == given
    assert operator.cores == pytest.approx(
        ((5 + 4) * unit.input_us_per_row + given * unit.output_us_per_row) / 1e6
    )
    assert operator.state_rows == pytest.approx(5 * 300 + 4 * 60)


def test_a_filter_remembers_nothing(cost: CostModel) -> None:
    operator = cost.operator(step_of(Filter(FLIGHTS, Call("eq", (Column(0, INT), Literal(1, INT))))))
    assert (operator.input_rows_per_s, operator.state_rows, operator.state_bytes) == ((5,), 0, 0)


def test_an_aggregate_takes_every_row_in_once(cost: CostModel) -> None:
    window = Window(FLIGHTS, TickWindow(300 * SECOND, 10 * SECOND))
    operator = cost.operator(step_of(Aggregate(window, (), (AggregateCall("count"),))))
    assert operator.input_rows_per_s == (5,)


@pytest.mark.parametrize(
    ("range_s", "slide_s", "state_rows"),
    [
        (3000, 3000, 450),  # tumbling: the groups
        (3000, 1000, 3 * 450),  # sliding: the groups in each slide
        (2500, 1000, 3 * 2 * 450),  # paired windows: two pieces a slide
        (300, 10, 1500),  # never more than the rows of the window
    ],
)
def test_the_state_of_an_aggregate(cost: CostModel, range_s: int, slide_s: int, state_rows: float) -> None:
    window = Window(FLIGHTS, TickWindow(range_s * SECOND, slide_s * SECOND))
    counts = Aggregate(window, (Column(1, STRING),), (AggregateCall("count"),))
    assert cost.operator(step_of(counts)).state_rows == pytest.approx(state_rows)


def test_telling_values_apart_needs_the_rows(cost: CostModel) -> None:
    window = Window(FLIGHTS, TickWindow(3000 * SECOND, 3000 * SECOND))
    distinct = AggregateCall("count_distinct", (Column(0, INT),))
    assert cost.operator(step_of(Aggregate(window, (), (distinct,)))).state_rows == pytest.approx(15000)


def test_a_partitioned_row_window_is_kept_for_each_partition(cost: CostModel) -> None:
    window = Window(CHECKINS, RowWindow(10, 5, (1,)))
    counts = Aggregate(window, (Column(1, STRING),), (AggregateCall("count"),))
    assert cost.operator(step_of(counts)).state_rows == pytest.approx(10 * 3)


def test_a_join_at_ticks_reads_whole_relations_at_each(cost: CostModel) -> None:
    window = TickWindow(300 * SECOND, 10 * SECOND)
    counts = Aggregate(Window(FLIGHTS, window), (Column(0, INT),), (AggregateCall("count"),))
    join = Join((Window(FLIGHTS, window), counts), SAME_FLIGHT)
    step = step_of(join)
    assert step.kind is OperatorKind.TICK_JOIN
    assert cost.operator(step).input_rows_per_s == pytest.approx((5 * 300 / 10, 1500 / 10))
