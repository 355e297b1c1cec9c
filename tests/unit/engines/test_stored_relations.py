"""Rows wherever a connector has them: databases, generators, Arrow tables."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from plait import language
from plait.catalog import Catalog, Relation
from plait.engines import stored_relations
from plait.engines.duckdb import Database
from plait.errors import PlaitError, UnsupportedError, UserError
from plait.generators import GENERATORS

ROOMS = "CREATE TABLE rooms ({}) WITH (connector = 'duckdb', path = 'house.duckdb'{});"
FLIGHTS = """
CREATE STREAM flights (Gate STRING, num INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'generator', generator = 'airline.flights', rate = 10{});
"""
AN_HOUR = ", start = '2026-01-31 12:00:00', end = '2026-01-31 13:00:00'"


@cache
def database() -> Database:
    """One for all tests of this file: to start one takes longer than a test."""
    return Database(threads=1)


def declared(folder: Path, text: str) -> Catalog:
    return language.load_text(text, base=folder).catalog


def load(relation: Relation, max_rows: int | None = None) -> list[tuple[Any, ...]]:
    with database().temporary("loaded") as table:
        stored_relations.load(database(), relation, table, max_rows)
        return database().fetch(f"SELECT * FROM {table}")


def failure(relation: Relation) -> PlaitError:
    with pytest.raises(PlaitError) as raised:
        load(relation)
    return raised.value


@pytest.fixture
def house(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "house.duckdb") as connection:
        connection.execute(
            "CREATE TABLE Rooms AS SELECT 1::SMALLINT AS plug, 'hall' AS room, 1.5::FLOAT AS area, "
            "TIMESTAMPTZ '2026-01-01 12:00:00+01' AS since, 10::HUGEINT AS huge"
        )
        connection.execute('CREATE VIEW "odd name" AS SELECT plug FROM rooms UNION ALL SELECT 2')
    return tmp_path


def test_a_table_of_a_database(house: Path) -> None:
    columns = "since TIMESTAMP, plug BIGINT, Room STRING, area FLOAT"
    table = declared(house, ROOMS.format(columns, "")).table("rooms")
    assert load(table) == [(datetime(2026, 1, 1, 11), 1, "hall", 1.5)]
    assert stored_relations.count(database(), table) == 1
    assert load(table) == load(table), "nothing stays attached"


def test_a_table_of_another_name(house: Path) -> None:
    table = declared(house, ROOMS.format("plug INT", ", table = 'Odd Name'")).table("rooms")
    assert load(table) == [(1,), (2,)]
    assert load(table, max_rows=1) == [(1,)]
    assert stored_relations.count(database(), table) == 2


@pytest.mark.parametrize(
    ("columns", "options", "code", "hint"),
    [
        ("plug INT", ", table = 'room'", "stored-table", "did you mean `Rooms`?"),
        ("plugs INT", "", "stored-columns", "did you mean `plug`?"),
        ("plug TINYINT", "", "stored-type", "declare the stored type, and CAST in the queries"),
        ("huge BIGINT", "", "stored-type", "declare the stored type, and CAST in the queries"),
    ],
)
def test_what_does_not_fit_is_named(house: Path, columns: str, options: str, code: str, hint: str) -> None:
    error = failure(declared(house, ROOMS.format(columns, options)).table("rooms"))
    assert isinstance(error, UserError)
    assert (error.code, error.hint) == (code, hint)
    assert str(house / "house.duckdb") in error.detail


def test_files_that_are_no_databases(tmp_path: Path) -> None:
    table = declared(tmp_path, ROOMS.format("plug INT", "")).table("rooms")
    assert failure(table).code == "no-such-path"
    (tmp_path / "house.duckdb").write_text("plug,room\n1,hall\n" * 1000)
    error = failure(table)
    assert (error.code, "not a valid DuckDB database" in error.detail) == ("unreadable-data", True)


def test_no_secret_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TEST_FOLDER", str(tmp_path / "hush"))
    text = ROOMS.format("plug INT", "").replace("house.duckdb", "${PLAIT_TEST_FOLDER}")
    table = declared(tmp_path, text).table("rooms")
    errors = [failure(table)]
    (tmp_path / "hush").write_text("no database")
    errors.append(failure(table))
    for error in errors:
        assert "hush" not in error.render()
        assert "${PLAIT_TEST_FOLDER}" in error.render()


def test_a_generator_with_start_and_end_is_a_whole(tmp_path: Path) -> None:
    stream = declared(tmp_path, FLIGHTS.format(AN_HOUR)).stream("flights")
    assert stored_relations.is_stored(stream)
    begin = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1e6)
    made = GENERATORS["airline.flights"].rows(0, 10, begin, begin + 3_600_000_000)
    expected = [(r["gate"], r["num"], r["at"].replace(tzinfo=None)) for r in made.to_pylist()]
    assert len(expected) == 36_000
    assert load(stream) == expected
    assert load(stream, max_rows=100) == expected[:100]
    other = declared(tmp_path, FLIGHTS.format(AN_HOUR + ", seed = 7")).stream("flights")
    assert load(other) != expected


@pytest.mark.parametrize("options", ["", ", start = '2026-01-31'", ", end = '2026-01-31'"])
def test_a_generator_that_goes_on_is_not(tmp_path: Path, options: str) -> None:
    stream = declared(tmp_path, FLIGHTS.format(options)).stream("flights")
    assert not stored_relations.is_stored(stream)
    error = failure(stream)
    assert isinstance(error, UnsupportedError)
    assert "`start` and `end`" in error.hint


def test_nothing_is_stored_of_what_spark_reads(tmp_path: Path) -> None:
    text = "CREATE STREAM s (at TIMESTAMP, WATERMARK FOR at AS at)"
    stream = declared(tmp_path, f"{text} WITH (connector = 'spark', format = 'rate');").stream("s")
    error = failure(stream)
    assert isinstance(error, UnsupportedError)
    assert (error.code, "connector = 'files'" in error.hint) == ("no-stored-data", True)
    assert failure(declared(tmp_path, f"{text};").stream("s")).code == "no-stored-data"


def test_given_rows_have_to_fit(tmp_path: Path) -> None:
    table = declared(tmp_path, "CREATE TABLE t (k BIGINT, word STRING);").table("t")

    def given(columns: dict[str, pa.Array]) -> list[tuple[Any, ...]]:
        with database().temporary("given") as name:
            stored_relations.load_given(database(), table, pa.table(columns), name)
            return database().fetch(f"SELECT * FROM {name}")

    words, numbers = pa.array(["a", None]), pa.array([1, 2], pa.int32())
    assert given({"WORD": words, "k": numbers, "more": numbers}) == [(1, "a"), (2, None)]
    with pytest.raises(UserError, match="`word` of table `t` is not in the given rows"):
        given({"k": numbers})
    with pytest.raises(UserError, match="declared STRING but stored as INTEGER"):
        given({"k": numbers, "word": numbers})
