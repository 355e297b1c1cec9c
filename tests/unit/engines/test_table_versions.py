"""Versions of stored tables: what a batch sees, and sees again."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from plait import language
from plait.engines import database_tables, stored_relations, table_versions
from plait.engines.duckdb import Database
from plait.engines.table_versions import TableVersions
from plait.errors import ExternalError, PlaitError, UserError
from plait.expressions.arrow import arrow_schema

FILES = """
CREATE TABLE Rooms (plug INT, Room STRING, area DECIMAL(5, 1), factor FLOAT, since TIMESTAMP)
  WITH (connector = 'files', path = 'rooms', format = 'csv');
"""
STORED = "CREATE TABLE Rooms (plug BIGINT, room STRING) WITH (connector = 'duckdb', path = 'house.duckdb');"
HEADER = "plug,room,area,factor,since\n"


def versions(folder: Path, text: str = FILES) -> TableVersions:
    return TableVersions(language.load_text(text, base=folder).catalog, folder / "state" / "tables")


def write_rooms(folder: Path, *lines: str, name: str = "a.csv") -> None:
    (folder / "rooms").mkdir(exist_ok=True)
    (folder / "rooms" / name).write_text(HEADER + "".join(f"{line}\n" for line in lines))


def change_database(file: Path, *statements: str) -> None:
    with duckdb.connect(file) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(stored: TableVersions, version: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(stored.path("rooms", version)).to_pylist()
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were read, each time they were."""
    names: list[str] = []
    load = stored_relations.load

    def counted(database: Database, relation: Any, table: str) -> None:
        names.append(relation.name)
        load(database, relation, table)

    monkeypatch.setattr(stored_relations, "load", counted)
    return names


def test_a_version_has_the_declared_columns_and_types(tmp_path: Path) -> None:
    write_rooms(tmp_path, "1,kitchen,12.5,-0.0,2026-01-01 12:00:00+01:00", ",,,,")
    stored = versions(tmp_path)
    version = stored.current(["ROOMS"])["rooms"]
    table = pq.read_table(stored.path("Rooms", version))
    columns = language.load_text(FILES, base=tmp_path).catalog.table("rooms").columns
    assert table.schema.equals(arrow_schema([c.name for c in columns], [c.type for c in columns]))
    first, second = table.to_pylist()
    assert (first["plug"], first["Room"], str(first["area"])) == (1, "kitchen", "12.5")
    assert first["since"].isoformat() == "2026-01-01T11:00:00+00:00"
    assert math.copysign(1, first["factor"]) == 1
    assert set(second.values()) == {None}


def test_a_table_without_rows_is_a_version_too(tmp_path: Path) -> None:
    write_rooms(tmp_path)
    stored = versions(tmp_path)
    assert rows(stored, stored.current(["rooms"])["rooms"]) == []


def test_a_table_is_read_once_until_it_changes(tmp_path: Path, reads: list[str]) -> None:
    write_rooms(tmp_path, "1,kitchen,,,")
    stored = versions(tmp_path)
    first = stored.current(["rooms"])["rooms"]
    assert stored.current(["rooms"])["rooms"] == versions(tmp_path).current(["rooms"])["rooms"] == first
    assert reads == ["Rooms"]

    write_rooms(tmp_path, "2,hall,,,", name="b.csv")
    second = stored.current(["rooms"])["rooms"]
    write_rooms(tmp_path, "1,bath123,,,")  # as long as before
    third = stored.current(["rooms"])["rooms"]
    (tmp_path / "rooms" / "b.csv").unlink()
    fourth = stored.current(["rooms"])["rooms"]
    assert reads == ["Rooms"] * 4
    assert [[row["Room"] for row in rows(stored, v)] for v in (first, second, third, fourth)] == [
        ["kitchen"],
        ["kitchen", "hall"],
        ["bath123", "hall"],
        ["bath123"],
    ]


def test_hidden_files_are_no_change(tmp_path: Path) -> None:
    write_rooms(tmp_path, "1,kitchen,,,")
    stored = versions(tmp_path)
    before = stored.current(["rooms"])
    (tmp_path / "rooms" / "_draft.csv").write_text("half a li")
    assert stored.current(["rooms"]) == before


def test_another_declaration_is_another_version(tmp_path: Path) -> None:
    write_rooms(tmp_path, "1,kitchen,,,")
    before = versions(tmp_path).current(["rooms"])
    assert versions(tmp_path, FILES.replace("plug INT", "plug BIGINT")).current(["rooms"]) != before


def test_quick_changes_of_equal_size_are_all_seen(tmp_path: Path) -> None:
    stored = versions(tmp_path)
    for number in range(10):
        write_rooms(tmp_path, f"{number:02},kitchen,,,")
        version = stored.current(["rooms"])["rooms"]
        assert [row["plug"] for row in rows(stored, version)] == [number]


def test_a_table_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rooms(tmp_path, "1,kitchen,,,")
    load = stored_relations.load
    changes = iter(["no number,hall,,,", "3,hall,,,"])

    def interrupted(database: Database, relation: Any, table: str) -> None:
        load(database, relation, table)
        line = next(changes, None)
        if line is not None:
            write_rooms(tmp_path, line)
            raise UserError("stored-value", "a line that was half written")

    monkeypatch.setattr(stored_relations, "load", interrupted)
    stored = versions(tmp_path)
    with pytest.raises(UserError, match="no number"):
        stored.current(["rooms"])  # that one is there to stay
    write_rooms(tmp_path, "2,hall,,,")
    version = stored.current(["rooms"])["rooms"]
    assert [row["plug"] for row in rows(stored, version)] == [3]


def test_a_table_that_never_stays_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rooms(tmp_path, "1,kitchen,,,")
    load = stored_relations.load

    def changing(database: Database, relation: Any, table: str) -> None:
        load(database, relation, table)
        file = tmp_path / "rooms" / "a.csv"
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))

    monkeypatch.setattr(stored_relations, "load", changing)
    monkeypatch.setattr(table_versions, "ATTEMPTS", 3)
    with pytest.raises(ExternalError) as raised:
        versions(tmp_path).current(["rooms"])
    assert raised.value.code == "table-changes"
    assert not list((tmp_path / "state").rglob("[!_]*.parquet"))


def test_what_is_wrong_with_a_table_is_said(tmp_path: Path) -> None:
    def code(text: str) -> str:
        with pytest.raises(PlaitError) as raised:
            versions(tmp_path, text).current(["rooms"])
        return raised.value.code

    assert code(FILES) == "no-such-path"
    assert code("CREATE TABLE rooms (plug INT);") == "no-stored-data"
    assert code(STORED) == "no-such-path"
    (tmp_path / "rooms").mkdir()
    assert code(FILES) == "no-files"
    write_rooms(tmp_path, "x,kitchen,,,")
    assert code(FILES) == "stored-value"
    write_rooms(tmp_path, "1,kitchen,,,")
    (tmp_path / "state").write_text("in the way")
    assert code(FILES) == "table-not-kept"


def test_only_versions_in_use_are_kept(tmp_path: Path) -> None:
    stored = versions(tmp_path)
    stored.keep_only({})
    seen = []
    for number in range(3):
        write_rooms(tmp_path, f"{number},kitchen,,,")
        seen.append(stored.current(["rooms"])["rooms"])
    stored.path("rooms", "_draft-of-a-crash").touch()
    stored.keep_only({"rooms": {seen[0], seen[2]}})
    assert {file.stem for file in (tmp_path / "state").rglob("*.parquet")} == {seen[0], seen[2]}


def test_a_database_is_seen_as_it_changes(tmp_path: Path, reads: list[str]) -> None:
    file = tmp_path / "house.duckdb"
    change_database(file, "CREATE TABLE rooms (Plug INT, room VARCHAR, more INT)")
    stored = versions(tmp_path, STORED)
    first = stored.current(["rooms"])["rooms"]
    change_database(file, "INSERT INTO rooms VALUES (1, 'kitchen', 7)")
    second = stored.current(["rooms"])["rooms"]
    assert stored.current(["rooms"])["rooms"] == second
    assert (rows(stored, first), rows(stored, second)) == ([], [{"plug": 1, "room": "kitchen"}])
    assert reads == ["Rooms"] * 2


def test_a_database_that_somebody_writes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "house.duckdb"
    change_database(file, "CREATE TABLE rooms (plug INT, room VARCHAR)")
    monkeypatch.setattr(database_tables, "PATIENCE_S", 0.0)
    with duckdb.connect(file), pytest.raises(ExternalError) as raised:
        versions(tmp_path, STORED).current(["rooms"])
    assert raised.value.code == "database-held"
    assert "rename" in raised.value.hint

    writer = duckdb.connect(file)
    monkeypatch.setattr(database_tables, "PATIENCE_S", 60.0)
    monkeypatch.setattr("time.sleep", lambda _: writer.close())
    assert versions(tmp_path, STORED).current(["rooms"])
