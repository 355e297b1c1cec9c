"""An hour in which queries come and go every ten seconds and the system is killed every five minutes.

The system is `plait run`, a process of its own with Java below it, with some hundred queries of all kinds
over some thousand rows a second, a micro-batch a second. What it takes is sampled meanwhile (`samples`); who
changes and kills it is `trial`. The streams end after the time to be measured, so that the rows are known: in
the end it is drained, and the rows of every query that ever lived are compared with its definition
(`comparison`). A folder in which something is wrong is kept, to be looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from statistics import median, quantiles
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import ClassVar

from plait.benchmarks.endurance.comparison import Compared, compare
from plait.benchmarks.endurance.ledger import Ledger
from plait.benchmarks.endurance.samples import Sampler, describe
from plait.benchmarks.endurance.system import TRIGGER, RunningSystem
from plait.benchmarks.endurance.trial import Trial
from plait.benchmarks.endurance.workload import ROWS_PER_S, Feeder, Queries, streams_sql
from plait.benchmarks.report import Claim, Observer, Report

QUERIES = 120
STARTS_AFTER_S = 20  # Spark has started by then
TOLD_EVERY_S = 60.0
# Rows of a second are there when it is over, and are read a micro-batch later.
SETTLES_S = 3.0


@dataclass(frozen=True)
class Extent:
    seconds: int
    kill_every_s: float


@dataclass(frozen=True)
class EnduranceBenchmark:
    """`extents` are those of a full run and of a quick one."""

    name: ClassVar[str] = "endurance"
    summary: ClassVar[str] = "an hour of queries that come and go, killed every 5 minutes: does it last?"
    extents: tuple[Extent, Extent] = (Extent(3_600, 300.0), Extent(240, 60.0))
    queries: int = QUERIES

    def run(self, quick: bool, observer: Observer) -> Report:
        report = Report(self.name, quick)
        folder = Path(mkdtemp(prefix="plait-endurance-"))
        try:
            _endure(folder, self.extents[quick], self.queries, observer, report)
        except KeyboardInterrupt:
            rmtree(folder, ignore_errors=True)
            raise
        if all(claim.holds for claim in report.claims):
            rmtree(folder, ignore_errors=True)
        else:
            observer(f"all that is left of it is in {folder}")
        return report


def _endure(folder: Path, extent: Extent, number: int, observer: Observer, report: Report) -> None:
    start = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(seconds=STARTS_AFTER_S)
    end = start + timedelta(seconds=extent.seconds)
    queries = Queries(seed=1)
    begun = [queries.next() for _ in range(number)]
    ledger = Ledger({query.name: query.select for query in begun}, {query.name: None for query in begun})
    streams = streams_sql(folder, start, end)
    sql = folder / "queries.sql"
    sql.write_text(streams + "\n".join(query.sql for query in begun))
    staying = frozenset(query.name for query in begun[: queries.kinds])
    system = RunningSystem(sql, folder)
    trial = Trial(system, ledger, queries, number, staying, random.Random(2), observer)
    try:
        observer(f"{number} queries start")
        with Feeder(folder, start, end):
            trial.start()
            trial.await_answer()
            with Sampler(trial.system) as sampler:
                left_s = (end - datetime.now(UTC).replace(tzinfo=None)).total_seconds()
                ends = monotonic() + left_s
                trial.go_on(ends, extent.kill_every_s, _observed(trial, sampler, ends, observer))
                trial.await_answer()
                sleep(SETTLES_S)
        observer("closing what is open")
        trial.system.stop()
        trial.system.drain()
    finally:
        trial.system.kill()
    compared = compare(ledger, streams, trial.system.attached, _counted(len(ledger.selects), observer))
    _figures(trial, extent, compared, report)
    describe(sampler.samples, report)
    _claims(trial, compared, report)


def _observed(trial: Trial, sampler: Sampler, ends: float, observer: Observer) -> Callable[[], None]:
    """Tells every minute how it is going."""
    told = [monotonic()]

    def observe() -> None:
        if monotonic() < told[0] + TOLD_EVERY_S or not sampler.samples:
            return
        told[0] = monotonic()
        latest = sampler.samples[-1]
        batch = "" if latest.batch_s is None else f", {latest.batch_s:.2f} s a batch"
        lag = "" if latest.lag_s is None else f", {latest.lag_s:.0f} s behind"
        counts = trial.counts
        observer(
            f"{max(0.0, ends - monotonic()) / 60:.0f} minutes to go: {len(trial.ledger.live)} queries, "
            f"{counts['changes_made']} changes, {counts['kills']} kills, {len(trial.errors)} errors; "
            f"{latest.python_mb:,.0f} + {latest.java_mb:,.0f} MB of memory, "
            f"{latest.state_mb:,.1f} MB of state{batch}{lag}"
        )

    return observe


def _counted(number: int, observer: Observer) -> Callable[[int], None]:
    def tell(left: int) -> None:
        if left % 50 == 0:
            observer(f"comparing with definitions: {number - left} of {number}")

    return tell


def _figures(trial: Trial, extent: Extent, compared: Compared, report: Report) -> None:
    report.figures |= {
        "minutes": round(extent.seconds / 60, 1),
        "rows_per_s": ROWS_PER_S,
        "trigger": TRIGGER,
        "queries_at_a_time": trial.number,
        "queries_ever": len(trial.ledger.selects),
        **{name: trial.counts[name] for name in _COUNTS},
        "start_seconds_median": round(median(trial.start_s), 1),
        "start_seconds_max": round(max(trial.start_s), 1),
        "change_seconds_p50": round(median(trial.change_s), 3),
        "change_seconds_p95": round(quantiles(trial.change_s, n=20)[-1], 3),
        "rows_compared": compared.rows,
    }


_COUNTS = (
    *("changes_made", "queries_added", "queries_dropped", "changes_cut_off", "changes_while_down"),
    *("kills", "kills_in_a_change", "kills_while_starting", "dry_runs", "lists", "results_read"),
)


def _claims(trial: Trial, compared: Compared, report: Report) -> None:
    for claim, source, wrong in (
        ("nothing goes wrong that a kill does not explain", "goal", trial.errors),
        ("a change is there as a whole or not at all, and T0 stays", "goal", trial.ledger.wrong),
        (
            "the rows are those of the definition",
            "evaluator",
            [f"{name}: {what}" for name, what in compared.wrong.items()],
        ),
    ):
        report.claims.append(
            Claim(claim, source, 0, len(wrong), holds=not wrong, why_not="; ".join(wrong)[:4_000])
        )
