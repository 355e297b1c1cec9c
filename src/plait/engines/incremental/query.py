"""Computes a query one micro-batch at a time, exactly, with bounded state in a DuckDB file.

A micro-batch is one transaction: what no band can need any more is deleted; the new rows are stored; the
watermark moves, and every stage computes the band of event times that has become final (`bands`), adding to
the stores or giving results; the results are published; the batch's id is noted. So a batch that was
interrupted is done again from the same state, and one that was done is recognised by its id.

Everything is given by that rule, also what would not have to wait for the watermark, such as combinations of
inner joins: each result row comes once, in the batch in which the watermark passes its event time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import Batch, BatchRows, Outcome, Publish
from plait.catalog import Stream
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.engines.incremental.bands import BEGINNING_US, END_US
from plait.engines.incremental.increments import Increments
from plait.engines.incremental.state import Progress, State
from plait.expressions.arrow import arrow_schema
from plait.failpoints import reach
from plait.plan.nodes import Node
from plait.plan.signature import signature


class IncrementalQuery:
    """A plan whose streams are handed over as the rows of `inputs`, sub-plans of it.

    `streams` says which stream each input is of. `columns` name the result's columns; `path` is the file.
    """

    def __init__(
        self,
        name: str,
        plan: Node,
        inputs: Sequence[Node],
        streams: Mapping[Node, Stream],
        columns: Sequence[str],
        path: Path,
    ) -> None:
        self._name = name
        self._increments = Increments([plan], inputs)
        self._streams = {node: streams[node].name.lower() for node in self._increments.inputs}
        self._delays_us = {streams[node].name.lower(): streams[node].delay_us for node in self._streams}
        self._schema = arrow_schema(columns, plan.types)
        self._state = State(path, signature(plan), self._increments.tables())
        self._database = self._state.database

    def apply(
        self, batch: Batch, rows: Mapping[Node, pa.Table], beats: Mapping[str, int], publish: Publish
    ) -> Outcome:
        """Compute a micro-batch, publish its results and commit. A batch that was done before is left alone.

        Rows of an input have the columns `c0`, `c1`, … and `t`, their event time in microseconds. Where
        several inputs are of one stream, a column `row` says which row of the stream it is, so that a late
        one counts once. `beats` are times that streams are known to have reached, by a stream's key: rows
        that no input has move the watermark too.
        """
        before = self._state.progress()
        if batch.id <= before.batch:
            return self._state.outcomes(batch.id).get(self._name, Outcome(0))
        self._state.check_next(batch.id, before)
        with self._database.transaction():
            before_us = closed_us(self._watermark_us(before.seen_us))
            self._increments.forget(self._database, before_us)
            seen_us, late_rows = self._take(before, rows, beats)
            watermark_us = self._watermark_us(seen_us)
            given = self._increments.results(self._database, batch.tables, before_us, closed_us(watermark_us))
            results = pa.concat_tables(
                [self._schema.empty_table(), *(self._named(rows) for _, rows in given)]
            )
            publish([BatchRows((self._name,), results)])
            outcome = Outcome(results.num_rows, late_rows, watermark_us)
            self._state.record(batch.id, seen_us, {self._name: outcome})
        reach("database-committed")
        return outcome

    def check_between(self, committed: int | None, planned: int | None) -> None:
        """Refuse a state that ends before the last batch that Spark committed, or after the last planned."""
        self._state.check_between(-1 if committed is None else committed, -1 if planned is None else planned)

    def close(self) -> None:
        self._database.close()

    def _take(
        self, before: Progress, rows: Mapping[Node, pa.Table], beats: Mapping[str, int]
    ) -> tuple[dict[str, int], Mapping[str, int]]:
        """Store the rows that are not late; how far the streams are now, and the late rows of each."""
        watermark_us = self._watermark_us(before.seen_us)
        watermark_us = BEGINNING_US if watermark_us is None else watermark_us
        seen_us = dict(before.seen_us)
        late_rows: dict[str, set[object]] = {}
        times = [(stream, us) for stream, us in beats.items() if stream in self._delays_us]
        for node, stream in self._streams.items():
            if node not in rows or not rows[node].num_rows:
                continue
            times.append((stream, pc.max(rows[node]["t"]).as_py()))
            late = rows[node].filter(pc.field("t") < watermark_us)
            if late.num_rows:
                has_ids = "row" in late.column_names
                ids = late["row"].to_pylist() if has_ids else [(node, k) for k in range(late.num_rows)]
                late_rows.setdefault(stream, set()).update(ids)
            with self._database.given(rows[node]) as given:
                self._increments.take(self._database, node, f"{given} WHERE t >= {watermark_us}")
        for stream, us in times:
            seen_us[stream] = max(us, seen_us.get(stream, us))
        return seen_us, {stream: len(ids) for stream, ids in late_rows.items()}

    def _watermark_us(self, seen_us: Mapping[str, int]) -> int | None:
        """The least of the streams' watermarks; none before each of them has one."""
        if not self._delays_us.keys() <= seen_us.keys():
            return None
        return min(seen_us[stream] - delay_us for stream, delay_us in self._delays_us.items())

    def _named(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns(self._schema.names).cast(self._schema)


def closed_us(watermark_us: int | None) -> int:
    """Up to where rows are complete. Beyond the last event time that can be, nothing is to come at all."""
    if watermark_us is None:
        return BEGINNING_US
    return END_US if watermark_us > LAST_EVENT_TIME_US else watermark_us
