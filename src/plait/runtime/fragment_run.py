"""One query while it runs: what happens in each micro-batch, in the order that makes each count once.

1. The journal says that the batch begins, and which versions of tables it sees.
2. The rows are computed and published: a file that is named by the batch, so that publishing again replaces
   it. What is computed in the database is then committed there, with the batch's id.
3. The journal says what came of the batch.
4. Spark commits.

Wherever this ends, Spark runs the batch again over the same rows; each step knows what was done before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from time import monotonic
from typing import Protocol

from plait.batches import Batch, Outcome, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment
from plait.failpoints import reach
from plait.plan.nodes import sources_of
from plait.runtime.beats import Beats
from plait.runtime.checkpoint import Checkpoint
from plait.runtime.journal import Journal, Totals
from plait.runtime.recent_rate import RecentRate
from plait.runtime.sinks import Sink
from plait.runtime.state import QueryFolder
from plait.runtime.tables_in_use import TablesInUse
from plait.spark.execution import Execution, Frame

ROWS = "rows"
_LATE = "late:"


class Computation(Protocol):
    """A fragment as Spark runs it: a streaming frame, and what is done with each micro-batch of it."""

    @property
    def frame(self) -> Frame: ...
    def process(self, frame: Frame, batch: Batch, publish: Publish) -> Outcome: ...


class FragmentRun:
    """A fragment with its state. `start` may be called again after an execution has ended."""

    def __init__(
        self,
        fragment: Fragment,
        catalog: Catalog,
        computation: Computation,
        folder: QueryFolder,
        sink: Sink,
        journal: Journal,
        tables: TablesInUse,
        close: Callable[[], None],
    ) -> None:
        streams, joined = sources_of(fragment.plan)
        self.fragment = fragment
        self.streams = tuple(sorted(name.lower() for name in streams))
        self.sink = sink
        self.journal = journal
        self.beats = Beats(folder.beats, journal.last_finished)
        self.execution: Execution | None = None
        self.rate = RecentRate()
        self.batch_seconds: float | None = None
        self._catalog = catalog
        self._tables_read = sorted(name.lower() for name in joined)
        self._computation = computation
        self._folder = folder
        self._checkpoint = Checkpoint(folder.checkpoint)
        self._tables = tables
        self._close = close
        self._totals = journal.totals()
        self._watermark_us = self._totals.watermark_us
        self._lock = Lock()

    def start(self, name: str, trigger_seconds: float | None) -> None:
        self.execution = Execution(
            self._computation.frame, name, self._folder.checkpoint, self._process, trigger_seconds
        )
        reach("fragment-started")

    def close(self) -> None:
        self._close()
        self.sink.close()
        self.journal.close()

    @property
    def totals(self) -> Totals:
        with self._lock:
            return self._totals

    @property
    def late_rows(self) -> Mapping[str, int]:
        """By the stream's name."""
        counts = self.totals.counts
        late = {name.removeprefix(_LATE): n for name, n in counts.items() if name.startswith(_LATE)}
        return {self._catalog.stream(key).name: count for key, count in late.items()}

    @property
    def watermark_us(self) -> int | None:
        """The watermark that the query goes by; None until a row has moved it."""
        return self._watermark_us or None

    def _process(self, frame: Frame, id_: int) -> None:
        began = monotonic()
        tables = self._tables.begin(self.journal, id_, self._tables_read)
        reach("batch-begun")
        late_before_us = None if id_ == 0 else self._checkpoint.watermark_us(id_ - 1)
        batch = Batch(id_, late_before_us, tables)
        outcome = self._computation.process(frame, batch, partial(self.sink.publish, id_))
        watermark_us = outcome.watermark_us
        if watermark_us is None:
            watermark_us = self._checkpoint.watermark_us(id_)
        counts = {ROWS: outcome.rows, **{f"{_LATE}{key}": n for key, n in outcome.late_rows.items()}}
        self.journal.finish(id_, counts, watermark_us=watermark_us)
        reach("batch-finished")
        with self._lock:
            self._totals = self.journal.totals()
            self._watermark_us = watermark_us
            self.batch_seconds = monotonic() - began
        self.rate.add(outcome.rows)
