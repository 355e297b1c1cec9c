"""How rows find their takers in Spark: the SQL itself, run in DuckDB, against each taker's own predicate.

sqlglot puts the SQL into DuckDB's words; what it says (numbers, comparisons, CASE, a join) both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.predicates import (
    COLUMNS,
    NAMES,
    PATIENT,
    Rows,
    constants,
    relation,
    rows,
    takers,
    terms_of,
    true_of,
)

from plait.engines.duckdb import Database
from plait.expressions.duckdb import literal_to_duckdb
from plait.expressions.nodes import Column, Literal, conjunction
from plait.expressions.types import DOUBLE, INT
from plait.sharing.joins import shifted
from plait.sharing.patterns import Bound, Pattern, Selection, order
from plait.spark import routes as spark_routes
from plait.spark.routes import Routes, _Blocks, _Cells

NUMBER = COLUMNS[0]
ORDERED = tuple({column.type: column for column in COLUMNS}.values())


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def in_duckdb(sql: str) -> str:
    (text,) = sqlglot.transpile(sql, read="spark", write="duckdb")
    return text


def bounds(column: Column) -> st.SearchStrategy[Bound]:
    return st.builds(Bound, constants(column.type), st.booleans(), st.booleans())


def takers_found(database: Database, routes: Routes, some: Rows, count: int) -> list[set[int]]:
    """The numbers of the rows that each taker gets."""
    columns = [("taker", INT), *routes.table_columns]
    table = [
        [literal_to_duckdb(Literal(v, type_)) for v, (_, type_) in zip([taker, *route], columns, strict=True)]
        for taker in range(count)
        for route in routes.table_rows(taker)
    ]
    if not table:  # nobody wants anything
        return [set() for _ in range(count)]
    values = ", ".join(f"({', '.join(row)})" for row in table)
    routed, looked_up = ", ".join(["id", *routes.items(NAMES)]), ", ".join(["*", *routes.blocks])
    pairs = database.fetch(
        in_duckdb(
            f"SELECT s.taker, r.id FROM (SELECT {looked_up} FROM (SELECT {routed} FROM rows_given)) AS r "
            f"JOIN table_given ON {routes.condition('r', 's')}"
        )
        .replace("rows_given", relation(some))
        .replace("table_given", f"(VALUES {values}) AS s({', '.join(name for name, _ in columns)})")
    )
    assert len(set(pairs)) == len(pairs), "a row goes to a taker once"
    return [{id_ for number, id_ in pairs if number == taker} for taker in range(count)]


@PATIENT
@given(takers(tagged=False), rows(), st.sampled_from((0, 10, 20, 10_000)))
def test_a_row_finds_exactly_the_takers_that_want_it(
    database: Database, wanting: list[tuple[Selection, ...]], some: Rows, most_blocks: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_routes, "_MOST_BLOCKS", most_blocks)
        routes = Routes([each.pattern for each in wanting[0]], wanting)
    predicates = [conjunction([t for each in taker for t in terms_of(each)]) for taker in wanting]
    assert takers_found(database, routes, some, len(wanting)) == true_of(database, some, predicates)


@PATIENT
@given(st.data(), rows())
def test_cells_in_sql_are_those_between_the_constants(
    database: Database, data: st.DataObject, some: Rows
) -> None:
    column = data.draw(st.sampled_from(ORDERED))
    given_bounds = data.draw(st.lists(bounds(column), min_size=1, max_size=6))
    cells = _Cells(column, [Selection(Pattern(2, bounded=column), (), tuple(given_bounds))])
    found = database.fetch(
        in_duckdb(f"SELECT {cells.sql(NAMES)} FROM rows_given ORDER BY id").replace(
            "rows_given", relation(some)
        )
    )
    expected = [cell_of(row[column.index], [bound.constant for bound in given_bounds]) for row in some]
    assert [cell for (cell,) in found] == expected


def cell_of(value: Literal, given_constants: Sequence[Literal]) -> int | None:
    """By looking at all constants: two for each that is less, and one more in a gap."""
    if value.value is None:
        return None
    different = {order(constant) for constant in given_constants}
    less = len([constant for constant in different if constant < order(value)])
    return 2 * less if order(value) in different else 2 * less - 1


@PATIENT
@given(st.data())
def test_an_interval_has_the_cells_of_the_values_that_bounds_leave(data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(ORDERED))
    own = data.draw(st.lists(bounds(column), max_size=3))
    others = data.draw(st.lists(bounds(column), min_size=1, max_size=4))
    pattern = Pattern(2, bounded=column)
    cells = _Cells(column, [Selection(pattern, (), tuple(own)), Selection(pattern, (), tuple(others))])
    first, last = cells.interval(own)
    value = data.draw(constants(column.type))
    cell = cell_of(value, [bound.constant for bound in (*own, *others)])
    assert cell is not None
    assert (first <= cell <= last) == all(leaves(bound, value) for bound in own)


def leaves(bound: Bound, value: Literal) -> bool:
    here, there = order(value), order(bound.constant)
    if here == there:
        return bound.included
    return bool(there < here) == bound.lower


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_is_one_constant_whatever_its_sign(zero: float) -> None:
    column = Column(0, DOUBLE)
    until = [Bound(Literal(value, DOUBLE), lower=False, included=True) for value in (zero, -zero)]
    pattern = Pattern(2, bounded=column)
    cells = _Cells(column, [Selection(pattern, (), (bound,)) for bound in until])
    assert cells.interval(until[:1]) == cells.interval(until[1:]) == (-1, 0)


# What stands in the table


def above(constant: int) -> Selection:
    bound = Bound(Literal(constant, INT), lower=True, included=False)
    return Selection(Pattern(2, bounded=NUMBER), (), (bound,))


def equal_to(*pairs: tuple[Column, int]) -> Selection:
    pattern = Pattern(2, (), tuple(column for column, _ in pairs))
    return Selection(pattern, tuple((Literal(constant, INT),) for _, constant in pairs))


def test_values_that_are_looked_up_are_one_row_a_taker() -> None:
    wanting = [equal_to((NUMBER, one), (COLUMNS[1], 9)) for one in (4, 5)]
    routes = Routes([wanting[0].pattern], [(each,) for each in wanting])
    assert routes.table_columns == [("v0", INT), ("v1", INT)]
    assert [[*routes.table_rows(taker)] for taker in range(2)] == [[[4, 9]], [[5, 9]]]
    assert routes.items(NAMES) == ["c0 AS v0", "c1 AS v1"]
    assert routes.condition("r", "s") == "r.v0 = s.v0 AND r.v1 = s.v1"


def test_few_bounds_alone_are_a_row_for_each_cell() -> None:
    wanting = [above(5), above(7)]
    routes = Routes([wanting[0].pattern], [(each,) for each in wanting])
    assert routes.blocks == ["explode(array(shiftright(w0 + 9, 0))) AS b0"]
    assert routes.table_columns == [("b0", INT)]
    assert [[*routes.table_rows(taker)] for taker in range(2)] == [[[10], [11], [12]], [[12]]]
    assert routes.condition("r", "s") == "r.b0 = s.b0"


@pytest.mark.parametrize("count", [100, 1_000, 5_000])
def test_many_bounds_are_few_blocks_of_cells(count: int) -> None:
    wanting = [above(constant) for constant in range(count)]
    routes = Routes([wanting[0].pattern], [(each,) for each in wanting])
    table = [len([*routes.table_rows(taker)]) for taker in range(count)]
    assert sum(table) <= max(10_000, count * 13)
    assert routes.blocks[0].count("shiftright") <= 15


def test_bounds_beside_values_are_an_interval_of_cells() -> None:
    other = shifted(above(5).pattern, 1)
    wanting = [(equal_to((NUMBER, 4)), Selection(other, (), above(bound).bounds)) for bound in (5, 7)]
    routes = Routes([each.pattern for each in wanting[0]], wanting)
    assert routes.table_columns == [("v0", INT), ("low0", INT), ("high0", INT)]
    assert [[*routes.table_rows(taker)] for taker in range(2)] == [[[4, 1, 3]], [[4, 3, 3]]]
    assert routes.condition("r", "s") == "r.v0 = s.v0 AND r.w0 BETWEEN s.low0 AND s.high0"


def test_takers_that_differ_in_nothing_have_rows_without_values() -> None:
    everything = Selection(Pattern(2))
    routes = Routes([everything.pattern], [(everything,), (everything,)])
    assert (routes.names, routes.table_columns, routes.condition("r", "s")) == ([], [], "TRUE")
    assert [*routes.table_rows(1)] == [[]]


def test_a_cell_is_found_by_few_comparisons() -> None:
    cells = _Cells(NUMBER, [above(constant) for constant in range(200)])
    sql = cells.sql(["x"])
    depth = most = 0
    for word in sql.split():
        depth += {"CASE": 1, "END": -1}.get(word, 0)
        most = max(most, depth)
    assert most <= 9, "halves of two hundred"
    assert cells.interval(above(0).bounds) == (1, 399)


def test_the_sql_of_many_constants_is_short() -> None:
    cells = _Cells(NUMBER, [above(constant) for constant in range(10_000, 11_000)])
    assert len(cells.sql(["x"])) < 2 * 1_000 * len("10000, ") + 500


def test_bounds_that_leave_nothing_do_not_make_room_for_others() -> None:
    blocks = _Blocks(4001, [(0, 2000)] * 1000 + [(3999, 0)] * 1000)
    assert sum(len([*blocks.of((0, 2000))]) for _ in range(1000)) <= 20_000
    assert not [*blocks.of((3999, 0))]
