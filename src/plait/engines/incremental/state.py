"""The state of queries in a DuckDB file: the stores, how far each stream has come, and the batches done.

Everything that a batch changes is changed in one transaction, so the file always is as after some batch. The
file says which format it has and which plan it belongs to; any other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from plait.batches import Outcome
from plait.engines.duckdb import Database
from plait.errors import ExternalError

FORMAT = 6

# Batches whose outcomes are remembered: no fewer than Spark keeps in its checkpoint.
REMEMBERED_BATCHES = 100

_TABLES = """
CREATE TABLE plait_state (format INTEGER, plan VARCHAR);
CREATE TABLE batches (id BIGINT, seen_us VARCHAR, outcomes VARCHAR);
"""


@dataclass(frozen=True)
class Progress:
    """After a batch: its id, and the greatest event time (or beat) seen of each stream."""

    batch: int = -1
    seen_us: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class State:
    def __init__(self, path: Path, plan: str, tables: Iterable[str], memory_bytes: int) -> None:
        """Open the file, or make it by the statements `tables`. `plan` identifies what is computed."""
        self._path = path
        if not path.exists():
            _create(path, plan, tables, memory_bytes)
        try:
            self.database = Database(path, memory_bytes=memory_bytes)
        except ExternalError as error:
            raise self._unusable("the state of a query cannot be opened", error.detail) from None
        try:
            self._check(plan)
        except BaseException:
            self.database.close()
            raise

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
        return {query: Outcome(*values) for query, values in json.loads(text).items()}

    def record(self, batch: int, seen_us: Mapping[str, int], outcomes: Mapping[str, Outcome]) -> None:
        """Note a batch as done, within its transaction."""
        self.database.execute("DELETE FROM batches WHERE id <= $1", [batch - REMEMBERED_BATCHES])
        written = {
            query: [each.rows, dict(each.late_rows), each.watermark_us] for query, each in outcomes.items()
        }
        self.database.execute(
            "INSERT INTO batches VALUES ($1, $2, $3)",
            [batch, json.dumps(dict(seen_us)), json.dumps(written)],
        )

    def _check(self, plan: str) -> None:
        try:
            ((format_, stored_plan),) = self.database.fetch("SELECT format, plan FROM plait_state")
        except (ExternalError, ValueError):
            raise self._unusable("a file that should be the state of a query is none", "") from None
        if format_ != FORMAT:
            raise self._unusable(
                "the state of a query was written by another version of Plait",
                f"it has format {format_}, this version reads and writes format {FORMAT}",
            )
        if stored_plan != plan:
            raise self._unusable("the state of a query belongs to another plan", "")

    def _unusable(self, message: str, detail: str) -> ExternalError:
        where = f"in {self._path}"
        return ExternalError(
            "state",
            message,
            detail=f"{where}\n{detail}" if detail else where,
            hint="begin with a new state folder, or put back a copy of this one from before",
        )


def _create(path: Path, plan: str, tables: Iterable[str], memory_bytes: int) -> None:
    """Make the file beside its place and move it there when it is complete: there is never half of one."""
    draft = path.with_name(f"_draft-{path.name}")
    for rest in (draft, draft.with_name(f"{draft.name}.wal")):
        rest.unlink(missing_ok=True)
    with Database(draft, memory_bytes=memory_bytes) as database:
        database.execute(_TABLES)
        database.execute("INSERT INTO plait_state VALUES ($1, $2)", [FORMAT, plan])
        for statement in tables:
            database.execute(statement)
    draft.replace(path)
