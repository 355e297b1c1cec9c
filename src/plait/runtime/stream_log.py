"""What has come by a stream, whoever reads it: how many rows, and the bad records, kept aside exactly once.

A batch's bad records are one file of JSON lines, `bad/000000017.jsonl`, written and renamed like results: a
batch that runs again replaces it.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic, time

from plait.batches import Arrived
from plait.catalog import Stream
from plait.durable_files import write_durably
from plait.failpoints import reach
from plait.runtime.journal import ROWS, Journal
from plait.runtime.recent_rate import RecentRate
from plait.runtime.state import StreamFolder
from plait.spark.batch_files import FilesRead

BAD = "bad"
# A silent stream moves on in steps of its timeout over this, so that beats stay few.
_STEPS = 10


class StreamLog:
    """One stream while a run reads it. `last_arrival` is when it last brought anything, or was started."""

    def __init__(
        self, stream: Stream, folder: StreamFolder, journal: Journal, files: FilesRead | None
    ) -> None:
        self.stream = stream
        self.folder = folder
        self.rate = RecentRate()
        self.last_arrival = monotonic()
        self.totals = journal.totals()
        self._journal = journal
        self._files = files
        self._beaten_us: int | None = None

    def start(self) -> None:
        self.last_arrival = monotonic()

    def begin(self, batch: int) -> None:
        self._journal.begin(batch, dict)
        if self._files is not None:
            self._files.begin_batch()

    def finish(self, batch: int, arrived: Arrived) -> None:
        """Write down what the batch brought. Of a batch that finished before, it is written over, unless some
        of it is gone by now."""
        if not arrived.is_complete and self._journal.last_finished == batch:
            return
        if arrived.bad:
            lines = "".join(f"{json.dumps(record)}\n" for record in arrived.bad)
            write_durably(self.folder.bad / f"{batch:09d}.jsonl", lines.encode())
        reach("bad-records-kept")
        reached = [] if arrived.last_us is None else [arrived.last_us - self.stream.delay_us]
        reached += [] if self.rows_watermark_us is None else [self.rows_watermark_us]
        watermarks_us = {ROWS: max(reached)} if reached else {}
        self._journal.finish(batch, {ROWS: arrived.rows, BAD: len(arrived.bad)}, watermarks_us)
        self.totals = self._journal.totals()
        if arrived.rows or arrived.bad:
            self.last_arrival = monotonic()
            self.rate.add(arrived.rows)

    @property
    def watermark_us(self) -> int | None:
        """As rows have moved it, and beats of this run."""
        known = (self.rows_watermark_us, self._beaten_us)
        return max((us for us in known if us is not None), default=None)

    @property
    def rows_watermark_us(self) -> int | None:
        """As rows have moved it."""
        return self.totals.watermarks_us.get(ROWS)

    def changed_files(self) -> tuple[Path, ...]:
        """Files that were changed after they had been read, which nobody reads again."""
        return () if self._files is None else self._files.changed()

    @property
    def gone(self) -> Path | None:
        """The folder, or file, that the stream is read from, if it is not there any more."""
        return None if self._files is None else self._files.gone

    def idle_time_us(self, trigger_seconds: float) -> int | None:
        """The time that the stream counts as having reached, if it has been silent for its `idle_timeout`.

        Nobody knows that before somebody has looked for rows in vain: some may be there that are not read
        yet. What came since that look, a trigger ago at most, is not known either, so the time is not later.
        """
        timeout_us = self.stream.idle_timeout_us
        if timeout_us is None or monotonic() - self.last_arrival < timeout_us / 1e6:
            return None
        reached_us = int(time() * 1e6) - max(timeout_us, int(trigger_seconds * 1e6))
        beaten_us = self._beaten_us
        if beaten_us is not None and reached_us - self.stream.delay_us < beaten_us + timeout_us // _STEPS:
            return None
        return reached_us

    def beat(self, reached_us: int) -> None:
        """It was said that the stream has come that far."""
        self._beaten_us = reached_us - self.stream.delay_us
