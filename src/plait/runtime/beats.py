"""Beats: tiny files that tell a query "stream s has reached time t", where no rows do.

Spark reads the folder as one more source of the query, so a replayed batch sees the beats of its first
attempt. A beat at the end of time says that a stream has ended and closes everything. Files that no batch can
need any more are removed, since Spark lists the folder at every batch.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

from plait.durable_files import write_durably
from plait.failpoints import reach

# The year 20000: after every event time, with room for delays and ranges, and within Spark's timestamps.
END_OF_TIME_US = 568_971_820_800 * 1_000_000

_END = "end.csv"
# A beat that is written while batch n runs is read by batch n + 1 or n + 2, and then committed with it.
_BATCHES_NEEDED = 3


class Beats:
    """The beats of one query."""

    def __init__(self, folder: Path, last_finished: int | None) -> None:
        self.folder = folder
        numbers = sorted(int(file.stem) for file in folder.glob("*.csv") if file.stem.isdecimal())
        self._next = numbers[-1] + 1 if numbers else 0
        self._written = deque((self._file(number), last_finished or 0) for number in numbers)

    def write(self, times_us: Mapping[str, int], last_finished: int | None) -> None:
        """Streams (by key) have reached these times. The query has finished its batches up to the last."""
        finished = last_finished or 0
        while self._written and finished >= self._written[0][1] + _BATCHES_NEEDED:
            self._written.popleft()[0].unlink(missing_ok=True)
        file = self._file(self._next)
        self._next += 1
        self._put(file, times_us)
        self._written.append((file, finished))

    def end(self, streams: Iterable[str]) -> None:
        """The streams have ended. Once is enough, also over restarts."""
        file = self.folder / _END
        if not file.exists():
            self._put(file, dict.fromkeys(streams, END_OF_TIME_US))

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:09d}.csv"

    def _put(self, file: Path, times_us: Mapping[str, int]) -> None:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(sorted(times_us.items()))
        write_durably(file, text.getvalue().encode())
        reach("beat-written")
