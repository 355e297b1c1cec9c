"""When a stream counts as silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from unittest.mock import MagicMock

import pytest

from plait.catalog import Stream
from plait.runtime.intake import Intake
from plait.runtime.journal import Journal
from plait.runtime.state import StreamFolder

SECOND_US = 1_000_000


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Intake]:
    """One that runs, and has brought nothing for a minute."""
    stream = Stream("s", (), "files", event_time="at", idle_timeout_us=5 * SECOND_US)
    journal = Journal(tmp_path / "journal.sqlite")
    sources = MagicMock(files_read=MagicMock(return_value=None))
    intake = Intake(stream, sources, StreamFolder(tmp_path), journal)
    intake._execution = MagicMock(is_active=True, found_nothing=True)
    intake.last_arrival = monotonic() - 60
    yield intake
    journal.close()


def test_a_silent_stream_follows_the_clock(intake: Intake) -> None:
    reached_us = intake.idle_beat()
    assert reached_us is not None
    assert abs(reached_us - (time() - 5) * 1e6) < 60 * SECOND_US


def test_a_stream_is_not_silent_before_rows_were_looked_for_in_vain(intake: Intake) -> None:
    intake._execution = MagicMock(is_active=True, found_nothing=False)
    assert intake.idle_beat() is None


def test_what_came_since_the_last_look_is_not_known(intake: Intake) -> None:
    intake._trigger_seconds = 600.0
    reached_us = intake.idle_beat()
    assert reached_us is not None
    assert reached_us <= (time() - 600) * 1e6


def test_what_nobody_reads_is_not_silent(intake: Intake) -> None:
    intake._execution = MagicMock(is_active=False)
    assert intake.idle_beat() is None
