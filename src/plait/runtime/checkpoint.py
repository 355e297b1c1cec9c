"""What Spark's checkpoint of a streaming query says: batches planned and committed, and watermarks.

Spark writes `offsets/N` when it plans batch N, runs it, and writes `commits/N`. A batch with the first and
without the second runs again at the next start. In `offsets/N` stands the watermark that batch N closes
windows by; batch N + 1 takes rows for late by it.
"""

from __future__ import annotations

import json
from pathlib import Path

from plait.errors import ExternalError

_NOTHING = "-"  # where a source stands that has not brought anything yet


class Checkpoint:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def last_planned(self) -> int | None:
        return _greatest(self.path / "offsets")

    @property
    def last_committed(self) -> int | None:
        return _greatest(self.path / "commits")

    def sweep(self) -> None:
        """Remove what a kill has left of a first plan: Spark refuses to begin beside it."""
        if self.last_planned is None:
            for draft in (self.path / "offsets").glob(".*"):
                draft.unlink()

    def check(self) -> None:
        """An error if the last plan, or commit, is not whole, as a power cut may leave it: Spark would end
        without a word."""
        for log, last in (("offsets", self.last_planned), ("commits", self.last_committed)):
            if last is None:
                continue
            file = self.path / log / str(last)
            try:
                _version, *entries = file.read_text(encoding="utf-8").splitlines()
                for entry in entries:
                    if entry != _NOTHING:
                        json.loads(entry)
            except (OSError, ValueError) as error:
                raise _unreadable(file, error) from None

    def watermark_us(self, batch: int) -> int | None:
        """The watermark that the batch closes windows by; None if there was no such batch."""
        file = self.path / "offsets" / str(batch)
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            return int(json.loads(lines[1])["batchWatermarkMs"]) * 1000
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise _unreadable(file, error) from None


def _greatest(folder: Path) -> int | None:
    try:
        return max((int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()), default=None)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: Exception) -> ExternalError:
    return ExternalError(
        "checkpoint",
        f"Spark's checkpoint cannot be read: {path}",
        detail=str(error),
        hint="bring the whole state folder back from a copy; "
        "or start anew with other --state and --results folders",
    )
