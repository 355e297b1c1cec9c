"""The benchmark of a system that is changed and killed: its parts, and a small one of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.patience import wait_until

from plait import language
from plait.benchmarks.endurance import samples
from plait.benchmarks.endurance.benchmark import EnduranceBenchmark, Extent
from plait.benchmarks.endurance.ledger import Change, Ledger
from plait.benchmarks.endurance.workload import READINGS_PER_S, Declared, Feeder, Queries, streams_sql
from plait.benchmarks.machine import open_files, processes_below
from plait.benchmarks.report import Report
from plait.cli import INTERRUPTED

START = datetime(2026, 1, 1, 12)
ONE, TWO, THREE = (Declared(name, "SELECT plug FROM alarms") for name in ("one", "two", "three"))


def test_queries_of_all_kinds_are_declared_rightly(tmp_path: Path) -> None:
    queries = Queries(seed=3)
    declared = [queries.next() for _ in range(4 * queries.kinds)]
    declared += [queries.next(strange=True) for _ in range(4)]
    sql = streams_sql(tmp_path, START, START + timedelta(minutes=1)) + "\n".join(q.sql for q in declared)
    workload = language.load_text(sql)
    assert len(workload.queries) == len(declared)
    assert len({query.select for query in declared}) > 0.9 * len(declared)


def test_each_second_is_a_file_when_it_is_over(tmp_path: Path) -> None:
    with Feeder(tmp_path, START, START + timedelta(seconds=3)):  # long over
        wait_until(lambda: len([*(tmp_path / "readings").glob("[0-9]*.parquet")]) == 3)
    for number, file in enumerate(sorted((tmp_path / "readings").iterdir())):
        second = START + timedelta(seconds=number)
        rows = pq.read_table(file)
        times = [at.replace(tzinfo=None) for at in rows["at"].to_pylist()]
        assert rows.num_rows == READINGS_PER_S
        assert second - timedelta(seconds=3) <= min(times) < second  # some come out of order
        assert second <= max(times) < second + timedelta(seconds=1)


def begun() -> Ledger:
    return Ledger({"one": ONE.select}, {"one": None})


def test_a_change_is_as_the_system_tells() -> None:
    ledger = begun()
    ledger.made(Change(adds=(TWO,)), {"two": 5})
    ledger.made(Change(drops=("one",)), {})
    ledger.made(Change(adds=(ONE,)), {"one#2": 7})
    ledger.compare({"two": 5, "one#2": 7})
    assert ledger.live == ["two", "one#2"]
    assert not ledger.wrong


@pytest.mark.parametrize(
    ("change", "listed", "wrong"),
    [
        (Change(adds=(TWO, THREE)), {"one": None}, []),
        (Change(adds=(TWO, THREE)), {"one": None, "two": 5, "three": 5}, []),
        (Change(adds=(TWO, THREE)), {"one": None, "two": 5}, ["nobody added two"]),
        (Change(adds=(TWO,)), {"one": None, "three": 5}, ["nobody added three"]),
        (Change(adds=(TWO,)), {"one": 5}, ["T0 of one was None, and is 5"]),
        (Change(adds=(TWO,)), {}, ["nobody dropped one"]),
        (Change(drops=("one",)), {}, []),
        (Change(drops=("one",)), {"one": None}, []),
    ],
)
def test_a_change_without_an_answer_is_there_as_a_whole_or_not_at_all(
    change: Change, listed: dict[str, int | None], wrong: list[str]
) -> None:
    ledger = begun()
    ledger.not_answered(change)
    ledger.compare(listed)
    assert ledger.wrong == wrong
    if not wrong:
        assert sorted(ledger.live) == sorted(listed)


def test_only_a_change_without_an_answer_explains_a_difference() -> None:
    ledger = begun()
    ledger.not_answered(Change(adds=(TWO,)))
    ledger.compare({"one": None})
    ledger.compare({"one": None, "two": 5})
    assert ledger.wrong == ["nobody added two"]


SAMPLE = samples.Sample(
    life=1,
    second=0.0,
    python_mb=100,
    java_mb=900,
    open_files=50,
    threads=70,
    database_mb=1,
    checkpoints_mb=1,
    journals_mb=1,
    statistics_mb=1,
    manifest_mb=1,
    other_state_mb=1,
    state_files=100,
    result_files=10,
    results_mb=1,
    batch_s=0.5,
    lag_s=None,
)


def test_lives_are_compared_by_what_they_took_in_the_end() -> None:
    lives = [
        replace(SAMPLE, life=life, second=5.0 * sample, java_mb=java_mb, threads=life)
        for life, last_mb in enumerate((400, 1_000, 1_000, 1_100, 1_000, 1_050))
        for sample, java_mb in enumerate((9_000, *[last_mb] * 11, 2 * last_mb))
    ]
    cut_short = replace(SAMPLE, life=9, java_mb=9_000)
    report = Report("endurance", False)
    samples.describe([*lives, cut_short], report)
    held = {claim.claim: claim.holds for claim in report.claims}
    assert report.figures["memory_mb_second_third"] == 1_150
    assert report.figures["memory_mb_last_third"] == 1_125
    assert held["memory of Python and Java does not grow"]
    assert not held["threads do not become more"]  # of lives 2 and 3, and 4 and 5
    assert {*report.charts} == {"memory", "state"}


@pytest.mark.parametrize(("more_in_each_life", "holds"), [(0, True), (150, False)])
def test_files_are_counted_over_whole_lives(more_in_each_life: int, holds: bool) -> None:
    """They rise to 1,100 and fall to 500 every 90 samples; lives of 60 end anywhere between."""
    taken = [
        replace(SAMPLE, life=n // 60, second=5.0 * n, state_files=500 + n % 90 * 600 // 89)
        for n in range(12 * 60)
    ]
    grown = [replace(s, state_files=s.state_files + more_in_each_life * s.life) for s in taken]
    report = Report("endurance", False)
    samples.describe(grown, report)
    held = {claim.claim: claim.holds for claim in report.claims}
    assert held["the files of the state folder do not become more"] == holds, report.figures


# Memory in MB as it was minute by minute in lives of a run, from the first batch on.
MEASURED_LIVES = (
    (1_467, 1_639, 1_661, 1_705, 1_726),
    (1_663, 1_674, 1_721, 1_744),
    (1_927, 2_344, 2_344),
    (1_733, 1_765, 1_768),
    (1_502, 2_025, 2_012, 2_073, 2_099),
)


def lives_with(leak_mb_per_minute: float) -> list[samples.Sample]:
    """Lives like those, each after twenty seconds in which it starts."""
    rng = random.Random(1)
    lives = []
    for life, minutes in enumerate(MEASURED_LIVES):
        taken = [*[500.0] * 4, *(float(mb) for mb in minutes for _ in range(12))]
        for number, mb in enumerate(taken):
            second = number * samples.SAMPLE_EVERY_S
            java_mb = mb + rng.uniform(-20, 20) + leak_mb_per_minute * second / 60 - SAMPLE.python_mb
            batch_s = None if number < 4 else 0.5
            lives.append(replace(SAMPLE, life=life, second=second, java_mb=java_mb, batch_s=batch_s))
    return lives


@pytest.mark.parametrize(
    ("leak_mb_per_minute", "holds"), [(0, True), (2, True), (20, False), (100, False), (-20, True)]
)
def test_a_leak_is_found_that_each_life_has(leak_mb_per_minute: float, holds: bool) -> None:
    report = Report("endurance", False)
    samples.describe(lives_with(leak_mb_per_minute), report)
    held = {claim.claim: claim.holds for claim in report.claims}
    assert held["memory does not grow while a life lasts"] == holds, report.figures


def test_lives_that_are_too_short_to_tell_do_not_count_as_steady() -> None:
    report = Report("endurance", False)
    samples.describe([replace(SAMPLE, second=5.0 * number) for number in range(35)], report)
    (claim,) = [each for each in report.claims if each.claim == "memory does not grow while a life lasts"]
    assert not claim.holds
    assert claim.why_not == "of 0 lives: "


def test_processes_are_found_with_what_they_take() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as parent:
        wait_until(lambda: len(processes_below(parent.pid)) == 2)
        below = processes_below(parent.pid)
        assert below[parent.pid].program.startswith("python")
        assert all(use.memory_mb > 1 and use.threads >= 1 for use in below.values())
        assert all(open_files(pid) >= 3 for pid in below)
        parent.communicate(b"\n")
    assert processes_below(parent.pid) == {}
    assert open_files(parent.pid) == 0


def test_who_is_ended_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "plait", "bench", "endurance", "--quick"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as bench:
        wait_until(lambda: len(processes_below(bench.pid)) == 2)
        (system,) = processes_below(bench.pid).keys() - {bench.pid}
        bench.send_signal(signal.SIGTERM)
        _, said = bench.communicate()
    assert bench.returncode == INTERRUPTED, said
    assert processes_below(system) == {}
    assert [*tmp_path.glob("plait-endurance-*")] == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_small_system_lasts() -> None:
    told: list[str] = []
    benchmark = EnduranceBenchmark(extents=(Extent(75, 25.0), Extent(75, 25.0)), queries=48)
    report = benchmark.run(quick=True, observer=told.append)
    held = {claim.claim: claim.holds for claim in report.claims}
    assert held["nothing goes wrong that a kill does not explain"], report.claims
    assert held["a change is there as a whole or not at all, and T0 stays"], report.claims
    assert held["the rows are those of the definition"], report.claims
    for figure, least in (("kills", 1), ("changes_made", 3), ("rows_compared", 1_000)):
        found = report.figures[figure]
        assert isinstance(found, int)
        assert found >= least, figure
    assert told[0] == "48 queries start"
