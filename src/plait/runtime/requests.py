"""What somebody asks of a run through its state folder, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from plait.errors import Source, UserError
from plait.runtime.changes import Addition, Change
from plait.runtime.load import Load
from plait.runtime.merge_plan import Merged
from plait.runtime.tended import Tended
from plait.runtime.upkeep import Wish


class _Run(Protocol):
    def add(self, addition: Addition) -> Change: ...
    def drop(self, names: Sequence[str], *, sure: bool = False) -> Change: ...
    def merge(self) -> Merged: ...
    def compact(self, queries: Sequence[str], wish: Wish) -> Tended: ...
    def listed(self) -> list[dict[str, Any]]: ...
    def load(self) -> Load: ...
    def write_statistics(self) -> None: ...
    def stop(self) -> None: ...


def answered(run: _Run, request: Mapping[str, Any]) -> Any:
    match request:
        case {"do": "add", "name": str(name), "text": str(text), "folder": str(folder)}:
            return run.add(Addition(Source(name, text), Path(folder))).to_json()
        case {"do": "drop", "queries": [*names], "sure": bool(sure)}:
            return run.drop([str(name) for name in names], sure=sure).to_json()
        case {"do": "merge"}:
            return run.merge().to_json()
        case {"do": "list"}:
            return run.listed()
        case {"do": "compact", "queries": [*names], "wish": {}}:
            return run.compact([str(name) for name in names], Wish.from_json(request["wish"])).to_json()
        case {"do": "statistics"}:
            return run.load().to_json()
        case {"do": "write statistics"}:
            run.write_statistics()
            return None
        case {"do": "stop"}:
            run.stop()
            return None
        case _:
            raise UserError("unknown-request", "a running system does not know how to do that")
