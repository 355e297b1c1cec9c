"""What comes in by a stream, whoever reads it: how many rows, and the bad records, kept aside exactly once.

A batch's bad records are one file of JSON lines, `bad/000000017.jsonl`, written and renamed like results: a
batch that runs again replaces it.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic, time

from plait.catalog import Stream
from plait.durable_files import write_durably
from plait.failpoints import reach
from plait.runtime.journal import ROWS, Journal
from plait.runtime.recent_rate import RecentRate
from plait.runtime.state import StreamFolder
from plait.runtime.streaming_work import StreamingWork
from plait.spark.arrivals import arrivals
from plait.spark.execution import Frame
from plait.spark.sources import Sources

BAD = "bad"
# A silent stream moves on in steps of its timeout over this, so that beats stay few.
_STEPS = 10


class Intake(StreamingWork):
    """One stream while a run reads it. `last_arrival` is when it last brought anything, or was started."""

    def __init__(self, stream: Stream, sources: Sources, folder: StreamFolder, journal: Journal) -> None:
        super().__init__(f"intake of stream {stream.name}", sources.records(stream.name), folder.checkpoint)
        self.stream = stream
        self.folder = folder
        self.journal = journal
        self.rate = RecentRate()
        self.last_arrival = monotonic()
        self.totals = journal.totals()
        self._sources = sources
        self._files = sources.files_read(stream.name, folder.checkpoint)
        self._beaten_us: int | None = None

    def start(self, run_name: str, trigger_seconds: float | None) -> None:
        super().start(run_name, trigger_seconds)
        self.last_arrival = monotonic()

    @property
    def watermark_us(self) -> int | None:
        """As rows have moved it, and beats of this run."""
        known = (self.totals.watermark_us, self._beaten_us)
        return max((us for us in known if us is not None), default=None)

    def changed_files(self) -> tuple[Path, ...]:
        """Files that were changed after they had been read, which nobody reads again."""
        return () if self._files is None else self._files.changed()

    def idle_beat(self) -> int | None:
        """The time that the stream counts as having reached, if it has been silent for its `idle_timeout`.

        Nobody knows that before somebody has looked for rows in vain: some may be there that are not read
        yet. What came since that look is not known either, so the time is not later than the look.
        """
        timeout_us = self.stream.idle_timeout_us
        if timeout_us is None or not self.is_active or not self.found_nothing:
            return None
        if monotonic() - self.last_arrival < timeout_us / 1e6:
            return None
        reached_us = int(time() * 1e6) - max(timeout_us, int(self._trigger_seconds * 1e6))
        beaten_us = self._beaten_us
        if beaten_us is not None and reached_us - self.stream.delay_us < beaten_us + timeout_us // _STEPS:
            return None
        self._beaten_us = reached_us - self.stream.delay_us
        return reached_us

    def _process(self, frame: Frame, batch: int) -> None:
        self.journal.begin(batch, dict)
        self._sources.check_batch([self.stream.name], self.folder.checkpoint)
        if self._files is not None:
            self._files.begin_batch()
        found = arrivals(frame)
        if found.bad:
            lines = "".join(f"{json.dumps(record)}\n" for record in found.bad)
            write_durably(self.folder.bad / f"{batch:09d}.jsonl", lines.encode())
        reach("bad-records-kept")
        reached = [] if found.last_us is None else [found.last_us - self.stream.delay_us]
        reached += [] if self.totals.watermark_us is None else [self.totals.watermark_us]
        self.journal.finish(batch, {ROWS: found.rows, BAD: len(found.bad)}, max(reached, default=None))
        self.totals = self.journal.totals()
        if found.rows or found.bad:
            self.last_arrival = monotonic()
            self.rate.add(found.rows)
