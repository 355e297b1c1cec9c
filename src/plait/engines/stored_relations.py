"""The rows of a stream or table that are there to be read as a whole, wherever its connector has them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from plait.catalog import Relation, Stream
from plait.engines import database_tables, stored_files
from plait.engines.data_errors import described
from plait.engines.duckdb import Database, quoted
from plait.engines.stored_types import select_items
from plait.errors import UnsupportedError, UserError, closest
from plait.generators import feed

_ELSEWHERE = "declare it WITH (connector = 'files', path = '…', format = 'parquet' | 'csv' | 'json')"


def is_stored(relation: Relation) -> bool:
    """Whether the relation's rows can be read as a whole."""
    match relation.connector:
        case "files" | "duckdb":
            return True
        case "generator":
            assert isinstance(relation, Stream)
            return _interval(relation) is not None
        case _:
            return False


def load(database: Database, relation: Relation, table: str, max_rows: int | None = None) -> None:
    """Create `table` with the relation's columns as `c0`, `c1`, …; with `max_rows` of the first so many."""
    match relation.connector:
        case "files":
            stored_files.load(database, relation, table, max_rows)
        case "duckdb":
            database_tables.load(database, relation, table, max_rows)
        case "generator":
            assert isinstance(relation, Stream)
            _generate(database, relation, table, max_rows)
        case _:
            raise _nothing_stored(relation)


def source_files(relation: Relation) -> list[Path]:
    """The files that the relation's rows are read from."""
    match relation.connector:
        case "files":
            return stored_files.data_files(relation)
        case "duckdb":
            file = database_tables.database_file(relation)
            log = file.with_name(f"{file.name}.wal")  # changes that are not in the file yet
            return [file, log] if log.exists() else [file]
        case _:
            raise _nothing_stored(relation)


def count(database: Database, relation: Relation) -> int:
    """How many rows of a table are stored; the values are not looked at."""
    if relation.connector == "duckdb":
        return database_tables.count(database, relation)
    return stored_files.count(database, relation)


def load_given(database: Database, relation: Relation, rows: pa.Table, table: str) -> None:
    """Create `table` in the same way from rows that somebody has as an Arrow table."""
    with database.given(rows) as given:
        items = select_items(
            relation,
            database.fetch(f"DESCRIBE SELECT * FROM {given}"),
            "in the given rows",
            lambda column, present: UserError(
                "stored-columns",
                f"column `{column.name}` of {described(relation)} is not in the given rows",
                hint=closest(column.name, present),
            ),
        )
        database.execute(f"CREATE TABLE {table} AS SELECT {items} FROM {given}")


def _nothing_stored(relation: Relation) -> UserError:
    if relation.connector == "spark":
        return UnsupportedError(
            "no-stored-data",
            f"{described(relation)} comes from Spark, and nothing of it is stored",
            hint=_ELSEWHERE,
        )
    return UserError("no-stored-data", f"{described(relation)} has no stored data", hint=_ELSEWHERE)


def _generate(database: Database, stream: Stream, table: str, max_rows: int | None) -> None:
    interval = _interval(stream)
    if interval is None:
        raise UnsupportedError(
            "no-stored-data",
            f"{described(stream)} has no end, or no beginning: there is no whole of its rows",
            hint="give it `start` and `end`, for example start = '2026-01-31 12:00:00', "
            "end = '2026-01-31 13:00:00'",
        )
    source = feed(stream)
    items = ", ".join(f"{quoted(column.name)} AS c{k}" for k, column in enumerate(stream.columns))
    load_given(database, stream, source.generator.schema.empty_table(), table)
    rows = 0
    for part in source.parts(*interval):
        taken = pa.Table.from_batches([part if max_rows is None else part.slice(0, max_rows - rows)])
        with database.given(taken) as given:
            database.execute(f"INSERT INTO {table} SELECT {items} FROM {given}")
        rows += taken.num_rows
        if rows == max_rows:
            return


def _interval(stream: Stream) -> tuple[int, int] | None:
    source = feed(stream)
    if source.start_us is None or source.end_us is None:
        return None
    return source.start_us, source.end_us
