"""Where the rows of each query come out, and where that is written down.

`STATE/results.json` holds it for readers of results, who need neither the SQL nor Spark: the folder of each
query, and its columns with their types, so that a query without rows yet has its columns too. A run writes
it before the first batch. Going on with other folders than before would tear the results in two, so that is
refused, unless the folders were moved.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

from plait.catalog import AS_THEY_ARE, Keeping, Sink, SinkKind
from plait.deployment.fragments import Fragment
from plait.durable_files import write_durably
from plait.errors import ExternalError, UserError, closest
from plait.expressions.keeping import kept
from plait.expressions.types import Type, parse_type
from plait.runtime.folder_names import folder_name, shared_folder_name
from plait.runtime.results_folder import batch_files, owner_of
from plait.workload import Query, Workload

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "results.json"


@dataclass(frozen=True)
class Outlet:
    """`destination` says in words where the rows go; `folder` is where, if they are files of ours. In one
    that `is_shared`, the rows of other queries are too, and a column says whose they are. `writers` are the
    fragments whose batches files are numbered by, each with its series; `keeping` is what the query asks for
    its files."""

    query: str
    kind: SinkKind
    destination: str
    folder: Path | None
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    is_shared: bool = False
    writers: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    keeping: Keeping = AS_THEY_ARE

    def series_of(self, fragment: str) -> int:
        """The series that a fragment writes now."""
        return max((series for series, name in self.writers.items() if name == fragment), default=0)

    def written_by(self, fragment: str, series: int) -> Outlet:
        """The same, to which a fragment writes as well."""
        return replace(self, writers={**self.writers, series: fragment})

    @property
    def owner(self) -> str:
        """Whose the folder is: the query's, or that of all that share it."""
        assert self.folder is not None, self.query
        return self.folder.name if self.is_shared else self.query

    @property
    def schema(self) -> pa.Schema:
        from plait.expressions.arrow import arrow_schema  # Arrow is slow to load where nothing is read

        return arrow_schema(self.columns, self.types)

    def below(self, results: Path, sink: Sink) -> Outlet:
        """The same with that folder for all results, if the sink names no other."""
        if self.folder is None or sink.target is not None:
            return self
        folder = results / self.folder.name
        return replace(self, folder=folder.absolute(), destination=str(folder))

    def words(self, sink: Sink) -> str:
        """Where rows go, and how often each is there."""
        shared = ", with those of other queries" if self.is_shared else ""
        return f"results go to {self.destination}{shared}: {guarantee(sink)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "sink": self.kind,
            "destination": self.destination,
            "folder": None if self.folder is None else str(self.folder),
            "columns": list(self.columns),
            "types": [str(type_) for type_ in self.types],
            "shared": self.is_shared,
            "writers": {str(series): name for series, name in self.writers.items()},
            "keeping": vars(self.keeping),
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
            bool(entry["shared"]),
            {int(series): str(name) for series, name in entry["writers"].items()},
            Keeping(**entry["keeping"]),
        )


def outlets_of(
    workload: Workload,
    fragments: Iterable[Fragment],
    results: Path,
    known: Mapping[str, Outlet] = MappingProxyType({}),
) -> Mapping[str, Outlet]:
    """Where the rows of all queries come out, by key; `results` is the folder of those that name none.

    Outlets that are `known` stay as they are, of queries that are not there any more too.
    """
    found = dict(known)
    in_use = {each.folder.name for each in known.values() if each.is_shared and each.folder is not None}
    for fragment in fragments:
        names = [result.query for result in fragment.results if result.query.lower() not in known]
        queries = [workload.query(name) for name in names]
        shared = {query.name: _shared_name(query, fragment) for query in queries}
        sharing = Counter(shared.values())
        for query in queries:
            name = shared[query.name]
            is_alone = name is None or (sharing[name] == 1 and name not in in_use)
            place = None if name is None or is_alone else results / name
            found[query.name.lower()] = _outlet(query, fragment.name, place, results)
    return found


def _shared_name(query: Query, fragment: Fragment) -> str | None:
    """The folder that the query shares with those of its fragment whose columns are the same, if any are. How
    much there is of a query can be said of a folder of its own."""
    sink = query.sink
    if sink.kind is not SinkKind.PARQUET or sink.target is not None or sink.keeping.size_bytes is not None:
        return None
    return shared_folder_name(fragment.name, query.columns, query.plan.types)


def _outlet(query: Query, fragment: str, shared: Path | None, results: Path) -> Outlet:
    sink, types = query.sink, query.plan.types
    folder = shared
    if shared is None and sink.kind.writes_files:
        folder = results / folder_name(query.name) if sink.target is None else Path(sink.target)
    return Outlet(
        query.name,
        sink.kind,
        _destination(sink) if folder is None else str(folder),
        None if folder is None else folder.absolute(),
        query.columns,
        types,
        shared is not None,
        {0: fragment},
        sink.keeping,
    )


def _destination(sink: Sink) -> str:
    """Where rows go that are no files of ours, in words."""
    match sink.kind:
        case SinkKind.CONSOLE:
            return "the console"
        case SinkKind.MEMORY:
            return "memory"
        case SinkKind.SPARK:
            place = "" if sink.target is None else f" {sink.target}"
            return f"Spark's {sink.format}{place}"
        case _:
            raise AssertionError(sink.kind)


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
    entries = ",\n".join(map(_entry, outlets))
    try:
        write_durably(state / FILE, f"{{\n{entries}\n}}\n".encode())
    except OSError as error:
        raise ExternalError("state-folder", f"cannot write {state / FILE}: {error.strerror}") from None


@kept
def _entry(outlet: Outlet) -> str:
    key, value = outlet.query.lower(), outlet.to_json()
    return f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"


def _check_place(before: Outlet, now: Outlet, state_id: str) -> None:
    if now.folder == before.folder or before.folder is None or not batch_files(before.folder):
        return
    if now.folder is not None:
        owner = owner_of(now.folder)
        if owner is not None and owner.is_same(state_id, now.owner) and batch_files(now.folder):
            return  # moved, or copied
    raise UserError(
        "results-elsewhere",
        f"the results of `{now.query}` so far are in {before.folder}, not in {now.destination}",
        hint=f"go on there with --results {quote(str(before.folder.parent))}, "
        "or move the folder and start again",
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
            hint="was it written by another version of Plait? bring back a copy of the state folder",
        ) from None
    if results is None:
        return found
    return {key: _moved(each, results) for key, each in found.items()}


def find(state: Path, query: str, results: Path | None = None) -> Outlet:
    """The outlet of one query, whatever the case of its name. `name` is the last that was added under that
    name, `name#1` the first."""
    found = recorded(state, results)
    key = _last_of(query.lower(), found)
    if key not in found:
        names = [each.query for each in found.values()]
        raise UserError(
            "unknown-query", f"there is no query `{query}` in {state}", hint=closest(query, names)
        )
    return found[key]


def _last_of(name: str, found: Mapping[str, Outlet]) -> str:
    """Which query is meant: of several that had a name one after the other the last, unless it is numbered.

    >>> _last_of("a", dict.fromkeys(["a", "a#2", "b"])), _last_of("a#1", dict.fromkeys(["a", "a#2"]))
    ('a#2', 'a')
    """
    if name.endswith("#1") and name not in found:
        return name.removesuffix("#1")
    number = 2
    while f"{name}#{number}" in found:
        number += 1
    return name if number == 2 else f"{name}#{number - 1}"


def _moved(outlet: Outlet, results: Path) -> Outlet:
    if outlet.folder is None:
        return outlet
    folder = results / (outlet.folder.name if outlet.is_shared else folder_name(outlet.query))
    return replace(outlet, folder=folder, destination=str(folder)) if folder.is_dir() else outlet
