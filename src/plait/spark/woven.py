"""Many queries on Spark's own streaming operators: what they have in common is computed once.

A family is computed by one operator, in one StreamingQuery:

| family of | the operator | when rows come out |
|---|---|---|
| selects | a filter | at once |
| joins | a join of rows, by the greatest ranges | at once |
| window aggregates | partials between the edges of all windows; put together for each window | at ticks |

Filters are relaxed to what any query needs, and each micro-batch of the operator's rows goes to the queries
that want them, each by its own filter (`subscriptions`). Of rows that come too late, a query misses those
that it would have wanted: they are rare, and whom they concern is found by reading the batch again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody calls it that)

from plait.batches import Batch, Outcome, Processed, Publish, row_counts
from plait.catalog import Catalog
from plait.deployment.fragments import Fragment, Result
from plait.deployment.measured import measured_family
from plait.deployment.native_lowering import native_stages
from plait.expressions.nodes import conjunction
from plait.expressions.spark import to_spark
from plait.expressions.types import BIGINT, INT, Value
from plait.plan.nodes import TickWindow
from plait.sharing.joins import WovenJoin
from plait.sharing.numbered import numbered
from plait.sharing.patterns import relaxed
from plait.sharing.selects import WovenSelect
from plait.sharing.trees import WovenAggregate
from plait.spark.counted_rows import Counting
from plait.spark.failing_rows import FailingRows
from plait.spark.local_tables import LocalTable
from plait.spark.observing import Observing
from plait.spark.routes import Routes
from plait.spark.stage_frames import applied, stream_readers
from plait.spark.stream_rows import RecordSource
from plait.spark.tree_weave import TreeWeave
from plait.spark.weaves import JoinWeave, SelectWeave, Weave


class WovenComputation:
    """A family of queries, over scans of all that any of them reads. A batch may give `most_rows`, which are
    of all queries."""

    def __init__(
        self,
        fragment: Fragment,
        catalog: Catalog,
        sources: RecordSource,
        beats: Path,
        session: SparkSession,
        most_rows: int | None = None,
    ) -> None:
        self._most_rows = most_rows
        self._queries = [member.query for member in fragment.family]
        self._weave = _weave(fragment, catalog)
        stages = native_stages(self._weave.plan)
        readers = stream_readers(stages, catalog, sources, beats)
        self._takers = {}
        for number, scan in enumerate(self._weave.scans):
            key = scan.stream.lower()
            self._takers[key] = _Takers(self._weave, number, self._queries, readers[key].columns_of(scan))
        if self._weave.in_time_until is not None:
            (scan,) = self._weave.scans
            key = scan.stream.lower()
            wanted = conjunction(list(relaxed([each[0] for each in self._weave.selections])))
            is_wanted = to_spark(wanted, readers[key].columns_of(scan))
            readers[key].watch(f"CASE WHEN {is_wanted} THEN {self._weave.in_time_until} END")
        self._counted = [reader.counted for reader in readers.values()]
        self._failing = FailingRows(fragment.results, readers)
        self.frame = self._weave.streamed(applied(stages.streaming, readers), session)
        self.observing = Observing(measured_family(fragment.family, stages.streaming), self._queries)
        self.give(fragment.results)

    def give(self, results: Sequence[Result]) -> None:
        """Give, and count, what these say of the queries, from the next batch on."""
        self._weave.subscriptions.give({result.query: result.gives for result in results})
        self._until_us = {result.query: result.until_us for result in results if result.until_us is not None}

    def process(self, frame: DataFrame, batch: Batch, publish: Publish) -> Processed:
        """Compute one batch, publish the rows of all queries, and count what each of them missed."""
        counting = Counting(frame, batch, self._counted)
        rows = self._weave.shared_rows(frame)
        with self.observing.computing():
            results = self._weave.subscriptions.results(rows, frame, self._most_rows)
        with self.observing.handing_out():
            publish(results)
        counts, late = row_counts(results), self._missed(counting)
        failed = self._failing.found(counting, self._until_us)
        outcomes = {
            query: Outcome(counts.get(query, 0), late.get(query, {}), failed=failed.get(query, {}))
            for query in self._queries
        }
        processed = Processed(outcomes, counting.arrived)
        self.observing.note(counting, processed)
        return processed

    def _missed(self, counting: Counting) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for stream, rows in counting.late.items():
            counts = self._takers[stream].counts(rows)
            for until_us in {*self._until_us.values()}:
                earlier = self._takers[stream].counts(rows.where(f"unix_micros(t) <= {until_us}"))
                own = (query for query, us in self._until_us.items() if us == until_us)
                counts |= {query: earlier.get(query, 0) for query in own}
            for query, count in counts.items():
                found.setdefault(query, {})[stream] = count
        return found


def _weave(fragment: Fragment, catalog: Catalog) -> Weave:
    family = fragment.family
    match family[0]:
        case WovenSelect():
            return SelectWeave([each for each in family if isinstance(each, WovenSelect)], catalog)
        case WovenAggregate():
            return TreeWeave([each for each in family if isinstance(each, WovenAggregate)])
        case WovenJoin():
            return JoinWeave([each for each in family if isinstance(each, WovenJoin)], catalog)


class _Takers:
    """Who wants the rows of one of the streams: queries that select the same, and have rows of the same gaps
    in no window."""

    def __init__(self, weave: Weave, number: int, queries: Sequence[str], columns: Sequence[str]) -> None:
        self._columns = columns
        wants = [*zip((each[number] for each in weave.selections), weave.windows, strict=True)]
        takers = numbered(wants)
        self._queries: list[list[str]] = [[] for _ in takers]
        for query, want in zip(queries, wants, strict=True):
            self._queries[takers[want]].append(query)
        self._routes = Routes([weave.patterns[number]], [(selection,) for selection, _ in takers])
        gaps = [(name, BIGINT) for name in ("range_us", "slide_us", "offset_us")]
        self._table = LocalTable(
            [("taker", INT), *gaps, *self._routes.table_columns],
            [
                [taker, *_gaps_of(window), *route]
                for (_, window), taker in takers.items()
                for route in self._routes.table_rows(taker)
            ],
        )

    def counts(self, late: DataFrame) -> dict[str, int]:
        """How many of these rows each query would have wanted. Runs a job."""
        rows = late.selectExpr("unix_micros(t) AS us", *self._routes.items(self._columns))
        takers = self._table.broadcast(late.sparkSession).alias("s")
        found = rows.selectExpr("*", *self._routes.blocks).alias("r")
        routed = found.join(takers, F.expr(self._routes.condition("r", "s")), "inner")
        wanted = routed.where(f"slide_us IS NULL OR slide_us - {_SINCE_TICK} <= range_us")
        return {
            query: row["count"]
            for row in wanted.groupBy("taker").count().collect()
            for query in self._queries[row["taker"]]
        }


_SINCE_TICK = "pmod(us - offset_us, slide_us)"


def _gaps_of(window: TickWindow | None) -> list[Value]:
    return [None] * 3 if window is None else [window.range_us, window.slide_us, window.offset_us]
