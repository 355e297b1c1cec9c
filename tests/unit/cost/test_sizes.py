from __future__ import annotations

from itertools import permutations

import pytest

from plait import language
from plait.catalog import Catalog
from plait.cost.bounds import LARGEST
from plait.cost.model import CostModel
from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import TRUE, Call, Column, Expression, Literal
from plait.expressions.types import INT, STRING
from plait.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    RangeWindow,
    RowWindow,
    SortKey,
    StreamScan,
    TableScan,
    TickWindow,
    Top,
    Union,
    Window,
)
from plait.plan.signature import signature
from plait.statistics import Assumption, Basis, Estimate, Statistics, declared

SECOND = 1_000_000

FLIGHTS = StreamScan("flights", (Field("num", INT), Field("dest", STRING)))
CHECKINS = StreamScan("checkins", (Field("flight", INT), Field("status", STRING)))
BAGGAGE = StreamScan("baggage", (Field("flight", INT), Field("status", STRING)))
PLANES = TableScan("planes", (Field("num", INT), Field("seats", INT)))


def within(node: Node, seconds: int) -> Window:
    return Window(node, RangeWindow(seconds * SECOND))


def ticking(node: Node, range_s: int, slide_s: int) -> Window:
    return Window(node, TickWindow(range_s * SECOND, slide_s * SECOND))


def equal(left: int, right: int) -> Expression:
    return Call("eq", (Column(left, INT), Column(right, INT)))


def test_equation_1_filter_and_project(cost: CostModel) -> None:
    one_flight = Filter(FLIGHTS, Call("eq", (Column(0, INT), Literal(17, INT))))
    assert cost.size(one_flight).rate_rows_per_s == pytest.approx(5 / 1500)
    assert cost.size(Project(one_flight, (Column(1, STRING),))).rate_rows_per_s == pytest.approx(5 / 1500)


def test_equation_2_join(cost: CostModel) -> None:
    join = Join((within(FLIGHTS, 300), within(CHECKINS, 60)), equal(0, 2))
    f, flights_rows, checkins_rows = 1 / 1500, 5 * 300, 4 * 60
    size = cost.size(join)
    assert size.rate_rows_per_s == pytest.approx(5 * f * checkins_rows + 4 * f * flights_rows)
    assert size.relation_rows == pytest.approx(f * flights_rows * checkins_rows)


def test_the_order_of_joins_does_not_change_sizes(cost: CostModel) -> None:
    leaves = (within(FLIGHTS, 300), within(CHECKINS, 60), within(BAGGAGE, 60))
    for order in permutations(range(3)):
        a, b, c = (leaves[index] for index in order)
        together = Join((a, b, c), Call("and", (equal(0, 2), equal(2, 4))))
        step_by_step = Join((Join((a, b), equal(0, 2)), c), equal(0, 4))
        assert cost.size(step_by_step).rate_rows_per_s == pytest.approx(cost.size(together).rate_rows_per_s)
        assert cost.size(step_by_step).relation_rows == pytest.approx(cost.size(together).relation_rows)


def test_a_self_join_has_two_windows(cost: CostModel) -> None:
    join = Join((within(FLIGHTS, 10), within(FLIGHTS, 10)), equal(0, 2))
    assert cost.size(join).rate_rows_per_s == pytest.approx(2 * 5 * (5 * 10) / 1500)


def test_a_table_joins_with_its_rows_and_has_no_rate_of_its_own(cost: CostModel) -> None:
    join = Join((FLIGHTS, PLANES), equal(0, 2))
    assert cost.size(join).rate_rows_per_s == pytest.approx(5 * 300 / 1500)


@pytest.mark.parametrize(
    ("range_s", "groups"),
    [(600, 450), (10, 50)],  # no more groups than destinations, and no more than rows in the window
)
def test_equation_3_aggregate(cost: CostModel, range_s: int, groups: float) -> None:
    counts = Aggregate(ticking(FLIGHTS, range_s, 5), (Column(1, STRING),), (AggregateCall("count"),))
    size = cost.size(counts)
    assert size.relation_rows == pytest.approx(groups)
    assert size.evaluations_per_s == pytest.approx(1 / 5)
    assert size.rate_rows_per_s == pytest.approx(groups / 5)


def test_row_windows_slide_with_the_rate(cost: CostModel) -> None:
    last_hundred = Window(FLIGHTS, RowWindow(100, 10))
    size = cost.size(Aggregate(last_hundred, (), (AggregateCall("count"),)))
    assert size.evaluations_per_s == pytest.approx(0.5)
    assert size.rate_rows_per_s == pytest.approx(0.5)


def test_a_partitioned_window_holds_one_partition(cost: CostModel) -> None:
    per_destination = Window(FLIGHTS, RowWindow(100, 10, (1,)))
    counts = Aggregate(per_destination, (Column(1, STRING),), (AggregateCall("count"),))
    assert cost.size(counts).relation_rows == pytest.approx(1)


def test_what_is_evaluated_at_ticks_gives_its_relation_at_each(cost: CostModel) -> None:
    counts = Aggregate(ticking(FLIGHTS, 300, 10), (Column(0, INT),), (AggregateCall("count"),))
    join = Join((ticking(FLIGHTS, 300, 10), counts), equal(0, 2))
    size = cost.size(join)
    assert size.relation_rows == pytest.approx(1500 * 1500 / 1500)
    assert size.rate_rows_per_s == pytest.approx(size.relation_rows / 10)
    top = Top(counts, (SortKey(Column(0, INT), descending=True, nulls_first=False),), 7)
    assert cost.size(top).rate_rows_per_s == pytest.approx(0.7)


def test_an_outer_join_keeps_what_finds_no_match(cost: CostModel) -> None:
    sides = within(FLIGHTS, 1), within(CHECKINS, 1)
    inner = cost.size(Join(sides, equal(0, 2))).rate_rows_per_s
    left = cost.size(OuterJoin(OuterKind.LEFT, *sides, equal(0, 2))).rate_rows_per_s
    full = cost.size(OuterJoin(OuterKind.FULL, *sides, equal(0, 2))).rate_rows_per_s
    assert inner < left <= inner + 5
    assert left < full <= left + 4
    all_match = cost.size(OuterJoin(OuterKind.LEFT, *sides, TRUE)).rate_rows_per_s
    assert all_match == pytest.approx(cost.size(Join(sides, TRUE)).rate_rows_per_s)


def test_a_union_has_all_rows(cost: CostModel) -> None:
    assert cost.size(Union((CHECKINS, BAGGAGE))).rate_rows_per_s == pytest.approx(12)


def test_row_bytes_follow_the_columns(catalog: Catalog, cost: CostModel) -> None:
    everything = StreamScan(
        "flights", tuple(Field(column.name, column.type) for column in catalog.stream("flights").columns)
    )
    assert cost.size(everything).row_bytes == 100
    only_number = StreamScan("flights", (Field("num", INT),))
    # A share of the declared bytes by type (4 of 4 + 16 + 8), and the event time that goes with every row.
    assert cost.size(only_number).row_bytes == pytest.approx(100 * 4 / 28 + 8)


def test_assumptions_travel_up(cost: CostModel) -> None:
    anything = StreamScan("anything", (Field("x", INT),))
    size = cost.size(Join((within(FLIGHTS, 1), within(anything, 1)), equal(0, 2)))
    assert size.basis is Basis.ASSUMED
    assert {(a.relation, a.statistic) for a in size.assumptions} == {
        ("anything", "rate"),
        ("anything", "distinct.x"),
    }
    assert cost.size(FLIGHTS).basis is Basis.DECLARED
    assert all(isinstance(assumption, Assumption) for assumption in size.assumptions)


def test_estimates_stay_finite(cost: CostModel) -> None:
    windows = tuple(within(FLIGHTS, 10**9 + index) for index in range(60))
    for predicate in (TRUE, Call("and", tuple(equal(0, 2 * index) for index in range(1, 60)))):
        size = cost.size(Join(windows, predicate))
        assert 0 < size.rate_rows_per_s <= LARGEST
        assert 0 < size.relation_rows <= LARGEST


def test_an_empty_table_is_still_a_table() -> None:
    text = "CREATE TABLE nothing (a INT, b INT) WITH (rows = 0, row_bytes = 8);"
    size = CostModel(language.load_text(text).catalog).size(TableScan("nothing", (Field("a", INT),)))
    assert size.row_bytes == 4  # without an event time
    assert size.columns[0].distinct == 1


def test_what_is_counted_rests_on_what_it_is_counted_by(cost: CostModel) -> None:
    anything = ticking(StreamScan("anything", (Field("x", INT),)), 10, 10)
    counts = Aggregate(anything, (Column(0, INT),), (AggregateCall("count"),))
    assert {a.statistic for a in cost.size(counts).columns[1].assumptions} == {"distinct.x"}


def test_what_was_observed_of_a_sub_plan_is_its_size(catalog: Catalog) -> None:
    one_flight = Filter(FLIGHTS, Call("eq", (Column(0, INT), Literal(17, INT))))
    grouped = Aggregate(ticking(one_flight, 20, 10), (Column(1, STRING),), ())
    known = {
        (signature(one_flight), "derived"): Estimate(2.0, Basis.OBSERVED),
        (signature(grouped), "derived"): Estimate(0.3, Basis.OBSERVED),
    }
    cost = CostModel(catalog, declared(catalog).with_(Statistics(known)))
    assert cost.size(one_flight).rate_rows_per_s == 2.0
    assert cost.size(one_flight).basis is Basis.OBSERVED
    assert cost.size(within(one_flight, 10)).relation_rows == pytest.approx(20)
    assert cost.size(grouped).relation_rows == pytest.approx(3)  # of a tick every ten seconds
