"""Which files a batch reads, from what Spark notes in a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.spark.batch_files import BatchFiles


def planned(checkpoint: Path, batch: int, steps: list[int | None]) -> None:
    """A batch whose sources have come to these steps."""
    lines = ["v1", json.dumps({"batchTimestampMs": 1000 + batch})]
    lines += ["-" if step is None else json.dumps({"logOffset": step}) for step in steps]
    offsets = checkpoint / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / str(batch)).write_text("\n".join(lines))


def noted(checkpoint: Path, source: int, log: str, files: dict[str, int]) -> None:
    entries = [json.dumps({"path": f"file:///data/{name}", "batchId": step}) for name, step in files.items()]
    folder = checkpoint / "sources" / str(source)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / log).write_text("\n".join(["v1", *entries]))


def test_files_of_a_batch(tmp_path: Path) -> None:
    planned(tmp_path, 0, [0, None])
    planned(tmp_path, 1, [2, None])
    planned(tmp_path, 2, [2, 0])
    noted(tmp_path, 0, "0", {"a": 0, "b%20b": 0})
    noted(tmp_path, 0, "1", {"c": 1})
    noted(tmp_path, 0, "2", {"d": 2})
    noted(tmp_path, 1, "0", {"e": 0})
    files = BatchFiles(tmp_path)
    found = [[[file.name for file in files.of(batch, source)] for source in (0, 1)] for batch in range(3)]
    assert found == [[["a", "b b"], []], [["c", "d"], []], [[], ["e"]]]
    assert files.clock_us(1) == 1_001_000


@pytest.mark.parametrize("kept", [("0", "1"), ()])
def test_steps_may_be_found_in_a_log_of_all_before(tmp_path: Path, kept: tuple[str, ...]) -> None:
    planned(tmp_path, 0, [0])
    planned(tmp_path, 1, [2])
    for step in kept:
        noted(tmp_path, 0, step, {f"file {step}": int(step)})
    noted(tmp_path, 0, "2.compact", {"file 0": 0, "file 1": 1, "file 2": 2})
    assert [file.name for file in BatchFiles(tmp_path).of(1, 0)] == ["file 1", "file 2"]
