"""Tables in DuckDB databases (`connector = 'duckdb'`), read with the declared schema.

A database is attached for reading, and only while it is read, so that whoever writes it can open it in
between. DuckDB lets nobody read what another process has open for writing: that is waited for, a little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from plait.catalog import Relation
from plait.engines.data_errors import described, missing_column, option, reason_of_duckdb, shown
from plait.engines.duckdb import Database, quoted, text_literal
from plait.engines.stored_types import select_items
from plait.errors import ExternalError, UserError, closest

PATIENCE_S = 5.0
_PAUSE_S = 0.05

# How DuckDB says that somebody else has the database open.
_HELD = ("Could not set lock on file", "Unique file handle conflict")

# In one process, a file is attached once at a time.
_attaching = Lock()


def database_file(relation: Relation) -> Path:
    """The file of the relation's database, which has to be there."""
    file = Path(option(relation, "path"))
    if not file.is_file():
        raise UserError(
            "no-such-path",
            f"the database of {described(relation)} is not there: {shown(relation, file)}",
            hint="`path` names the file of a DuckDB database",
        )
    return file


def load(database: Database, relation: Relation, table: str, max_rows: int | None = None) -> None:
    """Create `table` with the relation's columns as `c0`, `c1`, …; with `max_rows` of no more rows."""
    limit = "" if max_rows is None else f" LIMIT {max_rows}"
    with _attached(database, relation) as (file, stored):
        items = select_items(
            relation,
            database.fetch(f"DESCRIBE SELECT * FROM {stored}"),
            f"in {shown(relation, file)}",
            lambda column, present: missing_column(relation, column, file, present),
        )
        database.execute(f"CREATE TABLE {table} AS SELECT {items} FROM {stored}{limit}")


def count(database: Database, relation: Relation) -> int:
    """How many rows are stored; the values are not looked at."""
    with _attached(database, relation) as (_, stored):
        ((rows,),) = database.fetch(f"SELECT count(*) FROM {stored}")
    return int(rows)


@contextmanager
def _attached(database: Database, relation: Relation) -> Iterator[tuple[Path, str]]:
    """The database's file, and the name of the relation's table while it is attached."""
    file = database_file(relation)
    name = database.unused_name("attached")
    with _attaching:
        _attach(database, relation, file, name)
        try:
            yield file, f"{name}.main.{quoted(_stored_name(database, relation, file, name))}"
        except ExternalError as error:
            raise _unreadable(relation, file, error) from None
        finally:
            database.execute(f"DETACH {name}")


def _attach(database: Database, relation: Relation, file: Path, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            database.execute(f"ATTACH {text_literal(str(file))} AS {name} (READ_ONLY)")
            return
        except ExternalError as error:
            if not any(words in error.detail for words in _HELD):
                raise _unreadable(relation, file, error) from None
            if time.monotonic() > deadline:
                raise ExternalError(
                    "database-held",
                    f"the database of {described(relation)} is open for writing elsewhere: "
                    f"{shown(relation, file)}",
                    detail=_reason(relation, file, error),
                    hint="close it after each change, or write to another file and rename that",
                ) from None
        time.sleep(_PAUSE_S)


def _stored_name(database: Database, relation: Relation, file: Path, attached: str) -> str:
    """The table's name as the database spells it."""
    wanted = option(relation, "table") if "table" in relation.options else relation.name
    tables = [str(name) for (name,) in database.fetch(f"SHOW TABLES FROM {attached}")]
    for name in tables:
        if name.lower() == wanted.lower():
            return name
    raise UserError(
        "stored-table",
        f"the database of {described(relation)} has no table `{wanted}`",
        detail=f"in {shown(relation, file)}",
        hint=closest(wanted, tables) or "create it there, or name another with the option `table`",
    )


def _unreadable(relation: Relation, file: Path, error: ExternalError) -> UserError:
    return UserError(
        "unreadable-data",
        f"the data of {described(relation)} cannot be read as a DuckDB database: {shown(relation, file)}",
        detail=_reason(relation, file, error),
    )


def _reason(relation: Relation, file: Path, error: ExternalError) -> str:
    return reason_of_duckdb(relation, file, error.detail).partition(" See also ")[0]
