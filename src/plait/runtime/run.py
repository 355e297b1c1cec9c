"""Runs the queries of a deployment on Spark: from a state folder, into results, until the end or a stop.

All that can be refused is refused before anything runs, most of it before Spark is started. Then each
fragment is a StreamingQuery of its own; a stream that several read has an intake beside them, which counts
its rows and keeps its bad records. A fragment that fails ends by itself, and the others go on.

Queries can be added to a run and dropped from it: `plait.runtime.live_queries`.

Draining is a beat at the end of time once all that is there is processed: it tells every query that its
streams have ended, which closes all windows. That is written down in the state before the first such beat,
since there is no way back from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import pyarrow as pa

from plait.catalog import AS_THEY_ARE, Keeping
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Fragment
from plait.deployment.lowering import Engines, check_engines
from plait.deployment.lowering import fragments as fragments_of
from plait.errors import PlaitError, QueriesFailedError, UserError, reported
from plait.failpoints import reach
from plait.runtime import DEFAULT_RESULTS, DEFAULT_STATE, MOST_ROWS
from plait.runtime.assembly import Assembly, check_results
from plait.runtime.caretaker import Caretaker, resolved
from plait.runtime.changes import Addition, Change
from plait.runtime.control import ControlServer
from plait.runtime.declarations import declarations_of
from plait.runtime.fragment_run import BusyError, FragmentRun
from plait.runtime.live_queries import LiveQueries, after_changes
from plait.runtime.load import Load
from plait.runtime.manifest import Phase
from plait.runtime.merge_plan import Merged
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import Arrangement, QuerySet
from plait.runtime.refusals import check_admitted, check_apart, check_have_rows, check_known
from plait.runtime.reporting import listed, report
from plait.runtime.requests import answered
from plait.runtime.settled import Origin, settled
from plait.runtime.sinks import MemorySink
from plait.runtime.snapshot import RunProgress
from plait.runtime.state import CONTROL, StateFolder
from plait.runtime.streaming_work import StreamingWork
from plait.runtime.tended import Tended
from plait.runtime.upkeep import Wish
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
        most_rows: int = MOST_ROWS,
        frames: Mapping[str, Frame] | None = None,
        keeping: Keeping = AS_THEY_ARE,
        merges: bool = True,
    ) -> None:
        """`merges`: whether queries that came one by one are merged at the start."""
        self.extent = extent or Extent()
        self._merges = merges
        self._keeping = keeping
        self._workload = workload
        self._deployment = deployment
        self._arrangement = Arrangement(planner, together, engines, results)
        self._spark_version = spark_version
        self._connect = connect
        self._state_path = state
        self._most_rows = most_rows
        self._put_off: dict[str, str] = {}
        self._frames = {name.lower(): frame for name, frame in (frames or {}).items()}
        self._veil = Veil(workload)
        self._open = ExitStack()
        self._began = monotonic()
        self._last_beat = -math.inf
        self._trigger_seconds: float | None = None
        self._stop_wanted = Event()
        self._drain_now = Event()
        self._ended = Event()
        self._broken: PlaitError | None = None
        self._changing = Lock()  # held while the set of queries is changed
        self.merged_at_start = Merged()
        self._letting_go = Thread()
        self._is_ending = False
        if self.extent.drain and self.extent.for_seconds is None:
            self._drain_now.set()

    def start(self) -> None:
        """Begin, or refuse to. When it returns, all queries run."""
        queries = QuerySet.first(self._arrangement, self._workload, self._checked_fragments())
        check_apart(self._state_path, queries.outlets.values(), queries, self._frames)
        try:
            self._begin(queries)
        except PlaitError as error:
            raise self._veil.over(error) from None
        except SPARK_ERRORS as error:
            raise self._veil.over(explained(error, "the run")) from None
        Thread(target=self._supervise, name="plait run", daemon=True).start()
        self._merge_at_start()

    def _begin(self, first: QuerySet) -> None:
        with ExitStack() as opened:
            self._state = self._opened_state(first)
            opened.callback(self._state.close)
            queries = after_changes(first, self._state.manifest, self._state.path)
            catalog = queries.workload.catalog
            self._veil = Veil(queries.workload)
            ways = {each.name: str(each.way) for each in queries.fragments}
            if not self._state.is_new:
                self._state.check_contents(ways, queries.logs)
            check_results(self._state, queries)
            session = self._connect()
            check_file_system(session)
            divide_among(session, len(ways))
            opened.callback(SparkFolderLock(session, self._state.spark_lock).close)
            sources = Sources(session, catalog, self._frames, lambda key: self._state.stream(key).tickets)
            self._state.prepare(ways, {*queries.streams, *queries.logs})
            self._assembly = Assembly(self._state, session, sources, opened, self._most_rows)
            self._assembly.begin(queries)
            self._state.begin_with(self._origin)
            if self._state.is_new:
                self._state.create()
            elif self._state.manifest.changes:
                self._state.settle(settled(queries, self._state.manifest.declarations.queries))
            self._state.remove_others(queries.kept, {*queries.streams, *queries.logs})
            self._live = LiveQueries(
                queries, self._state, self._assembly, self._frames, self._start_new, STOP_LIMIT_SECONDS
            )
            self._caretaker = Caretaker(self._state.path, self._state.id, self._outlets, self._keeping)
            opened.callback(self._caretaker.close)
            opened.callback(self._stop_all)
            self._began = monotonic()
            self._start(self._works, self._first_trigger())
            opened.callback(ControlServer(self._state.path / CONTROL, partial(answered, self)).close)
            self._open = opened.pop_all()

    @property
    def workload(self) -> Workload:
        """The queries as they are now."""
        return self._live.now.workload

    # Changes

    def add(self, addition: Addition) -> Change:
        """Compute the queries of a text too, from the next micro-batches on. It is one change, whatever their
        number."""
        with self._changed():
            return self._live.add(addition)

    def drop(self, names: Sequence[str], *, sure: bool = False) -> Change:
        """Compute these queries no more. Their results stay. `sure`: also if others read them."""
        with self._changed():
            return self._live.drop(names, sure=sure)

    def merge(self) -> Merged:
        """Compute queries that came one by one as if they had come together, as far as that can be done. None
        loses or repeats a row."""
        with self._changed():
            return self._live.merge()

    def _merge_at_start(self) -> None:
        """A start is when a system may be arranged anew. What cannot be merged now can be later."""
        if self._merges and not (self.extent.available_now or self._drain_now.is_set()):
            with self._or_put_off("queries are not merged"):
                self.merged_at_start = self.merge()

    def _look_for_left(self) -> None:
        """Let fragments end that queries have left. That waits for their batches, and nobody waits for it."""
        if self._live.left() and not self._letting_go.is_alive():
            self._letting_go = Thread(target=self._let_go, daemon=True)
            self._letting_go.start()

    def _let_go(self) -> None:
        with self._or_put_off("queries that were merged are still computed where they were"), self._changed():
            self._live.let_go()

    @contextmanager
    def _or_put_off(self, what: str) -> Iterator[None]:
        """What cannot be done now can be later, and is told until then."""
        try:
            yield
            self._put_off.pop(what, None)
        except PlaitError as error:
            self._put_off[what] = f"{what}: {error.message}"

    @contextmanager
    def _changed(self) -> Iterator[None]:
        with self._changing:
            try:
                self._check_changeable()
                yield
            except PlaitError as error:
                raise self._veil.over(error) from None
            except (OSError, *SPARK_ERRORS) as error:
                raise self._veil.over(explained(error, "the change")) from None

    def _start_new(self, works: Iterable[StreamingWork]) -> None:
        """Start what a change brings. What cannot be started has failed, as if it had later."""
        self._veil = Veil(self.workload)
        for work in works:
            try:
                self._start([work], self.extent.trigger_seconds)
            except SPARK_ERRORS as error:
                work.error = self._veil.over(explained(error, work.label))

    def _check_changeable(self) -> None:
        if self.extent.available_now:
            raise UserError(
                "not-changeable",
                "this run ends with the data that is there, and takes no changes",
                hint="run without --available-now",
            )
        if self._is_ending or self._stop_wanted.is_set() or self._drain_now.is_set():
            raise UserError("ending", "the run is about to end, and takes no changes")

    def _outlets(self) -> Iterable[Outlet]:
        return self._live.now.outlets.values()

    def compact(self, queries: Sequence[str], wish: Wish) -> Tended:
        """Look after results now: of these queries, or of all."""
        return self._caretaker.at_once(replace(wish, queries=resolved(self._state.path, queries)))

    def listed(self) -> list[dict[str, Any]]:
        """The queries, how they run, and since when."""
        return listed(self._live.now, self.snapshot())

    def load(self) -> Load:
        """How busy streams, fragments and queries are."""
        with self._changing:  # all numbers are of one set of queries
            return self._assembly.load(self._live.now, self.snapshot())

    def write_statistics(self) -> None:
        """Have all that was observed by now in the state folder."""
        if not self.has_ended:
            self._assembly.recorder.write()

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
        found = {
            work.error.render(): work.error
            for work in self._works
            if work.error is not None and (self.has_ended or not work.starts_again)
        }
        found |= {each.error.render(): each.error for each in self._live.now.stopped.values()}
        errors = [*found.values()]
        errors += [self._broken] if self._broken is not None else []
        return reported(errors) if errors else None

    def snapshot(self) -> RunProgress:
        trigger_seconds = None if self.extent.available_now else self.extent.trigger_seconds
        seconds = monotonic() - self._began
        now = report(self._live.now, self._assembly, seconds, trigger_seconds)
        return replace(now, tended=self._caretaker.done, put_off=(*self._put_off.copy().values(),))

    def batches(self, query: str) -> int:
        """How many micro-batches are done where a query is computed."""
        now = self._live.now
        name = now.query(query).name
        fragment = now.stopped[name].fragment if name in now.stopped else now.places[name][0].name
        return self._assembly.totals_of(fragment).batches

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
        check_known(self._frames, catalog)
        check_admitted(self._deployment)
        how = self._arrangement
        fragments = fragments_of(self._deployment, catalog, together=how.together, engines=how.engines)
        check_engines(fragments, self._workload, how.engines)
        results = [result for fragment in fragments for result in fragment.results]
        check_have_rows(results, catalog, self._frames)
        return fragments

    def _check_extent(self) -> None:
        if not 0 <= self.extent.trigger_seconds < math.inf:
            raise UserError(
                "trigger", "the time between micro-batches is no length of time", hint="for example 1.0"
            )
        if self.extent.for_seconds is not None and not self.extent.for_seconds >= 0:
            raise UserError("run-time", "the time to run for is no length of time", hint="for example 60.0")

    def _opened_state(self, queries: QuerySet) -> StateFolder:
        return StateFolder.open(
            self._state_path,
            declarations_of(queries.workload, queries.fragments),
            planner=self._arrangement.planner,
            spark=self._spark_version,
            drain=self.extent.drain,
        )

    @property
    def _origin(self) -> Origin:
        texts = tuple(Addition(source, folder) for folder, source in self._workload.texts)
        return Origin(texts, self._arrangement.engines, self._arrangement.results.absolute())

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
            self._state.check_there()
            self._watch()
            self._started_again()
            self._look_for_left()
            if monotonic() >= deadline or self._has_nothing_active:
                break
            self._beat_idle_streams()
            self._stop_wanted.wait(min(_WATCH_SECONDS, max(0.0, deadline - monotonic())))
        return False

    @property
    def _has_nothing_active(self) -> bool:
        if any(run.is_active for run in self._assembly.fragments):
            return False
        self._watch()  # one that has failed by some of its queries since the last look goes on
        if self._started_again():
            return False
        with self._changing:  # which may have stopped one, to start it again
            return not any(run.is_active for run in self._assembly.fragments)

    def _process_available(self, deadline: float = math.inf) -> bool:
        """Wait for all works to process what is there; those that end by themselves then have ended. Whether
        they have: a stop, or the deadline, may come before."""
        waiting = [Thread(target=work.process_available, daemon=True) for work in self._works]
        for thread in waiting:
            thread.start()
        while waiting and not self._stop_wanted.is_set() and monotonic() < deadline:
            waiting[0].join(_WATCH_SECONDS)
            self._state.check_there()
            self._watch()
            again = [Thread(target=run.process_available, daemon=True) for run in self._started_again()]
            for thread in again:
                thread.start()
            waiting = [*(thread for thread in waiting if thread.is_alive()), *again]
        self._watch()
        return not any(thread.is_alive() for thread in waiting)

    def _started_again(self) -> list[FragmentRun]:
        """Fragments of which a batch has failed by some queries of many, and which go on without these."""
        again = []
        for run in self._assembly.fragments:
            if not _failed_queries(run):
                continue
            with self._changing:
                failed = _failed_queries(run)
                if not failed:
                    continue  # the queries were dropped meanwhile, and it goes on without them
                try:
                    self._live.stop(run, failed)
                    run.forget_failure()
                    if run in self._assembly.fragments:  # others may be left, or what their streams bring
                        self._start([run], self._trigger_seconds)
                        again.append(run)
                except BusyError:
                    pass  # where a query is computed, too, that is handed over: the next look finds it again
                except (OSError, PlaitError, *SPARK_ERRORS) as error:
                    run.error = self._veil.over(explained(error, run.label))
        return again

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
        if all(work.error is None for work in self._works) and not self._stop_wanted.is_set():
            self._state.enter(Phase.DRAINED)

    def _make_ready_to_end(self) -> None:
        """Let all works be such that they soon come to an end of what is there."""
        if self._streams_pause and (self._trigger_seconds or 0.0) <= _LONGEST_PACE_SECONDS:
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
            self._started_again()
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
                if key in run.streams and run.is_active and run.looked(key) > log.last_arrival:
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
        self._trigger_seconds = trigger_seconds
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


def _failed_queries(run: FragmentRun) -> Mapping[str, PlaitError]:
    """Those of many queries of a fragment that its batch has failed by."""
    return run.error.failed if isinstance(run.error, QueriesFailedError) else {}
