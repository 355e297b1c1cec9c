"""What is known of a stream: how many rows came, its bad records, and when it counts as silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time

import pytest

from plait.batches import Arrived
from plait.catalog import Stream
from plait.runtime.journal import Journal
from plait.runtime.state import StreamFolder
from plait.runtime.stream_log import StreamLog

SECOND_US = 1_000_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[StreamLog]:
    """Of a stream that has brought nothing for a minute."""
    stream = Stream("s", (), "files", event_time="at", idle_timeout_us=5 * SECOND_US)
    journal = Journal(tmp_path / "journal.sqlite")
    (tmp_path / "bad").mkdir()
    log = StreamLog(stream, StreamFolder(tmp_path), journal, None)
    log.last_arrival = monotonic() - 60
    yield log
    journal.close()


def test_a_silent_stream_follows_the_clock(log: StreamLog) -> None:
    reached_us = log.idle_time_us(1.0)
    assert reached_us is not None
    assert abs(reached_us - (time() - 5) * 1e6) < 60 * SECOND_US


def test_beats_of_a_silent_stream_are_few(log: StreamLog) -> None:
    reached_us = log.idle_time_us(1.0)
    assert reached_us is not None
    log.beat(reached_us)
    assert log.watermark_us == reached_us
    assert log.rows_watermark_us is None
    assert log.idle_time_us(1.0) is None


def test_what_came_since_the_last_look_is_not_known(log: StreamLog) -> None:
    reached_us = log.idle_time_us(600.0)
    assert reached_us is not None
    assert reached_us <= (time() - 600) * 1e6


def test_a_stream_that_has_brought_something_is_not_silent(log: StreamLog) -> None:
    log.begin(0)
    log.finish(0, Arrived(1, 7 * SECOND_US))
    assert log.idle_time_us(1.0) is None
    assert log.rows_watermark_us == 7 * SECOND_US


def test_a_batch_that_runs_again_counts_once(log: StreamLog, tmp_path: Path) -> None:
    bad = [{"reason": "no number", "record": "x"}]
    for _ in range(2):
        log.begin(0)
        log.finish(0, Arrived(3, 7 * SECOND_US, bad))
    assert dict(log.totals.counts) == {"rows": 3, "bad": 1}
    assert (tmp_path / "bad" / "000000000.jsonl").read_text() == '{"reason": "no number", "record": "x"}\n'


def test_a_batch_that_runs_again_without_some_of_its_files_keeps_what_it_brought(
    log: StreamLog, tmp_path: Path
) -> None:
    bad = [{"reason": "no number", "record": text} for text in "xy"]
    log.begin(0)
    log.finish(0, Arrived(3, 7 * SECOND_US, bad))
    written = (tmp_path / "bad" / "000000000.jsonl").read_text()
    log.begin(0)
    log.finish(0, Arrived(1, 5 * SECOND_US, bad[:1], is_complete=False))
    assert dict(log.totals.counts) == {"rows": 3, "bad": 2}
    assert log.rows_watermark_us == 7 * SECOND_US
    assert (tmp_path / "bad" / "000000000.jsonl").read_text() == written
    log.begin(1)  # what is left of a batch is all there is, if nothing else is known of it
    log.finish(1, Arrived(1, is_complete=False))
    assert dict(log.totals.counts) == {"rows": 4, "bad": 2}
