"""What is shown of a run, from snapshots made by hand."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from plait.deployment.fragments import Way
from plait.errors import ExternalError
from plait.runtime.progress import QUERIES_SHOWN, line, live_table, summary_json, summary_text
from plait.runtime.snapshot import QueryProgress, QueryState, RunProgress, StreamProgress

NOON = 1_767_268_800_000_000  # 2026-01-01 12:00:00
READINGS = StreamProgress("readings", 120_000, 4_980.0, NOON, 3, Path("plait-state/streams/readings/bad"))
SILENT = StreamProgress("alarms")
TOTALS = QueryProgress(
    "totals",
    Way.NATIVE,
    "results/totals",
    "exactly once",
    QueryState.RUNNING,
    rows=1_234,
    late_rows={"readings": 2},
    batches=12,
    batch_seconds=0.34,
    watermark_us=NOON,
    waiting="the next window closes at 2026-01-01 12:01:00; the watermark is at 2026-01-01 12:00:00",
    is_open=True,
)
NOTHING = replace(
    TOTALS,
    name="answers",
    rows=0,
    late_rows={},
    batch_seconds=None,
    waiting="no data yet in alarms",
    is_open=False,
)
PROGRESS = RunProgress(75.0, NOON + 12_000_000, (READINGS, SILENT), (TOTALS, NOTHING), 1.0)


def on_terminal(progress: RunProgress) -> str:
    output = io.StringIO()
    Console(file=output, width=160, force_terminal=False).print(live_table(progress))
    return "\n".join(text.rstrip() for text in output.getvalue().splitlines())


def test_the_live_table() -> None:
    assert on_terminal(PROGRESS) == (
        """\
stream        rows   rows/s   watermark             behind   bad records
────────────────────────────────────────────────────────────────────────
readings   120,000    4,980   2026-01-01 12:00:00     12 s             3
alarms           0        0   no data yet                              0

query      rows   rows/s   late           batch
───────────────────────────────────────────────────────────────────────
totals    1,234        0      2   340 ms of 1 s
answers       0        0      0                   no data yet in alarms
75 s; Ctrl-C stops cleanly"""
    )


def test_a_batch_that_takes_longer_than_the_trigger_is_said() -> None:
    slow = replace(PROGRESS, queries=(replace(TOTALS, batch_seconds=1.5),))
    assert "1.5 s of 1 s   batches take longer than the trigger" in on_terminal(slow)


def test_a_failed_query_is_shown_first_among_many() -> None:
    failed = replace(NOTHING, name="broken", state=QueryState.FAILED, error=ExternalError("results", "disk"))
    many = (*(replace(TOTALS, name=f"q{k}") for k in range(QUERIES_SHOWN)), failed)
    shown = on_terminal(replace(PROGRESS, queries=many))
    assert "broken" in shown
    assert "failed: disk" in shown
    assert f"q{QUERIES_SHOWN - 1} " not in shown
    assert "… and 1 more query" in shown


def test_a_line_for_logs() -> None:
    assert line(PROGRESS) == (
        "75 s: readings 4,980 rows/s up to 2026-01-01 12:00:00, alarms 0 rows/s; 2 queries, 1,234 rows,"
        " 2 late rows, 3 bad records; batches take up to 340 ms;"
        " no rows yet of answers: no data yet in alarms"
    )


def test_a_line_gives_each_reason_once() -> None:
    silent = tuple(replace(NOTHING, name=f"q{k}") for k in range(5))
    shown = line(replace(PROGRESS, queries=silent))
    assert shown.endswith("; no rows yet of q0, q1, q2 and 2 more: no data yet in alarms")


def test_the_summary_says_what_came_of_it_and_what_is_open() -> None:
    console = replace(
        TOTALS,
        name="shown",
        results="the console",
        guarantee="at least once: again",
        waiting="",
        is_open=False,
    )
    assert summary_text(replace(PROGRESS, queries=(TOTALS, NOTHING, console))) == (
        """\
query      rows   late   results
───────────────────────────────────────
totals    1,234      2   results/totals
answers       0      0   results/totals
shown     1,234      2   the console

late rows, left out of some results:
  totals: 2 of readings
  shown: 2 of readings

bad records:
  3 of readings, in plait-state/streams/readings/bad

not exactly once:
  shown: at least once: again

without rows:
  answers: no data yet in alarms

still open:
  totals: the next window closes at 2026-01-01 12:01:00; the watermark is at 2026-01-01 12:00:00"""
    )


def test_the_summary_for_machines_is_json() -> None:
    failed = replace(TOTALS, state=QueryState.FAILED, error=ExternalError("results", "the disk is full"))
    document = json.loads(json.dumps(summary_json(replace(PROGRESS, queries=(failed,)))))
    assert document["streams"][0]["bad_folder"] == "plait-state/streams/readings/bad"
    (query,) = document["queries"]
    assert (query["state"], query["rows"], query["late_rows"]) == ("failed", 1_234, {"readings": 2})
    assert query["error"]["message"] == "the disk is full"


def test_data_that_may_be_wrong_is_told() -> None:
    ahead = replace(READINGS, ahead_us=3 * 86_400_000_000, changed_files=("a.csv", "b.csv"))
    progress = replace(PROGRESS, streams=(ahead,))
    clock = "the watermark of readings is 3 days ahead of the clock"
    files = "a.csv and 1 other file of readings changed after being read"
    for shown in (on_terminal(progress), line(progress), summary_text(progress)):
        assert clock in shown
        assert files in shown
    assert [words.split(",")[0] for words in summary_json(progress)["warnings"]] == [clock, files]
    assert "ahead" not in summary_text(replace(PROGRESS, streams=(replace(ahead, ahead_us=1_000_000),)))


def test_what_could_not_be_done_so_far_is_told() -> None:
    progress = replace(PROGRESS, put_off=("queries are not merged: it is busy",))
    for shown in (on_terminal(progress), line(progress), summary_text(progress)):
        assert "queries are not merged: it is busy" in shown


def test_a_run_without_queries_is_shown_too() -> None:
    nothing = RunProgress(0.0, NOON)
    assert line(nothing)
    assert on_terminal(nothing)
    assert summary_text(nothing)


def test_a_silent_stream_that_holds_queries_back_is_told_with_them() -> None:
    alarms = replace(SILENT, silent_since_us=NOON + 500_000)
    held_back = [replace(TOTALS, name=f"q{n}", held_back_by="alarms") for n in range(5)]
    progress = replace(PROGRESS, streams=(READINGS, alarms), queries=(*held_back, NOTHING))
    said = "alarms is silent since 2026-01-01 12:00:00 and holds back q0, q1, q2 and 2 more: "
    assert f"{said}an idle_timeout would let them go on" in line(progress)
    patient = replace(alarms, idle_timeout_us=300_000_000)
    progress = replace(progress, streams=(READINGS, patient))
    assert f"{said}its idle_timeout of 5 min will let them go on" in summary_text(progress)
    assert "silent" not in line(replace(progress, queries=(TOTALS, NOTHING)))


def test_a_place_that_takes_longer_than_batches_may_is_told() -> None:
    slow = replace(TOTALS, handing_over_seconds=4.2)
    said = "totals: results/totals takes 4.2 s for the rows of a micro-batch"
    assert said in line(replace(PROGRESS, queries=(slow,)))
    assert said not in line(replace(PROGRESS, queries=(slow,), trigger_seconds=10.0))


def test_a_folder_of_a_stream_that_is_not_there_is_told() -> None:
    progress = replace(PROGRESS, streams=(replace(READINGS, gone="data/readings"),))
    warnings = summary_json(progress)["warnings"]
    assert warnings == [
        "data/readings, where readings is read from, is not there any more: bring it back, and it is read on"
    ]
