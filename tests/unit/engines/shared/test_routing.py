"""How rows find their takers in DuckDB, against each taker's own predicate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from tests.workloads.predicates import NAMES, PATIENT, Rows, relation, rows, takers, terms_of, true_of

from plait.engines.duckdb import Database
from plait.engines.shared.routing import Routing
from plait.expressions.nodes import conjunction
from plait.sharing.patterns import Selection


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


@PATIENT
@given(takers(), rows())
def test_a_row_finds_exactly_the_takers_that_want_it(
    database: Database, wanting: list[tuple[Selection, ...]], some: Rows
) -> None:
    routing = Routing("routing", [each.pattern for each in wanting[0]], wanting)
    routing.create(database)
    pairs = database.fetch(f"SELECT v.taker, r.id FROM {routing.routed(relation(some), NAMES)}")
    found = [{id_ for number, id_ in pairs if number == taker} for taker in range(len(wanting))]
    predicates = [conjunction([t for each in taker for t in terms_of(each)]) for taker in wanting]
    assert found == true_of(database, some, predicates)
    assert len(set(pairs)) == len(pairs), "a row goes to a taker once"
