"""The state of queries in a DuckDB file: the stores, how far each stream has come, and the batches done.

Everything that a batch changes is changed in one transaction, so the file always is as after some batch. The
file says which format it has, and of which queries it is the state: any other format, and a query of a known
name with another plan, are refused. Queries may come and go: tables are made for those that come, and those
that nobody needs any more are let go, which is another step, as it cannot be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from plait.batches import Failed, Outcome
from plait.engines.duckdb import Database
from plait.errors import ExternalError

FORMAT = 7

# Batches whose outcomes are remembered: no fewer than Spark keeps in its checkpoint.
REMEMBERED_BATCHES = 100

_TABLES = """
CREATE TABLE plait_state (format INTEGER);
CREATE TABLE queries (name VARCHAR, plan VARCHAR, after_us BIGINT, part VARCHAR);
CREATE TABLE batches (id BIGINT, seen_us VARCHAR, outcomes VARCHAR);
"""


@dataclass(frozen=True)
class StateTable:
    """A table of rows, and its columns with their types. There may be others in the file, of before."""

    name: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class KnownQuery:
    """A query as the file knows it: the signature of its plan, the moment after which it sees rows, and the
    part that it has of what queries share, where there are several."""

    name: str
    plan: str
    after_us: int | None
    part: str | None = None


@dataclass(frozen=True)
class Progress:
    """After a batch: its id, and the greatest event time (or beat) seen of each stream."""

    batch: int = -1
    seen_us: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class State:
    def __init__(self, path: Path, memory_bytes: int, most_rows: int | None = None) -> None:
        """Open the file, or make one without queries. No result may have more than `most_rows`."""
        self._path = path
        self._most_rows = most_rows
        if not path.exists():
            _create(path, memory_bytes)
        try:
            self.database = self._opened(memory_bytes)
        except ExternalError as error:
            raise self._unusable("the state of a query cannot be opened", error.detail) from None
        try:
            self._check()
        except BaseException:
            self.database.close()
            raise

    def revive(self) -> None:
        """Open the file again if DuckDB has given it up, as it does after an error of its own."""
        try:
            self.database.execute("SELECT 1")
        except ExternalError:
            self.database.close()
            self.database = self._opened(self.database.memory_bytes)

    def _opened(self, memory_bytes: int) -> Database:
        return Database(self._path, memory_bytes=memory_bytes, most_rows=self._most_rows)

    def parts(self) -> dict[str, str]:
        """The parts of joins that queries have rows in."""
        return dict(self.database.fetch("SELECT name, part FROM queries WHERE part IS NOT NULL"))

    def _queries(self) -> dict[str, KnownQuery]:
        rows = self.database.fetch("SELECT name, plan, after_us, part FROM queries")
        return {name: KnownQuery(name, plan, after_us, part) for name, plan, after_us, part in rows}

    def check_queries(self, queries: Iterable[KnownQuery]) -> None:
        """Refuse other plans under known names, and a file of which nothing is known."""
        try:
            known = self._queries()
        except ExternalError as error:
            raise self._unusable("the state of a query cannot be read", error.detail) from None
        given = {query.name: query for query in queries}
        is_other = any(
            (known[name].plan, known[name].after_us) != (query.plan, query.after_us)
            for name, query in given.items()
            if name in known
        )
        if is_other or (known and given and not known.keys() & given.keys()):
            raise self._unusable("the state of a query belongs to another plan", "")

    def take_up(self, queries: Iterable[KnownQuery], tables: Iterable[StateTable]) -> None:
        """Have what these queries need, within a transaction; what others need stays."""
        there: dict[str, set[str]] = {}
        for table, column in self.database.fetch(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = current_database()"
        ):
            there.setdefault(table, set()).add(column)
        for table in tables:
            if table.name not in there:
                columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns.items())
                self.database.execute(f"CREATE TABLE {table.name} ({columns})")
                continue
            for name, type_ in table.columns.items():
                if name.strip('"').replace('""', '"') not in there[table.name]:
                    self.database.execute(f"ALTER TABLE {table.name} ADD COLUMN {name} {type_}")
        known = self._names()
        coming = [astuple(query) for query in queries if query.name not in known]
        names = [each.name for each in fields(KnownQuery)]
        with self.database.given(_table(names, coming)) as rows:
            self.database.execute(f"INSERT INTO queries SELECT {', '.join(names)} FROM {rows}")

    def keep_only(self, queries: Iterable[str], tables: Iterable[StateTable]) -> None:
        """Let go of what other queries needed."""
        gone = self._names() - {*queries}
        own = {"plait_state", "queries", "batches", *(table.name for table in tables)}
        found = self.database.fetch(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        )
        unneeded = [name for (name,) in found if name not in own]
        if not gone and not unneeded:
            return
        with (
            self.database.transaction(),
            self.database.given(_table(["name"], [(name,) for name in gone])) as rows,
        ):
            self.database.execute(f"DELETE FROM queries WHERE name IN (SELECT name FROM {rows})")
            for name in unneeded:
                self.database.execute(f"DROP TABLE {name}")

    def _names(self) -> set[str]:
        return {name for (name,) in self.database.fetch("SELECT name FROM queries")}

    def progress(self) -> Progress:
        ((batch,),) = self.database.fetch("SELECT max(id) FROM batches")
        if batch is None:
            return Progress()
        ((seen_us,),) = self.database.fetch("SELECT seen_us FROM batches WHERE id = $1", [batch])
        return Progress(batch, json.loads(seen_us))

    def check_next(self, batch: int, before: Progress) -> None:
        """Batches come one after the other: a file from which some are missing is an old copy."""
        if batch != before.batch + 1:
            raise self._unusable(
                "the state of a query is older than Spark's",
                f"it ends with batch {before.batch}, and batch {batch} is next",
            )

    def check_between(self, committed: int, planned: int) -> None:
        """A batch is done here after Spark has planned it, and before Spark commits it."""
        last = self.progress().batch
        if not committed <= last <= planned:
            age = "older" if last < committed else "newer"
            raise self._unusable(
                f"the state of a query is {age} than Spark's",
                f"it ends with batch {last}; Spark has planned up to {planned}, committed up to {committed}",
            )

    def outcomes(self, batch: int) -> Mapping[str, Outcome]:
        """What a batch gave that was done before; nothing is known any more of those long ago."""
        done = self.database.fetch("SELECT outcomes FROM batches WHERE id = $1", [batch])
        if not done:
            return {}
        ((text,),) = done
        return {query: _outcome(*values) for query, values in json.loads(text).items()}

    def record(self, batch: int, seen_us: Mapping[str, int], outcomes: Mapping[str, Outcome]) -> None:
        """Note a batch as done, within its transaction."""
        self.database.execute("DELETE FROM batches WHERE id <= $1", [batch - REMEMBERED_BATCHES])
        written = {query: _written(each) for query, each in outcomes.items()}
        self.database.execute(
            "INSERT INTO batches VALUES ($1, $2, $3)",
            [batch, json.dumps(dict(seen_us)), json.dumps(written)],
        )

    def _check(self) -> None:
        try:
            ((format_,),) = self.database.fetch("SELECT format FROM plait_state")
        except (ExternalError, ValueError):
            raise self._unusable("a file that should be the state of a query is none", "") from None
        if format_ != FORMAT:
            raise self._unusable(
                "the state of a query was written by another version of Plait",
                f"it has format {format_}, this version reads and writes format {FORMAT}",
            )

    def _unusable(self, message: str, detail: str) -> ExternalError:
        where = f"in {self._path}"
        return ExternalError(
            "state",
            message,
            detail=f"{where}\n{detail}" if detail else where,
            hint="begin with a new state folder, or put back a copy of this one from before",
        )


def _written(outcome: Outcome) -> list[object]:
    failed = {place: astuple(each) for place, each in outcome.failed.items()}
    return [outcome.rows, dict(outcome.late_rows), outcome.watermark_us, *([failed] if failed else [])]


def _outcome(
    rows: int, late: Mapping[str, int], watermark_us: int | None, failed: Mapping[str, Any] | None = None
) -> Outcome:
    found = {int(place): Failed(*values) for place, values in (failed or {}).items()}
    return Outcome(rows, late, watermark_us, found)


def _create(path: Path, memory_bytes: int) -> None:
    """Make the file beside its place and move it there when it is complete: there is never half of one."""
    draft = path.with_name(f"_draft-{path.name}")
    for rest in (draft, draft.with_name(f"{draft.name}.wal")):
        rest.unlink(missing_ok=True)
    with Database(draft, memory_bytes=memory_bytes) as database:
        database.execute(_TABLES)
        database.execute("INSERT INTO plait_state VALUES ($1)", [FORMAT])
    draft.replace(path)


def _table(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> pa.Table:
    types = {"after_us": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
