"""Runs a query on Spark's own streaming operators: the stages of its fragment, then each batch's epilogue.

Each batch is computed by a single action, which also counts what is read (`counted_rows`). Only if rows were
too late, or expressions failed on some, is there another, which counts these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from plait.batches import Batch, BatchRows, Outcome, Processed, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result
from plait.deployment.measured import measured
from plait.spark.counted_rows import Counting
from plait.spark.epilogue import Epilogue
from plait.spark.failing_rows import FailingRows
from plait.spark.observing import Observing
from plait.spark.stage_frames import applied, stream_readers
from plait.spark.stream_rows import RecordSource


class NativeComputation:
    """The stages of a fragment of one query. A batch may give `most_rows`."""

    def __init__(
        self,
        fragment: Fragment,
        catalog: Catalog,
        sources: RecordSource,
        beats: Path,
        most_rows: int | None = None,
    ) -> None:
        stages = fragment.stages
        assert stages is not None, fragment.name
        self._query = fragment.only.query
        readers = stream_readers(stages, catalog, sources, beats)
        self._counted = [reader.counted for reader in readers.values()]
        self._failing = FailingRows(fragment.results, readers)
        self._epilogue = Epilogue(stages, fragment.only.columns, catalog, most_rows)
        self.frame = self._epilogue.handed_over(applied(stages.streaming, readers))
        self.observing = Observing(measured(stages.streaming), [self._query])
        self.give(fragment.results)

    def give(self, results: Sequence[Result]) -> None:
        """Give, and count, what these say of the query, from the next batch on."""
        (result,) = results
        self._gives, self._until_us = result.gives, result.until_us

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Compute one batch, publish its rows and count the rows of streams that came too late."""
        counting = Counting(frame, batch, self._counted)
        with self.observing.computing():
            rows = self._epilogue.table(frame, batch, self._gives)
        with self.observing.handing_out():
            publish([BatchRows((self._query,), rows)])
        until = "true" if self._until_us is None else f"unix_micros(t) <= {self._until_us}"
        late = {stream: rows.where(until).count() for stream, rows in counting.late.items()}
        ends_us = {} if self._until_us is None else {self._query: self._until_us}
        failed = self._failing.found(counting, ends_us).get(self._query, {})
        outcome = Outcome(rows.num_rows, late, failed=failed)
        processed = Processed({self._query: outcome}, counting.arrived)
        self.observing.note(counting, processed)
        return processed
