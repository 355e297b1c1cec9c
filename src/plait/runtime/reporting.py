"""How far a run has come, taken together from its queries and intakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time

from plait.engines.data_errors import shown
from plait.runtime.assembly import Assembly
from plait.runtime.fragment_run import FragmentRun
from plait.runtime.intake import BAD, Intake
from plait.runtime.journal import ROWS
from plait.runtime.outlets import destination, guarantee
from plait.runtime.snapshot import QueryProgress, RunProgress, StreamProgress
from plait.runtime.waiting import waiting
from plait.workload import Workload


def report(
    workload: Workload, assembly: Assembly, results: Path, seconds: float, trigger_seconds: float | None
) -> RunProgress:
    now_us = int(time() * 1e6)
    streams = {key: _stream(intake, assembly, now_us) for key, intake in assembly.intakes.items()}
    queries = [_query(workload, query, results, streams) for query in assembly.queries.values()]
    return RunProgress(seconds, now_us, tuple(streams.values()), tuple(queries), trigger_seconds)


def _stream(intake: Intake, assembly: Assembly, now_us: int) -> StreamProgress:
    counts = intake.totals.counts
    bad = counts.get(BAD, 0)
    return StreamProgress(
        intake.stream.name,
        rows=counts.get(ROWS, 0),
        rows_per_s=intake.rate.per_s,
        watermark_us=_watermark_us(intake, assembly),
        bad_records=bad,
        bad_folder=intake.folder.bad if bad else None,
        ahead_us=max(0, (intake.totals.watermark_us or 0) - now_us),
        changed_files=tuple(shown(intake.stream, file) for file in intake.changed_files()),
    )


def _watermark_us(intake: Intake, assembly: Assembly) -> int | None:
    """What rows have reached, or a beat: a query that reads the stream has gone no farther than that."""
    key = intake.stream.name.lower()
    reading = [query.watermark_us for query in assembly.queries.values() if key in query.streams]
    return max((us for us in (intake.watermark_us, *reading) if us is not None), default=None)


def _query(
    workload: Workload, run: FragmentRun, results: Path, streams: Mapping[str, StreamProgress]
) -> QueryProgress:
    query = workload.query(run.fragment.query)
    rows = run.totals.counts.get(ROWS, 0)
    return QueryProgress(
        query.name,
        run.fragment.way,
        destination(query, results),
        guarantee(query.sink),
        state=run.state,
        rows=rows,
        rows_per_s=run.rate.per_s,
        late_rows={streams[key].name: count for key, count in run.late_rows.items()},
        batches=run.totals.batches,
        batch_seconds=run.batch_seconds,
        watermark_us=run.watermark_us,
        waiting=_waiting(run, rows, streams),
        error=run.error,
    )


def _waiting(run: FragmentRun, rows: int, streams: Mapping[str, StreamProgress]) -> str:
    if run.is_in_first_batch:
        return "its first batch is running"
    return waiting(run.fragment.plan, rows, streams, run.watermark_us)
