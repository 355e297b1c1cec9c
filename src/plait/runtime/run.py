"""Runs the queries of a deployment on Spark: from a state folder, into results, until the end or a stop.

All that can be refused is refused before anything runs, most of it before Spark is started. Then each
fragment is a StreamingQuery of its own; a stream that several read has an intake beside them, which counts
its rows and keeps its bad records. A fragment that fails ends by itself, and the others go on.

Queries can be added to a run and dropped from it (`plait.runtime.query_set` says what then runs). A change is
made while the fragments that it concerns are between two micro-batches: what it needs is made ready, the
change is written down in the state, and only then does it take effect. Until it is written down all of it can
be taken back, and after that a start finds it.

Draining is a beat at the end of time once all that is there is processed: it tells every query that its
streams have ended, which closes all windows. That is written down in the state before the first such beat,
since there is no way back from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import pyarrow as pa

from plait.catalog import Catalog, revealed
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Fragment, Result
from plait.deployment.lowering import Engines, check_engines
from plait.deployment.lowering import fragments as fragments_of
from plait.errors import InfeasibleError, PlaitError, Source, UserError, closest, reported
from plait.failpoints import reach
from plait.plan.nodes import sources_of
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE
from plait.runtime.assembly import Assembly, check_results
from plait.runtime.changes import Addition, Change
from plait.runtime.control import ControlServer
from plait.runtime.declarations import declarations_of
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import Arrangement, Proposal, QuerySet
from plait.runtime.reporting import report
from plait.runtime.sinks import MemorySink
from plait.runtime.snapshot import RunProgress
from plait.runtime.state import CONTROL, Phase, StateFolder
from plait.runtime.streaming_work import StreamingWork
from plait.runtime.veil import Veil
from plait.spark.execution import Frame, Session
from plait.spark.failures import SPARK_ERRORS, explained
from plait.spark.folder_lock import SparkFolderLock
from plait.spark.session import check_file_system, divide_among
from plait.spark.sources import Sources
from plait.workload import Workload

DEFAULT_TRIGGER_SECONDS = 1.0
# How long a batch may take to end before a stop interrupts it. It would run again, so that nothing is lost.
STOP_LIMIT_SECONDS = 60.0

_WATCH_SECONDS = 0.2
# How often a run that ends when all is processed looks for what is there: at least so long apart, and so much
# longer for each query and intake, since each look takes its share of a processor.
_LEAST_LOOK_SECONDS = 0.2
_LOOK_SECONDS_EACH = 0.05
# With batches farther apart than this, coming to an end would take long: works are started again then.
_LONGEST_PACE_SECONDS = 5.0
_LEAST_BEAT_SECONDS = 1.0


@dataclass(frozen=True)
class Extent:
    """How long a run lasts. `trigger_seconds` is the least time between batches of a query."""

    trigger_seconds: float = DEFAULT_TRIGGER_SECONDS
    available_now: bool = False
    drain: bool = False
    for_seconds: float | None = None


class Run:
    """One run, from `start` to its end. Everything may be asked of it from any thread."""

    def __init__(
        self,
        workload: Workload,
        deployment: Deployment,
        *,
        planner: str,
        together: bool = False,
        engines: Engines = Engines.ANY,
        spark_version: str,
        connect: Callable[[], Session],
        state: Path = DEFAULT_STATE,
        results: Path = DEFAULT_RESULTS,
        extent: Extent | None = None,
        frames: Mapping[str, Frame] | None = None,
    ) -> None:
        self.extent = extent or Extent()
        self._workload = workload
        self._deployment = deployment
        self._arrangement = Arrangement(planner, together, engines, results)
        self._spark_version = spark_version
        self._connect = connect
        self._state_path = state
        self._frames = {name.lower(): frame for name, frame in (frames or {}).items()}
        self._veil = Veil(workload)
        self._open = ExitStack()
        self._began = monotonic()
        self._last_beat = -math.inf
        self._pace_seconds = 0.0
        self._stop_wanted = Event()
        self._drain_now = Event()
        self._ended = Event()
        self._broken: PlaitError | None = None
        self._changing = Lock()  # held while the set of queries is changed
        self._is_ending = False
        if self.extent.drain and self.extent.for_seconds is None:
            self._drain_now.set()

    def start(self) -> None:
        """Begin, or refuse to. When it returns, all queries run."""
        queries = QuerySet.first(self._arrangement, self._workload, self._checked_fragments())
        self._check_apart(queries, queries.outlets.values())
        try:
            self._begin(queries)
        except PlaitError as error:
            raise self._veil.over(error) from None
        except SPARK_ERRORS as error:
            raise self._veil.over(explained(error, "the run")) from None
        Thread(target=self._supervise, name="plait run", daemon=True).start()

    def _begin(self, first: QuerySet) -> None:
        with ExitStack() as opened:
            self._state = self._opened_state(first)
            opened.callback(self._state.close)
            self._queries = self._after_changes(first)
            self._veil = Veil(self.workload)
            ways = {each.name: str(each.way) for each in self._queries.fragments}
            if not self._state.is_new:
                self._state.check_contents(ways, self._queries.streams, self._queries.read_by)
            check_results(self._state, self._queries)
            session = self._connect()
            check_file_system(session)
            divide_among(session, len(ways))
            opened.callback(SparkFolderLock(session, self._state.spark_lock).close)
            sources = Sources(
                session, self.workload.catalog, self._frames, lambda key: self._state.stream(key).tickets
            )
            self._state.prepare(ways, self._queries.streams)
            self._assembly = Assembly(self._state, session, sources, opened)
            self._assembly.begin(self._queries)
            if self._state.is_new:
                self._state.create()
            opened.callback(self._stop_all)
            self._began = monotonic()
            self._start(self._works, self._first_trigger())
            opened.callback(ControlServer(self._state.path / CONTROL, self._answer).close)
            self._open = opened.pop_all()

    @property
    def workload(self) -> Workload:
        """The queries as they are now."""
        return self._queries.workload

    # Changes

    def add(self, addition: Addition) -> Change:
        """Compute the queries of a text too, from the next micro-batches on. It is one change, whatever their
        number."""
        with self._changing, self._veiled():
            self._check_changeable()
            proposal = self._queries.proposed(addition)
            readers = {
                stream: result.query
                for result in proposal.results
                for stream in sorted(sources_of(result.plan)[0])
            }
            self._check_have_rows(readers, proposal.workload.catalog)
            joining = self._queries.joined_by(proposal)
            with self._between_batches(joining):
                starts = self._starts(proposal, joining)
                then = self._queries.with_added(proposal, starts)
                self._check_apart(then, [then.outlets[name.lower()] for name in starts])
                change = Change(then.changes, addition, starts, (), self._next_batches(joining))
                self._make(change, then)
            return change

    def drop(self, names: Sequence[str], *, sure: bool = False) -> Change:
        """Compute these queries no more. Their results stay. `sure`: also if others read them."""
        with self._changing, self._veiled():
            self._check_changeable()
            queries = self._queries
            dropped = tuple(dict.fromkeys(queries.query(name).name for name in names))
            if not sure:
                queries.check_unread(dropped)
            concerned = [
                each.name
                for each in queries.fragments
                if any(result.query in dropped for result in each.results)
            ]
            with self._between_batches(concerned):
                batches = self._next_batches(concerned)
                then = queries.without(dropped, batches)
                self._make(Change(then.changes, None, {}, dropped, batches), then)
            return self._state.manifest.changes[-1]

    def _make(self, change: Change, then: QuerySet) -> None:
        """Take another set of queries for the one that there is: as a whole, or not at all."""
        now = self._queries
        known = {each.name for each in now.fragments}
        new = [each.name for each in then.fragments if each.name not in known]
        self._state.prepare_anew(new, {*then.streams} - {*now.streams})
        prepared = self._assembly.prepare(now, then)
        try:
            reach("change-prepared")
            self._state.add(change)
        except BaseException:
            self._assembly.take_back(prepared, now)
            raise
        reach("change-recorded")
        self._queries = then
        self._veil = Veil(self.workload)
        begun = self._assembly.adopt(prepared, then)
        for run in prepared.gone:
            run.request_stop()
        self._start_new(begun)
        reach("change-made")
        for run in prepared.gone:
            Thread(target=run.stop, args=(STOP_LIMIT_SECONDS,), daemon=True).start()

    def _start_new(self, works: Iterable[StreamingWork]) -> None:
        """Start what a change brings. What cannot be started has failed, as if it had later."""
        for work in works:
            try:
                self._start([work], self.extent.trigger_seconds)
            except SPARK_ERRORS as error:
                work.error = self._veil.over(explained(error, work.label))

    def _after_changes(self, queries: QuerySet) -> QuerySet:
        """The set that there was when the last run ended."""
        for change in self._state.manifest.changes:
            if change.addition is not None:
                proposal = queries.proposed(change.addition)
                if {query.name for query in proposal.queries} != change.added.keys():
                    raise self._state.damaged(f"change {change.id} added other queries")
                queries = queries.with_added(proposal, change.added)
            else:
                queries = queries.without(change.dropped, change.batches)
        return queries

    @contextmanager
    def _between_batches(self, fragments: Iterable[str]) -> Iterator[None]:
        with ExitStack() as held:
            for name in sorted(fragments):
                run = self._assembly.run_of(name)
                run.watch()
                if run.error is not None:
                    raise UserError(
                        "fragment-failed",
                        f"{run.label} has failed, and cannot be changed",
                        detail=run.error.message,
                        hint="mend that and start again",
                    )
                held.enter_context(run.between_batches(STOP_LIMIT_SECONDS))
            yield

    def _starts(self, proposal: Proposal, joining: Mapping[str, Sequence[Result]]) -> dict[str, int | None]:
        """The moments after which queries see rows: the greatest event times that their streams have
        brought. Those that a fragment is joined by go by what that has seen."""
        seen_us = {
            result.query: self._assembly.seen_us(name)
            for name, results in joining.items()
            for result in results
        }
        starts: dict[str, int | None] = {}
        for result in proposal.results:
            read = [stream.lower() for stream in sources_of(result.plan)[0]]
            own = seen_us.get(result.query)
            reached = [self._assembly.arrived_us(key) if own is None else own.get(key) for key in read]
            starts[result.query] = max((us for us in reached if us is not None), default=None)
        return starts

    def _next_batches(self, fragments: Iterable[str]) -> dict[str, int]:
        return {name: self._assembly.run_of(name).next_batch for name in fragments}

    def _check_changeable(self) -> None:
        if self.extent.available_now:
            raise UserError(
                "not-changeable",
                "this run ends with the data that is there, and takes no changes",
                hint="run without --available-now",
            )
        if self._is_ending or self._stop_wanted.is_set() or self._drain_now.is_set():
            raise UserError("ending", "the run is about to end, and takes no changes")

    @contextmanager
    def _veiled(self) -> Iterator[None]:
        try:
            yield
        except PlaitError as error:
            raise self._veil.over(error) from None
        except SPARK_ERRORS as error:
            raise self._veil.over(explained(error, "the change")) from None

    def listed(self) -> list[dict[str, Any]]:
        """The queries, how they run, and since when."""
        queries = self._queries
        ways = {result.query: each for each in queries.fragments for result in each.results}
        progress = {query.name: query for query in self.snapshot().queries}
        return [
            {
                "name": query.name,
                "way": str(ways[query.name].way),
                "fragment": ways[query.name].name,
                "after_us": queries.results[key].after_us,
                "state": str(progress[query.name].state),
                "rows": progress[query.name].rows,
                "results": progress[query.name].results,
                "reads": list(query.reads),
            }
            for key, query in queries.workload.queries.items()
            if query.name in progress and query.name in ways
        ]

    def _answer(self, request: Mapping[str, Any]) -> Any:
        """What somebody asks through the state folder."""
        match request:
            case {"do": "add", "name": str(name), "text": str(text), "folder": str(folder)}:
                return self.add(Addition(Source(name, text), Path(folder))).to_json()
            case {"do": "drop", "queries": [*names], "sure": bool(sure)}:
                return self.drop([str(name) for name in names], sure=sure).to_json()
            case {"do": "list"}:
                return self.listed()
            case {"do": "stop"}:
                self.stop()
                return None
            case _:
                raise UserError("unknown-request", "a running system does not know how to do that")

    def stop(self) -> None:
        """End at the next batch boundary, and wait for that. What is open stays so, for the next run."""
        self._stop_wanted.set()
        self.wait()

    def drain(self) -> None:
        """Process all that is there, say that the streams have ended, close everything, and end."""
        self._drain_now.set()
        self.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the run; whether it has come."""
        return self._ended.wait(timeout)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def error(self) -> PlaitError | None:
        """What went wrong so far: an error for each query and intake that failed."""
        # A file that cannot be read fails the queries of its stream and the intake, in the same words.
        found = {work.error.render(): work.error for work in self._works if work.error is not None}
        errors = [*found.values()]
        errors += [self._broken] if self._broken is not None else []
        return reported(errors) if errors else None

    def snapshot(self) -> RunProgress:
        trigger_seconds = None if self.extent.available_now else self.extent.trigger_seconds
        seconds = monotonic() - self._began
        return report(self.workload, self._assembly, seconds, trigger_seconds)

    def whole_batch_seconds(self) -> dict[str, dict[int, float]]:
        """How long recent micro-batches took with all that Spark does around them, by what ran them and their
        numbers."""
        return {work.label: work.whole_batch_seconds for work in self._works}

    def rows_in_memory(self, query: str) -> pa.Table | None:
        """The rows of a query whose sink is memory; None if they go elsewhere."""
        sinks = (run.publisher.own.get(query) for run in self._assembly.fragments)
        sink = next(filter(None, sinks), None)
        return sink.table() if isinstance(sink, MemorySink) else None

    # What is refused

    def _checked_fragments(self) -> tuple[Fragment, ...]:
        catalog = self._workload.catalog
        self._check_extent()
        for name in self._frames:
            if name not in catalog.streams:
                names = [stream.name for stream in catalog.streams.values()]
                raise UserError("unknown-stream", f"there is no stream `{name}`", hint=closest(name, names))
        if not self._deployment.queries:
            raise UserError("no-queries", "there is no query to run", hint="see docs/language.md")
        if not self._deployment.admitted:
            reason = self._deployment.queries[0].reason
            raise InfeasibleError("not-admitted", "no query can be run", detail=reason)
        how = self._arrangement
        fragments = fragments_of(self._deployment, catalog, together=how.together, engines=how.engines)
        check_engines(fragments, self._workload, how.engines)
        readers: dict[str, str] = {}  # a query of each stream
        for result in (result for fragment in fragments for result in fragment.results):
            for name in sorted(sources_of(result.plan)[0]):
                readers.setdefault(name, result.query)
        self._check_have_rows(readers, catalog)
        return fragments

    def _check_extent(self) -> None:
        if not 0 <= self.extent.trigger_seconds < math.inf:
            raise UserError(
                "trigger", "the time between micro-batches is no length of time", hint="for example 1.0"
            )
        if self.extent.for_seconds is not None and not self.extent.for_seconds >= 0:
            raise UserError("run-time", "the time to run for is no length of time", hint="for example 60.0")

    def _check_apart(self, queries: QuerySet, outlets: Iterable[Outlet]) -> None:
        """What is written below the folder of a stream would be taken for files of the stream."""
        written = {self._state_path: "the state"}
        for outlet in outlets:
            if outlet.folder is not None:  # which many queries may share
                written.setdefault(outlet.folder, f"the results of `{outlet.query}`")
        places = {Path(realpath(path)): what for path, what in written.items()}
        for key in sorted({*queries.streams} - self._frames.keys()):
            stream = queries.workload.catalog.stream(key)
            if stream.connector != "files":
                continue
            folder = Path(realpath(revealed(stream.options["path"])))
            what = next((what for path, what in places.items() if path.is_relative_to(folder)), None)
            if what is not None:
                raise UserError(
                    "folder-in-source",
                    f"{what} would be written into the folder that the stream `{stream.name}` is read from",
                    hint="name another with --state or --results, or give the stream its own folder",
                )

    def _check_have_rows(self, readers: Mapping[str, str], catalog: Catalog) -> None:
        """Of each stream that is read, a query is given."""
        without = []
        for name, query in readers.items():
            stream = catalog.stream(name)
            if not stream.connector and name.lower() not in self._frames:
                error = UserError(
                    "no-connector",
                    f"the stream `{stream.name}`, which query `{query}` reads, has no connector",
                    hint="give it one, such as WITH (connector = 'files', …), or run it in Python "
                    f"with streams={{'{stream.name}': DataFrame}}",
                    span=stream.span,
                )
                without.append(error)
        if without:
            raise reported(without)

    def _opened_state(self, queries: QuerySet) -> StateFolder:
        return StateFolder.open(
            self._state_path,
            declarations_of(queries.workload, queries.fragments),
            planner=self._arrangement.planner,
            spark=self._spark_version,
            drain=self.extent.drain,
        )

    # What goes on

    def _supervise(self) -> None:
        try:
            with self._open:
                is_all_processed = self._flow()
                with self._changing:  # one that is being made is made
                    self._is_ending = True
                drains = self.extent.drain or self._drain_now.is_set()
                if drains and not self._stop_wanted.is_set():
                    self._drain(is_all_processed)
                self._stop_all()
        except Exception as error:
            self._broken = self._veil.over(explained(error, "the run"))
        finally:
            self._ended.set()

    def _flow(self) -> bool:
        """Until all that is there is processed, or the time is over, or an end is asked for. Whether it ended
        by the first."""
        deadline = math.inf if self.extent.for_seconds is None else self._began + self.extent.for_seconds
        if self.extent.available_now:
            return self._process_available(deadline)
        # To drain and to run for a time is to drain after that time.
        while not (self._stop_wanted.is_set() or self._drain_now.is_set()):
            self._watch()
            if monotonic() >= deadline or not any(run.is_active for run in self._assembly.fragments):
                break
            self._beat_idle_streams()
            self._stop_wanted.wait(min(_WATCH_SECONDS, max(0.0, deadline - monotonic())))
        return False

    def _process_available(self, deadline: float = math.inf) -> bool:
        """Wait for all works to process what is there; those that end by themselves then have ended. Whether
        they have: a stop, or the deadline, may come before."""
        waiting = [Thread(target=work.process_available, daemon=True) for work in self._works]
        for thread in waiting:
            thread.start()
        while alive := [thread for thread in waiting if thread.is_alive()]:
            self._watch()
            alive[0].join(_WATCH_SECONDS)
            if self._stop_wanted.is_set() or monotonic() >= deadline:
                break
        self._watch()
        return not any(thread.is_alive() for thread in waiting)

    def _drain(self, is_all_processed: bool) -> None:
        # A beat at the end of time must not overtake rows: they would be late.
        if not is_all_processed:
            self._make_ready_to_end()
            if not self._process_available():
                return
        self._state.enter(Phase.DRAINING)
        for run in self._assembly.fragments:
            if run.error is None:
                run.beats.end(run.streams)
        if self._streams_pause:
            self._make_ready_to_end()
            self._process_available()
        else:
            self._await_closed()
        if self.error is None and not self._stop_wanted.is_set():
            self._state.enter(Phase.DRAINED)

    def _make_ready_to_end(self) -> None:
        """Let all works be such that they soon come to an end of what is there."""
        if self._streams_pause and self._pace_seconds <= _LONGEST_PACE_SECONDS:
            self._start([work for work in self._works if not work.is_active], self._look_seconds)
        else:
            self._stop_all()
            self._start(self._works, self._look_seconds if self._streams_pause else None)

    def _await_closed(self) -> None:
        """Go on until all queries have closed what they have. Of streams that never pause, Spark may process
        what is there in a single batch, and none follows that would give what it has closed."""
        self._stop_all()
        self._start(self._works, self._look_seconds)
        while any(run.is_active and not run.has_closed for run in self._assembly.fragments):
            self._watch()
            if self._stop_wanted.wait(_WATCH_SECONDS):
                break
        self._watch()

    def _beat_idle_streams(self) -> None:
        """Streams that have been silent for their `idle_timeout` move on with the clock."""
        now = monotonic()
        if now - self._last_beat < max(self.extent.trigger_seconds, _LEAST_BEAT_SECONDS):
            return
        self._last_beat = now
        for key, log in self._assembly.logs.items():
            reached_us = log.idle_time_us(self.extent.trigger_seconds)
            intake = self._assembly.intakes.get(key)
            if reached_us is None or (intake is not None and not intake.found_nothing):
                continue
            for run in self._assembly.fragments:
                if key in run.streams and run.is_active and run.has_read(key, log.last_arrival):
                    run.beats.write({key: reached_us}, run.journal.last_finished)
                    log.beat(reached_us)

    @property
    def _works(self) -> tuple[StreamingWork, ...]:
        return (*self._assembly.fragments, *self._assembly.intakes.values())

    def _watch(self) -> None:
        for work in self._works:
            work.watch()
            if work.error is not None:
                self._veil.over(work.error)

    @property
    def _streams_pause(self) -> bool:
        """Whether there comes a moment at which all that is there is processed. Otherwise a query ends only
        if it goes by what was there when it started."""
        return not self._frames and all(
            log.stream.connector == "files" for log in self._assembly.logs.values()
        )

    def _first_trigger(self) -> float | None:
        if not self.extent.available_now:
            return self.extent.trigger_seconds
        return self._look_seconds if self.extent.drain and self._streams_pause else None

    @property
    def _look_seconds(self) -> float:
        return max(_LEAST_LOOK_SECONDS, _LOOK_SECONDS_EACH * len(self._works))

    def _start(self, works: Iterable[StreamingWork], trigger_seconds: float | None) -> None:
        self._pace_seconds = trigger_seconds or 0.0
        for work in works:
            work.watch()  # what has failed by now is not begun again
            if work.error is None:
                work.start(f"plait {self._state.id[:8]}", trigger_seconds)

    def _stop_all(self) -> None:
        """All end at their next batch boundary, at the same time."""
        reach("stopping")
        self._watch()  # what has failed by now has not been stopped
        for work in self._works:
            work.request_stop()
        deadline = monotonic() + STOP_LIMIT_SECONDS
        for work in self._works:
            work.stop(max(0.0, deadline - monotonic()))
