"""Which files a micro-batch reads, as Spark notes it in the checkpoint before the batch runs.

`offsets/N` has one line for each source after two of Spark's own; a source of files notes `{"logOffset": k}`,
and in `sources/I/` which files each k brought: in a file k of its own, or in one with all before it
(`k.compact`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from plait.errors import ExternalError
from plait.spark.file_paths import path_of_url


def files_of_batch(checkpoint: Path, batch: int) -> list[Path]:
    """All files that the batch reads, whatever source they belong to."""
    try:
        before = _offsets(checkpoint, batch - 1)
        files: list[Path] = []
        for source, offset in _offsets(checkpoint, batch).items():
            folder = checkpoint / "sources" / str(source)
            for number in range(before.get(source, -1) + 1, offset + 1):
                files += _files(folder, number)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ExternalError(
            "checkpoint",
            f"Spark's checkpoint cannot be read: {checkpoint}",
            detail=str(error),
            hint="start anew with other --state and --results folders",
        ) from None
    return files


def _offsets(checkpoint: Path, batch: int) -> dict[int, int]:
    """By number of the source, for those that read files."""
    file = checkpoint / "offsets" / str(batch)
    if not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()[2:]
    entries = [json.loads(line) if line.startswith("{") else None for line in lines]
    return {
        source: int(entry["logOffset"])
        for source, entry in enumerate(entries)
        if entry and "logOffset" in entry
    }


def _files(folder: Path, number: int) -> Iterator[Path]:
    own = folder / str(number)
    log = own if own.exists() else folder / f"{number}.compact"
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        if entry["batchId"] == number:
            yield path_of_url(entry["path"])
