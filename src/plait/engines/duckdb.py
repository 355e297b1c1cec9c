"""An in-memory DuckDB that behaves the same everywhere.

Fixed here, so that no environment changes a result or reaches out of the machine: the time zone is UTC,
nothing is installed or loaded from a network, nothing is spilled to the working directory, memory and threads
are bounded. Every error of DuckDB leaves this module as one of ours: running out of memory is
`InfeasibleError`, everything else `ExternalError`. Neither carries the SQL, in which secrets may be, nor the
error that it came from, which quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any

import duckdb

from plait.errors import ExternalError, InfeasibleError, PlaitError

DEFAULT_MEMORY_BYTES = 4 * 1024**3
DEFAULT_THREADS = 2


class Database:
    """One connection. Tables made in it live until `close`."""

    def __init__(self, *, threads: int = DEFAULT_THREADS, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self._numbers = count()
        try:
            self._connection = duckdb.connect(
                ":memory:",
                config={
                    "threads": threads,
                    "memory_limit": f"{memory_bytes}B",
                    "temp_directory": "",
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                    "allow_community_extensions": False,
                },
            )
            self._connection.execute("SET TimeZone = 'UTC'")
        except duckdb.Error as error:
            raise self._translated(error) from None

    def execute(self, sql: str, parameters: Sequence[object] | None = None) -> None:
        """Run a statement whose rows do not matter."""
        self.fetch(sql, parameters)

    def fetch(self, sql: str, parameters: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run a statement; its rows as Python values (NULL is None)."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except duckdb.Error as error:
            raise self._translated(error) from None

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
                f"DuckDB needs more than its {self.memory_bytes / 1024**3:.1f} GiB of memory",
                detail=detail.splitlines()[0],
                hint="use fewer rows, shorter ranges or longer slides",
            )
        return ExternalError("duckdb", "DuckDB could not run a statement", detail=detail)


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
