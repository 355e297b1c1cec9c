"""Where the rows of each query come out, and where that is written down.

`STATE/results.json` holds it for readers of results, who need neither the SQL nor Spark: the folder of each
query, and its columns with their types, so that a query without rows yet has its columns too. A run writes
it before the first batch. Going on with other folders than before would tear the results in two, so that is
refused, unless the folders were moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from plait.catalog import Sink, SinkKind
from plait.durable_files import write_durably
from plait.errors import ExternalError, UserError, closest
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import Type, parse_type
from plait.runtime.folder_names import folder_name
from plait.runtime.results_folder import batch_files, owner_of
from plait.workload import Query

FILE = "results.json"


@dataclass(frozen=True)
class Outlet:
    """`destination` says in words where the rows go; `folder` is where, if they are files of ours."""

    query: str
    kind: SinkKind
    destination: str
    folder: Path | None
    columns: tuple[str, ...]
    types: tuple[Type, ...]

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns, self.types)

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "sink": self.kind,
            "destination": self.destination,
            "folder": None if self.folder is None else str(self.folder),
            "columns": list(self.columns),
            "types": [str(type_) for type_ in self.types],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Outlet:
        return cls(
            str(entry["query"]),
            SinkKind(entry["sink"]),
            str(entry["destination"]),
            None if entry["folder"] is None else Path(entry["folder"]),
            tuple(map(str, entry["columns"])),
            tuple(map(parse_type, entry["types"])),
        )


def outlet_of(query: Query, results: Path) -> Outlet:
    """Where the rows of a query come out; `results` is the folder of the queries that name none."""
    sink = query.sink
    folder = folder_of(query, results).absolute() if sink.kind.writes_files else None
    return Outlet(query.name, sink.kind, destination(query, results), folder, query.columns, query.plan.types)


def folder_of(query: Query, results: Path) -> Path:
    """Where the result files of a query are: the folder that it names, or one of its own in `results`."""
    return results / folder_name(query.name) if query.sink.target is None else Path(query.sink.target)


def destination(query: Query, results: Path) -> str:
    """Where the rows go, in words."""
    match query.sink.kind:
        case SinkKind.PARQUET | SinkKind.JSON:
            return str(folder_of(query, results))
        case SinkKind.CONSOLE:
            return "the console"
        case SinkKind.MEMORY:
            return "memory"
        case SinkKind.SPARK:
            place = "" if query.sink.target is None else f" {query.sink.target}"
            return f"Spark's {query.sink.format}{place}"
        case _:
            assert_never(query.sink.kind)


def guarantee(sink: Sink) -> str:
    """How often each row is there for a reader, whatever crashes."""
    match sink.kind:
        case SinkKind.PARQUET | SinkKind.JSON:
            return "exactly once"
        case SinkKind.CONSOLE:
            return "at least once: a batch that a crash interrupts is printed again"
        case SinkKind.MEMORY:
            return "exactly once, and gone with the run"
        case SinkKind.SPARK if sink.is_delta:
            return "exactly once: Delta drops a batch that it has"
        case SinkKind.SPARK:
            return "at least once: a batch that a crash interrupts is written again"
        case _:
            assert_never(sink.kind)


def check_places(state: Path, state_id: str, outlets: Iterable[Outlet]) -> None:
    """Refuse to let rows come out elsewhere than those of before."""
    before = recorded(state) if (state / FILE).exists() else {}
    for outlet in outlets:
        if outlet.query.lower() in before:
            _check_place(before[outlet.query.lower()], outlet, state_id)


def record(state: Path, outlets: Iterable[Outlet]) -> None:
    """Write down where rows come out."""
    now = {outlet.query.lower(): outlet.to_json() for outlet in outlets}
    text = json.dumps(now, indent=1, ensure_ascii=False)
    try:
        write_durably(state / FILE, text.encode())
    except OSError as error:
        raise ExternalError("state-folder", f"cannot write {state / FILE}: {error.strerror}") from None


def _check_place(before: Outlet, now: Outlet, state_id: str) -> None:
    if now.folder == before.folder or before.folder is None or not batch_files(before.folder):
        return
    if now.folder is not None and owner_of(now.folder) == (state_id, now.query) and batch_files(now.folder):
        return  # moved, or copied
    raise UserError(
        "results-elsewhere",
        f"the results of `{now.query}` so far are in {before.folder}, not in {now.destination}",
        hint=f"go on there with --results {before.folder.parent}, or move the folder and start again",
    )


def recorded(state: Path, results: Path | None = None) -> Mapping[str, Outlet]:
    """The outlets of all queries of a state folder, by key. `results` says where the folders are that were
    moved since."""
    file = state / FILE
    try:
        entries = json.loads(file.read_bytes())
        found = {str(key): Outlet.from_json(entry) for key, entry in entries.items()}
    except FileNotFoundError:
        raise UserError(
            "no-state",
            f"{state} is no state folder of a run",
            hint="name the one that `plait run` writes to with --state DIR",
        ) from None
    except OSError as error:
        raise ExternalError("state-folder", f"cannot read {file}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(
            "state-damaged",
            f"{file} does not say where results are",
            hint="was it written by another version of Plait? remove it, and `plait run` writes it anew",
        ) from None
    if results is None:
        return found
    return {key: _moved(each, results / folder_name(key)) for key, each in found.items()}


def find(state: Path, query: str, results: Path | None = None) -> Outlet:
    """The outlet of one query, whatever the case of its name."""
    found = recorded(state, results)
    if query.lower() not in found:
        names = [each.query for each in found.values()]
        raise UserError(
            "unknown-query", f"there is no query `{query}` in {state}", hint=closest(query, names)
        )
    return found[query.lower()]


def _moved(outlet: Outlet, folder: Path) -> Outlet:
    if outlet.folder is None or not folder.is_dir():
        return outlet
    return replace(outlet, folder=folder, destination=str(folder))
