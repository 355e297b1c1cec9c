"""The queries of a run, which come and go while it goes on.

A change is made while the fragments that it concerns are between two micro-batches: what it needs is made
ready, the change is written down in the state, and only then does it take effect. Until it is written down
all of it can be taken back, and after that a start finds it. `plait.runtime.query_set` says what runs then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from time import monotonic

from plait.catalog import Catalog
from plait.deployment.fragments import Result
from plait.errors import ExternalError, PlaitError, UserError
from plait.failpoints import reach
from plait.plan.nodes import Node, sources_of
from plait.runtime.assembly import Assembly
from plait.runtime.changes import Addition, Change
from plait.runtime.fragment_run import BusyError, FragmentRun, busy
from plait.runtime.handover import handed_over, let_go
from plait.runtime.manifest import Manifest
from plait.runtime.merge_plan import Merged, merge_plan
from plait.runtime.observed import observed_statistics
from plait.runtime.outlets import FILE as OUTLETS
from plait.runtime.outlets import record, recorded
from plait.runtime.query_set import Proposal, QuerySet
from plait.runtime.refusals import check_apart, check_have_rows, check_read_again
from plait.runtime.settled import restored, settled
from plait.runtime.state import StateFolder, damaged
from plait.runtime.streaming_work import StreamingWork
from plait.statistics import Statistics

# How many changes are written down one by one before they are settled.
MOST_CHANGES = 100

# How long several fragments may stand still for one whose batch is about to end. If they are so busy that no
# such moment comes for a while, they stand still until all do.
_MOMENT_SECONDS = 0.05
_PATIENCE_SECONDS = 5.0


class LiveQueries:
    """The set as it is now, and the assembly that runs it. One change at a time may be made. `given` are the
    streams that have frames, by key; `start` starts what a change brings."""

    def __init__(
        self,
        queries: QuerySet,
        state: StateFolder,
        assembly: Assembly,
        given: Collection[str],
        start: Callable[[Iterable[StreamingWork]], None],
        stop_limit_seconds: float,
    ) -> None:
        self.now = queries
        self._state = state
        self._assembly = assembly
        self._given = given
        self._start = start
        self._stop_limit_seconds = stop_limit_seconds
        assembly.describe(queries)

    def observed(self, catalog: Catalog, plans: Sequence[Node]) -> Statistics:
        """What is known by now of streams, and of sub-plans of these plans."""
        recent = self._assembly.recorder.recent()
        return observed_statistics(catalog, recent, self.now.results.values(), plans, self.now.fragments)

    def add(self, addition: Addition) -> Change:
        """Compute the queries of a text too, from the next micro-batches on. It is one change, whatever their
        number."""
        proposal = self.now.proposed(addition, self.observed)
        self.now.check_fits(proposal, self.observed)
        check_have_rows(proposal.results, proposal.workload.catalog, self._given)
        joining = self.now.joined_by(proposal)
        placed = {result.query for results in joining.values() for result in results}
        check_read_again(
            (result for result in proposal.results if result.query not in placed),
            proposal.workload.catalog,
            self._given,
            lambda stream: self._assembly.read_us(stream) is not None,
        )
        with self._between_batches(joining):
            starts = self._starts(proposal, joining)
            then = self.now.with_added(proposal, starts)
            outlets = [then.outlets[name.lower()] for name in starts]
            check_apart(self._state.path, outlets, then, self._given)
            batches = self._next_batches(joining)
            change = Change(then.changes, addition, starts, (), batches, statistics=proposal.statistics)
            self._make(change, then)
        self._settle()
        return change

    def drop(self, names: Sequence[str], *, sure: bool) -> Change:
        """Compute these queries no more. Their results stay. `sure`: also if others read them."""
        if not names:
            raise UserError("no-queries", "no query is named that is to be dropped")
        dropped = tuple(dict.fromkeys(self.now.query(name).name for name in names))
        if not sure:
            self.now.check_unread(dropped)
        concerned = [
            each.name
            for each in self.now.fragments
            if any(result.query in dropped for result in each.results)
        ]
        with self._between_batches(concerned, failed_too=True):
            batches = self._next_batches(concerned)
            then = self.now.without(dropped, batches)
            change = Change(then.changes, None, {}, dropped, batches)
            self._make(change, then)
        self._settle()
        self._try_again(concerned)
        return change

    def _try_again(self, fragments: Iterable[str]) -> None:
        """Start those that had failed and are there without the queries that were dropped: it may have been
        these."""
        failed = [run for run in self._assembly.fragments if run.fragment.name in fragments and run.error]
        for run in failed:
            run.forget_failure()
        self._start(failed)

    def merge(self) -> Merged:
        """Compute queries that came one by one as if they had come together, as far as that can be done; what
        was done. Each is handed over at the greatest event time that anybody has read of its streams."""
        plan = merge_plan(self.now, self._given)
        if not plan.merges:
            return Merged(staying=plan.staying)
        there = {each.name for each in self.now.fragments}
        places = self.now.places
        concerned = {places[name][0].name for each in plan.merges for name in each.queries}
        concerned |= {each.fragment for each in plan.merges if each.fragment in there}
        with self._between_batches(concerned):
            plan = plan.at(self.now, self._assembly.read_us)
            then = handed_over(self.now, plan.merges)
            batches = self._next_batches(concerned)
            self._make(Change(then.changes, batches=batches, merged=plan.merges), then)
        self._settle()
        return Merged.of(plan, then)

    def left(self) -> dict[str, tuple[str, ...]]:
        """The fragments that have given all rows that were theirs of queries that were handed over, with
        these: those of a fragment together, as each time is a change."""
        ending: dict[str, list[Result]] = {}
        for each, result in self.now.leaving.values():
            ending.setdefault(each.name, []).append(result)
        runs = {run.fragment.name: run for run in self._assembly.fragments}
        return {
            name: tuple(result.query for result in results)
            for name, results in ending.items()
            if name in runs and runs[name].error is None and all(map(runs[name].has_given_all, results))
        }

    def let_go(self) -> None:
        """Compute queries no more in the fragments that they have left."""
        left = self.left()
        if not left:
            return
        with self._between_batches(left):
            batches = self._next_batches(left)
            carried = {
                query: self._assembly.run_of(name).carried(query)
                for name, queries in left.items()
                for query in queries
            }
            then = let_go(self.now, left, batches, carried)
            self._make(Change(then.changes, batches=batches, let_go=left, carried=carried), then)
        self._settle()

    def stop(self, run: FragmentRun, failed: Mapping[str, PlaitError]) -> None:
        """Compute queries no more that a batch has failed by. The batch runs again, without them, when the
        fragment is started: nothing came of it so far."""
        there = {result.query for result in run.fragment.results}
        names = tuple(query for query in failed if query in there)  # others were dropped meanwhile
        if not names:
            return
        goes_on = len(names) < len(there - self.now.silent.get(run.fragment.name, {}).keys())
        told = {query: _stopped(query, failed[query], goes_on=goes_on) for query in names}
        # One that is being handed over is computed elsewhere, too, and may have failed there as well.
        others = {
            each.name
            for each in self.now.fragments
            if each.name != run.fragment.name and any(result.query in failed for result in each.results)
        }
        with self._between_batches(others, failed_too=True):
            batches = self._next_batches([run.fragment.name, *others])
            leaving = {name: self.now.leaving[name][0] for name in names if name in self.now.leaving}
            carried = {name: self._assembly.run_of(each.name).carried(name) for name, each in leaving.items()}
            then = self.now.without(names, batches, told, carried)
            self._make(Change(then.changes, None, {}, names, batches, told, carried=carried), then)
        self._settle()

    def _settle(self) -> None:
        """Let a long history be short: otherwise each change would take longer than the one before."""
        if len(self._state.manifest.changes) >= MOST_CHANGES:
            with suppress(ExternalError):  # a change was made, also if this has to be left to the next
                record(self._state.path, self.now.outlets.values())
                self._state.settle(settled(self.now, self._state.manifest.declarations.queries))

    def _make(self, change: Change, then: QuerySet) -> None:
        """Take another set of queries for the one that there is: as a whole, or not at all."""
        known = {each.name for each in self.now.fragments}
        new = [each.name for each in then.fragments if each.name not in known]
        self._state.prepare_anew(new, {*then.logs} - {*self.now.logs})
        prepared = self._assembly.prepare(self.now, then)
        try:
            reach("change-prepared")
            self._state.add(change)
        except BaseException:
            self._assembly.take_back(prepared, self.now)
            raise
        reach("change-recorded")
        self.now = then
        begun = self._assembly.adopt(prepared, then)
        self._assembly.describe(then)
        for run in prepared.gone:
            run.request_stop()
        self._start(begun)
        reach("change-made")
        for run in prepared.gone:
            Thread(target=self._end, args=(run,), daemon=True).start()

    def _end(self, run: FragmentRun) -> None:
        """Wait for the end of a fragment that nobody needs, and remove it. A start removes what is left."""
        run.stop(self._stop_limit_seconds)
        if not run.is_active:
            self._assembly.let_go(run)
            if run.fragment.name not in self.now.kept:
                self._state.remove(run.fragment.name)

    @contextmanager
    def _between_batches(self, fragments: Iterable[str], *, failed_too: bool = False) -> Iterator[None]:
        """While no batch of these is going on. Whoever is waited for is so while the others go on."""
        runs = [self._assembly.run_of(name) for name in sorted(fragments)]
        for run in runs:
            run.watch()
            if run.error is not None and not failed_too:
                raise UserError(
                    "fragment-failed",
                    f"{run.label} has failed, and cannot be changed",
                    detail=run.error.message,
                    hint="mend that and start again, or drop the query that it fails by",
                )
        began = monotonic()
        deadline = began + self._stop_limit_seconds
        while True:
            is_patient = monotonic() < began + _PATIENCE_SECONDS
            with ExitStack() as held:
                slow = _entered(held, runs, deadline, _MOMENT_SECONDS if is_patient else math.inf)
                if slow is None:
                    yield
                    return
            if monotonic() >= deadline:
                raise busy(slow.label, self._stop_limit_seconds)
            runs = [slow, *(run for run in runs if run is not slow)]

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
            reached = [self._assembly.read_us(key) if own is None else own.get(key) for key in read]
            starts[result.query] = max((us for us in reached if us is not None), default=None)
        return starts

    def _next_batches(self, fragments: Iterable[str]) -> dict[str, int]:
        return {name: self._assembly.run_of(name).next_batch for name in fragments}


def _entered(
    held: ExitStack, runs: Sequence[FragmentRun], deadline: float, moment_seconds: float
) -> FragmentRun | None:
    """Keep batches from beginning: the first run is waited for until the deadline, others for a moment. One
    that a batch is still going on of is returned."""
    for run in runs:
        left = max(0.0, deadline - monotonic())
        try:
            held.enter_context(run.between_batches(left if run is runs[0] else min(left, moment_seconds)))
        except BusyError:
            return run
    return None


def after_changes(first: QuerySet, manifest: Manifest, path: Path) -> QuerySet:
    """The set that there was when the last run over a state ended, which is in that folder."""
    queries = first
    if manifest.settled is not None:
        # Where the rows of queries came out that are gone stands there alone.
        if not (path / OUTLETS).exists():
            raise damaged(path, f"{OUTLETS} is missing")
        outlets = recorded(path, first.arrangement.results)
        missing = [name for name in manifest.settled.names if name not in outlets]
        if missing:
            raise damaged(path, f"{OUTLETS} does not say where the rows of `{missing[0]}` come out")
        queries = restored(first, manifest.settled, outlets)
    for change in manifest.changes:
        if change.addition is not None:
            known = change.statistics
            proposal = queries.proposed(change.addition, lambda *_, known=known: known)
            if {query.name for query in proposal.queries} != change.added.keys():
                raise damaged(path, f"change {change.id} added other queries")
            queries = queries.with_added(proposal, change.added)
        elif change.merged:
            queries = handed_over(queries, change.merged)
        elif change.let_go:
            queries = let_go(queries, change.let_go, change.batches, change.carried)
        else:
            queries = queries.without(change.dropped, change.batches, change.failed, change.carried)
    return queries


def _stopped(query: str, error: PlaitError, *, goes_on: bool) -> ExternalError:
    others = ", and the others went on" * goes_on
    return ExternalError(
        error.code,
        f"query `{query}` was stopped{others}: {error.message}",
        detail=error.detail,
        hint=f"{error.hint}\n" * bool(error.hint)
        + f"drop `{query}`, and add it again when that is mended: it starts with what comes then",
    )
