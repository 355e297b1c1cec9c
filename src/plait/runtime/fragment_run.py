"""A fragment while it runs: what happens in each micro-batch, in the order that makes each count once.

1. The journal says that the batch begins, and which versions of tables it sees.
2. The rows are computed and published: a file that is named by the batch, so that publishing again replaces
   it. What is computed in the database is then committed there, with the batch's id.
3. The journal says what came of the batch.
4. Spark commits.

Wherever this ends, Spark runs the batch again over the same rows; each step knows what was done before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol, TypeAlias

from plait.batches import Batch, Outcome, Processed, Publish
from plait.deployment.fragments import Fragment, Result
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.engines.incremental.bands import held_back_us
from plait.errors import ExternalError, PlaitError, QueriesFailedError
from plait.failpoints import reach
from plait.plan.nodes import sources_of
from plait.runtime.beats import Beats
from plait.runtime.changes import Carried
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.journal import First, Journal, Totals
from plait.runtime.publishing import Publisher
from plait.runtime.recent_rate import RecentRate
from plait.runtime.state import FragmentFolder
from plait.runtime.stream_log import StreamLog
from plait.runtime.streaming_work import StreamingWork
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Frame
from plait.spark.sources import Sources

_LOOK_SECONDS = 0.02
_SEEN = "seen:"  # as the name of a watermark: how far rows of a stream have come


class Computation(Protocol):
    """A fragment as Spark runs it: a streaming frame, and what is done with each micro-batch of it."""

    @property
    def frame(self) -> Frame: ...
    def process(self, frame: Frame, batch: Batch, publish: Publish) -> Processed: ...


@dataclass(frozen=True)
class QueryCounts:
    """The names that counts and the watermark of a query have in the journal of its fragment."""

    query: str
    streams: tuple[str, ...]

    @property
    def rows(self) -> str:
        return f"rows:{self.query.lower()}"

    @property
    def watermark(self) -> str:
        """Queries over the same streams have the same."""
        return ",".join(self.streams)

    def late(self, stream: str) -> str:
        return f"late:{self.query.lower()}:{stream}"

    def failed(self, place: int) -> str:
        """Of the check at that place of the query's plan."""
        return f"{self._all_failed}{place}"

    @property
    def _all_failed(self) -> str:
        return f"failed:{self.query.lower()}:"

    def rows_of(self, totals: Totals) -> int:
        return totals.counts.get(self.rows, 0)

    def late_rows_of(self, totals: Totals) -> dict[str, int]:
        counts = {stream: totals.counts.get(self.late(stream), 0) for stream in self.streams}
        return {stream: count for stream, count in counts.items() if count}

    def carried_of(self, totals: Totals) -> Carried:
        """All that is counted of the query, by the names that it has."""
        firsts = {name: first for name, first in totals.firsts.items() if name.startswith(self._all_failed)}
        names = (self.rows, *map(self.late, self.streams), *firsts)
        return Carried({name: totals.counts[name] for name in names if totals.counts.get(name)}, firsts)

    def watermark_us_of(self, totals: Totals) -> int | None:
        """The watermark that the query goes by; None until a row has moved it."""
        return totals.watermarks_us.get(self.watermark) or None


# A batch of a fragment, and the seconds that it took.
Note: TypeAlias = Callable[["FragmentRun", Processed, float], None]


def counts_of(result: Result) -> QueryCounts:
    return QueryCounts(result.query, tuple(sorted(name.lower() for name in sources_of(result.plan)[0])))


def tables_of(result: Result) -> tuple[str, ...]:
    return tuple(sorted(name.lower() for name in sources_of(result.plan)[1]))


@dataclass(frozen=True)
class Serving:
    """What a fragment computes, and what belongs to that: one object, as others look at it while it changes.
    Counts and rates are by query; tables are those that any query joins, by their keys."""

    fragment: Fragment
    publisher: Publisher
    counts: Mapping[str, QueryCounts]
    rates: Mapping[str, RecentRate]
    tables: tuple[str, ...]


class FragmentRun(StreamingWork):
    """A fragment with its state. Streams and tables are known by their keys."""

    def __init__(
        self,
        fragment: Fragment,
        sources: Sources,
        computation: Computation,
        folder: FragmentFolder,
        publisher: Publisher,
        journal: Journal,
        tables: TablesInUse,
        logs: Mapping[str, StreamLog] | None = None,
        checked: Sequence[str] = (),
        note: Note | None = None,
    ) -> None:
        super().__init__(_label(fragment), computation.frame, folder.checkpoint)
        self.serving = _serving(fragment, publisher, {})
        self.streams = fragment.streams
        self.journal = journal
        self.beats = Beats(folder.beats, journal.last_finished)
        self.batch_seconds: float | None = None
        self.totals = journal.totals()
        self._batch_began: float | None = None
        self._batch_ended = -math.inf
        self._looked: dict[str, float] = {}  # when a stream was looked at in vain
        self._sources = sources
        self.computation = computation
        self._checkpoint = Checkpoint(folder.checkpoint)
        self._tables = tables
        self.logs = logs or {}  # of streams that are counted here
        self._note = note  # who is told of batches that are done
        self._checked = checked  # streams whose files Spark reads without looking whether they fit

    def adopt(self, fragment: Fragment, publisher: Publisher) -> None:
        """Be of these queries from the next batch on, and give their rows there."""
        self.serving = _serving(fragment, publisher, self.serving.rates)
        self.label = _label(fragment)

    @property
    def fragment(self) -> Fragment:
        return self.serving.fragment

    @property
    def publisher(self) -> Publisher:
        return self.serving.publisher

    @property
    def counts(self) -> Mapping[str, QueryCounts]:
        return self.serving.counts

    @contextmanager
    def between_batches(self, limit_seconds: float) -> Iterator[None]:
        """While no batch is going on, and none that was cut off has still to be done again: one goes by the
        queries that it was begun with. Of one that has failed nothing came, so it may run again with others.
        """
        deadline = monotonic() + limit_seconds
        while True:
            if not self._batch_lock.acquire(timeout=max(0.0, deadline - monotonic())):
                raise busy(self.label, limit_seconds)
            if self.error is not None or self.journal.last_begun == self.journal.last_finished:
                break
            self._batch_lock.release()
            if monotonic() >= deadline or not self.is_active:
                raise busy(self.label, limit_seconds)
            sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            self._batch_lock.release()

    @property
    def next_batch(self) -> int:
        """The first batch that is not done."""
        finished = self.journal.last_finished
        return 0 if finished is None else finished + 1

    def start(self, run_name: str, trigger_seconds: float | None) -> None:
        super().start(run_name, trigger_seconds)
        for log in self.logs.values():
            log.start()

    @property
    def has_closed(self) -> bool:
        """Whether everything is closed that waits for a watermark: once the streams have ended, all is."""
        stages = self.fragment.stages
        if stages is not None and not stages.probes:
            return True  # no operator keeps anything
        reached = (counts.watermark_us_of(self.totals) for counts in self.counts.values())
        return all(us is not None and us > LAST_EVENT_TIME_US for us in reached)

    def carried(self, query: str) -> Carried:
        """What is counted here of a query."""
        return self.counts[query].carried_of(self.totals)

    @property
    def seen_us(self) -> Mapping[str, int]:
        """The greatest event time of each stream that the batches so far have read, by key."""
        named = self.totals.watermarks_us.items()
        return {name.removeprefix(_SEEN): us for name, us in named if name.startswith(_SEEN)}

    def has_given_all(self, result: Result) -> bool:
        """Whether a query that is handed over has given here what there is before the end of its stretch:
        none of its rows is held back any more, and those of streams that are still to come are too late."""
        counts = self.counts.get(result.query)
        if counts is None:
            return False  # it is gone by now
        stages = self.fragment.stages
        held_back = held_back_us(result.plan) if stages is None else stages.hold_ms * 1000
        reached_us = counts.watermark_us_of(self.totals)
        # Spark counts in whole milliseconds.
        return reached_us is not None and reached_us >= result.gives.until_us + held_back + 1000

    @property
    def is_in_first_batch(self) -> bool:
        return self._batch_began is not None and not self.totals.batches

    def looked(self, stream: str) -> float:
        """When the fragment last looked for rows of a stream in vain: so it has read all that others had read
        by then. It may be far behind them."""
        looked = self._looked.get(stream, -math.inf)
        if self._batch_began is None and self.found_nothing:
            looked = max(looked, self._batch_ended, monotonic() - self._trigger_seconds)
        return looked

    def _process(self, frame: Frame, batch: int) -> None:
        began = self._batch_began = monotonic()
        try:
            processed = self._processed(frame, batch)
            self.totals = self.journal.totals()
            self._batch_ended = monotonic()
        finally:
            self._batch_began = None
        self.batch_seconds = self._batch_ended - began
        self._looked |= {stream: began for stream, each in processed.arrived.items() if not each.rows}
        rates = self.serving.rates
        for query, outcome in processed.outcomes.items():
            if query in rates:  # a batch that was done before may be of others, which are gone
                rates[query].add(outcome.rows)
        if self._note is not None:
            self._note(self, processed, self.batch_seconds)

    def _processed(self, frame: Frame, batch: int) -> Processed:
        for log in self.logs.values():
            log.begin(batch)
        tables = self._tables_of(batch)
        reach("batch-begun")
        self._sources.check_batch(self._checked, self._checkpoint.path)
        late_before_us = self._checkpoint.watermark_us(batch - 1)
        publish = partial(self.publisher.publish, batch)
        begun = Batch(batch, late_before_us, tables, bad_records_of=self.logs.keys())
        processed = self.computation.process(frame, begun, publish)
        for stream, log in self.logs.items():
            log.finish(batch, processed.arrived[stream])
        counts, watermarks_us = self._journalled(batch, processed.outcomes)
        seen = {_SEEN + stream: us for stream, us in self._seen_us(processed).items()}
        self.journal.finish(batch, counts, {**watermarks_us, **seen}, self._firsts(batch, processed.outcomes))
        reach("batch-finished")
        return processed

    def _tables_of(self, batch: int) -> Mapping[str, Path]:
        """The tables that a batch sees. One that cannot be read is the trouble of those that join it."""
        are_wanted = len(self.publisher.silent(batch)) < len(self.fragment.results)
        try:
            return self._tables.begin(self.journal, batch, self.serving.tables, are_wanted=are_wanted)
        except PlaitError as error:
            unreadable = self._tables.unreadable(self.serving.tables)
            failed = {
                result.query: unreadable[table]
                for result in self.fragment.results
                for table in tables_of(result)
                if table in unreadable
            }
            if 0 < len(failed) < len(self.fragment.results):
                raise QueriesFailedError(failed) from error
            raise

    def _seen_us(self, processed: Processed) -> dict[str, int]:
        seen_us = dict(self.seen_us)
        for stream, arrived in processed.arrived.items():
            if arrived.last_us is not None:
                seen_us[stream] = max(arrived.last_us, seen_us.get(stream, arrived.last_us))
        return seen_us

    def _journalled(
        self, batch: int, outcomes: Mapping[str, Outcome]
    ) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Counts and watermarks as the journal names them."""
        numbers: dict[str, int] = {}
        watermarks_us: dict[str, int] = {}
        silent = self.publisher.silent(batch)
        for query, outcome in outcomes.items():
            if query not in self.counts:
                continue
            counts = self.counts[query]
            if outcome.watermark_us is not None:
                watermarks_us[counts.watermark] = outcome.watermark_us
            if query in silent:
                continue
            numbers[counts.rows] = outcome.rows
            for stream, count in outcome.late_rows.items():
                numbers[counts.late(stream.lower())] = count
            for place, failed in outcome.failed.items():
                numbers[counts.failed(place)] = failed.rows
        by_spark = self._checkpoint.watermark_us(batch)
        if not watermarks_us and by_spark is not None:
            watermarks_us = {counts.watermark: by_spark for counts in self.counts.values()}
        return numbers, watermarks_us

    def _firsts(self, batch: int, outcomes: Mapping[str, Outcome]) -> Mapping[str, First]:
        """The rows on which expressions failed first."""
        return {
            self.counts[query].failed(place): First(batch, failed.at_us, failed.sample)
            for query, outcome in outcomes.items()
            if query in self.counts
            for place, failed in outcome.failed.items()
            if failed.sample
        }


def _serving(fragment: Fragment, publisher: Publisher, rates: Mapping[str, RecentRate]) -> Serving:
    """`rates` are those of queries that were computed before."""
    results = fragment.results
    return Serving(
        fragment,
        publisher,
        {result.query: counts_of(result) for result in results},
        {result.query: rates.get(result.query) or RecentRate() for result in results},
        tuple(sorted({table for result in results for table in tables_of(result)})),
    )


class BusyError(ExternalError):
    """A micro-batch goes on for longer than somebody can wait."""


def busy(label: str, limit_seconds: float) -> BusyError:
    return BusyError(
        "busy",
        f"{label}: its micro-batch was not done within {limit_seconds:g} s",
        hint="nothing was changed; try again when it has caught up, or see what it is that fails",
    )


def _label(fragment: Fragment) -> str:
    """What it is, in messages."""
    if len(fragment.results) == 1:
        return f"query {fragment.only.query}"
    return f"{fragment.name}, {len(fragment.results)} queries over {', '.join(fragment.streams)}"
