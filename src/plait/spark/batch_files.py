"""Which files a streaming query has come to, as Spark notes it in the checkpoint before it runs a batch.

A source of files notes in `sources/I/` which files each of its steps brought: step k in a file k of its own,
or in one with all before it (`k.compact`). Which step belongs to which batch is told by `offsets/N`, but only
if the plan has each source once: one that it reads twice is listed twice there, and has one log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EMFILE
from pathlib import Path

from plait.errors import ExternalError
from plait.spark.file_paths import path_of_url

# A batch reads the files of its sources' last step and, if a crash came between noting and planning, of one
# or two before.
_STEPS_OF_A_BATCH = 3
# To look whether a file has changed takes a call of `stat`.
_FILES_WATCHED = 1000


class FileLog:
    """The log of one query's sources of files."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._seen: dict[Path, int] = {}

    def news(self) -> list[Path]:
        """Files noted since the last time, or that the next batch may read if this is the first."""
        with _readable(self._checkpoint):
            return [file for folder in self._checkpoint.glob("sources/*") for file in self._new_files(folder)]

    def _new_files(self, folder: Path) -> Iterator[Path]:
        steps = {
            int(file.name.partition(".")[0]): file for file in folder.iterdir() if file.name[0].isdigit()
        }
        if not steps:
            return
        last = max(steps)
        for step in range(self._seen.get(folder, last - _STEPS_OF_A_BATCH) + 1, last + 1):
            if step in steps:
                yield from _files(steps[step], step)
        self._seen[folder] = last


class BatchFiles:
    """The files of each batch of a query that reads nothing but files, each source once. Sources are numbered
    in the order of the plan."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    def of(self, batch: int, source: int) -> list[Path]:
        folder = self._checkpoint / "sources" / str(source)
        with _readable(self._checkpoint):
            steps = range(self._step(batch - 1, source) + 1, self._step(batch, source) + 1)
            return [file for step in steps for file in _files(_log_of(folder, step), step)]

    def clock_us(self, batch: int) -> int:
        """The time that a batch takes for now."""
        with _readable(self._checkpoint):
            return int(json.loads(self._offsets(batch)[1])["batchTimestampMs"]) * 1000

    def _step(self, batch: int, source: int) -> int:
        """The last step of a source that is read by a batch."""
        if batch < 0:
            return -1
        line = self._offsets(batch)[2 + source]
        return -1 if line == "-" else int(json.loads(line)["logOffset"])

    def _offsets(self, batch: int) -> list[str]:
        return (self._checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()


class FilesRead:
    """The files of a stream that a query has read lately, as they were then. What is added to a file
    afterwards is never read: Spark knows files by their names."""

    def __init__(self, checkpoint: Path, path: Path) -> None:
        self._log = FileLog(checkpoint)
        self._path = path
        self._as_read: dict[Path, tuple[int, int]] = {}

    @property
    def gone(self) -> Path | None:
        """Where the files should be, if that is not there any more. To Spark it is as if nothing came."""
        return None if self._path.exists() else self._path

    def begin_batch(self) -> None:
        """Take note of the files that come now, before they are read."""
        news = [file for file in self._log.news() if self._path in (file, file.parent)]
        as_read = {**self._as_read, **{file: status for file in news if (status := _status(file))}}
        self._as_read = dict(list(as_read.items())[-_FILES_WATCHED:])

    def changed(self) -> tuple[Path, ...]:
        """Those that are no longer as they were when they were read. One that was taken away is no matter."""
        return tuple(file for file, before in self._as_read.items() if (_status(file) or before) != before)


def _status(file: Path) -> tuple[int, int] | None:
    """Size and time of change; None if it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@contextmanager
def _readable(checkpoint: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError) as error:
        if isinstance(error, OSError) and error.errno == EMFILE:
            raise  # nothing is wrong with the checkpoint
        raise ExternalError(
            "checkpoint",
            f"Spark's checkpoint cannot be read: {checkpoint}",
            detail=str(error),
            hint="start anew with other --state and --results folders",
        ) from None


def _log_of(folder: Path, step: int) -> Path:
    """The log that holds a step: its own, or the next that holds all before it."""
    own = folder / str(step)
    if own.exists():
        return own
    number = min(number for file in folder.glob("*.compact") if (number := int(file.stem)) >= step)
    return folder / f"{number}.compact"


def _files(log: Path, step: int) -> Iterator[Path]:
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        if entry["batchId"] == step:
            yield path_of_url(entry["path"])
