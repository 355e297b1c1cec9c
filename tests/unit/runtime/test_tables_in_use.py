"""Versions of tables: those of the batch that may run again are kept, all others are let go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from plait.runtime.journal import Journal
from plait.runtime.tables_in_use import TablesInUse


class Versions:
    def __init__(self) -> None:
        self.now = 0
        self.kept: Mapping[str, Collection[str]] = {}

    def current(self, tables: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(tables, f"v{self.now}")

    def path(self, table: str, version: str) -> Path:
        return Path(table) / version

    def keep_only(self, in_use: Mapping[str, Collection[str]]) -> None:
        self.kept = {table: set(versions) for table, versions in in_use.items()}


def test_batches_see_the_tables_they_began_with(tmp_path: Path) -> None:
    versions = Versions()
    journals = [Journal(tmp_path / "a"), Journal(tmp_path / "b")]
    tables = TablesInUse(versions, journals)
    first, second = journals
    assert tables.begin(first, 0, ["rooms"]) == {"rooms": Path("rooms/v0")}
    assert tables.begin(second, 0, ["rooms"]) == {"rooms": Path("rooms/v0")}
    versions.now = 1
    assert tables.begin(first, 0, ["rooms"]) == {"rooms": Path("rooms/v0")}
    assert tables.begin(first, 1, ["rooms"]) == {"rooms": Path("rooms/v1")}
    assert versions.kept == {"rooms": {"v0", "v1"}}
    assert tables.begin(second, 1, ["rooms"]) == {"rooms": Path("rooms/v1")}
    assert versions.kept == {"rooms": {"v1"}}
    for journal in journals:
        journal.close()


def test_a_query_without_tables_begins_all_the_same(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    assert TablesInUse(Versions(), [journal]).begin(journal, 3, []) == {}
    assert journal.last_begun == 3
    journal.close()
