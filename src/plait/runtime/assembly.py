"""Puts together what a run consists of: for each query its computation, sink and journal, for each stream
its intake.

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
from plait.engines.incremental import IncrementalQuery
from plait.engines.table_versions import TableVersions
from plait.errors import UserError
from plait.runtime import outlets, results_folder
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.fragment_run import Computation, FragmentRun
from plait.runtime.intake import Intake
from plait.runtime.journal import ROWS, Journal, read_totals
from plait.runtime.sinks import sink_for
from plait.runtime.state import ANEW, QueryFolder, StateFolder
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Session
from plait.spark.handover import Handover
from plait.spark.native import NativeComputation
from plait.spark.sink import FrameWriter
from plait.spark.sources import Sources
from plait.workload import Query, Workload


@dataclass(frozen=True)
class Assembly:
    """By key."""

    queries: Mapping[str, FragmentRun]
    intakes: Mapping[str, Intake]


def assemble(
    workload: Workload,
    fragments: Iterable[Fragment],
    state: StateFolder,
    results: Path,
    session: Session,
    sources: Sources,
    opened: ExitStack,
) -> Assembly:
    """All queries and intakes over the state. What has to be closed goes to `opened`."""
    catalog = workload.catalog
    declared = [(fragment, workload.query(fragment.query)) for fragment in fragments]
    journals: list[Journal] = []
    tables = TablesInUse(TableVersions(catalog, state.tables), journals)
    write_frame = FrameWriter(session)
    queries: dict[str, FragmentRun] = {}
    for fragment, query in declared:
        folder = state.query(fragment.query)
        journals.append(_opened(Journal(folder.journal), opened))
        sink = _opened(sink_for(query, results, state.id, write_frame), opened)
        computation = _computation(fragment, catalog, sources, folder, opened)
        queries[query.name.lower()] = FragmentRun(
            fragment, sources, computation, folder, sink, journals[-1], tables
        )
    intakes: dict[str, Intake] = {}
    for key in sorted({key for query in queries.values() for key in query.streams}):
        stream_folder = state.stream(key)
        journal = _opened(Journal(stream_folder.journal), opened)
        intakes[key] = Intake(catalog.stream(key), sources, stream_folder, journal)
    # Now that all folders of results are there, readers may learn of them.
    outlets.record(state.path, [outlets.outlet_of(query, results) for _, query in declared])
    return Assembly(queries, intakes)


class _Closing(Protocol):
    def close(self) -> None: ...


_Closed = TypeVar("_Closed", bound=_Closing)


def _opened(value: _Closed, opened: ExitStack) -> _Closed:
    opened.callback(value.close)
    return value


def _computation(
    fragment: Fragment, catalog: Catalog, sources: Sources, folder: QueryFolder, opened: ExitStack
) -> Computation:
    if fragment.way is Way.NATIVE:
        return NativeComputation(fragment, catalog, sources, folder.beats)
    inputs = [each.plan for each in fragment.inputs]
    streams = {each.plan: catalog.stream(each.stream) for each in fragment.inputs}
    query = IncrementalQuery(fragment.plan, inputs, streams, fragment.columns, folder.database)
    _opened(query, opened)
    checkpoint = Checkpoint(folder.checkpoint)
    query.check_between(checkpoint.last_committed, checkpoint.last_planned)
    return Handover(fragment, catalog, sources, folder.beats, query)


def check_results(state: StateFolder, queries: Iterable[Query], results: Path) -> None:
    """Refuse folders with rows of others, and others than those that hold the rows of before."""
    found = [outlets.outlet_of(query, results) for query in queries]
    outlets.check_places(state.path, state.id, found)
    for outlet in found:
        if outlet.folder is None:
            continue
        results_folder.check(outlet.folder, state.id, outlet.query)
        if state.is_new or (outlet.folder / results_folder.MARKER).exists():
            continue
        if read_totals(state.query(outlet.query).journal).counts.get(ROWS):
            raise UserError(
                "results-gone",
                f"the results of `{outlet.query}` that the state knows of are not in {outlet.folder}",
                hint=f"bring the folder back to go on; or {ANEW}",
            )
