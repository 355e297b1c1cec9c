"""What Spark's checkpoint says, and what a kill leaves in it."""

from __future__ import annotations

from pathlib import Path

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
