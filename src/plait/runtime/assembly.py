"""Puts together what a run consists of: for each fragment its computation, sinks and journal, for each stream
that several fragments read its intake.

Nothing runs yet, and what cannot run is found here: a folder of results that is somebody else's, before Spark
is there; a source that Spark does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Way
from plait.deployment.row_by_row import row_by_row
from plait.engines.duckdb import Database
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.engines.table_versions import TableVersions
from plait.errors import UserError
from plait.runtime import results_folder
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.fragment_run import Computation, FragmentRun, counts_of
from plait.runtime.intake import Intake
from plait.runtime.journal import Journal, read_totals
from plait.runtime.outlets import Outlet, check_places, record
from plait.runtime.publishing import Publisher
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import Sink, WriteFrame, sink_for
from plait.runtime.state import ANEW, FragmentFolder, StateFolder
from plait.runtime.stream_log import StreamLog
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Session
from plait.spark.native import NativeComputation
from plait.spark.sink import FrameWriter
from plait.spark.sources import Sources
from plait.spark.trunk_files import TrunkFiles
from plait.spark.trunk_rows import TrunkRows
from plait.spark.woven import WovenComputation
from plait.workload import Workload


@dataclass(frozen=True)
class Assembly:
    """Logs and intakes by stream, outlets by query, by their keys. Streams that one fragment alone reads
    have no intake."""

    fragments: tuple[FragmentRun, ...]
    logs: Mapping[str, StreamLog]
    intakes: Mapping[str, Intake]
    outlets: Mapping[str, Outlet]


def assemble(
    workload: Workload,
    fragments: Iterable[Fragment],
    outlets: Mapping[str, Outlet],
    state: StateFolder,
    session: Session,
    sources: Sources,
    opened: ExitStack,
) -> Assembly:
    """All fragments and intakes over the state. What has to be closed goes to `opened`."""
    catalog = workload.catalog
    journals: list[Journal] = []
    tables = TablesInUse(TableVersions(catalog, state.tables), journals)
    write_frame = FrameWriter(session)
    read_by = state.manifest.declarations.read_by
    runs: list[FragmentRun] = []
    logs: dict[str, StreamLog] = {}
    for fragment in fragments:
        folder = state.fragment(fragment.name)
        journals.append(_opened(Journal(folder.journal), opened))
        publisher = _publisher(workload, fragment, outlets, state.id, write_frame, opened)
        computation = _computation(fragment, catalog, sources, folder, session, opened)
        own = [key for key in fragment.streams if read_by.get(key) == fragment.name]
        logs |= {key: _log(key, catalog, sources, state, folder.checkpoint, opened) for key in own}
        runs.append(
            FragmentRun(
                fragment,
                sources,
                computation,
                folder,
                publisher,
                journals[-1],
                tables,
                {key: logs[key] for key in own},
                () if isinstance(computation, TrunkFiles) else fragment.streams,
            )
        )
    intakes: dict[str, Intake] = {}
    for key in sorted({key for run in runs for key in run.streams} - logs.keys()):
        checkpoint = state.stream(key).checkpoint
        logs[key] = _log(key, catalog, sources, state, checkpoint, opened)
        intakes[key] = Intake(logs[key], sources, checkpoint)
    # Now that all folders of results are there, readers may learn of them.
    record(state.path, outlets.values())
    return Assembly(tuple(runs), logs, intakes, outlets)


def _log(
    key: str, catalog: Catalog, sources: Sources, state: StateFolder, checkpoint: Path, opened: ExitStack
) -> StreamLog:
    """The log of a stream that is read under that checkpoint."""
    folder = state.stream(key)
    journal = _opened(Journal(folder.journal), opened)
    return StreamLog(catalog.stream(key), folder, journal, sources.files_read(key, checkpoint))


def _publisher(
    workload: Workload,
    fragment: Fragment,
    outlets: Mapping[str, Outlet],
    state_id: str,
    write_frame: WriteFrame,
    opened: ExitStack,
) -> Publisher:
    """Sinks for all queries of a fragment. Folders of results are claimed for them."""
    own: dict[str, Sink] = {}
    sharing: dict[Path, list[Outlet]] = {}
    for result in fragment.results:
        outlet = outlets[result.query.lower()]
        if outlet.is_shared:
            assert outlet.folder is not None, outlet.query
            sharing.setdefault(outlet.folder, []).append(outlet)
        else:
            sink = sink_for(workload.query(result.query).sink, outlet, state_id, write_frame)
            own[result.query] = _opened(sink, opened)
    shared = []
    for folder, members in sharing.items():
        first, names = members[0], [outlet.query for outlet in members]
        results_folder.claim(folder, state_id, first.owner)
        shared.append((frozenset(names), SharedSink(folder, first.columns, first.types, names)))
    return Publisher(own, shared)


class _Closing(Protocol):
    def close(self) -> None: ...


_Closed = TypeVar("_Closed", bound=_Closing)


def _opened(value: _Closed, opened: ExitStack) -> _Closed:
    opened.callback(value.close)
    return value


def _computation(
    fragment: Fragment,
    catalog: Catalog,
    sources: Sources,
    folder: FragmentFolder,
    session: Session,
    opened: ExitStack,
) -> Computation:
    if fragment.way is Way.NATIVE:
        return NativeComputation(fragment, catalog, sources, folder.beats)
    if fragment.way is Way.WOVEN:
        return WovenComputation(fragment, catalog, sources, folder.beats, session)
    inputs = {each.stream.lower(): row_by_row(each.plan) for each in fragment.inputs}
    scans = {key: each.scan for key, each in inputs.items()}
    streams = {key: catalog.stream(key) for key in scans}
    queries = [SharedQuery(result.query, result.plan) for result in fragment.results]
    trunk = _opened(Trunk(queries, streams, scans, folder.database), opened)
    checkpoint = Checkpoint(folder.checkpoint)
    trunk.check_between(checkpoint.last_committed, checkpoint.last_planned)
    if all(map(sources.has_parquet_files, inputs)):
        reader = _opened(Database(), opened)
        return TrunkFiles(inputs, catalog, sources, folder.beats, folder.checkpoint, reader, trunk)
    return TrunkRows(inputs, catalog, sources, folder.beats, trunk)


def check_results(state: StateFolder, fragments: Iterable[Fragment], outlets: Mapping[str, Outlet]) -> None:
    """Refuse folders with rows of others, and others than those that hold the rows of before."""
    check_places(state.path, state.id, outlets.values())
    for fragment in fragments:
        totals = read_totals(state.fragment(fragment.name).journal)
        for result in fragment.results:
            _check_folder(state, outlets[result.query.lower()], counts_of(result).rows_of(totals))


def _check_folder(state: StateFolder, outlet: Outlet, rows: int) -> None:
    if outlet.folder is not None:
        results_folder.check(outlet.folder, state.id, outlet.owner)
        if rows and not state.is_new and not (outlet.folder / results_folder.MARKER).exists():
            raise UserError(
                "results-gone",
                f"the results of `{outlet.query}` that the state knows of are not in {outlet.folder}",
                hint=f"bring the folder back to go on; or {ANEW}",
            )
