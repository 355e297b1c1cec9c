"""Spark's part of queries that a database computes: each stream is read once, for all of them, its bad
records too. No row is filtered away before the batch has seen its event time: watermarks go by all rows.

The frame is the union of all streams, with these columns:

| column | is |
|---|---|
| `stream` | the number of the stream |
| `t` | the event time in microseconds; NULL in bad records |
| `kind` | whether it is a row, a bad record, or a beat, of which a time is all there is |
| `reason`, `record` | of a bad record, why it is one, and its text |
| `s0_c0`, `s0_c1`, … | the columns of that stream; NULL in rows of others |

A batch is collected by a single action, as Arrow, and handed over stream by stream. What is filtered away is
counted on the way, which is not for nothing: Spark does that row by row, without compiling it. What any query
may want is asked of each batch, and not part of the frame: queries come and go, and the frame stays.
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
from plait.expressions.nodes import TRUE
from plait.expressions.spark import to_spark, type_to_spark
from plait.plan.nodes import StreamScan
from plait.spark.stream_rows import RecordSource, StreamRows

# Kinds.
_ROW, _BAD, _BEAT = 0, 1, 2


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
        self._catalog = catalog
        self._sources = sources
        self._beats = beats
        self._queries = queries
        self._framed: Mapping[str, StreamScan] = {}  # the columns that the frame has
        self.become(inputs)

    def become(self, inputs: Mapping[str, RowByRow]) -> bool:
        """Hand over other columns of the same streams, or other rows; whether that needs another frame: one
        that has more columns than are wanted is kept."""
        self._inputs = inputs
        self._scans = {key: each.scan for key, each in inputs.items()}
        self._filtered = [n for n, each in enumerate(inputs.values()) if each.predicate != TRUE]
        is_framed = bool(self._framed) and all(
            {*scan.columns} <= {*self._framed[key].columns} for key, scan in self._scans.items()
        )
        if not is_framed:
            self._framed = self._scans
            self.frame = self._united()
        self._columns = [
            [f"s{number}_c{self._framed[key].columns.index(field)}" for field in scan.columns]
            for number, (key, scan) in enumerate(self._scans.items())
        ]
        return not is_framed

    def _united(self) -> DataFrame:
        frames = []
        for number, (key, scan) in enumerate(self._framed.items()):
            rows = StreamRows(key, [scan], self._catalog, self._sources, self._beats)
            own = rows.columns_of(scan)
            items = [
                f"{number} AS stream",
                "CASE WHEN reason IS NULL THEN unix_micros(t) END AS t",
                f"CASE WHEN beat THEN {_BEAT} WHEN reason IS NOT NULL THEN {_BAD} ELSE {_ROW} END AS kind",
                "reason",
                "record",
            ]
            for other, each in enumerate(self._framed.values()):
                for k, type_ in enumerate(each.types):
                    value = own[k] if other == number else f"CAST(NULL AS {type_to_spark(type_)})"
                    items.append(f"{value} AS s{other}_c{k}")
            frames.append(rows.records.union(rows.beats).selectExpr(*items))
        united = frames[0]
        for frame in frames[1:]:
            united = united.unionAll(frame)
        return united

    def _wanted(self) -> str:
        """Which rows any query may want, of the frame."""
        if not self._filtered:
            return "true"
        each = [
            f"WHEN {number} THEN coalesce({to_spark(simple.predicate, self._columns[number])}, FALSE)"
            for number, simple in enumerate(self._inputs.values())
        ]
        return f"CASE stream {' '.join(each)} END"

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Hand the rows of a batch over; what came of it for each query, and what each stream brought."""
        observation, counts = Observation(), []
        for number in self._filtered:
            is_its_row = (F.col("stream") == number) & (F.col("kind") == _ROW)
            counts.append(F.max(F.when(is_its_row, F.col("t"))).alias(f"last_{number}"))
            counts.append(F.count_if(is_its_row).alias(f"read_{number}"))
        observed = frame.observe(observation, *counts) if counts else frame
        columns = [name for own in self._columns for name in own]
        wanted = observed.where(f"kind != {_ROW} OR {self._wanted()}")
        table = wanted.select("stream", "t", "kind", "reason", "record", *columns).toArrow()
        rows, bad, beats = (table.filter(pc.equal(table["kind"], kind)) for kind in (_ROW, _BAD, _BEAT))
        own = {key: self._rows_of(number, key, rows) for number, key in enumerate(self._scans)}
        records = self._bad_records(bad)
        arrived, reached = {}, {}
        for number, (key, its) in enumerate(own.items()):
            read, last_us = its.num_rows, pc.max(its["t"]).as_py()
            if number in self._filtered:
                read, last_us = observation.get[f"read_{number}"], observation.get[f"last_{number}"]
            arrived[key] = Arrived(read, last_us, records[number])
            beaten_us = pc.max(beats.filter(pc.equal(beats["stream"], number))["t"]).as_py()
            reached[key] = max((us for us in (last_us, beaten_us) if us is not None), default=None)
        known = {key: us for key, us in reached.items() if us is not None}
        return Processed(self._queries.apply(batch, own, known, publish), arrived)

    def _bad_records(self, bad: pa.Table) -> list[list[dict[str, str]]]:
        """Those of each stream."""
        found: list[list[dict[str, str]]] = [[] for _ in self._scans]
        for record in bad.select(["stream", "reason", "record"]).to_pylist():
            found[record.pop("stream")].append(record)
        return found

    def _rows_of(self, number: int, key: str, rows: pa.Table) -> pa.Table:
        names = [f"c{k}" for k in range(len(self._scans[key].columns))]
        own = rows if len(self._scans) == 1 else rows.filter(pc.equal(rows["stream"], number))
        schema = arrow_schema(names, self._scans[key].types).append(pa.field("t", pa.int64()))
        columns = own.select([*self._columns[number], "t"])
        return columns.rename_columns([*names, "t"]).cast(schema)
