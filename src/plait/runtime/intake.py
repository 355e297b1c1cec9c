"""What comes in by a stream, whoever reads it: how many rows, and the bad records, kept aside exactly once.

A batch's bad records are one file of JSON lines, `bad/000000017.jsonl`, written and renamed like results: a
batch that runs again replaces it.
"""

from __future__ import annotations

import json
from time import monotonic

from plait.catalog import Stream
from plait.runtime.durable_files import write_durably
from plait.runtime.journal import Journal, Totals
from plait.runtime.recent_rate import RecentRate
from plait.runtime.state import StreamFolder
from plait.spark.execution import Execution, Frame

BAD = "bad"
READ = "read"


class Intake:
    """One stream while a run reads it."""

    def __init__(self, stream: Stream, frame: Frame, folder: StreamFolder) -> None:
        self.stream = stream
        self.folder = folder
        self.journal = Journal(folder.journal)
        self.execution: Execution | None = None
        self.last_arrival = monotonic()
        self._frame = frame
        self.rate = RecentRate()

    def start(self, name: str, trigger_seconds: float | None) -> None:
        self.execution = Execution(self._frame, name, self.folder.checkpoint, self._process, trigger_seconds)

    def close(self) -> None:
        self.journal.close()

    def watch(self) -> None:
        """Take note of what was read since the last time."""
        if self.execution is None:
            return
        for read in self.execution.read_rows():
            self.last_arrival = monotonic()
            self.journal.add(read.batch, READ, read.rows)
            self.rate.add(read.rows)

    @property
    def totals(self) -> Totals:
        return self.journal.totals()

    def _process(self, frame: Frame, batch: int) -> None:
        self.journal.begin(batch, dict)
        records = frame.toArrow().to_pylist()
        if records:
            lines = (json.dumps(record, ensure_ascii=False) for record in records)
            text = "".join(f"{line}\n" for line in lines)
            write_durably(self.folder.bad / f"{batch:09d}.jsonl", text.encode("utf-8", "surrogatepass"))
        self.journal.finish(batch, {BAD: len(records)})
