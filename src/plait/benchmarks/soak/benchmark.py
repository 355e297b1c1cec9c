"""Runs all generators together at 5,000 rows a second, on Spark, for half an hour, and looks at what grows.

The streams begin when the run does and end after the time to be measured, so that the rows are known: at
the end the run is drained, and every query's rows are compared with the evaluator's. A window that writes
each row at 300 ticks is too large to evaluate from its definition over half an hour; of such a query the last
ticks are compared, over a slice of the streams that holds all their rows.

What is sampled falls into thirds. The first is for warming up: windows of five minutes fill, and Java's heap
finds its size. Steady means that the last third is not above the second by more than `STEADY`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any, ClassVar

from plait import language
from plait.api import Running, Session
from plait.benchmarks.machine import memory_mb, size_mb
from plait.benchmarks.report import Claim, Observer, Report
from plait.errors import InfeasibleError
from plait.evaluator import StoredData, difference, evaluate
from plait.workload import Query, Workload

ROWS_PER_S = 5_000
STEADY = 1.15
STARTS_AFTER_S = 20  # Spark has started by then
SAMPLE_EVERY_S = 5.0
TRIGGER_S = 10.0

# Queries whose last ticks are compared, over the last so many seconds of their streams.
IN_SLICES = frozenset({"cq1", "cq2", "cq4", "cq5"})
SLICE_S = 330
COMPARED_S = 20


@dataclass(frozen=True)
class Sample:
    memory_mb: float
    state_mb: float
    batch_s: float


@dataclass(frozen=True)
class SoakBenchmark:
    """`seconds` are those of a full run and of a quick one."""

    name: ClassVar[str] = "soak"
    summary: ClassVar[str] = "all generators at 5,000 rows/s for half an hour: does anything grow?"
    seconds: tuple[int, int] = (1_800, 120)

    def run(self, quick: bool, observer: Observer) -> Report:
        report = Report(self.name, quick)
        length_s = self.seconds[quick]
        start = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(seconds=STARTS_AFTER_S)
        end = start + timedelta(seconds=length_s)
        with TemporaryDirectory(prefix="plait-soak-") as folder, Session(_workload(start, end)) as session:
            state = Path(folder) / "state"
            observer("starting")
            results = Path(folder) / "results"
            with session.run(state=state, results=results, trigger_seconds=TRIGGER_S) as running:
                samples = _watch(running, state, end, observer)
                observer("closing what is open")
                running.drain()
                _describe(running, samples, length_s, report)
                _compare(session, running, end, observer, report)
        return report


def _workload(start: datetime, end: datetime) -> Workload:
    text = (Path(__file__).parent / "workload.sql").read_text()
    return language.load_text(text.replace("{start}", str(start)).replace("{end}", str(end)))


def _watch(running: Running, state: Path, end: datetime, observer: Observer) -> list[Sample]:
    samples: list[Sample] = []
    reported = 0
    while (left := (end - datetime.now(UTC).replace(tzinfo=None)).total_seconds()) > 0:
        if running.error is not None:
            raise running.error
        progress = running.progress()
        seconds = [query.batch_seconds for query in progress.queries if query.batch_seconds is not None]
        if seconds:
            samples.append(Sample(memory_mb(), size_mb(state), mean(seconds)))
        if samples and len(samples) // 12 > reported:
            reported = len(samples) // 12
            latest = samples[-1]
            observer(
                f"{left / 60:.0f} minutes to go: {latest.memory_mb:,.0f} MB of memory, "
                f"{latest.state_mb:,.0f} MB of state, {latest.batch_s:.2f} s a batch"
            )
        sleep(min(SAMPLE_EVERY_S, left))
    if not samples:
        raise InfeasibleError(
            "soak",
            "no micro-batch has ended in the time that was to be measured",
            hint="measure where nothing else runs",
        )
    return samples


def _describe(running: Running, samples: Sequence[Sample], length_s: int, report: Report) -> None:
    progress = running.progress()
    rows = sum(stream.rows for stream in progress.streams)
    report.figures |= {
        "minutes": round(length_s / 60, 1),
        "rows_read": rows,
        "rows_per_s": round(rows / length_s),
        "rows_given": sum(query.rows for query in progress.queries),
        "late_rows": sum(sum(query.late_rows.values()) for query in progress.queries),
        "trigger_s": TRIGGER_S,
    }
    for name, unit in (("memory", "mb"), ("state", "mb"), ("batch", "s")):
        key = f"{name}_{unit}"
        second, last = _thirds([getattr(sample, key) for sample in samples])
        ratio = last / second
        report.figures |= {
            f"{key}_second_third": round(second, 3),
            f"{key}_last_third": round(last, 3),
            f"{name}_last_over_second_third": round(ratio, 3),
        }
        report.claims.append(
            Claim(
                f"{_WORDS[name]} does not grow",
                source="goal",
                against=STEADY,
                ours=round(ratio, 3),
                holds=ratio <= STEADY,
                why_not="" if ratio <= STEADY else f"from {second:,.2f} to {last:,.2f} {unit}",
            )
        )
    expected = ROWS_PER_S * length_s
    report.claims.append(
        Claim(
            "all rows are read",
            source="goal",
            against=expected,
            ours=rows,
            # Rows that the generators put before the start, out of order, do not belong to the streams.
            holds=abs(rows - expected) <= expected * 0.01,
        )
    )


_WORDS = {
    "memory": "memory of this process and Java's",
    "state": "the state folder",
    "batch": "the time of a batch",
}


def _thirds(values: Sequence[float]) -> tuple[float, float]:
    third = max(1, len(values) // 3)
    return mean(values[third : 2 * third] or values), mean(values[-third:])


def _compare(session: Session, running: Running, end: datetime, observer: Observer, report: Report) -> None:
    wrong = {}
    last = _workload(end - timedelta(seconds=SLICE_S), end)
    with (
        StoredData.from_catalog(session.workload.catalog) as everything,
        StoredData.from_catalog(last.catalog) as slice_,
    ):
        for query in session.workload.queries.values():
            observer(f"comparing {query.name} with its definition")
            given = running.results(query.name).rows
            try:
                if query.name in IN_SLICES:
                    wanted = evaluate(last.query(query.name), slice_).rows
                    found = difference(_last_ticks(query, given, end), _last_ticks(query, wanted, end))
                else:
                    found = difference(given, evaluate(query, everything).rows)
            except InfeasibleError as error:  # what was measured is worth telling all the same
                found = f"not compared: {error.message}"
            if found:
                wrong[query.name] = found
    report.figures["queries_compared"] = len(session.workload.queries)
    report.claims.append(
        Claim(
            "the rows are those of the definition",
            source="evaluator",
            against=0,
            ours=len(wrong),
            holds=not wrong,
            why_not="; ".join(f"{name}: {what}" for name, what in wrong.items())[:2_000],
        )
    )


def _last_ticks(query: Query, rows: Iterable[tuple[Any, ...]], end: datetime) -> list[tuple[Any, ...]]:
    """The rows of ticks whose whole window is in the slice, before the streams end."""
    position = query.columns.index("window_end")
    first = end - timedelta(seconds=COMPARED_S)
    return [row for row in rows if first < row[position] <= end]
