"""Streams of Parquet files, for queries that a database computes together: Spark says which files a batch
consists of, and remembers it; the database reads them.

The frame stands for the files, and is never computed: for Spark to read rows and hand them over takes longer
than all the rest of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame

from plait.batches import Batch, Processed, Publish
from plait.catalog import Catalog
from plait.deployment.row_by_row import RowByRow
from plait.engines.arriving_files import ArrivingFiles
from plait.engines.data_errors import option
from plait.engines.duckdb import Database
from plait.errors import UserError
from plait.spark.batch_files import BatchFiles
from plait.spark.beats import beats_in
from plait.spark.failures import REPLACE, data_gone
from plait.spark.trunk_rows import Queries


class FileSource(Protocol):
    """Where files come from: `spark.sources.Sources`."""

    def files(self, stream: str) -> DataFrame: ...
    def beats(self, folder: Path) -> DataFrame: ...


class DoneQueries(Queries, Protocol):
    """What computes the rest, and remembers what it has done: `engines.shared.Trunk`."""

    def has_done(self, batch: int) -> bool: ...


class TrunkFiles:
    """Inputs are by the streams' keys; `checkpoint` is where Spark notes the files of each batch."""

    def __init__(
        self,
        inputs: Mapping[str, RowByRow],
        catalog: Catalog,
        sources: FileSource,
        beats: Path,
        checkpoint: Path,
        database: Database,
        queries: DoneQueries,
    ) -> None:
        self._log = BatchFiles(checkpoint)
        self._queries = queries
        self._catalog = catalog
        self._database = database
        self.become(inputs)
        self._paths = {key: Path(option(catalog.stream(key), "path")).absolute() for key in inputs}
        # Sources are numbered in this order.
        frames = [*(sources.files(key) for key in inputs), sources.beats(beats)]
        self.frame = frames[0].selectExpr("1")
        for frame in frames[1:]:
            self.frame = self.frame.unionAll(frame.selectExpr("1"))

    def become(self, inputs: Mapping[str, RowByRow]) -> bool:
        """Read other columns of the same streams, or other rows; whether that needs another frame, which
        never is the case: it says nothing of either."""
        self._streams = {
            key: ArrivingFiles(self._database, self._catalog.stream(key), each.scan, each.predicate)
            for key, each in inputs.items()
        }
        return False

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Read the rows of a batch; what came of it for each query, and what each stream brought."""
        del frame
        clock_us = self._log.clock_us(batch.id)
        rows, arrived = {}, {}
        for number, (key, stream) in enumerate(self._streams.items()):
            files = self._files(batch.id, number, key)
            there = self._there(batch.id, files, key)
            try:
                rows[key], brought = stream.read(there, clock_us)
                arrived[key] = replace(brought, is_complete=len(there) == len(files))
            except UserError as error:
                hint = f"{REPLACE}; {error.hint}" if error.hint else REPLACE
                raise UserError(error.code, error.message, detail=error.detail, hint=hint) from None
            except FileNotFoundError as error:
                raise data_gone(f"stream `{key}`", f": {error.filename}") from None
        reached = {key: each.last_us for key, each in arrived.items() if each.last_us is not None}
        for key, us in beats_in(self._log.of(batch.id, len(self._streams))).items():
            reached[key] = max(us, reached.get(key, us))
        return Processed(self._queries.apply(batch, rows, reached, publish), arrived)

    def _files(self, batch: int, number: int, key: str) -> list[Path]:
        """Those of a stream; Spark lists what is in folders of its folder, too, and some hidden files."""
        path = self._paths[key]
        listed = (file for file in self._log.of(batch, number) if path in (file, file.parent))
        return [file for file in listed if file.name[0] not in "._"]

    def _there(self, batch: int, files: Sequence[Path], key: str) -> list[Path]:
        """Those that are still there, which may be some only if the batch is done."""
        there = [file for file in files if file.exists()]
        if len(there) < len(files) and not self._queries.has_done(batch):
            gone = next(file for file in files if file not in there)
            raise data_gone(f"stream `{key}`", f": {gone}")
        return there
