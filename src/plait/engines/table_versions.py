"""Stored tables as of a moment: each version that a micro-batch has seen, kept as a Parquet file.

A batch that runs again after a crash has to see the tables that it saw first, whatever has become of them
since. So what a batch joins is never the table itself but a copy of the version that was there when the
batch began: `FOLDER/TABLE/VERSION.parquet`, its columns as declared.

The version is a digest of what the file system says about the table's files (names, sizes, times of change),
so that to find a table unchanged costs some calls of `stat`. Only a change that keeps all of them, the times
too, would not be seen.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from plait.catalog import Catalog, ColumnDefinition, Table
from plait.durable_files import flush_folder
from plait.engines import stored_relations
from plait.engines.data_errors import described
from plait.engines.duckdb import Database, quoted, text_literal
from plait.errors import ExternalError, PlaitError
from plait.expressions.types import Kind
from plait.failpoints import reach

NOT_KEPT = "table-not-kept"  # the code of the error if it is not the table that fails
# How often a table is read that changes while it is read.
ATTEMPTS = 20
# Changes that are no further apart than this may have the same time.
_CLOCK_STEP_NS = 20_000_000


class TableVersions:
    """The versions of a catalog's tables, below `folder`. Calls from several threads must not overlap."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self._catalog = catalog
        self._folder = folder

    def know(self, catalog: Catalog) -> None:
        """Keep versions of that catalog's tables, too: it has all that were there before."""
        self._catalog = catalog

    def current(self, tables: Iterable[str]) -> Mapping[str, str]:
        """The versions of the tables as they are now, each of which is stored if it is new."""
        return {name.lower(): self._current(self._catalog.table(name)) for name in tables}

    def path(self, table: str, version: str) -> Path:
        """The rows of a version that `current` gave."""
        return self._folder / table.lower() / f"{version}.parquet"

    def keep_only(self, in_use: Mapping[str, Collection[str]]) -> None:
        """Remove all other versions."""
        wanted = {self.path(table, version) for table, versions in in_use.items() for version in versions}
        for file in self._folder.glob("*/*.parquet"):
            if file not in wanted:
                file.unlink(missing_ok=True)

    def _current(self, table: Table) -> str:
        for _ in range(ATTEMPTS):
            version, changed_ns = _seen(table)
            if self.path(table.name, version).exists():
                return version
            _let_the_clock_step(changed_ns)
            draft = self.path(table.name, f"_draft-{version}")
            try:
                _write(table, draft)
            except PlaitError:
                if _seen(table)[0] == version:
                    raise
                continue  # it was being changed
            if _seen(table)[0] == version:
                draft.replace(self.path(table.name, version))
                flush_folder(draft.parent)  # before a journal names the version
                reach("table-stored")
                return version
        raise ExternalError(
            "table-changes",
            f"{described(table)} changes faster than it can be read",
            hint="write new rows to another file, or database, and rename that",
        )


def _seen(table: Table) -> tuple[str, int]:
    """The version of a table as it is now, and when its files were last changed."""
    schema = [(column.name, str(column.type), column.storage) for column in table.columns]
    reading = sorted((key, str(value)) for key, value in table.options.items() if key != "path")
    facts: list[tuple[object, ...]] = []
    changed_ns = 0
    for file in stored_relations.source_files(table):
        with suppress(FileNotFoundError):  # it was taken away just now
            status = file.stat()
            facts.append((file.name, status.st_size, status.st_mtime_ns, status.st_ino))
            changed_ns = max(changed_ns, status.st_mtime_ns)
    return hashlib.sha256(repr((schema, reading, facts)).encode()).hexdigest()[:20], changed_ns


def _let_the_clock_step(changed_ns: int) -> None:
    """Let a change that comes after the reading have a later time than the last one before it."""
    if 0 <= time.time_ns() - changed_ns < _CLOCK_STEP_NS:
        time.sleep(_CLOCK_STEP_NS / 1e9)


def _write(table: Table, draft: Path) -> None:
    """Copy the table as it is now into a Parquet file, and make sure that it is on the disk."""
    items = ", ".join(_item(f"c{index}", column) for index, column in enumerate(table.columns))
    with Database() as database, database.temporary("stored") as rows:
        stored_relations.load(database, table, rows)
        try:
            draft.parent.mkdir(parents=True, exist_ok=True)
            target = f"{text_literal(str(draft))} (FORMAT parquet)"
            database.execute(f"COPY (SELECT {items} FROM {rows}) TO {target}")
            with draft.open("rb+") as written:
                os.fsync(written.fileno())
        except (ExternalError, OSError) as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            detail = error.detail if isinstance(error, ExternalError) else str(error)
            raise ExternalError(
                NOT_KEPT, f"{described(table)} cannot be copied to {draft.parent}", detail=detail
            ) from None


def _item(value: str, column: ColumnDefinition) -> str:
    match column.type.kind:
        case Kind.DOUBLE:
            value = f"{value} + 0.0::DOUBLE"  # -0.0 becomes 0.0, as everywhere where data is read
        case Kind.TIMESTAMP:
            value = f"{value}::TIMESTAMPTZ"  # a moment in UTC, to Spark and Arrow too
    return f"{value} AS {quoted(column.name)}"
