"""A fragment while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

import plait
from plait.deployment.lowering import fragments
from plait.runtime.fragment_run import FragmentRun
from plait.runtime.journal import Journal
from plait.runtime.state import FragmentFolder

SQL = """
CREATE STREAM s (load INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE CONTINUOUS QUERY q AS SELECT load FROM s;
"""


def test_a_batch_that_fails_is_not_running_any_more(tmp_path: Path) -> None:
    session = plait.open_text(SQL)
    (fragment,) = fragments(session.plan().deployment, session.workload.catalog, together=True)
    folder = FragmentFolder(tmp_path)
    folder.beats.mkdir()
    journal = Journal(folder.journal)
    computation = MagicMock()
    run = FragmentRun(fragment, MagicMock(), computation, folder, MagicMock(), journal, MagicMock())
    is_running = []

    def fail(*_: object) -> None:
        is_running.append(run.is_in_first_batch)
        raise ValueError("no such file")

    computation.process.side_effect = fail
    with pytest.raises(ValueError, match="no such file"):
        run._process(cast(Any, None), 0)
    journal.close()
    assert is_running == [True]
    assert not run.is_in_first_batch
