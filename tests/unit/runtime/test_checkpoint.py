"""What Spark's checkpoint says, and what a kill leaves in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import ExternalError
from plait.runtime.checkpoint import Checkpoint


def test_the_draft_of_a_first_plan_is_removed(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    Checkpoint(tmp_path).sweep()  # nothing is there yet
    offsets.mkdir()
    (offsets / ".0.00431b92.tmp").touch()
    Checkpoint(tmp_path).sweep()
    assert not [*offsets.iterdir()]


def test_a_checkpoint_of_batches_is_left_alone(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for name in ("0", ".0.crc", ".1.00431b92.tmp"):
        (offsets / name).touch()
    Checkpoint(tmp_path).sweep()
    assert len([*offsets.iterdir()]) == 3


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize("content", ["", 'v1\n{"batchWatermarkMs":0'])
def test_what_is_not_whole_is_named(tmp_path: Path, log: str, content: str) -> None:
    (tmp_path / log).mkdir()
    (tmp_path / log / "0").write_text(content)  # Spark looks at the last alone
    (tmp_path / log / "1").write_text('v1\n{"batchWatermarkMs":0}\n-\n{"logOffset":0}')
    Checkpoint(tmp_path).check()
    (tmp_path / log / "2").write_text(content)
    with pytest.raises(ExternalError, match=f"cannot be read: {tmp_path / log / '2'}"):
        Checkpoint(tmp_path).check()
