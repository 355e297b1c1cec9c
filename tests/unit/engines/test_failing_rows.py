"""Rows on which expressions fail, in the database: what is looked at, and what is found."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from plait import language
from plait.batches import Failed, Outcome
from plait.engines.duckdb import Database
from plait.engines.shared import failing_rows
from plait.engines.shared.failing_rows import FailingRows
from plait.engines.shared.group import SharedQuery
from plait.expressions.types import INT, STRING
from plait.plan.nodes import Field, StreamScan
from plait.rewrite import canonicalise
from plait.space import stream_of

SCAN = StreamScan("s", (Field("k", INT), Field("v", INT), Field("note", STRING)))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the database is asked."""
    asked: list[str] = []
    fetch = Database.fetch

    def noted(database: Database, statement: str) -> list[tuple[object, ...]]:
        asked.append(statement)
        return fetch(database, statement)

    monkeypatch.setattr(Database, "fetch", noted)
    return asked


def failing(*selects: str, after_us: int | None = None) -> FailingRows:
    queries = "".join(f"CREATE CONTINUOUS QUERY q{n} AS {select};" for n, select in enumerate(selects))
    workload = language.load_text(
        "CREATE STREAM s (k INT, v INT, note STRING, at TIMESTAMP, WATERMARK FOR at AS at);" + queries
    )
    plans = {query.name: stream_of(canonicalise(query.plan)) for query in workload.queries.values()}
    return FailingRows([SharedQuery(name, plan, after_us) for name, plan in plans.items()], {"s": SCAN})


def found(
    failing: FailingRows, *rows: tuple[int | None, int | None, str | None]
) -> Mapping[str, Mapping[int, Failed]]:
    """Of rows with the event times 1, 2, …"""
    columns = [*zip(*rows, strict=True)]
    types = (pa.int32(), pa.int32(), pa.string())
    table = pa.table(
        {
            **{f"c{k}": pa.array(c, t) for k, (c, t) in enumerate(zip(columns, types, strict=True))},
            "t": pa.array(range(1, len(rows) + 1), pa.int64()),
        }
    )
    with Database() as database, database.given(table) as relation:
        return failing.found(database, {"s": table}, {"s": relation})


HIGHEST = 2**31 - 1


def test_nothing_is_asked_where_the_values_rule_it_out(statements: list[str]) -> None:
    looking = failing(*(f"SELECT v + {n} AS x, 7 / v AS y FROM s" for n in range(20)))
    assert found(looking, (1, 5, None), (1, None, None), (2, 70, None)) == {}
    assert found(looking, (1, 6, None)) == {}
    assert statements == []
    assert found(looking, (1, -5, None), (1, 5, None)) == {}  # 0 is between them, so that has to be asked
    assert len(statements) == 1
    assert found(failing("SELECT v FROM s WHERE note = 'a'"), (1, HIGHEST, "x")) == {}
    assert len(statements) == 1


def test_each_query_counts_by_its_own_condition() -> None:
    looking = failing(*(f"SELECT v + 1 AS x FROM s WHERE k = {n}" for n in range(3)))
    rows = [(1, HIGHEST, None), (2, HIGHEST, None), (1, HIGHEST, None), (0, 5, None)]
    assert found(looking, *rows) == {
        "q1": {0: Failed(2, 1, f'{{"k": 1, "v": {HIGHEST}}}')},
        "q2": {0: Failed(1, 2, f'{{"k": 2, "v": {HIGHEST}}}')},
    }


def test_a_query_does_not_count_what_it_does_not_see() -> None:
    looking = failing("SELECT v / k AS x FROM s", after_us=1)
    assert found(looking, (0, 1, None), (0, 2, None)) == {"q0": {0: Failed(1, 2, '{"k": 0, "v": 2}')}}


def test_a_sample_is_taken_once() -> None:
    looking = failing("SELECT CAST(note AS INT) AS x FROM s")
    first = found(looking, (1, 1, "1"), (1, 1, "b"), (1, 1, "a"))
    assert first == {"q0": {0: Failed(2, 2, '{"note": "b"}')}}
    looking.know({"q0": Outcome(3, failed=first["q0"])})
    assert found(looking, (1, 1, "c")) == {"q0": {0: Failed(1, 1, "")}}


def test_more_expressions_than_one_statement_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_rows, "_STATEMENT_SIZE", 2)
    looking = failing(*(f"SELECT v + {n} AS x FROM s" for n in range(1, 8)))
    assert {query: each[0].rows for query, each in found(looking, (1, HIGHEST - 3, None)).items()} == {
        f"q{n}": 1 for n in range(3, 7)
    }
