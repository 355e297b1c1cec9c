"""Adds and drops queries of known shapes while a system of many is kept as busy as it can be.

In turns, the system runs as it is, and queries are added and dropped, one right after the other; the rows
that it reads a second are counted for both. In turns, because a machine is not equally fast from one minute
to the next. A query is live when the first micro-batch with it is done. In the end the streams are drained,
and the rows of every query are compared with its definition: of one that was added from its T0 on, of one
that was dropped as far as it must have got by then (`plait.benchmarks.dropped`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import ClassVar

from plait import language
from plait.api import Running, Session
from plait.benchmarks.dropped import Standing, standings, wrong_until_dropped
from plait.benchmarks.living.workload import Feeder, Queries, streams_sql
from plait.benchmarks.report import Claim, Observer, Report
from plait.errors import InfeasibleError
from plait.evaluator import StoredData, difference, evaluate
from plait.spark.session import present, started_queries
from plait.spark.session import session as start_spark

QUERIES = 300
WARM_S = 15.0
LIVE_LIMIT_S = 60.0
LEAST_THROUGHPUT = 0.8

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Extent:
    """So many changes in each of the turns, and how long the system is looked at before them."""

    turns: int
    changes: int
    before_s: float


@dataclass
class LivingBenchmark:
    name: ClassVar[str] = "living"
    summary: ClassVar[str] = "queries come and go among 300 under load: how soon, and at what cost to others"
    extents: tuple[Extent, Extent] = (Extent(10, 20, 6.0), Extent(3, 10, 5.0))
    queries: int = QUERIES
    warm_s: float = WARM_S

    def run(self, quick: bool, observer: Observer) -> Report:
        report = Report(self.name, quick)
        with TemporaryDirectory(prefix="plait-living-", ignore_cleanup_errors=True) as name:
            life = _Life(Path(name), self.queries, observer)
            life.run(self.extents[quick], self.warm_s, report)
        return report


@dataclass
class _Life:
    folder: Path
    number: int
    observer: Observer
    texts: dict[str, str] = field(default_factory=dict)
    after_us: dict[str, int | None] = field(default_factory=dict)
    dropped: dict[str, Standing] = field(default_factory=dict)
    live_s: list[float] = field(default_factory=list)
    live_batches: list[int] = field(default_factory=list)
    rng: random.Random = field(default_factory=lambda: random.Random(2))

    def run(self, extent: Extent, warm_s: float, report: Report) -> None:
        queries = Queries(seed=1)
        self.texts = dict(queries.next() for _ in range(self.number))
        self.after_us = dict.fromkeys(self.texts)
        spark = present() or start_spark(None)
        sql = streams_sql(self.folder) + "\n".join(self.texts.values())
        read = [0]
        feeder = Feeder(self.folder, lambda: read[0])
        with Session(language.load_text(sql), spark) as session:
            running = session.run(
                state=self.folder / "state", results=self.folder / "results", trigger_seconds=0.1
            )

            def rows() -> int:
                read[0] = next(s.rows for s in running.progress().streams if s.name == "readings")
                return read[0]

            feeder.start()
            self.observer(f"{self.number} queries run; warming up")
            _wait(warm_s, rows)
            started = started_queries(spark)
            before, during = _Pace(), _Pace()
            for turn in range(extent.turns):
                self.observer(f"turn {turn + 1} of {extent.turns}: as it is, then {extent.changes} changes")
                with before.measured(rows):
                    _wait(extent.before_s, rows)
                with during.measured(rows):
                    self._change(running, queries, extent.changes, rows)
            if not before.rows:
                raise InfeasibleError(
                    "living",
                    "no micro-batch has ended in the time that was to be measured",
                    hint="measure where nothing else runs",
                )
            restarted = started_queries(spark) - started
            feeder.end()
            self.observer("closing what is open")
            running.drain()
            if running.error is not None:
                raise running.error
            wrong = self._wrong(running)
        _describe(report, self, before.rows_per_s, during.rows_per_s, len(restarted), wrong)

    def _change(self, running: Running, queries: Queries, changes: int, rows: Callable[[], int]) -> None:
        any_query = next(iter(self.texts))  # they are all computed together
        for number in range(changes):
            if number % 2 == 0:
                name, text = queries.next()
                began, batches = monotonic(), running.batches(any_query)
                changed = running.add_text(text)
                self._await_batch(running, name)
                self.live_s.append(monotonic() - began)
                self.live_batches.append(running.batches(name) - batches)
                self.texts[name], self.after_us[name] = text, changed.added[name]
            else:
                name = self.rng.choice(sorted(self.texts.keys() - self.dropped.keys() - {any_query}))
                self.dropped[name] = standings(running)[name.lower()]
                running.drop(name)
            rows()

    def _await_batch(self, running: Running, name: str) -> None:
        """Until the first micro-batch with a query is done."""
        deadline = monotonic() + LIVE_LIMIT_S
        done = running.batches(name)
        while running.batches(name) == done:
            if monotonic() > deadline:
                raise InfeasibleError("living", f"`{name}` was not live within {LIVE_LIMIT_S:g} s")
            sleep(0.01)

    def _wrong(self, running: Running) -> dict[str, str]:
        """The queries whose rows are not those of their definitions."""
        wrong = {}
        workload = language.load_text(streams_sql(self.folder) + "\n".join(self.texts.values()))
        with StoredData.from_catalog(workload.catalog) as data:
            for number, (name, after_us) in enumerate(self.after_us.items()):
                if number % 50 == 0:
                    self.observer(f"comparing with definitions: {number} of {len(self.after_us)}")
                start = None if after_us is None else _EPOCH + timedelta(microseconds=after_us)
                query = workload.query(name)
                wanted = evaluate(query, data, start=start)
                given = running.results(name).rows
                if name in self.dropped:
                    found = wrong_until_dropped(query, wanted, given, self.dropped[name])
                else:
                    found = difference(wanted.rows, given)
                if found:
                    wrong[name] = found
        return wrong


def _wait(seconds: float, rows: Callable[[], int]) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        rows()
        sleep(0.1)


@dataclass
class _Pace:
    """Rows that were read, and how long that took."""

    rows: int = 0
    seconds: float = 0.0

    @contextmanager
    def measured(self, rows: Callable[[], int]) -> Iterator[None]:
        first, began = rows(), monotonic()
        yield
        self.rows += rows() - first
        self.seconds += monotonic() - began

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


def _describe(
    report: Report,
    life: _Life,
    before: float,
    during: float,
    restarts: int,
    wrong: dict[str, str],
) -> None:
    ratio = during / before
    report.figures |= {
        "queries": life.number,
        "changes": len(life.live_s) + len(life.dropped),
        "add_live_seconds_p50": round(median(life.live_s), 3),
        "add_live_seconds_p95": round(quantiles(life.live_s, n=20)[-1], 3),
        "add_live_micro_batches_max": max(life.live_batches),
        "rows_per_s_before": round(before),
        "rows_per_s_during_change": round(during),
        "throughput_during_change_over_before": round(ratio, 3),
        "restarts_for_known_shapes": restarts,
        "queries_compared": len(life.after_us),
    }
    report.claims += [
        Claim(
            "changes leave the others their throughput",
            source="goal",
            against=LEAST_THROUGHPUT,
            ours=round(ratio, 3),
            holds=ratio >= LEAST_THROUGHPUT,
            why_not="" if ratio >= LEAST_THROUGHPUT else f"{during:,.0f} rows/s of {before:,.0f}",
        ),
        Claim(
            "a query is live after two micro-batches, the one that was going on included",
            source="goal",
            against=2,
            ours=max(life.live_batches),
            holds=max(life.live_batches) <= 2,
        ),
        Claim("known shapes restart nothing", source="goal", against=0, ours=restarts, holds=not restarts),
        Claim(
            "the rows are those of the definition",
            source="evaluator",
            against=0,
            ours=len(wrong),
            holds=not wrong,
            why_not="; ".join(f"{name}: {what}" for name, what in wrong.items())[:2_000],
        ),
    ]
