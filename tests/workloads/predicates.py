"""Random conjunctions over one relation, and rows for them: few values of every type, so that rows meet the
constants, lie between them, and tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from plait.engines.duckdb import Database
from plait.expressions.duckdb import literal_to_duckdb, to_duckdb
from plait.expressions.nodes import Call, Column, Expression, Literal, transform
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    Value,
    decimal,
)
from plait.sharing.patterns import Pattern, Selection, selection_of

PRICE = decimal(5, 2)
HOUR_US = 3_600_000_000
VALUES: dict[Type, Sequence[Value]] = {
    INT: (-(2**31), -1, 0, 1, 2, 3, 2**31 - 1),
    BIGINT: (-(2**40), 0, 1, 2**63 - 1),
    TINYINT: (-127, 0, 7, 127),  # sqlglot takes -128Y for the negative of 128Y, which is none
    PRICE: (Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("999.99")),
    DOUBLE: (float("-inf"), -0.5, 0.0, 1e-300, 1.5, float("inf"), float("nan")),
    STRING: ("", "A", "a", "a'b\\c", "b", "é", "\U0001f600"),
    BOOLEAN: (False, True),
    DATE: (date(1969, 12, 31), date(2026, 1, 1), date(2026, 1, 2)),
    TIMESTAMP: (1, 1_772_431_200_000_000, 1_772_431_200_000_001),
    INTERVAL: (-HOUR_US, 0, HOUR_US),
}
# Two INTs, so that columns can be compared with each other.
TYPES = (INT, INT, BIGINT, TINYINT, PRICE, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP, INTERVAL)
COLUMNS = tuple(Column(index, type_) for index, type_ in enumerate(TYPES))
NAMES = tuple(f"c{column.index}" for column in COLUMNS)

Rows = Sequence[Sequence[Literal]]

# A machine that has other work to do is no reason to fail.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def constants(type_: Type) -> st.SearchStrategy[Literal]:
    return st.sampled_from(VALUES[type_]).map(lambda value: Literal(value, type_))


@st.composite
def comparisons(draw: DrawFn, columns: Sequence[Column] = COLUMNS) -> Expression:
    """A column and a constant, either way round."""
    column = draw(st.sampled_from(columns))
    operands = (column, draw(constants(column.type)))
    function = draw(st.sampled_from(("eq", "lt", "le", "gt", "ge")))
    return Call(function, operands if draw(st.booleans()) else operands[::-1])


@st.composite
def others(draw: DrawFn) -> Expression:
    """What is no comparison of a column with a constant."""
    column = draw(st.sampled_from(COLUMNS))
    some = tuple(draw(constants(column.type)) for _ in range(2))
    return draw(
        st.sampled_from(
            (
                Call("ne", (column, some[0])),
                Call("in", (column, *some)),
                Call("eq", (column, Literal(None, column.type))),
                Call("is_null", (column,)),
                Call("lt", (COLUMNS[0], COLUMNS[1])),
                Call("or", (Call("eq", (column, some[0])), Call("gt", (column, some[1])))),
            )
        )
    )


def conjunctions() -> st.SearchStrategy[list[Expression]]:
    # Of few columns, so that several terms are on the same one.
    columns = st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=2)
    return columns.flatmap(lambda few: st.lists(comparisons(few) | others(), max_size=4))


@st.composite
def alike(draw: DrawFn, *, most: int = 5) -> list[list[Expression]]:
    """Conjunctions that differ in constants and in the order of terms."""
    template = draw(conjunctions())

    def again() -> list[Expression]:
        return draw(st.permutations([_again(draw, term) for term in template]))

    return [again() for _ in range(draw(st.integers(1, most)))]


def _again(draw: DrawFn, term: Expression) -> Expression:
    """A comparison with another constant, or several; anything else as it is."""
    match term:
        case Call("or", terms):
            return Call("or", tuple(_again(draw, each) for each in terms))
        case Call("in", (Column() as column, *_)) if draw(st.booleans()):
            return Call("in", (column, *draw(st.lists(constants(column.type), min_size=1, max_size=3))))
        case Call(function, (Column() as column, Literal(value))) if value is not None and function != "ne":
            return Call(function, (column, draw(constants(column.type))))
        case Call(function, (Literal(), Column() as column)):
            return Call(function, (draw(constants(column.type)), column))
        case _:
            return term


def terms_of(selection: Selection) -> list[Expression]:
    """The conjunction that a selection stands for."""
    pattern = selection.pattern

    def whole(node: Expression) -> Expression:
        if isinstance(node, Column) and node.index >= pattern.width:
            return selection.parameters[node.index - pattern.width]
        return node

    terms = [*(transform(term, whole) for term in pattern.rest), *selection.written]
    for column, alternatives in zip(pattern.looked_up, selection.constants, strict=True):
        equal = [Call("eq", (column, constant)) for constant in alternatives]
        terms.append(equal[0] if len(equal) == 1 else Call("or", tuple(equal)))
    for bound in selection.bounds:
        assert pattern.bounded is not None
        function = ("ge" if bound.included else "gt") if bound.lower else ("le" if bound.included else "lt")
        terms.append(Call(function, (pattern.bounded, bound.constant)))
    return terms


def without_rest(selection: Selection) -> Selection:
    """What all takers have in common is no matter of routes."""
    pattern = selection.pattern
    return Selection(
        Pattern(pattern.width, (), pattern.looked_up, pattern.bounded), selection.constants, selection.bounds
    )


@st.composite
def takers(draw: DrawFn, *, tagged: bool) -> list[tuple[Selection, ...]]:
    """Takers of rows with one pattern or several; where rows are not tagged, the rest is left out."""
    several: list[list[Selection]] = []
    for _ in range(draw(st.integers(1, 3))):
        selections = [selection_of(terms, len(COLUMNS), tagged=tagged) for terms in draw(alike(most=4))]
        if not tagged:
            selections = [without_rest(each) for each in selections]
        several.append([each for each in selections if each.pattern == selections[0].pattern])
    return [*zip(*several, strict=False)]


@st.composite
def rows(draw: DrawFn) -> Rows:
    def value(type_: Type) -> Literal:
        return draw(st.just(Literal(None, type_)) | constants(type_))

    return [[value(type_) for type_ in TYPES] for _ in range(draw(st.integers(1, 5)))]


def relation(given: Rows) -> str:
    """The rows as a relation of DuckDB, with their numbers as `id`."""
    values = ", ".join(
        f"({', '.join([str(number), *map(literal_to_duckdb, row)])})" for number, row in enumerate(given)
    )
    return f"(SELECT * FROM (VALUES {values}) AS t({', '.join(['id', *NAMES])}))"


def true_of(database: Database, given: Rows, predicates: Sequence[Expression]) -> list[set[int]]:
    """Of each predicate, the numbers of the rows for which it is true."""
    tests = [f"coalesce({to_duckdb(each, NAMES)}, FALSE)" for each in predicates]
    found = database.fetch(f"SELECT id, {', '.join(tests)} FROM {relation(given)}")
    return [{id_ for id_, *truths in found if truths[place]} for place in range(len(predicates))]
