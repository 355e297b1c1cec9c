"""Which expressions can fail, and on which rows that counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import pytest
from tests.spark.edge_values import BOOLEAN_TEXTS, EDGE_VALUES, FEW_VALUES, NUMBER_TEXTS, TIME_TEXTS
from tests.spark.function_cases import CAST_CASES, FUNCTION_CASES, Case

from plait.engines.duckdb import Database
from plait.expressions.bounds import Bounds, cannot_fail
from plait.expressions.coercion import build, number_literal
from plait.expressions.duckdb import literal_to_duckdb, to_duckdb
from plait.expressions.failing import can_any_fail, can_fail, failing, fails
from plait.expressions.nodes import Call, Column, Expression, Literal
from plait.expressions.types import BOOLEAN, DOUBLE, INT, STRING, TINYINT, Type, Value, integer_range

# Functions whose NULL is meant: it is what they are for, or what Spark gives without an error.
MEANT = {"and", "or", "in", "case", "coalesce", "nullif", "greatest", "least", "ln", "log10", "log2"}

QUESTIONS: list[tuple[str, Case, Type | None]] = [
    *((name, case, None) for name, cases in FUNCTION_CASES.items() for case in cases),
    *(("cast", (given,), to) for given, to in CAST_CASES),
]


def _rows(case: Case, to: Type | None) -> Iterator[tuple[Value, ...]]:
    types = [each for each in case if isinstance(each, Type)]
    if to is not None and types == [STRING]:
        texts = (*EDGE_VALUES[STRING], *NUMBER_TEXTS, *BOOLEAN_TEXTS, *TIME_TEXTS)
        return iter((text,) for text in texts if text is not None)
    values = EDGE_VALUES if len(types) < 3 else FEW_VALUES
    return product(*([v for v in values[type_] if v is not None] for type_ in types))


def _expression(function: str, case: Case, to: Type | None) -> Expression:
    arguments: list[Expression] = []
    for given in case:
        if isinstance(given, Type):
            place = sum(isinstance(each, Column) for each in arguments)
            arguments.append(Column(place, given))
        else:
            arguments.append(Literal(given, STRING if isinstance(given, str) else INT))
    return build(function, *arguments, to=to)


def test_what_gives_null_of_values_can_fail_and_nothing_else() -> None:
    unknown, idle = [], set()
    with Database() as database:
        for function, case, to in QUESTIONS:
            expression = _expression(function, case, to)
            types = [each for each in case if isinstance(each, Type)]
            rows = [*islice(_rows(case, to), 2000)]
            names = [f"c{k}" for k in range(len(types))]
            text = to_duckdb(expression, names)
            values = ", ".join(
                f"({', '.join(literal_to_duckdb(Literal(v, t)) for v, t in zip(row, types, strict=True))})"
                for row in rows
            )
            source = f" FROM (VALUES {values}) AS v({', '.join(names)})" if names else ""
            fail = to_duckdb(fails(expression), names) if isinstance(expression, Call) else "false"
            ((nulls, failed),) = database.fetch(
                f"SELECT count(*) FILTER (WHERE {text} IS NULL), count(*) FILTER (WHERE {fail}){source}"
            )
            if isinstance(expression, Call) and can_fail(expression):
                assert failed == nulls, expression
            if nulls and not can_any_fail(expression) and function not in MEANT:
                unknown.append((function, case, to))
            if not nulls and can_any_fail(expression):
                idle.add((function, tuple(map(str, case)), str(to)))
    assert unknown == []
    assert {function for function, *_ in idle} <= {
        "timestamp_seconds",
        "timestamp_millis",
        "timestamp_micros",
    }


A, B = Column(0, INT), Column(1, INT)
DIVISION = build("divide", A, B)
POSITIVE = build("gt", DIVISION, number_literal("0"))


def _single(statement: str) -> int:
    with Database() as database:
        ((value,),) = database.fetch(statement)
    return int(value)


def _counted(expression: Expression, *rows: tuple[int | None, int | None]) -> int:
    (condition,) = failing(expression).values()
    values = ", ".join(f"({'NULL' if a is None else a}, {'NULL' if b is None else b})" for a, b in rows)
    text = to_duckdb(condition, ["a", "b"])
    statement = f"SELECT count(*) FILTER (WHERE {text}) FROM (VALUES {values}) AS v(a, b)"
    return _single(statement)


def test_a_division_fails_by_zero_and_not_by_null() -> None:
    assert _counted(DIVISION, (1, 0), (1, 2), (None, 0), (1, None)) == 1


def test_a_branch_that_is_not_taken_does_not_fail() -> None:
    guarded = build("case", build("ne", B, number_literal("0")), DIVISION, Literal(0.0, DOUBLE))
    otherwise = build("case", build("eq", B, number_literal("0")), Literal(0.0, DOUBLE), DIVISION)
    wrong = build("case", build("gt", A, number_literal("5")), DIVISION, Literal(0.0, DOUBLE))
    assert _counted(guarded, (1, 0), (1, 2)) == 0
    assert _counted(otherwise, (1, 0), (1, 2)) == 0
    assert _counted(wrong, (1, 0), (6, 0), (6, 1)) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_term_beside_one_that_is_false_does_not_fail(turned: bool) -> None:
    large = build("gt", A, number_literal("5"))
    terms = (POSITIVE, large) if turned else (large, POSITIVE)
    assert _counted(build("and", *terms), (6, 0), (5, 0), (7, 0)) == 2
    assert _counted(build("or", *terms), (6, 0), (5, 0), (7, 0)) == 1


def test_where_all_depends_on_a_value_that_is_not_there() -> None:
    fallback = build("coalesce", B, build("cast", DIVISION, to=INT), number_literal("1"))
    assert set(failing(fallback)) == {DIVISION, build("cast", DIVISION, to=INT)}
    assert isinstance(DIVISION, Call)
    condition = failing(fallback)[DIVISION]
    statement = f"SELECT count(*) FILTER (WHERE {to_duckdb(condition, ['1', '0'])})"
    assert _single(statement) == 0  # b is there: no fallback is needed


def test_the_bounds_of_columns_tell_what_cannot_fail() -> None:
    low, high = integer_range(INT)
    add = build("add", A, build("multiply", B, number_literal("1000")))
    assert isinstance(add, Call)
    assert can_fail(add)
    assert cannot_fail(add, {0: Bounds(0, 5), 1: Bounds(-3, 3)})
    assert not cannot_fail(add, {0: Bounds(0, high), 1: Bounds(0, 3)})
    assert not cannot_fail(add, {0: Bounds(0, 5)})
    assert isinstance(DIVISION, Call)
    assert cannot_fail(DIVISION, {1: Bounds(1, high)})
    assert cannot_fail(DIVISION, {1: Bounds(low, -1)})
    assert not cannot_fail(DIVISION, {1: Bounds(-1, 1)})
    small = build("cast", A, to=TINYINT)
    assert isinstance(small, Call)
    assert cannot_fail(small, {0: Bounds(-128, 127)})
    assert not cannot_fail(small, {0: Bounds(-129, 127)})


def test_a_predicate_of_constants_is_no_failure() -> None:
    assert not can_any_fail(build("and", Literal(True, BOOLEAN), build("gt", A, number_literal("1"))))
