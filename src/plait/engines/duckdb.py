"""A DuckDB, in memory or in a file, that behaves the same everywhere.

Fixed here, so that no environment changes a result or reaches out of the machine: the time zone is UTC,
nothing is installed or loaded from a network, memory and threads are bounded. In memory, nothing is spilled;
a database in a file spills to a folder beside it. Every error of DuckDB leaves this module as one of ours:
running out of memory is `InfeasibleError`, everything else `ExternalError`, with the code `NO_SPACE` if the
disk is full. Neither carries the SQL, in which secrets may be, nor the error that it came from, which quotes
it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from plait.errors import ExternalError, InfeasibleError, PlaitError
from plait.quantity_text import bytes_text

NO_SPACE = "no-space"
DEFAULT_MEMORY_BYTES = 4 * 1024**3
DEFAULT_THREADS = 2
# How far the log of changes beside a file grows before it is put into the file.
_LOG_SIZE = "4MB"


class Database:
    """One connection. Tables made in it live until `close`, or in the file that `path` names. A result or a
    bounded table of more than `most_rows` is an error, and not computed to its end."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        threads: int = DEFAULT_THREADS,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        most_rows: int | None = None,
    ) -> None:
        self.memory_bytes = memory_bytes
        self.most_rows = most_rows
        self._numbers = count()
        try:
            self._connection = self._connected(path, threads)
        except duckdb.Error as error:
            raise self._translated(error) from None

    def _connected(self, path: Path | None, threads: int) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(
            ":memory:" if path is None else path,
            config={
                "threads": threads,
                "memory_limit": f"{self.memory_bytes}B",
                "temp_directory": "" if path is None else f"{path}.spill",
                "checkpoint_threshold": _LOG_SIZE,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_community_extensions": False,
            },
        )
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    def limit_memory(self, memory_bytes: int) -> None:
        if memory_bytes != self.memory_bytes:
            self.execute(f"SET memory_limit = '{memory_bytes}B'")
            self.memory_bytes = memory_bytes

    def execute(self, sql: str, parameters: Sequence[object] | None = None) -> None:
        """Run a statement whose rows do not matter."""
        self.fetch(sql, parameters)

    def change(self, sql: str) -> int:
        """Run a statement that inserts, deletes or makes a table; how many rows that are."""
        ((rows,),) = self.fetch(sql)
        return int(rows)

    def fetch(self, sql: str, parameters: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement; its rows as Python values (NULL is None)."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except duckdb.Error as error:
            raise self._translated(error) from None

    def fetch_arrow(self, sql: str) -> pa.Table:
        """Run a statement; its rows as Arrow has them."""
        try:
            table = self._connection.sql(self._bounded(sql)).to_arrow_table()
        except duckdb.Error as error:
            raise self._translated(error) from None
        self._check_rows(table.num_rows)
        return table

    def create_bounded(self, name: str, sql: str) -> int:
        """Make a temporary table of the rows of a statement; how many."""
        rows = self.change(f"CREATE OR REPLACE TEMP TABLE {name} AS {self._bounded(sql)}")
        self._check_rows(rows)
        return rows

    def drop_temporary(self, beginnings: Collection[str], others: Collection[str]) -> None:
        """Drop the temporary tables whose names begin like that, and not with a longer name of others."""
        if not beginnings:
            return
        known = sorted({*beginnings, *others}, key=len, reverse=True)
        for (name,) in self.fetch("SELECT table_name FROM duckdb_tables() WHERE temporary"):
            if next((each for each in known if name.startswith(each)), None) in beginnings:
                self.execute(f"DROP TABLE temp.{quoted(name)}")

    def _bounded(self, sql: str) -> str:
        return sql if self.most_rows is None else f"FROM ({sql}) LIMIT {self.most_rows + 1}"

    def _check_rows(self, rows: int) -> None:
        if self.most_rows is not None and rows > self.most_rows:
            raise too_many_rows(self.most_rows)

    @contextmanager
    def given(self, rows: pa.Table) -> Iterator[str]:
        """A name by which statements can read the rows of an Arrow table."""
        name = f"given_{next(self._numbers)}"
        self._connection.register(name, rows)
        try:
            yield name
        finally:
            # What DuckDB gave up hides no error, and goes with the transaction.
            with suppress(duckdb.Error):
                self._connection.unregister(name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within take effect together, or none of them if an error leaves the block."""
        self.execute("BEGIN TRANSACTION")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # A transaction that DuckDB gave up itself is over already.
            with suppress(duckdb.Error):
                self._connection.execute("ROLLBACK")
            raise

    def unused_name(self, meaning: str) -> str:
        """A quoted table name that nobody else has."""
        return quoted(f"{meaning}#{next(self._numbers)}")

    @contextmanager
    def temporary(self, meaning: str) -> Iterator[str]:
        """A name for a table that is gone afterwards, if somebody made it."""
        name = self.unused_name(meaning)
        try:
            yield name
        finally:
            self.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _translated(self, error: duckdb.Error) -> PlaitError:
        detail = re.split(r"\n\nLINE \d+:", str(error))[0].strip()
        if isinstance(error, duckdb.OutOfMemoryException):
            return InfeasibleError(
                "memory",
                f"DuckDB needs more than its {bytes_text(self.memory_bytes)} of memory",
                detail=detail.splitlines()[0],
                hint="use fewer rows, shorter ranges or longer slides",
            )
        if os.strerror(ENOSPC) in detail:
            return ExternalError(
                NO_SPACE,
                "the disk is full",
                detail=detail,
                hint="make room and start again: no row is lost or doubled",
            )
        return ExternalError("duckdb", "DuckDB could not run a statement", detail=detail)


def too_many_rows(most_rows: int) -> InfeasibleError:
    return InfeasibleError(
        "too-many-rows",
        f"a micro-batch gives more than {most_rows:,} rows at once",
        hint="join on more, or over shorter ranges; let batches be smaller (files_per_batch);\n"
        "or allow more with --most-rows",
    )


def quoted(name: str) -> str:
    """A name as a quoted identifier.

    >>> quoted("a b")
    '"a b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text as a quoted literal.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
