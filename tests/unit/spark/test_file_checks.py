"""Files are held against their stream's declaration once, without remembering all there ever were."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.catalog import Stream
from plait.engines import stored_files
from plait.spark import source_files
from plait.spark.source_files import FileChecks

STREAM = Stream("readings", (), "files", event_time="at")
FILES = [Path(f"{number}.parquet") for number in range(5)]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened; three of a stream are remembered."""
    found: list[Path] = []
    monkeypatch.setattr(stored_files, "check_columns", lambda _, __, file: found.append(file))
    monkeypatch.setattr(source_files, "_FILES_KNOWN", 3)
    return found


def test_the_last_files_are_remembered_and_no_more(looked_at: list[Path]) -> None:
    checks = FileChecks()
    for file in FILES:
        checks.check_columns(STREAM, [file])
        checks.check_columns(STREAM, [file])
    assert looked_at == FILES
    checks.check_columns(STREAM, FILES[2:])
    assert looked_at == FILES
    checks.check_columns(STREAM, FILES[:1])
    assert looked_at == [*FILES, FILES[0]]


def test_many_files_that_are_there_at_once_are_looked_at_once(looked_at: list[Path]) -> None:
    checks = FileChecks()
    for _query in range(3):
        checks.check_columns(STREAM, FILES)
    assert looked_at == FILES
