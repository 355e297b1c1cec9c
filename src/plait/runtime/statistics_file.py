"""The time series of what was observed, and what it is of: an SQLite file in the state folder.

A series has a slot for every ten seconds of the last ten minutes, for every minute of the last two hours, and
for every hour of the last week, in which something happened; beyond `MOST_BYTES` the oldest are dropped. So
the file stays small however long a system runs. Beside it are the plans of queries and the operators that
compute them, to be shown with the numbers.

Nothing depends on this file. If it is damaged, or cannot be written, it is begun anew or done without.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from plait.runtime.slots import Slot, together

FILE = "statistics.sqlite"
SLOT_SECONDS = 10
# Lengths of slots, and for how long those of that length are kept.
LEVELS = ((SLOT_SECONDS, 600), (60, 7_200), (3_600, 604_800))
MOST_BYTES = 32_000_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS slots (
  level INTEGER, begin_s INTEGER, fragment TEXT, content BLOB NOT NULL, PRIMARY KEY (level, begin_s, fragment)
);
CREATE TABLE IF NOT EXISTS documents (
  kind TEXT, name TEXT, content TEXT NOT NULL, PRIMARY KEY (kind, name)
);
"""


class StatisticsFile:
    """One file, to be written by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._described: dict[tuple[str, str], Any] = {}  # documents that are written as they are
        try:
            self._connection = _opened(path)
        except sqlite3.Error:
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                with suppress(OSError):
                    path.with_name(name).unlink()
            try:
                self._connection = _opened(path)
            except sqlite3.Error:
                self._connection = _opened(None)

    def put(self, slots: Mapping[tuple[int, str], Slot]) -> None:
        """Write slots of the shortest length, by when they begin and their fragment; those of before that are
        of the same time are written over."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO slots VALUES (0, ?, ?, ?)",
                [(begin_s, name, slot.to_bytes()) for (begin_s, name), slot in slots.items()],
            )

    def thin(self, now_s: float) -> None:
        """Put old slots together to longer ones, and drop the oldest."""
        with self._transaction() as connection:
            for level, (_, kept_s) in enumerate(LEVELS[:-1]):
                length_s = LEVELS[level + 1][0]
                until_s = (int(now_s) - kept_s) // length_s * length_s
                old = connection.execute(
                    "SELECT begin_s, fragment, content FROM slots WHERE level = ? AND begin_s < ? ORDER BY 1",
                    (level, until_s),
                ).fetchall()
                longer: dict[tuple[int, str], list[Slot]] = {}
                for begin_s, name, content in old:
                    key = (begin_s // length_s * length_s, name)
                    longer.setdefault(key, []).append(Slot.from_bytes(content))
                for (begin_s, name), slots in longer.items():
                    there = connection.execute(
                        "SELECT content FROM slots WHERE level = ? AND begin_s = ? AND fragment = ?",
                        (level + 1, begin_s, name),
                    ).fetchall()
                    whole = together([*(Slot.from_bytes(content) for (content,) in there), *slots])
                    connection.execute(
                        "INSERT OR REPLACE INTO slots VALUES (?, ?, ?, ?)",
                        (level + 1, begin_s, name, whole.to_bytes()),
                    )
                connection.execute("DELETE FROM slots WHERE level = ? AND begin_s < ?", (level, until_s))
            connection.execute("DELETE FROM slots WHERE begin_s < ?", (int(now_s) - LEVELS[-1][1],))
            connection.execute(
                "DELETE FROM slots WHERE rowid IN (SELECT rowid FROM (SELECT rowid, "
                "sum(length(content)) OVER (ORDER BY begin_s DESC, rowid) AS bytes FROM slots) "
                "WHERE bytes > ?)",
                (MOST_BYTES,),
            )

    def describe(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Write documents of a kind, by name, that are not written like that."""
        new = {
            (kind, name): own for name, own in documents.items() if self._described.get((kind, name)) != own
        }
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)",
                [(*key, json.dumps(document)) for key, document in new.items()],
            )
            self._described |= new

    def forget_but(self, kind: str, names: Mapping[str, object]) -> None:
        """Drop the documents of a kind of what is there no more."""
        with self._transaction() as connection:
            known = connection.execute("SELECT name FROM documents WHERE kind = ?", (kind,)).fetchall()
            gone = [(kind, name) for (name,) in known if name not in names]
            connection.executemany("DELETE FROM documents WHERE kind = ? AND name = ?", gone)
            for key in gone:
                self._described.pop(key, None)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. What cannot be written, on a full disk, is done without."""
        try:
            with self._connection as connection:
                yield connection
        except (sqlite3.Error, zlib.error, ValueError):
            self._described.clear()


def read(path: Path) -> tuple[dict[tuple[int, str], Slot], dict[str, dict[str, Any]]]:
    """The recent slots of a file, by when they begin and their fragment, and its documents by kind and name,
    while somebody else may be writing it; nothing of a file that is not there, or damaged."""
    documents: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return {}, documents
    try:
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA query_only = TRUE")
            for kind, name, content in connection.execute("SELECT kind, name, content FROM documents"):
                documents.setdefault(kind, {})[name] = json.loads(content)
            return _recent(connection), documents
        finally:
            connection.close()
    except (sqlite3.Error, zlib.error, ValueError):
        return {}, {}


def _opened(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # the last seconds may be lost, which hurts nobody
        connection.executescript(_SCHEMA)
        connection.execute("SELECT count(*) FROM slots").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _recent(connection: sqlite3.Connection) -> dict[tuple[int, str], Slot]:
    rows = connection.execute(
        "SELECT begin_s, fragment, content FROM slots WHERE level = 0 ORDER BY begin_s"
    ).fetchall()
    return {(begin_s, name): Slot.from_bytes(content) for begin_s, name, content in rows}
