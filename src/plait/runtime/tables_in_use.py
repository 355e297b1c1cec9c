"""Which versions of stored tables the batches of a run see, and which may still be needed.

A batch joins the tables as they are when it begins, and again the same if it runs again. Versions that no
journal's last batch names are let go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import Lock
from typing import Protocol

from plait.engines.table_versions import NOT_KEPT
from plait.errors import PlaitError
from plait.runtime.journal import Journal


class Versions(Protocol):
    """What `engines.table_versions` offers."""

    def current(self, tables: Collection[str]) -> Mapping[str, str]: ...
    def path(self, table: str, version: str) -> Path: ...
    def keep_only(self, in_use: Mapping[str, Collection[str]]) -> None: ...


class TablesInUse:
    """Shared by all queries of a run, which run their batches at the same time."""

    def __init__(self, versions: Versions, journals: list[Journal]) -> None:
        self._versions = versions
        self._journals = journals
        self._lock = Lock()

    def begin(
        self, journal: Journal, batch: int, tables: Collection[str], *, are_wanted: bool = True
    ) -> Mapping[str, Path]:
        """Begin a batch in its query's journal; the files of the tables that it sees. Where nobody wants to
        know what is in them, these are those of the batch before."""
        if not tables:
            journal.begin(batch, dict)
            return {}
        # A version must not be let go between being chosen and being written down.
        with self._lock:
            before = journal.versions_in_use()
            chosen = journal.begin(
                batch, lambda: self._versions.current(tables) if are_wanted or not before else before
            )
            if before and chosen != before:
                self._versions.keep_only(self._in_use())
        return {table: self._versions.path(table, version) for table, version in chosen.items()}

    def unreadable(self, tables: Collection[str]) -> dict[str, PlaitError]:
        """Those of the tables that cannot be read now, and why. One that cannot be kept is none of them: that
        is the trouble of the state folder, hence of all."""
        found: dict[str, PlaitError] = {}
        with self._lock:
            for table in tables:
                try:
                    self._versions.current([table])
                except PlaitError as error:
                    if error.code != NOT_KEPT:
                        found[table] = error
        return found

    def forget(self, journal: Journal) -> None:
        """No batch of that journal runs again."""
        with self._lock:
            self._journals.remove(journal)

    def _in_use(self) -> Mapping[str, Collection[str]]:
        in_use: dict[str, set[str]] = defaultdict(set)
        for journal in self._journals:
            for table, version in journal.versions_in_use().items():
                in_use[table].add(version)
        return in_use
