"""Puts together what a run consists of: for each fragment its computation, sinks and journal, for each stream
that several fragments read its intake.

Nothing runs yet, and what cannot run is found here: a folder of results that is somebody else's, before Spark
is there; a source that Spark does not know. Later other sets of queries take the place of the first, in steps
that can be taken back until the change is written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, assert_never
from weakref import WeakValueDictionary

from plait.batches import Processed
from plait.deployment.fragments import Fragment, Way
from plait.deployment.row_by_row import row_by_row
from plait.engines.duckdb import Database
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.engines.table_versions import TableVersions
from plait.errors import ExternalError, InfeasibleError, PlaitError, UserError
from plait.machine import memory_shares
from plait.observations import NOTHING, Meter, Observed
from plait.plan.nodes import StreamScan
from plait.runtime import results_folder
from plait.runtime.change_stages import (
    ChangeStage,
    HandOverStage,
    KeepStage,
    SilenceStage,
    StartStage,
    StopStage,
    stages_between,
)
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.descriptions import Descriptions
from plait.runtime.fragment_run import Computation, FragmentRun, counts_of
from plait.runtime.intake import Intake
from plait.runtime.journal import Journal, Totals, read_totals
from plait.runtime.load import Load, load
from plait.runtime.outlets import Outlet, check_places, record
from plait.runtime.publishing import Publisher
from plait.runtime.query_set import QuerySet, log_name
from plait.runtime.recorder import Recorder
from plait.runtime.shared_results import SharedSink
from plait.runtime.sinks import Sink, sink_for
from plait.runtime.snapshot import RunProgress
from plait.runtime.state import ANEW, FragmentFolder, StateFolder
from plait.runtime.statistics_file import FILE as STATISTICS
from plait.runtime.stream_log import StreamLog
from plait.runtime.streaming_work import StreamingWork
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Session
from plait.spark.failures import SPARK_ERRORS, explained
from plait.spark.native import NativeComputation
from plait.spark.observing import Observing
from plait.spark.sink import FrameWriter
from plait.spark.sources import Sources
from plait.spark.trunk_files import TrunkFiles
from plait.spark.trunk_rows import TrunkRows
from plait.spark.woven import WovenComputation

_LEAST_MEMORY_BYTES = 256 * 1024**2  # of a database
_SHARE_OF_READER = 4  # of files, which needs as much as a few groups of their rows


class Assembly:
    """What runs for a set of queries, over a state. Logs and intakes are by stream, by their keys. Streams
    that one fragment alone reads have no intake. What has to be closed goes to `opened`. A batch may give
    `most_rows` at once."""

    def __init__(
        self, state: StateFolder, session: Session, sources: Sources, opened: ExitStack, most_rows: int
    ) -> None:
        self.fragments: tuple[FragmentRun, ...] = ()
        self.logs: dict[str, StreamLog] = {}
        self.intakes: dict[str, Intake] = {}
        self._state = state
        self._session = session
        self._sources = sources
        self._opened = opened
        self._most_rows = most_rows
        self._journals: list[Journal] = []
        self._versions: TableVersions | None = None
        self._trunks: dict[str, Trunk] = {}
        self._held: dict[str, ExitStack] = {}  # what fragments have open
        self._sinks = WeakValueDictionary[str, Sink]()  # those of one query, which two fragments may have
        self._write_frame = FrameWriter(session)
        self._descriptions = Descriptions(self._meters)

    def begin(self, queries: QuerySet) -> None:
        """Put everything together for the first time. Nothing runs yet."""
        self._know(queries)
        begun = [self._made(fragment, queries) for fragment in queries.fragments]
        self.logs = self._logs(begun, queries)
        self.intakes = self._new_intakes(queries, self.logs)
        self.logs |= {key: intake.log for key, intake in self.intakes.items()}
        self.fragments = tuple(begun)
        # A start that was refused has left nothing.
        self.recorder = _opened(Recorder(self._state.path / STATISTICS, self._gauges), self._opened)
        # Now that all folders of results are there, readers may learn of them.
        record(self._state.path, queries.outlets.values())

    def describe(self, queries: QuerySet) -> None:
        """Let be known what the numbers are of that are observed."""
        self.recorder.describe(lambda: self._descriptions.of(queries))

    def load(self, queries: QuerySet, progress: RunProgress) -> Load:
        """How busy everything is."""
        return load(
            progress,
            self._descriptions.of_fragments(queries),
            {name: each.name for name, (each, _) in queries.places.items()},
            self.recorder.recent(),
            self._gauges(),
        )

    def _meters(self, fragment: str) -> tuple[Meter, ...]:
        trunk = self._trunks.get(fragment)  # which may go meanwhile
        if trunk is not None:
            return trunk.meters
        observing = (_observing(run.computation) for run in self.fragments if run.fragment.name == fragment)
        return next((each.meters for each in observing if each is not None), ())

    def _observed(self, run: FragmentRun) -> Observed:
        observing = _observing(run.computation)
        if observing is not None:
            return observing.observed
        trunk = self._trunks.get(run.fragment.name)
        return NOTHING if trunk is None else trunk.observed

    def _note(self, run: FragmentRun, processed: Processed, seconds: float) -> None:
        """What a batch has shown."""
        name = run.fragment.name
        self.recorder.note(
            name,
            processed,
            {query: counts.watermark_us_of(run.totals) for query, counts in run.counts.items()},
            {each.stream.lower() for each in run.fragment.inputs if isinstance(each.plan, StreamScan)},
            self._observed(run),
            seconds,
        )

    def _gauges(self) -> dict[str, dict[str, float]]:
        """What Spark and the file system say of fragments."""
        found = {}
        for run in self.fragments:
            found[run.fragment.name] = run.gauges
            if run.fragment.name in self._trunks:
                file = self._state.fragment(run.fragment.name).database
                found[run.fragment.name]["state_bytes"] = file.stat().st_size if file.exists() else 0
        return found

    def run_of(self, fragment: str) -> FragmentRun:
        return next(run for run in self.fragments if run.fragment.name == fragment)

    def totals_of(self, fragment: str) -> Totals:
        """What came of a fragment, which may be gone."""
        found = next((run for run in self.fragments if run.fragment.name == fragment), None)
        return read_totals(self._state.fragment(fragment).journal) if found is None else found.totals

    def seen_us(self, fragment: str) -> Mapping[str, int]:
        """How far the streams of a fragment in the database have come."""
        return self._trunks[fragment].seen_us

    def read_us(self, stream: str) -> int | None:
        """The greatest event time that a stream has brought, as far as anybody has read it."""
        reached = [run.seen_us.get(stream) for run in self.fragments]
        log = self.logs.get(stream)
        if log is not None and log.rows_watermark_us is not None:
            reached.append(log.rows_watermark_us + log.stream.delay_us)
        return max((us for us in reached if us is not None), default=None)

    # Changes: batches of the fragments that change are not going on

    def prepare(self, now: QuerySet, then: QuerySet) -> Prepared:
        """Make what another set needs, and leave what is there as it is. It can be taken back."""
        self._know(then)
        prepared = Prepared()
        try:
            for stage in stages_between(now, then):
                fragment = stage.fragment
                match stage:
                    case StartStage():
                        prepared.begun.append(self._made(fragment, then))
                    case ChangeStage():
                        prepared.touched.append(stage.before)
                        self._become(fragment)
                        prepared.changed.append((fragment, self._publisher(fragment, then)))
                    case SilenceStage() | HandOverStage():
                        prepared.changed.append((fragment, self._publisher(fragment, then)))
                    case KeepStage():
                        pass
                    case StopStage():
                        prepared.gone.append(self.run_of(fragment.name))
                    case _:
                        assert_never(stage)
            leaving = {run.fragment.name for run in prepared.gone}
            staying = [run for run in self.fragments if run.fragment.name not in leaving]
            prepared.fragments = (*staying, *prepared.begun)
            prepared.logs = self._logs(prepared.fragments, then)
            prepared.intakes = self._new_intakes(then, prepared.logs)
        except BaseException:
            self.take_back(prepared, now)
            raise
        return prepared

    def take_back(self, prepared: Prepared, now: QuerySet) -> None:
        """Be as before `prepare`. Fragments that it has not touched may be in the middle of a batch. One that
        cannot be as before has failed: what the change was refused for is to be told all the same."""
        for fragment in prepared.touched:
            try:
                self._become(fragment)
                self._trunks[fragment.name].let_go()
            except (PlaitError, *SPARK_ERRORS) as error:
                run = self.run_of(fragment.name)
                run.error = run.error or explained(error, run.label)
        for run in prepared.begun:
            self.let_go(run)
        self._know(now)

    def let_go(self, run: FragmentRun) -> None:
        """Close what a fragment has open that does not run any more."""
        self._forget(run.fragment.name, run.journal)

    def _forget(self, fragment: str, journal: Journal) -> None:
        self._tables.forget(journal)
        if self._trunks.pop(fragment, None) is not None:
            self._share_memory()
        self._held.pop(fragment).close()

    def adopt(self, prepared: Prepared, then: QuerySet) -> list[StreamingWork]:
        """Be of the other set, which is written down: what cannot be done now is left to the next change, or
        the next start. What is new is returned, and has still to be started."""
        for fragment, publisher in prepared.changed:
            run = self.run_of(fragment.name)
            run.adopt(fragment, publisher)
            if isinstance(run.computation, NativeComputation | WovenComputation):
                run.computation.give(fragment.results)
            if fragment.name in self._trunks:
                with suppress(ExternalError, InfeasibleError):
                    self._trunks[fragment.name].let_go()
        # Others may be looking: whoever sees a fragment sees the logs of its streams.
        self.intakes = {**self.intakes, **prepared.intakes}
        self.logs = {**prepared.logs, **{key: intake.log for key, intake in prepared.intakes.items()}}
        self.fragments = prepared.fragments
        with suppress(ExternalError):
            record(self._state.path, then.outlets.values())
        return [*prepared.begun, *prepared.intakes.values()]

    def _become(self, fragment: Fragment) -> None:
        """Let the database compute the queries of a fragment from the next batch on."""
        inputs = {each.stream.lower(): row_by_row(each.plan) for each in fragment.inputs}
        scans = {key: each.scan for key, each in inputs.items()}
        self._trunks[fragment.name].become(_shared_queries(fragment), scans)
        run = self.run_of(fragment.name)
        computation = run.computation
        assert isinstance(computation, TrunkRows | TrunkFiles)
        if computation.become(inputs):
            run.start_again(computation.frame)

    # What there is

    def _share_memory(self) -> None:
        trunks = [*self._trunks.values()]
        each = max(memory_shares().databases_bytes // max(1, len(trunks)), _LEAST_MEMORY_BYTES)
        for trunk in trunks:
            trunk.memory_bytes = each

    def _know(self, queries: QuerySet) -> None:
        self._catalog = queries.workload.catalog
        self._sources.know(self._catalog)
        if self._versions is None:
            self._versions = TableVersions(self._catalog, self._state.tables)
            self._tables = TablesInUse(self._versions, self._journals)
        self._versions.know(self._catalog)

    def _made(self, fragment: Fragment, queries: QuerySet) -> FragmentRun:
        folder = self._state.fragment(fragment.name)
        held = self._held[fragment.name] = ExitStack()
        self._opened.callback(held.close)
        journal = _opened(Journal(folder.journal), held)
        self._journals.append(journal)
        try:
            return self._made_of(fragment, queries, folder, held, journal)
        except BaseException:
            # The next attempt has the same name: DuckDB would give it what is open of this one.
            self._forget(fragment.name, journal)
            raise

    def _made_of(
        self,
        fragment: Fragment,
        queries: QuerySet,
        folder: FragmentFolder,
        held: ExitStack,
        journal: Journal,
    ) -> FragmentRun:
        computation = self._computation(fragment, folder, held)
        publisher = self._publisher(fragment, queries)  # folders are claimed when all else is there
        logs = {
            key: self._log(key, name, folder.checkpoint)
            for key in fragment.streams
            for name in (key, log_name(key, fragment.name))
            if queries.logs.get(name) == fragment.name
        }
        return FragmentRun(
            fragment,
            self._sources,
            computation,
            folder,
            publisher,
            journal,
            self._tables,
            logs,
            () if isinstance(computation, TrunkFiles) else fragment.streams,
            self._note,
        )

    def _logs(self, runs: Iterable[FragmentRun], queries: QuerySet) -> dict[str, StreamLog]:
        """Of all streams that are counted, by what those fragments count that do so for all."""
        named = {run.fragment.name: run for run in runs}
        counted = {key: named[name].logs[key] for key, name in queries.read_by.items() if name in named}
        return {**self.logs, **counted}

    def _new_intakes(self, queries: QuerySet, logs: Mapping[str, StreamLog]) -> dict[str, Intake]:
        """For streams that nobody counts yet."""
        found = {}
        for key in queries.streams:
            if key not in logs:
                checkpoint = self._state.stream(key).checkpoint
                found[key] = Intake(self._log(key, key, checkpoint), self._sources, checkpoint)
        return found

    def _log(self, key: str, name: str, checkpoint: Path) -> StreamLog:
        """The log of a stream that is read under that checkpoint, by its name."""
        folder = self._state.stream(name)
        journal = _opened(Journal(folder.journal), self._opened)
        files = self._sources.files_read(key, checkpoint)
        return StreamLog(self._catalog.stream(key), folder, journal, files)

    def _publisher(self, fragment: Fragment, queries: QuerySet) -> Publisher:
        """Sinks for all queries of a fragment. Folders of results are claimed for them. One that is silent
        since an earlier start has given all its rows, and its own place may be gone."""
        silent = queries.silent.get(fragment.name, {})
        own: dict[str, Sink] = {}
        sharing: dict[tuple[Path, int], list[Outlet]] = {}
        series = {}
        for result in fragment.results:
            outlet = queries.outlets[result.query.lower()]
            series[result.query] = outlet.series_of(fragment.name)
            if outlet.is_shared:
                assert outlet.folder is not None, outlet.query
                sharing.setdefault((outlet.folder, series[result.query]), []).append(outlet)
            elif result.query in self._sinks:
                own[result.query] = self._sinks[result.query]
            elif result.query not in silent:
                declared = queries.sinks[result.query]
                own[result.query] = sink_for(declared, outlet, self._state.key, self._write_frame)
        self._sinks |= own
        open_already = {sink.folder: sink for run in self.fragments for sink in run.publisher.shared}
        shared = []
        for (folder, _), members in sharing.items():
            first, names = members[0], [outlet.query for outlet in members]
            if folder in open_already:
                sink = open_already[folder].of(names)
            else:
                results_folder.claim(folder, self._state.key, first.owner)
                sink = SharedSink(folder, first.columns, first.types, names)
            shared.append((frozenset(names), sink))
        return Publisher(own, shared, silent, series)

    def _computation(self, fragment: Fragment, folder: FragmentFolder, held: ExitStack) -> Computation:
        catalog, sources = self._catalog, self._sources
        if fragment.way is Way.NATIVE:
            return NativeComputation(fragment, catalog, sources, folder.beats, self._most_rows)
        if fragment.way is Way.WOVEN:
            return WovenComputation(fragment, catalog, sources, folder.beats, self._session, self._most_rows)
        inputs = {each.stream.lower(): row_by_row(each.plan) for each in fragment.inputs}
        scans = {key: each.scan for key, each in inputs.items()}
        streams = {key: catalog.stream(key) for key in scans}
        trunk = Trunk(_shared_queries(fragment), streams, scans, folder.database, self._most_rows)
        self._trunks[fragment.name] = _opened(trunk, held)
        self._share_memory()
        checkpoint = Checkpoint(folder.checkpoint)
        trunk.check_between(checkpoint.last_committed, checkpoint.last_planned)
        if all(map(sources.has_parquet_files, inputs)):
            most = max(memory_shares().databases_bytes // _SHARE_OF_READER, _LEAST_MEMORY_BYTES)
            reader = _opened(Database(memory_bytes=most), held)
            return TrunkFiles(inputs, catalog, sources, folder.beats, folder.checkpoint, reader, trunk)
        return TrunkRows(inputs, catalog, sources, folder.beats, trunk)


@dataclass
class Prepared:
    """What a change needs: fragments that become others, with where their rows go; fragments that are new, or
    gone; and all fragments, logs and new intakes that there are then. `touched` are those, as they were, that
    may have to be taken back."""

    touched: list[Fragment] = field(default_factory=list)
    changed: list[tuple[Fragment, Publisher]] = field(default_factory=list)
    begun: list[FragmentRun] = field(default_factory=list)
    gone: list[FragmentRun] = field(default_factory=list)
    fragments: tuple[FragmentRun, ...] = ()
    logs: Mapping[str, StreamLog] = field(default_factory=dict)
    intakes: Mapping[str, Intake] = field(default_factory=dict)


def _shared_queries(fragment: Fragment) -> list[SharedQuery]:
    return [
        SharedQuery(each.query, each.plan, each.after_us, each.part, each.until_us, each.gives)
        for each in fragment.results
    ]


def _observing(computation: Computation) -> Observing | None:
    """Of what Spark's own operators compute."""
    if isinstance(computation, NativeComputation | WovenComputation):
        return computation.observing
    return None


class _Closing(Protocol):
    def close(self) -> None: ...


_Closed = TypeVar("_Closed", bound=_Closing)


def _opened(value: _Closed, opened: ExitStack) -> _Closed:
    opened.callback(value.close)
    return value


def check_results(state: StateFolder, queries: QuerySet) -> None:
    """Refuse folders with rows of others, and others than those that hold the rows of before."""
    check_places(state.path, state.id, queries.outlets.values())
    for fragment in queries.fragments:
        totals = read_totals(state.fragment(fragment.name).journal)
        silent = queries.silent.get(fragment.name, {})
        for result in fragment.results:
            outlet = queries.outlets[result.query.lower()]
            if outlet.is_shared or result.query not in silent:
                _check_folder(state, outlet, counts_of(result).rows_of(totals))


def _check_folder(state: StateFolder, outlet: Outlet, rows: int) -> None:
    if outlet.folder is not None:
        results_folder.check(outlet.folder, state.key, outlet.owner)
        if rows and not state.is_new and not (outlet.folder / results_folder.MARKER).exists():
            raise UserError(
                "results-gone",
                f"the results of `{outlet.query}` that the state knows of are not in {outlet.folder}",
                hint=f"bring the folder back to go on; or {ANEW}",
            )
