"""How far a run has come, taken together from its queries and logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from time import monotonic, time
from typing import Any, NamedTuple

from plait.deployment.describe import failing_text
from plait.deployment.fragments import Result
from plait.engines.data_errors import shown
from plait.runtime.assembly import Assembly
from plait.runtime.changes import NOTHING_CARRIED, Carried
from plait.runtime.fragment_run import FragmentRun, QueryCounts, Serving, counts_of
from plait.runtime.journal import ROWS, Totals
from plait.runtime.outlets import guarantee
from plait.runtime.query_set import QuerySet, StoppedQuery
from plait.runtime.snapshot import FailedExpression, QueryProgress, QueryState, RunProgress, StreamProgress
from plait.runtime.stream_log import BAD, StreamLog
from plait.runtime.waiting import Waiting, waiting
from plait.sharing.failing import checks
from plait.workload import Workload

_SILENT_S = 10.0  # so long a stream may pause before that is told


def report(now: QuerySet, assembly: Assembly, seconds: float, trigger_seconds: float | None) -> RunProgress:
    workload = now.workload
    now_us = int(time() * 1e6)
    # Changes may be made meanwhile: each fragment is looked at once, and before the streams that it reads.
    served = [_Served(run, run.serving, run.state) for run in assembly.fragments]
    streams = {key: _stream(log, assembly, now_us) for key, log in sorted(assembly.logs.items())}
    named = {each.serving.fragment.name: each for each in served}
    leaving = {name: named[each.name] for name, (each, _) in now.leaving.items() if each.name in named}
    queries = [
        _query(now, each, result, streams, leaving.get(result.query))
        for each, result in _in_declared_order(workload, served)
    ]
    queries += [_stopped(each, now, assembly) for each in now.stopped.values()]
    return RunProgress(seconds, now_us, tuple(streams.values()), tuple(queries), trigger_seconds)


def listed(now: QuerySet, progress: RunProgress) -> list[dict[str, Any]]:
    """The queries of a set, how they run, and since when."""
    known = {query.name: query for query in progress.queries}
    computed = {name: (each.name, now.after_us(name)) for name, (each, _) in now.places.items()}
    computed |= {name: (each.fragment, each.result.after_us) for name, each in now.stopped.items()}
    leaving = now.leaving
    queries = [*now.workload.queries.values(), *(each.query for each in now.stopped.values())]
    return [
        {
            "name": query.name,
            "way": str(known[query.name].way),
            "fragment": computed[query.name][0],
            "leaves": None
            if query.name not in leaving
            else {
                "fragment": leaving[query.name][0].name,
                "until_us": leaving[query.name][1].gives.until_us,
            },
            "after_us": computed[query.name][1],
            "state": str(known[query.name].state),
            "rows": known[query.name].rows,
            "failed": [each.to_json() for each in known[query.name].failed],
            "error": None if (error := known[query.name].error) is None else error.message,
            "results": known[query.name].results,
            "reads": list(query.reads),
        }
        for query in queries
        if query.name in known and query.name in computed
    ]


class _Served(NamedTuple):
    """A fragment as it was at one moment."""

    run: FragmentRun
    serving: Serving
    state: QueryState

    def counted(self, query: str) -> Carried:
        """What is counted here of a query."""
        counts = self.serving.counts.get(query)
        return NOTHING_CARRIED if counts is None else counts.carried_of(self.run.totals)

    def rows_per_s(self, query: str) -> float:
        rate = self.serving.rates.get(query)
        return 0.0 if rate is None else rate.per_s


def _in_declared_order(workload: Workload, served: Iterable[_Served]) -> Iterator[tuple[_Served, Result]]:
    """The queries as they are declared, whichever run together; those that are handed over where they go."""
    computed = {
        result.query.lower(): (each, result)
        for each in served
        for result in each.serving.fragment.results
        if not result.gives.has_end
    }
    return (computed[key] for key in workload.queries if key in computed)


def _stream(log: StreamLog, assembly: Assembly, now_us: int) -> StreamProgress:
    counts = log.totals.counts
    bad = counts.get(BAD, 0)
    return StreamProgress(
        log.stream.name,
        rows=counts.get(ROWS, 0),
        rows_per_s=log.rate.per_s,
        watermark_us=_watermark_us(log, assembly),
        bad_records=bad,
        bad_folder=log.folder.bad if bad else None,
        ahead_us=max(0, (log.rows_watermark_us or 0) - now_us),
        changed_files=tuple(shown(log.stream, file) for file in log.changed_files()),
        silent_since_us=_silent_since_us(log, assembly, now_us),
        idle_timeout_us=log.stream.idle_timeout_us,
        gone=None if (gone := log.gone) is None else shown(log.stream, gone),
    )


def _silent_since_us(log: StreamLog, assembly: Assembly, now_us: int) -> int | None:
    """When the last row came of a stream that brings none. Some may have come that nobody has looked for yet,
    while a batch goes on."""
    key = log.stream.name.lower()
    looked = min((run.looked(key) for run in assembly.fragments if key in run.streams), default=-math.inf)
    if looked - log.last_arrival < _SILENT_S:
        return None
    return now_us - int((monotonic() - log.last_arrival) * 1e6)


def _watermark_us(log: StreamLog, assembly: Assembly) -> int | None:
    """What rows have reached, or a beat: a query that reads the stream has gone no farther than that."""
    key = log.stream.name.lower()
    reading = [
        counts.watermark_us_of(run.totals)
        for run in assembly.fragments
        for counts in run.counts.values()
        if key in counts.streams
    ]
    return max((us for us in (log.watermark_us, *reading) if us is not None), default=None)


def _query(
    now: QuerySet,
    served: _Served,
    result: Result,
    streams: Mapping[str, StreamProgress],
    leaving: _Served | None,
) -> QueryProgress:
    """`leaving` is where the query was computed, if it still is: it is being handed over."""
    run, serving, state = served
    query = now.workload.query(result.query)
    totals = _totals(now, served, result.query, leaving)
    places = [served] if leaving is None else [served, leaving]
    counts = serving.counts[result.query]
    rows = counts.rows_of(totals)
    watermark_us = counts.watermark_us_of(totals)
    awaited = _waiting(run, result, rows, watermark_us, streams)
    return QueryProgress(
        query.name,
        serving.fragment.way,
        now.outlets[query.name.lower()].destination,
        guarantee(query.sink),
        state=state,
        rows=rows,
        rows_per_s=sum(each.rows_per_s(result.query) for each in places),
        late_rows={streams[key].name: n for key, n in counts.late_rows_of(totals).items()},
        failed=_failed(counts, totals, result),
        batches=run.totals.batches,
        batch_seconds=run.batch_seconds,
        handing_over_seconds=serving.publisher.seconds_of(query.name),
        watermark_us=watermark_us,
        waiting=awaited.words,
        is_open=awaited.is_open,
        held_back_by=awaited.held_back_by,
        error=next((each.run.error for each in places if each.run.error is not None), None),
    )


def _stopped(stopped: StoppedQuery, now: QuerySet, assembly: Assembly) -> QueryProgress:
    counts = counts_of(stopped.result)
    totals = assembly.totals_of(stopped.fragment)
    carried = stopped.carried.with_(counts.carried_of(totals))
    totals = replace(totals, counts=carried.counts, firsts=carried.firsts)
    return QueryProgress(
        stopped.query.name,
        stopped.way,
        now.outlets[stopped.query.name.lower()].destination,
        guarantee(stopped.query.sink),
        state=QueryState.FAILED,
        rows=counts.rows_of(totals),
        watermark_us=counts.watermark_us_of(totals),
        error=stopped.error,
    )


def _totals(now: QuerySet, served: _Served, query: str, leaving: _Served | None) -> Totals:
    """What is counted of a query: where it was, where it still is, and where it is handed over to."""
    totals = served.run.totals
    if leaving is None and query not in now.carried:
        return totals
    counted = now.carried.get(query, NOTHING_CARRIED)
    for each in filter(None, (leaving, served)):
        counted = counted.with_(each.counted(query))
    return replace(totals, counts=counted.counts, firsts=counted.firsts)


def _failed(counts: QueryCounts, totals: Totals, result: Result) -> tuple[FailedExpression, ...]:
    """First what failed first."""
    if not totals.firsts:
        return ()
    found = []
    for place, check in enumerate(checks(result.plan)):
        first = totals.firsts.get(counts.failed(place))
        if first is not None:
            rows = totals.counts.get(counts.failed(place), 0)
            text = failing_text(check)
            expression = FailedExpression(text, check.scan.stream, rows, first.sample, first.at_us)
            found.append(((first.batch, first.at_us, check.scan.stream, text), expression))
    return tuple(expression for _, expression in sorted(found, key=lambda each: each[0]))


def _waiting(
    run: FragmentRun,
    result: Result,
    rows: int,
    watermark_us: int | None,
    streams: Mapping[str, StreamProgress],
) -> Waiting:
    if run.is_in_first_batch:
        return Waiting("its first batch is running")
    return waiting(result.plan, rows, streams, watermark_us)
