"""The state of a query in a DuckDB file: the stores, how far each stream has come, and the batches done.

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
from plait.engines.incremental.layout import Numbered, Store
from plait.errors import ExternalError
from plait.expressions.duckdb import type_to_duckdb

FORMAT = 2

# Several queries share a machine; what does not fit is spilled beside the file.
MEMORY_BYTES = 1024**3

# Batches whose outcomes are remembered: no fewer than Spark keeps in its checkpoint.
REMEMBERED_BATCHES = 100

_TABLES = """
CREATE TABLE plait_state (format INTEGER, plan VARCHAR);
CREATE TABLE batches (id BIGINT, result_rows BIGINT, late_rows VARCHAR, watermark_us BIGINT, seen_us VARCHAR);
"""


@dataclass(frozen=True)
class Progress:
    """After a batch: its id, the greatest event time (or beat) seen of each stream, the query's watermark."""

    batch: int = -1
    seen_us: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    watermark_us: int | None = None


class State:
    def __init__(self, path: Path, plan: str, stores: Iterable[Store]) -> None:
        """Open the file, or make it. `plan` identifies what is computed."""
        self._path = path
        if not path.exists():
            _create(path, plan, stores)
        try:
            self.database = Database(path, memory_bytes=MEMORY_BYTES)
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
        ((seen_us, watermark_us),) = self.database.fetch(
            "SELECT seen_us, watermark_us FROM batches WHERE id = $1", [batch]
        )
        return Progress(batch, json.loads(seen_us), watermark_us)

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

    def outcome(self, batch: int) -> Outcome:
        """What a batch gave that was done before; nothing is known any more of those long ago."""
        done = self.database.fetch(
            "SELECT result_rows, late_rows, watermark_us FROM batches WHERE id = $1", [batch]
        )
        if not done:
            return Outcome(0)
        ((rows, late_rows, watermark_us),) = done
        return Outcome(rows, json.loads(late_rows), watermark_us)

    def record(self, batch: int, seen_us: Mapping[str, int], outcome: Outcome) -> None:
        """Note a batch as done, within its transaction."""
        self.database.execute("DELETE FROM batches WHERE id <= $1", [batch - REMEMBERED_BATCHES])
        late_rows, seen = json.dumps(dict(outcome.late_rows)), json.dumps(dict(seen_us))
        self.database.execute(
            "INSERT INTO batches VALUES ($1, $2, $3, $4, $5)",
            [batch, outcome.rows, late_rows, outcome.watermark_us, seen],
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


def _create(path: Path, plan: str, stores: Iterable[Store]) -> None:
    """Make the file beside its place and move it there when it is complete: there is never half of one."""
    draft = path.with_name(f"_draft-{path.name}")
    for rest in (draft, draft.with_name(f"{draft.name}.wal")):
        rest.unlink(missing_ok=True)
    with Database(draft, memory_bytes=MEMORY_BYTES) as database:
        database.execute(_TABLES)
        database.execute("INSERT INTO plait_state VALUES ($1, $2)", [FORMAT, plan])
        for store in stores:
            columns = [f"c{k} {type_to_duckdb(type_)}" for k, type_ in enumerate(store.node.types)]
            numbers = ["number BIGINT"] if isinstance(store, Numbered) else []
            database.execute(f"CREATE TABLE {store.table} ({', '.join([*columns, 't BIGINT', *numbers])})")
    draft.replace(path)
