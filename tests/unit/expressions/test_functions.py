"""What holds for every function of the table: documentation, examples, strictness, commutation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pytest
from tests.spark.edge_values import EDGE_VALUES, FEW_VALUES
from tests.spark.function_cases import FUNCTION_CASES, Case

from plait import language
from plait.expressions import coercion
from plait.expressions.aggregates import SQL_AGGREGATES
from plait.expressions.coercion import build
from plait.expressions.documentation import example_expression, example_text, render_function_table
from plait.expressions.duckdb import to_duckdb
from plait.expressions.functions import FUNCTIONS, REFUSED, SHORTHANDS, SQL_NAMES, Function, Shorthand
from plait.expressions.nodes import Call, Expression, Literal
from plait.expressions.types import INT, STRING, Type, Value
from plait.plan.nodes import Project

ROOT = Path(__file__).parents[3]
ENTRIES: dict[str, Function | Shorthand] = {**FUNCTIONS, **SHORTHANDS}


class Computer(Protocol):
    def __call__(self, expressions: Sequence[Expression]) -> list[Any]: ...


@pytest.fixture(scope="module")
def computed() -> Computer:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")

    def compute(expressions: Sequence[Expression]) -> list[Any]:
        printed = ", ".join(to_duckdb(expression, []) for expression in expressions)
        return list(connection.sql(f"SELECT {printed}").fetchall()[0])

    return compute


def shown(value: object) -> object:
    """Doubles agree to nine digits."""
    return pytest.approx(value, rel=1e-9, abs=0.0) if isinstance(value, float) else value


def test_the_page_is_made_from_the_table() -> None:
    """To renew it: python -m plait.expressions.documentation > docs/functions.md."""
    assert (ROOT / "docs" / "functions.md").read_text(encoding="utf-8") == render_function_table()


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_example(entry: Function | Shorthand, computed: Computer) -> None:
    assert computed([example_expression(entry)]) == [shown(entry.example.result)]


def test_examples_are_valid_as_written(computed: Computer) -> None:
    written = ", ".join(f"{example_text(entry)} AS c{i}" for i, entry in enumerate(ENTRIES.values()))
    workload = language.load_text(
        f"""
        CREATE STREAM s (t TIMESTAMP, WATERMARK FOR t AS t - INTERVAL 1 SECOND);
        CREATE CONTINUOUS QUERY examples AS SELECT {written} FROM s;
        """
    )
    query = workload.queries["examples"]
    assert isinstance(query.plan, Project)
    assert computed(list(query.plan.expressions)) == [
        shown(entry.example.result) for entry in ENTRIES.values()
    ]


def test_every_name_has_one_meaning() -> None:
    spellings = [spelling for entry in ENTRIES.values() for spelling in entry.spellings]
    assert sorted(spellings) == sorted(SQL_NAMES)
    assert not set(SQL_NAMES) & set(SQL_AGGREGATES)
    assert not set(REFUSED) & (set(SQL_NAMES) | set(SQL_AGGREGATES))
    assert set(SHORTHANDS) == set(coercion.SHORTHAND_EXPANSIONS)
    assert all(entry.documentation.endswith(".") for entry in ENTRIES.values())


def test_every_function_has_edge_values() -> None:
    assert {*FUNCTION_CASES, "cast"} == set(FUNCTIONS)


def arguments(case: Case, row: tuple[Value, ...]) -> list[Literal]:
    values = iter(row)
    return [
        Literal(next(values), part)
        if isinstance(part, Type)
        else Literal(part, STRING if isinstance(part, str) else INT)
        for part in case
    ]


def rows(case: Case, at_most: int) -> Iterator[tuple[Value, ...]]:
    types = [part for part in case if isinstance(part, Type)]
    values = EDGE_VALUES if len(types) < 3 else FEW_VALUES
    combinations = list(product(*(values[type_] for type_ in types)))
    return islice(combinations, 0, None, max(1, len(combinations) // at_most))


@pytest.mark.parametrize(
    "name", [name for name, function in FUNCTIONS.items() if function.strict and name != "cast"]
)
def test_strict(name: str, computed: Computer) -> None:
    """A NULL in any place gives NULL."""
    expressions = []
    for case in FUNCTION_CASES[name]:
        present = [row for row in rows(case, 12) if None not in row]
        for row in present[:3]:
            for place in range(len(row)):
                with_null = (*row[:place], None, *row[place + 1 :])
                expressions.append(build(name, *arguments(case, with_null)))
    assert (
        [value for value in computed(expressions) if value is not None] == [] if expressions else name == "pi"
    )


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.commutative])
def test_commutative(name: str, computed: Computer) -> None:
    forward, backward = [], []
    for case in FUNCTION_CASES[name]:
        for row in rows(case, 15):
            call = build(name, *arguments(case, row))
            if isinstance(call, Call) and call.function == name:
                forward.append(call)
                backward.append(Call(name, tuple(reversed(call.arguments))))
    assert forward
    assert list(map(repr, computed(forward))) == list(map(repr, computed(backward)))
