"""Runs queries natively over rows cut into micro-batches, and compares with the definition.

Rows are Parquet files, one a micro-batch; a stand-in for the sources of the product reads them. A run ends
with a beat at the end of time for every stream, which closes everything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.batches import Batch, BatchRows, Outcome
from plait.catalog import Catalog, Relation
from plait.deployment.fragments import Fragment, Result, Way
from plait.deployment.lowering import fragment
from plait.evaluator import StoredData, difference, evaluate
from plait.expressions.arrow import arrow_schema
from plait.rewrite import canonicalise
from plait.runtime.arrow_rows import ArrowRows
from plait.runtime.beats import END_OF_TIME_US
from plait.runtime.checkpoint import Checkpoint
from plait.space import stream_of
from plait.workload import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from plait.runtime.fragment_run import Computation

Rows = Sequence[tuple[Any, ...]]
Cuts = Sequence[Mapping[str, Rows]]  # the rows that each micro-batch brings, by stream
Tables = Mapping[str, Rows]
_NO_REASON = ("CAST(NULL AS STRING) AS reason", "CAST(NULL AS STRING) AS record")


def at(text: str) -> datetime:
    """A moment of 1 January 2026."""
    return datetime.fromisoformat(f"2026-01-01 {text}")


class FileStreams:
    """Stands in for `Sources`: a folder of Parquet files for each stream, read one file a micro-batch."""

    def __init__(self, session: SparkSession, catalog: Catalog, folder: Path) -> None:
        self._session = session
        self._catalog = catalog
        self._folder = folder
        self._written = 0
        for key in catalog.streams:
            (folder / "streams" / key).mkdir(parents=True)
        self.beats = folder / "beats"
        self.beats.mkdir()

    def records(self, stream: str, columns: Sequence[str]) -> DataFrame:
        """No record is a bad one."""
        declared = self._catalog.stream(stream)
        schema = ", ".join(f"`{c.name}` {c.type}" for c in declared.columns)
        items = [f"`{name}` AS c{k}" for k, name in enumerate(columns)]
        files = self._session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return files.parquet(str(self._folder / "streams" / stream.lower())).selectExpr(
            *items, f"`{declared.event_time}` AS t", "FALSE AS beat", *_NO_REASON
        )

    def beats_like(self, stream: str, columns: Sequence[str], beats: Path) -> DataFrame:
        from plait.expressions.spark import type_to_spark

        declared = self._catalog.stream(stream)
        types = [next(c.type for c in declared.columns if c.name == name) for name in columns]
        nulls = [f"CAST(NULL AS {type_to_spark(type_)}) AS c{k}" for k, type_ in enumerate(types)]
        beating = self._session.readStream.schema("stream STRING, us BIGINT").csv(str(beats))
        return beating.where(f"stream = '{stream.lower()}'").selectExpr(
            *nulls, "timestamp_micros(us) AS t", "TRUE AS beat", *_NO_REASON
        )

    def add(self, stream: str, rows: Rows) -> None:
        """One more file, which one micro-batch reads."""
        table = table_of(self._catalog.stream(stream), rows)
        self._written += 1
        draft = self._folder / "draft"
        pq.write_table(table, draft)
        os.utime(draft, (self._written, self._written))
        draft.rename(self._folder / "streams" / stream.lower() / f"{self._written:04}.parquet")

    def add_all(self, cut: Mapping[str, Rows]) -> None:
        for stream, rows in cut.items():
            self.add(stream, rows)

    def end(self) -> None:
        """Say of every stream that it has ended."""
        lines = "".join(f"{key},{END_OF_TIME_US}\n" for key in self._catalog.streams)
        draft = self._folder / "draft"
        draft.write_text(lines, encoding="utf-8")
        draft.rename(self.beats / "end.csv")


def table_of(relation: Relation, rows: Rows) -> pa.Table:
    schema = arrow_schema([c.name for c in relation.columns], [c.type for c in relation.columns])
    columns = [
        pa.array([_aware(row[k]) for row in rows], type=column.type) for k, column in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _aware(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


@dataclass
class Run:
    """What came of a run: the published tables and the outcomes, by batch; and the batches before the end."""

    fragment: Fragment
    published: dict[int, pa.Table] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    before_end: frozenset[int] = frozenset()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for table in self.published.values() for row in ArrowRows(table)]

    @property
    def rows_before_end(self) -> list[tuple[Any, ...]]:
        return [row for number in self.before_end for row in ArrowRows(self.published[number])]

    @property
    def late_rows(self) -> dict[str, int]:
        late: dict[str, int] = {}
        for outcome in self.outcomes.values():
            for stream, count in outcome.late_rows.items():
                late[stream] = late.get(stream, 0) + count
        return late


def declared(sql: str, query: str) -> tuple[Catalog, Query]:
    workload = plait.open_text(sql).workload
    return workload.catalog, workload.query(query)


def native_fragment(query: Query, catalog: Catalog) -> Fragment:
    result = Result(query.name, query.columns, stream_of(canonicalise(query.plan)))
    made = fragment(result, catalog)
    assert made.way is Way.NATIVE, made.reasons
    return made


def run(
    session: SparkSession,
    sql: str,
    name: str,
    cuts: Cuts,
    folder: Path,
    *,
    tables: Tables | None = None,
    available_now: bool = False,
    at_once: bool = False,
) -> Run:
    """Run a query natively, to the end of the streams.

    A batch at a time, each closing what it can before the next comes, or `at_once`, one on the heels of the
    other; or all there is and then, started again, the end.
    """
    catalog, query = declared(sql, name)
    done = Run(native_fragment(query, catalog))
    streams = FileStreams(session, catalog, folder)
    stored: dict[str, Path] = {}
    store_tables(stored, catalog, tables or {}, folder)

    def start() -> StreamingQuery:
        from plait.spark.native import NativeComputation

        computation = NativeComputation(done.fragment, catalog, streams, streams.beats)
        return started(computation, done, stored, folder / "checkpoint", available_now=available_now)

    if available_now:
        for cut in cuts:
            streams.add_all(cut)
        start().awaitTermination()
        done.before_end = frozenset(done.published)
        streams.end()
        start().awaitTermination()
        return done
    if at_once:
        for cut in cuts:
            streams.add_all(cut)
    running = start()
    if at_once:
        running.processAllAvailable()
    else:
        for cut in cuts:
            streams.add_all(cut)
            running.processAllAvailable()
    done.before_end = frozenset(done.published)
    streams.end()
    running.processAllAvailable()
    running.stop()
    return done


def store_tables(stored: dict[str, Path], catalog: Catalog, tables: Tables, folder: Path) -> None:
    """Make these the tables that the next batches see."""
    for name, rows in tables.items():
        path = folder / f"{name}.{len(list(folder.glob(f'{name}.*')))}.parquet"
        pq.write_table(table_of(catalog.table(name), rows), path)
        stored[name.lower()] = path


def started(
    computation: Computation,
    run: Run,
    stored: Mapping[str, Path],
    checkpoint: Path,
    *,
    available_now: bool = False,
) -> StreamingQuery:
    from plait.spark.native import NativeComputation

    def process(frame: DataFrame, number: int) -> None:
        batch = Batch(number, Checkpoint(checkpoint).watermark_us(number - 1), dict(stored))

        def publish(results: Sequence[BatchRows]) -> None:
            query = run.fragment.only
            schema = arrow_schema(query.columns, query.plan.types)
            tables = [result.rows.rename_columns(schema.names).cast(schema) for result in results]
            run.published[number] = pa.concat_tables([schema.empty_table(), *tables])

        processed = computation.process(frame, batch, publish)
        run.outcomes[number] = processed.outcomes[run.fragment.only.query]
        if isinstance(computation, NativeComputation):
            assert computation.observing.observed.clocks, "Spark's plan is not one that is known"

    writer = (
        computation.frame.writeStream.foreachBatch(process)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
    )
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.start()


def evaluated(
    sql: str, name: str, cuts: Cuts, *, tables: Tables | None = None, closed_only: bool = False
) -> Sequence[tuple[Any, ...]]:
    """The rows of a query by its definition."""
    catalog, query = declared(sql, name)
    rows: dict[str, list[tuple[Any, ...]]] = {table: list(given) for table, given in (tables or {}).items()}
    for cut in cuts:
        for stream, given in cut.items():
            rows.setdefault(stream, []).extend(given)
    with StoredData.from_rows(catalog, rows) as data:
        return evaluate(query, data, closed_only=closed_only).rows


def check(
    session: SparkSession,
    sql: str,
    name: str,
    cuts: Cuts,
    folder: Path,
    *,
    tables: Tables | None = None,
    available_now: bool = False,
    at_once: bool = False,
    early: bool = False,
) -> Run:
    """A run gives exactly the definition's rows, and before the streams end only what is closed.

    `early`: it gives also what is not closed yet and cannot change.
    """
    wanted = evaluated(sql, name, cuts, tables=tables)
    done = run(session, sql, name, cuts, folder, tables=tables, available_now=available_now, at_once=at_once)
    assert wanted, "a comparison of no rows proves nothing"
    assert not difference(wanted, done.rows)
    closed = evaluated(sql, name, cuts, tables=tables, closed_only=not early)
    assert "only right" not in difference(closed, done.rows_before_end)
    assert not done.late_rows
    return done
