"""Both sides of a comparison: queries through Plait, and the same ones as plain Spark runs them.

Both run in one warm Spark, over the same files, a file a micro-batch, and write the rows of every batch as
Parquet. Plain Spark has the settings that Plait gives its session, so partitions, state store and checkpoints
are the same. The time begins with the call that starts the queries and ends when all rows are written.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

from plait import language
from plait.api import Session
from plait.benchmarks.machine import memory_mb, size_mb
from plait.benchmarks.sharing.plain_spark import PlainQuery, run_plain_queries
from plait.spark.execution import Session as SparkSession

# The rows of some queries, by name.
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Measured:
    """`state_mb` is what is on the disk to go on from, `memory_mb` what all processes hold at the end."""

    seconds: float
    rows: int
    memory_mb: float
    state_mb: float
    tables: Tables


class Together:
    """All queries of a workload over the data that is there, as often as asked for: planned once, as they are
    for as long as they stand. The rows of the `kept` ones are read back."""

    def __init__(
        self, sql: str, session: SparkSession, *, engines: str = "any", kept: Sequence[str] = ()
    ) -> None:
        self._opened = Session(language.load_text(sql), session)  # which it does not stop
        self._opened.plan()
        gc.freeze()  # as `plait run` does
        self._engines = engines
        self._kept = kept

    def __call__(self) -> Measured:
        with _folder() as folder:
            state, results = folder / "state", folder / "results"
            began = perf_counter()
            running = self._opened.run(
                engines=self._engines, state=state, results=results, available_now=True
            )
            running.wait()
            seconds = perf_counter() - began
            rows = sum(query.rows for query in running.progress().queries)
            tables = {name: running.results(name).to_arrow() for name in self._kept}
            return Measured(seconds, rows, memory_mb(), size_mb(state), tables)


def plain_spark(queries: Sequence[PlainQuery], session: SparkSession) -> Measured:
    """The better of all queries at the same time and one after the other."""
    return min((_plain(queries, session, together) for together in (True, False)), key=lambda m: m.seconds)


def plain_rows(query: PlainQuery, session: SparkSession) -> pa.Table:
    """What plain Spark gives for a query, however long that takes."""
    return _plain([query], session, together=True).tables[query.name]


def _plain(queries: Sequence[PlainQuery], session: SparkSession, together: bool) -> Measured:
    with _folder() as folder:
        began = perf_counter()
        run_plain_queries(queries, session, folder, together=together)
        seconds = perf_counter() - began
        tables = {query.name: _stored(folder / "results" / query.name) for query in queries}
        rows = sum(table.num_rows for table in tables.values())
        return Measured(seconds, rows, memory_mb(), size_mb(folder / "checkpoints"), tables)


def _stored(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])


def differences(ours: Tables, theirs: Tables) -> list[str]:
    """Queries whose rows are not the same, however they are ordered. Types may be written differently."""
    return [
        name
        for name, rows in theirs.items()
        if not _sorted(ours[name]).equals(_sorted(rows.cast(ours[name].schema)))
    ]


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="plait-sharing-", ignore_cleanup_errors=True) as name:
        yield Path(name)
