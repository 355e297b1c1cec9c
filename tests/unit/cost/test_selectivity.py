from __future__ import annotations

import pytest

from plait.cost.selectivity import ColumnEstimate, Evidence, narrowed, selectivity
from plait.expressions.nodes import FALSE, TRUE, Call, Column, Expression, Literal
from plait.expressions.types import BOOLEAN, INT
from plait.statistics import Assumption, Basis

A, B, C = (Column(index, INT) for index in range(3))
COLUMNS = tuple(ColumnEstimate(distinct, 4, Basis.DECLARED) for distinct in (10, 20, 30))


def number(value: int) -> Literal:
    return Literal(value, INT)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


def equal(left: Expression, right: Expression) -> Call:
    return call("eq", left, right)


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        (TRUE, 1),
        (FALSE, 0),
        (Literal(None, BOOLEAN), 0),
        (equal(A, number(1)), 1 / 10),
        (equal(A, B), 1 / 20),
        (call("ne", A, number(1)), 9 / 10),
        (call("in", A, number(1), number(2), number(3)), 3 / 10),
        (call("in", A, *map(number, range(40))), 1),
        (call("lt", A, number(5)), 1 / 3),
        (call("is_null", A), 1 / 10),
        (call("not", call("is_null", A)), 9 / 10),
        (call("and", equal(A, number(1)), equal(B, number(1))), 1 / 200),
        (call("or", equal(A, number(1)), equal(B, number(1))), 1 - 9 / 10 * 19 / 20),
    ],
)
def test_shares(predicate: Expression, share: float) -> None:
    assert selectivity(predicate, COLUMNS, Evidence()) == pytest.approx(share)


def test_equations_that_follow_count_once() -> None:
    chain = call("and", equal(A, B), equal(B, C))
    closure = call("and", equal(A, B), equal(A, C), equal(B, C))
    for predicate in (chain, closure):
        assert selectivity(predicate, COLUMNS, Evidence()) == pytest.approx(1 / (20 * 30))


def test_a_constant_fixes_every_column_of_its_class() -> None:
    predicate = call("and", equal(A, B), equal(A, number(7)), equal(B, number(7)))
    assert selectivity(predicate, COLUMNS, Evidence()) == pytest.approx(1 / (10 * 20))
    assert [column.distinct for column in narrowed(predicate, COLUMNS)] == [1, 1, 30]


def test_kept_rows_have_fewer_values() -> None:
    predicate = call("and", call("in", A, number(1), number(2)), call("lt", C, number(5)))
    assert [column.distinct for column in narrowed(predicate, COLUMNS)] == [2, 20, 10]


def test_evidence_names_what_was_used_and_nothing_else() -> None:
    assumed = Assumption("s", "distinct.a", 10)
    columns = (ColumnEstimate(10, 4, Basis.ASSUMED, frozenset({assumed})), *COLUMNS[1:])
    unused, used = Evidence(), Evidence()
    selectivity(equal(B, number(1)), columns, unused)
    selectivity(equal(A, number(1)), columns, used)
    assert (unused.basis, unused.assumptions) == (Basis.DECLARED, set())
    assert (used.basis, used.assumptions) == (Basis.ASSUMED, {assumed})
