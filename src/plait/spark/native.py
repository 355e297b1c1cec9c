"""Runs a query on Spark's own streaming operators: the stages of its fragment, then each batch's epilogue.

Each batch is computed by a single action, which also counts the rows that were too late (`late_rows`).
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from plait.batches import Batch, BatchRows, Outcome, Processed, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment
from plait.spark.epilogue import Epilogue
from plait.spark.late_rows import LateRows
from plait.spark.stage_frames import applied, stream_readers
from plait.spark.stream_rows import RowSource


class NativeComputation:
    """The stages of a fragment of one query."""

    def __init__(self, fragment: Fragment, catalog: Catalog, sources: RowSource, beats: Path) -> None:
        stages = fragment.stages
        assert stages is not None, fragment.name
        self._query = fragment.only.query
        readers = stream_readers(stages, catalog, sources.rows, beats)
        self._epilogue = Epilogue(stages, fragment.only.columns, catalog)
        self._late_rows = LateRows()
        for probe in stages.probes:
            key = probe.scan.stream.lower()
            self._late_rows.watch(key, readers[key].all_rows, readers[key].in_time_until(probe))
        self.frame = self._late_rows.beside(self._epilogue.handed_over(applied(stages.streaming, readers)))

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Compute one batch, publish its rows and count the rows of streams that came too late."""
        counting = self._late_rows.counting(frame, batch)
        rows = self._epilogue.table(counting.results, batch)
        publish([BatchRows((self._query,), rows)])
        return Processed({self._query: Outcome(rows.num_rows, counting.late)}, counting.arrived)
