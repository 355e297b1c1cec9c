"""Spark's part of queries that a database computes together: each stream is read once, for all of them, its
bad records too.

The frame is the union of all streams, with these columns:

| column | is |
|---|---|
| `stream` | the number of the stream |
| `t` | the event time in microseconds; NULL in bad records |
| `good` | whether it is a row; else it is a bad record, or a beat, of which a time is all there is |
| `wanted` | whether any query may want the row |
| `reason`, `record` | of a bad record, why it is one, and its text |
| `s0_c0`, `s0_c1`, … | the columns of that stream; NULL in rows of others |

A batch is collected by a single action, as Arrow, and handed over stream by stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived, Batch, Outcome, Processed, Publish
from plait.catalog import Catalog
from plait.deployment.row_by_row import RowByRow
from plait.expressions.arrow import arrow_schema
from plait.expressions.spark import to_spark, type_to_spark
from plait.spark.stream_rows import RecordSource, StreamRows


class Queries(Protocol):
    """What computes the rest: `engines.shared.Trunk`."""

    def apply(
        self, batch: Batch, rows: Mapping[str, pa.Table], beats: Mapping[str, int], publish: Publish
    ) -> Mapping[str, Outcome]: ...


class TrunkRows:
    """The rows of streams that any of the `queries` wants. Inputs are by the streams' keys."""

    def __init__(
        self,
        inputs: Mapping[str, RowByRow],
        catalog: Catalog,
        sources: RecordSource,
        beats: Path,
        queries: Queries,
    ) -> None:
        self._scans = {key: each.scan for key, each in inputs.items()}
        self._queries = queries
        frames = []
        for number, (key, scan) in enumerate(self._scans.items()):
            rows = StreamRows(key, [scan], catalog, sources.records_and_beats, beats)
            own = rows.columns_of(scan)
            is_good = "NOT beat AND reason IS NULL"
            items = [
                f"{number} AS stream",
                "CASE WHEN reason IS NULL THEN unix_micros(t) END AS t",
                f"{is_good} AS good",
                f"{is_good} AND coalesce({to_spark(inputs[key].predicate, own)}, FALSE) AS wanted",
                "reason",
                "record",
            ]
            for other, each in enumerate(self._scans.values()):
                for k, type_ in enumerate(each.types):
                    value = own[k] if other == number else f"CAST(NULL AS {type_to_spark(type_)})"
                    items.append(f"{value} AS s{other}_c{k}")
            frames.append(rows.frame.selectExpr(*items))
        self.frame = frames[0]
        for frame in frames[1:]:
            self.frame = self.frame.unionAll(frame)

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Hand the rows of a batch over; what came of it for each query, and what each stream brought."""
        observation = Observation()
        counts = []
        for number in range(len(self._scans)):
            is_its = F.col("stream") == number
            counts += [
                F.max(F.when(is_its, F.col("t"))).alias(f"seen_{number}"),
                F.max(F.when(is_its & F.col("good"), F.col("t"))).alias(f"last_{number}"),
                F.count_if(is_its & F.col("good")).alias(f"read_{number}"),
            ]
        taken = frame.observe(observation, *counts).where("wanted OR reason IS NOT NULL").drop("good")
        table = taken.toArrow()
        seen = observation.get
        keys = [*self._scans]
        bad = self._bad_records(table)
        if any(bad):
            table = table.filter(table["wanted"])
        beats = {key: seen[f"seen_{n}"] for n, key in enumerate(keys) if seen[f"seen_{n}"] is not None}
        rows = {key: self._rows_of(number, key, table) for number, key in enumerate(keys)}
        arrived = {key: Arrived(seen[f"read_{n}"], seen[f"last_{n}"], bad[n]) for n, key in enumerate(keys)}
        return Processed(self._queries.apply(batch, rows, beats, publish), arrived)

    def _bad_records(self, table: pa.Table) -> list[list[dict[str, str]]]:
        """Those of each stream."""
        found: list[list[dict[str, str]]] = [[] for _ in self._scans]
        if table["reason"].null_count < table.num_rows:
            bad = table.filter(pc.is_valid(table["reason"])).select(["stream", "reason", "record"])
            for record in bad.to_pylist():
                found[record.pop("stream")].append(record)
        return found

    def _rows_of(self, number: int, key: str, table: pa.Table) -> pa.Table:
        names = [f"c{k}" for k in range(len(self._scans[key].columns))]
        own = table if len(self._scans) == 1 else table.filter(pc.equal(table["stream"], number))
        schema = arrow_schema(names, self._scans[key].types).append(pa.field("t", pa.int64()))
        columns = own.select([*(f"s{number}_{name}" for name in names), "t"])
        return columns.rename_columns([*names, "t"]).cast(schema)
