"""The journal of a streaming query: which micro-batches it began and finished, over which tables, and what
came of them.

It decides two things after a crash. A batch that is run again joins the versions of the tables that its
first attempt wrote down before it computed anything. And what is counted of a batch replaces what an earlier
attempt counted, so that totals are exact however often a batch runs.

It is an SQLite file: each entry is on the disk before the next step of the batch is taken, and other
processes can read it at any time. Batches that can no longer run again are folded into totals, so that it
stays small.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from plait.errors import ExternalError

# Spark runs at most its last batch again. The others that are kept are for whoever looks into the file.
KEPT_BATCHES = 20

# How far the log of changes beside the file grows, in pages of 4 kB: there are many journals.
_LOG_PAGES = 50

ROWS = "rows"  # as the name of a count: rows published, or read

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
  id INTEGER PRIMARY KEY, versions TEXT NOT NULL, counts TEXT, watermarks_us TEXT
);
CREATE TABLE IF NOT EXISTS folded (name TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS firsts (
  name TEXT PRIMARY KEY, batch INTEGER NOT NULL, at_us INTEGER NOT NULL, sample TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class First:
    """The first of what a count is of: the batch that had it, its event time, and what it is."""

    batch: int
    at_us: int
    sample: str


@dataclass(frozen=True)
class Totals:
    """Over all finished batches. `watermarks_us` are those of the last; `firsts` are by the names of counts,
    where there are some."""

    batches: int
    counts: Mapping[str, int]
    watermarks_us: Mapping[str, int]
    firsts: Mapping[str, First] = field(default_factory=lambda: MappingProxyType({}))


class Journal:
    """One journal, open for writing. Its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        with _readable(path):
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
                self._connection.executescript(_SCHEMA)
            except sqlite3.Error:
                self._connection.close()
                raise

    def begin(self, batch: int, versions: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
        """The versions of tables that the batch goes by: those it began with before, else those given now."""
        with self._transaction() as connection:
            found = connection.execute("SELECT versions FROM batches WHERE id = ?", (batch,)).fetchall()
            if found:
                recorded: dict[str, str] = json.loads(found[0][0])
                return recorded
            chosen = versions()
            connection.execute("INSERT INTO batches (id, versions) VALUES (?, ?)", (batch, _json(chosen)))
            return chosen

    def finish(
        self,
        batch: int,
        counts: Mapping[str, int],
        watermarks_us: Mapping[str, int],
        firsts: Mapping[str, First] = MappingProxyType({}),
    ) -> None:
        """What the batch gave. Of a batch that finished before, it is written over; what was the first in an
        earlier one stays that.

        Whoever keeps a journal names counts and watermarks as it likes.
        """
        with self._transaction() as connection:
            connection.execute(
                "UPDATE batches SET counts = ?, watermarks_us = ? WHERE id = ?",
                (_json({name: n for name, n in counts.items() if n}), _json(watermarks_us), batch),
            )
            connection.executemany(
                "INSERT INTO firsts VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                "at_us = excluded.at_us, sample = excluded.sample WHERE batch = excluded.batch",
                [(name, *astuple(first)) for name, first in firsts.items()],
            )
            _fold(connection, batch - KEPT_BATCHES)

    def totals(self) -> Totals:
        with self._lock, _readable(self.path):
            return _totals(self._connection)

    @property
    def last_begun(self) -> int | None:
        return self._greatest("SELECT max(id) FROM batches")

    @property
    def last_finished(self) -> int | None:
        return self._greatest("SELECT max(id) FROM batches WHERE counts IS NOT NULL")

    def versions_in_use(self) -> Mapping[str, str]:
        """The versions of the last batch, which may run again."""
        with self._lock, _readable(self.path):
            query = "SELECT versions FROM batches ORDER BY id DESC LIMIT 1"
            found = self._connection.execute(query).fetchall()
        return json.loads(found[0][0]) if found else {}

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _greatest(self, query: str) -> int | None:
        with self._lock, _readable(self.path):
            ((greatest,),) = self._connection.execute(query).fetchall()
        return None if greatest is None else int(greatest)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _readable(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def read_totals(path: Path) -> Totals:
    """What a journal says, while somebody else may be writing it."""
    if not path.exists():
        return Totals(0, {}, {})
    with _readable(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = TRUE")
            return _totals(connection)
        finally:
            connection.close()


def _totals(connection: sqlite3.Connection) -> Totals:
    # One statement, hence one moment: a batch that is being folded is in exactly one of the two tables.
    rows = connection.execute(
        "SELECT name, count, NULL, NULL FROM folded UNION ALL "
        "SELECT NULL, id, counts, watermarks_us FROM batches WHERE counts IS NOT NULL"
    ).fetchall()
    counts: Counter[str] = Counter()
    batches, last, watermarks_us = 0, -1, "{}"
    for name, number, batch_counts, batch_watermarks in rows:
        if name == _BATCHES:
            batches += number
        elif name is not None:
            counts[name] += number
        else:
            batches += 1
            counts.update(json.loads(batch_counts))
            if number > last:
                last, watermarks_us = number, batch_watermarks
    found = connection.execute("SELECT name, batch, at_us, sample FROM firsts").fetchall()
    firsts = {name: First(*values) for name, *values in found}
    return Totals(batches, counts, json.loads(watermarks_us), firsts)


_BATCHES = ""  # as the name of a count: how many batches were folded


def _fold(connection: sqlite3.Connection, through: int) -> None:
    old = connection.execute(
        "SELECT counts FROM batches WHERE id <= ? AND counts IS NOT NULL", (through,)
    ).fetchall()
    if not old:
        return
    totals = Counter({_BATCHES: len(old)})
    for (counts,) in old:
        totals.update(json.loads(counts))
    connection.executemany(
        "INSERT INTO folded VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
        totals.items(),
    )
    connection.execute("DELETE FROM batches WHERE id <= ?", (through,))


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(dict(value), sort_keys=True)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError) as error:
        raise ExternalError(
            "journal",
            f"the journal {path} cannot be used: {error}",
            hint="if the disk is full, make room; if the file is damaged, "
            "start anew with other --state and --results folders",
        ) from error
