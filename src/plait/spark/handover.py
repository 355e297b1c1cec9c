"""Spark's part of a query that a database computes: reading, filtering and projecting its inputs.

A stream is read once, in however many inputs it is used, and no row of it is filtered away before the batch
has seen its event time: the watermark goes by all rows of a stream. The frame is the union of all streams,
with these columns:

| column | is |
|---|---|
| `stream` | the number of the stream |
| `t` | the event time in microseconds |
| `beat` | whether that is all there is |
| `i0`, `i1`, … | whether the row is one of that input |
| `i0_c0`, `i0_c1`, … | the columns of that input |

A batch is collected by a single action, as Arrow, and handed over input by input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Arrived, Batch, Outcome, Processed, Publish
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment
from plait.deployment.row_by_row import RowByRow, row_by_row
from plait.expressions.arrow import arrow_schema
from plait.expressions.spark import to_spark, type_to_spark
from plait.plan.nodes import Node
from plait.spark.stream_rows import RowSource, StreamRows, scans_by_stream


class Query(Protocol):
    """What computes the rest: `engines.incremental.IncrementalQuery`."""

    def apply(
        self, batch: Batch, rows: Mapping[Node, pa.Table], beats: Mapping[str, int], publish: Publish
    ) -> Outcome: ...


class Handover:
    """The inputs of a fragment, of which `query` computes the rest."""

    def __init__(
        self, fragment: Fragment, catalog: Catalog, sources: RowSource, beats: Path, query: Query
    ) -> None:
        self._inputs = [each.plan for each in fragment.inputs]
        self._query = query
        self._name = fragment.only.query
        ways = [row_by_row(plan) for plan in self._inputs]
        scans = scans_by_stream(way.scan for way in ways)
        self._streams = list(scans)
        self._shared = {number for number, way in enumerate(ways) if len(scans[way.scan.stream.lower()]) > 1}
        frames = []
        for number, (stream, of_stream) in enumerate(scans.items()):
            rows = StreamRows(stream, of_stream, catalog, sources.rows, beats)
            items = [item for k, way in enumerate(ways) for item in _items(k, way, rows)]
            times = (f"{number} AS stream", "unix_micros(t) AS t", "beat")
            frames.append(rows.frame.selectExpr(*times, *items))
        self.frame = frames[0]
        for frame in frames[1:]:
            self.frame = self.frame.unionAll(frame)

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Hand the rows of a batch over, with the greatest event time of each stream."""
        observation = Observation()
        observed = frame.observe(
            observation,
            *(
                F.max(F.when(F.col("stream") == number, F.col("t"))).alias(f"seen_{number}")
                for number in range(len(self._streams))
            ),
            *(
                F.count_if((F.col("stream") == number) & ~F.col("beat")).alias(f"read_{number}")
                for number in range(len(self._streams))
            ),
        )
        table = observed.where(" OR ".join(f"i{k}" for k in range(len(self._inputs)))).toArrow()
        seen = observation.get
        beats = {
            stream: seen[f"seen_{number}"]
            for number, stream in enumerate(self._streams)
            if seen[f"seen_{number}"] is not None
        }
        arrived = {stream: Arrived(seen[f"read_{n}"]) for n, stream in enumerate(self._streams)}
        if self._shared:
            table = table.append_column("row", pa.array(range(table.num_rows), type=pa.int64()))
        rows = {plan: self._rows_of(number, plan, table) for number, plan in enumerate(self._inputs)}
        return Processed({self._name: self._query.apply(batch, rows, beats, publish)}, arrived)

    def _rows_of(self, number: int, plan: Node, table: pa.Table) -> pa.Table:
        """The rows of an input; where the stream has further inputs, each with the number of the row."""
        also = ["t", "row"] if number in self._shared else ["t"]
        names = [f"c{k}" for k in range(len(plan.types))]
        taken = table.filter(table[f"i{number}"]).select([*(f"i{number}_{name}" for name in names), *also])
        schema = arrow_schema(names, plan.types)
        for name in also:
            schema = schema.append(pa.field(name, pa.int64()))
        return taken.rename_columns([*names, *also]).cast(schema)


def _items(number: int, way: RowByRow, rows: StreamRows) -> Sequence[str]:
    """The columns for an input: NULLs where the rows are of another stream, or not of this input."""
    if way.scan.stream.lower() != rows.stream.name.lower():
        nulls = (
            f"CAST(NULL AS {type_to_spark(e.type)}) AS i{number}_c{k}" for k, e in enumerate(way.expressions)
        )
        return [f"FALSE AS i{number}", *nulls]
    names = rows.columns_of(way.scan)
    is_taken = f"(NOT beat AND coalesce({to_spark(way.predicate, names)}, FALSE))"
    computed = (f"CAST({to_spark(e, names)} AS {type_to_spark(e.type)})" for e in way.expressions)
    taken = (f"CASE WHEN {is_taken} THEN {value} END AS i{number}_c{k}" for k, value in enumerate(computed))
    return [f"{is_taken} AS i{number}", *taken]
