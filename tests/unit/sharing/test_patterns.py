"""Patterns of predicates, held against the predicates themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.predicates import COLUMNS, PATIENT, Rows, alike, conjunctions, rows, terms_of, true_of

from plait.engines.duckdb import Database
from plait.expressions.coercion import build, number_literal
from plait.expressions.nodes import TRUE, Call, Column, Expression, Literal, conjunction, conjuncts
from plait.expressions.types import DOUBLE, INT
from plait.sharing.patterns import (
    Pattern,
    Selection,
    common_terms,
    order,
    own_terms,
    relaxed,
    selection_of,
    wanted_by_any,
)

NUMBER, OTHER = COLUMNS[:2]
WIDTH = len(COLUMNS)


def selected(terms: Sequence[Expression]) -> Selection:
    return selection_of(terms, WIDTH)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def compared(function: str, constant: int) -> Expression:
    return build(function, NUMBER, number_literal(str(constant)))


def by_pattern(selections: Iterable[Selection]) -> list[list[Selection]]:
    found: dict[Pattern, list[Selection]] = {}
    for selection in selections:
        found.setdefault(selection.pattern, []).append(selection)
    return list(found.values())


# Which pattern a predicate has


@PATIENT
@given(conjunctions(), rows())
def test_a_selection_says_what_its_predicate_says(
    database: Database, terms: list[Expression], some: Rows
) -> None:
    predicates = [conjunction(terms), conjunction(terms_of(selection_of(terms, WIDTH)))]
    said, meant = true_of(database, some, predicates)
    assert said == meant


@PATIENT
@given(conjunctions())
def test_a_pattern_looks_up_values_or_has_bounds(terms: list[Expression]) -> None:
    selection = selection_of(terms, WIDTH)
    pattern = selection.pattern
    assert len(selection.constants) == len(pattern.looked_up)
    assert bool(selection.bounds) == (pattern.bounded is not None)
    assert not (pattern.looked_up and pattern.bounded)
    assert [column.index for column in pattern.looked_up] == sorted({c.index for c in pattern.looked_up})


@PATIENT
@given(conjunctions(), st.randoms())
def test_the_order_of_terms_does_not_matter_to_the_pattern(terms: list[Expression], random: Random) -> None:
    shuffled = random.sample(terms, len(terms))
    assert selection_of(shuffled, WIDTH).pattern.bounded == selection_of(terms, WIDTH).pattern.bounded
    assert selection_of(shuffled, WIDTH).pattern.looked_up == selection_of(terms, WIDTH).pattern.looked_up


def test_bounds_beside_an_equality_or_of_two_columns_are_parameters() -> None:
    high, equal = compared("ge", 5), build("eq", OTHER, number_literal("1"))
    parameter = Column(WIDTH, INT)
    beside = selected([high, equal])
    assert beside.pattern == Pattern(WIDTH, (Call("ge", (NUMBER, parameter)),), (OTHER,), None, (INT,))
    assert [each.value for each in beside.parameters] == [5]
    low = build("le", OTHER, number_literal("7"))
    both = selected([low, high])
    assert both.pattern == Pattern(WIDTH, (Call("le", (OTHER, parameter)),), (), NUMBER, (INT,))
    assert [each.value for each in both.parameters] == [7]


def test_where_rows_are_not_tagged_these_are_of_the_rest() -> None:
    high, equal = compared("ge", 5), build("eq", OTHER, number_literal("1"))
    assert selection_of([high, equal], WIDTH, tagged=False).pattern == Pattern(WIDTH, (high,), (OTHER,))
    low = build("le", OTHER, number_literal("7"))
    assert {*selection_of([high, low], WIDTH, tagged=False).pattern.rest} == {high, low}


def test_alternatives_are_looked_up_each_once() -> None:
    constants = [number_literal(each) for each in ("4", "7", "4")]
    selection = selected([Call("in", (NUMBER, *constants))])
    assert selection.pattern == Pattern(WIDTH, (), (NUMBER,))
    assert [[each.value for each in alternatives] for alternatives in selection.constants] == [[4, 7]]
    very_many = [number_literal(str(each)) for each in range(1000)]
    assert not selected([Call("in", (NUMBER, *very_many))]).pattern.looked_up


def test_columns_are_looked_up_as_long_as_their_choices_are_few() -> None:
    """The table of constants has a row for each choice."""
    many = [number_literal(str(each)) for each in range(60)]
    few = [number_literal(str(each)) for each in range(3)]
    both = selected([Call("in", (NUMBER, *many)), Call("in", (OTHER, *many))])
    assert both.pattern.looked_up == (NUMBER,)
    assert both.rest == ()
    assert both.written == (Call("in", (OTHER, *many)),)
    assert both.pattern == replace(selected([Call("in", (NUMBER, *few))]).pattern, has_written=True)
    assert selected([Call("in", (NUMBER, *many)), Call("in", (OTHER, *few))]).pattern.looked_up == (OTHER,)
    assert selected([Call("in", (NUMBER, *few)), Call("in", (OTHER, *few))]).pattern.looked_up == (
        NUMBER,
        OTHER,
    )


def test_a_second_equality_of_a_column_is_of_the_rest() -> None:
    selection = selected([compared("eq", 1), compared("eq", 2)])
    assert selection.pattern.looked_up == (NUMBER,)
    assert [each.value for each in selection.parameters] == [2]


def test_a_comparison_with_null_is_no_equality() -> None:
    term = Call("eq", (NUMBER, Literal(None, INT)))
    assert not selected([term]).pattern.looked_up


def test_what_all_have_in_common_is_told_from_their_own() -> None:
    sum_ = build("add", NUMBER, OTHER)
    queries = [
        selected([build("ne", NUMBER, number_literal("3")), build("gt", sum_, number_literal(str(n)))])
        for n in range(3)
    ]
    assert common_terms(queries) == (build("ne", NUMBER, number_literal("3")),)
    (own,) = own_terms(queries)
    assert own == Call("gt", (sum_, Column(WIDTH, INT))) or own == Call("gt", (sum_, Column(WIDTH + 1, INT)))


def test_nan_is_the_greatest() -> None:
    values = [float("nan"), 1.0, float("inf"), float("-inf")]
    found = sorted((Literal(value, DOUBLE) for value in values), key=order)
    assert [str(each.value) for each in found] == ["-inf", "1.0", "inf", "nan"]


# What is true of every row that somebody wants


@PATIENT
@given(alike(), rows())
def test_every_row_that_a_selection_wants_satisfies_the_relaxed_predicate(
    database: Database, queries: list[list[Expression]], some: Rows
) -> None:
    for selections in by_pattern(map(selected, queries)):
        weaker, *wanted = true_of(
            database,
            some,
            [conjunction(relaxed(selections)), *(conjunction(terms_of(each)) for each in selections)],
        )
        assert set().union(*wanted) <= weaker


@PATIENT
@given(conjunctions(), rows())
def test_a_single_predicate_is_relaxed_by_its_last_value_at_most(
    database: Database, terms: list[Expression], some: Rows
) -> None:
    """Bounds count as included; all else stays as it is."""
    selection = selection_of(terms, WIDTH)
    included = tuple(replace(bound, included=True) for bound in selection.bounds)
    expected = conjunction(terms_of(replace(selection, bounds=included)))
    said, meant = true_of(database, some, [conjunction(relaxed([selection])), expected])
    assert said == meant


@PATIENT
@given(st.lists(conjunctions(), min_size=1, max_size=6) | alike(), rows())
def test_every_row_that_anybody_wants_is_wanted_by_any(
    database: Database, queries: list[list[Expression]], some: Rows
) -> None:
    anybody, *wanted = true_of(
        database, some, [wanted_by_any(map(selected, queries)), *map(conjunction, queries)]
    )
    assert set().union(*wanted) <= anybody


def test_bounds_are_relaxed_to_the_outermost() -> None:
    between = [[compared("gt", low), compared("lt", high)] for low, high in ((2, 9), (5, 7), (4, 12))]
    assert relaxed([*map(selected, between)]) == (compared("ge", 2), compared("le", 12))


def test_a_side_on_which_one_query_has_no_bound_has_none() -> None:
    queries = [[compared("gt", 2), compared("lt", 9)], [compared("gt", 5)]]
    assert relaxed([*map(selected, queries)]) == (compared("ge", 2),)


def test_equal_constants_are_looked_for_once() -> None:
    queries = [[compared("eq", constant)] for constant in (3, 1, 3)]
    one, other = number_literal("3"), number_literal("1")
    assert relaxed([*map(selected, queries)]) == (Call("in", (NUMBER, one, other)),)
    assert relaxed([*map(selected, queries[::2])]) == (compared("eq", 3),)


def test_all_rows_are_wanted_if_one_query_wants_all_or_there_are_very_many_patterns() -> None:
    assert wanted_by_any([selection_of([compared("eq", 1)], WIDTH), selection_of([], WIDTH)]) == TRUE
    patterns = [selection_of([compared("ne", constant)], WIDTH, tagged=False) for constant in range(9)]
    assert wanted_by_any(patterns) == TRUE
    assert len(conjuncts(wanted_by_any(patterns[:1]))) == 1
    some = wanted_by_any(patterns[:8])
    assert isinstance(some, Call)
    assert (some.function, len(some.arguments)) == ("or", 8)
