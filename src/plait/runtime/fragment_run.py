"""One query while it runs: what happens in each micro-batch, in the order that makes each count once.

1. The journal says that the batch begins, and which versions of tables it sees.
2. The rows are computed and published: a file that is named by the batch, so that publishing again replaces
   it. What is computed in the database is then committed there, with the batch's id.
3. The journal says what came of the batch.
4. Spark commits.

Wherever this ends, Spark runs the batch again over the same rows; each step knows what was done before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import Protocol

from plait.batches import Batch, Outcome, Publish
from plait.deployment.fragments import Fragment
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.failpoints import reach
from plait.plan.nodes import sources_of
from plait.runtime.beats import Beats
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.journal import ROWS, Journal
from plait.runtime.recent_rate import RecentRate
from plait.runtime.sinks import Sink
from plait.runtime.state import QueryFolder
from plait.runtime.streaming_work import StreamingWork
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Frame
from plait.spark.sources import Sources

_LATE = "late:"


class Computation(Protocol):
    """A fragment as Spark runs it: a streaming frame, and what is done with each micro-batch of it."""

    @property
    def frame(self) -> Frame: ...
    def process(self, frame: Frame, batch: Batch, publish: Publish) -> Outcome: ...


class FragmentRun(StreamingWork):
    """A fragment with its state. Streams and tables are known by their keys."""

    def __init__(
        self,
        fragment: Fragment,
        sources: Sources,
        computation: Computation,
        folder: QueryFolder,
        sink: Sink,
        journal: Journal,
        tables: TablesInUse,
    ) -> None:
        super().__init__(f"query {fragment.query}", computation.frame, folder.checkpoint)
        streams, joined = sources_of(fragment.plan)
        self.fragment = fragment
        self.streams = tuple(sorted(name.lower() for name in streams))
        self.sink = sink
        self.journal = journal
        self.beats = Beats(folder.beats, journal.last_finished)
        self.rate = RecentRate()
        self.batch_seconds: float | None = None
        self.totals = journal.totals()
        self._batch_began: float | None = None
        self._batch_ended = -math.inf
        self._looked: dict[str, float] = {}  # when a stream was looked at in vain
        self._tables_read = tuple(sorted(name.lower() for name in joined))
        self._sources = sources
        self._computation = computation
        self._checkpoint = Checkpoint(folder.checkpoint)
        self._tables = tables

    @property
    def late_rows(self) -> Mapping[str, int]:
        counts = self.totals.counts
        return {name.removeprefix(_LATE): n for name, n in counts.items() if name.startswith(_LATE)}

    @property
    def watermark_us(self) -> int | None:
        """The watermark that the query goes by; None until a row has moved it."""
        return self.totals.watermark_us or None

    @property
    def has_closed(self) -> bool:
        """Whether everything is closed that waits for a watermark: once the streams have ended, all is."""
        stages = self.fragment.stages
        if stages is not None and not stages.probes:
            return True  # no operator keeps anything
        return self.watermark_us is not None and self.watermark_us > LAST_EVENT_TIME_US

    @property
    def is_in_first_batch(self) -> bool:
        return self._batch_began is not None and not self.totals.batches

    def has_read(self, stream: str, until: float) -> bool:
        """Whether the query has looked for rows of a stream after that moment, in vain: so it has read all
        that others had read by then. It may be far behind them."""
        looked = self._looked.get(stream, -math.inf)
        if self._batch_began is None and self.found_nothing:
            looked = max(looked, self._batch_ended, monotonic() - self._trigger_seconds)
        return looked > until

    def _process(self, frame: Frame, batch: int) -> None:
        began = self._batch_began = monotonic()
        tables = self._tables.begin(self.journal, batch, self._tables_read)
        reach("batch-begun")
        self._sources.check_batch(self.streams, self._checkpoint.path)
        late_before_us = self._checkpoint.watermark_us(batch - 1)
        publish = partial(self.sink.publish, batch)
        outcome = self._computation.process(frame, Batch(batch, late_before_us, tables), publish)
        watermark_us = outcome.watermark_us
        if watermark_us is None:
            watermark_us = self._checkpoint.watermark_us(batch)
        late = {f"{_LATE}{stream.lower()}": count for stream, count in outcome.late_rows.items()}
        self.journal.finish(batch, {ROWS: outcome.rows, **late}, watermark_us)
        reach("batch-finished")
        self.totals = self.journal.totals()
        self._batch_ended = monotonic()
        self.batch_seconds = self._batch_ended - began
        self._batch_began = None
        self._looked |= {stream.lower(): began for stream, n in outcome.rows_read.items() if not n}
        self.rate.add(outcome.rows)
