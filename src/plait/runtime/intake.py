"""A stream that is read for its own sake, beside the queries that read it: to count its rows and bad records.

A fragment that alone reads a stream does that itself (`FragmentRun`).
"""

from __future__ import annotations

from pathlib import Path

from plait.runtime.stream_log import StreamLog
from plait.runtime.streaming_work import StreamingWork
from plait.spark.arrivals import arrivals
from plait.spark.execution import Frame
from plait.spark.sources import Sources


class Intake(StreamingWork):
    def __init__(self, log: StreamLog, sources: Sources, checkpoint: Path) -> None:
        super().__init__(f"intake of stream {log.stream.name}", sources.records(log.stream.name), checkpoint)
        self.log = log
        self._sources = sources
        self._checkpoint = checkpoint

    def start(self, run_name: str, trigger_seconds: float | None) -> None:
        super().start(run_name, trigger_seconds)
        self.log.start()

    def _process(self, frame: Frame, batch: int) -> None:
        self.log.begin(batch)
        self._sources.check_batch([self.log.stream.name], self._checkpoint)
        self.log.finish(batch, arrivals(frame))
