"""How rows find their takers in DuckDB, against each taker's own predicate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from tests.workloads.predicates import (
    COLUMNS,
    NAMES,
    PATIENT,
    Rows,
    relation,
    rows,
    takers,
    terms_of,
    true_of,
)

from plait.engines.duckdb import Database
from plait.engines.shared import routing as routing_module
from plait.engines.shared.routing import Routing
from plait.expressions.nodes import Call, Literal, conjunction
from plait.expressions.types import INT
from plait.sharing.patterns import Selection, selection_of


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


@PATIENT
@given(takers(tagged=True), rows())
def test_a_row_finds_exactly_the_takers_that_want_it(
    database: Database, wanting: list[tuple[Selection, ...]], some: Rows
) -> None:
    routing = Routing("routing", [each.pattern for each in wanting[0]], wanting)
    routing.create(database)
    # The same relation stands there once for each pattern.
    names = [*NAMES] * len(wanting[0])
    common = " AND ".join(routing.common(NAMES, number) for number in range(len(wanting[0])))
    pairs = database.fetch(
        f"SELECT v.taker, r.id FROM {routing.routed(relation(some), names)} WHERE {common}"
    )
    found = [{id_ for number, id_ in pairs if number == taker} for taker in range(len(wanting))]
    predicates = [conjunction([t for each in taker for t in terms_of(each)]) for taker in wanting]
    assert found == true_of(database, some, predicates)
    assert len(set(pairs)) == len(pairs), "a row goes to a taker once"


def test_cells_are_not_listed_where_these_are_very_many(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = COLUMNS[0]
    above = [Call("gt", (column, Literal(constant, INT))) for constant in range(20)]
    wanting = [(selection_of([term], len(COLUMNS)),) for term in above]
    found = []
    for most in (0, 1000):
        monkeypatch.setattr(routing_module, "_MOST_CELLS", most)
        routing = Routing("routing", [wanting[0][0].pattern], wanting)
        routing.create(database)
        assert routing._by_cell == bool(most)
        values = "(SELECT v AS id, v AS c0 FROM unnest(range(-1, 25)) AS u(v))"
        rows = database.fetch(f"SELECT v.taker, r.id FROM {routing.routed(values, NAMES)}")
        found.append(sorted(rows))
    assert found[0] == found[1] == sorted((c, v) for c in range(20) for v in range(-1, 25) if v > c)
