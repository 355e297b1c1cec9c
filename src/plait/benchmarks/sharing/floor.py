"""What window aggregates cannot cost less than: Spark's micro-batches without any work in them, and the work
in DuckDB without Spark, with all rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from plait import language
from plait.batches import Batch
from plait.benchmarks.sharing import aggregates
from plait.benchmarks.sharing.plain_spark import run_without_work
from plait.deployment.lowering import results_of, shared_fragment
from plait.deployment.row_by_row import row_by_row
from plait.engines.arriving_files import ArrivingFiles
from plait.engines.duckdb import Database
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import Trunk
from plait.planners.driver import plan
from plait.runtime.shared_results import SharedSink
from plait.spark.execution import Session as SparkSession


def empty_batches_s(folder: Path, session: SparkSession) -> float:
    """A file a micro-batch, and nothing is done with it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        began = perf_counter()
        run_without_work(session, folder, aggregates.COLUMNS, Path(name))
        return perf_counter() - began


def database_s(folder: Path, windows: Sequence[aggregates.Windowed], *, batches: bool = False) -> float:
    """All files, in one batch or in `batches` of a file: read, computed, written and committed."""
    workload = language.load_text(aggregates.sql(folder, windows))
    catalog, results = workload.catalog, results_of(plan(workload).deployment, workload.catalog)
    (read,) = shared_fragment("shared-0", results, catalog).inputs
    simple = row_by_row(read.plan)
    key = read.stream.lower()
    stream = catalog.stream(key)
    with TemporaryDirectory() as name, Database() as database:
        began = perf_counter()
        queries = [SharedQuery(result.query, result.plan, part=result.part) for result in results]
        trunk = Trunk(queries, {key: stream}, {key: simple.scan}, Path(name) / "trunk.duckdb")
        sink = SharedSink(
            Path(name), results[0].columns, results[0].plan.types, [query.name for query in queries]
        )
        files = sorted(folder.glob("*.parquet"))
        arriving = ArrivingFiles(database, stream, simple.scan, simple.predicate)
        for batch, part in enumerate([file] for file in files) if batches else [(0, files)]:
            rows, _ = arriving.read(part, 0)
            trunk.apply(Batch(batch), {key: rows}, {}, partial(sink.publish, batch))
        trunk.close()
        return perf_counter() - began
