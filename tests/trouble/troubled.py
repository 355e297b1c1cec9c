"""A system in trouble: its data as it is, beside that the same as it was meant, and runs over the one whose
rows are held against the meaning of the other."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.patience import wait_until

import plait
from plait.errors import PlaitError
from plait.evaluator import difference
from plait.runtime.progress import remarks
from plait.runtime.snapshot import QueryProgress, QueryState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
# What only somebody who works on Spark, or on us, can read.
NOBODYS_BUSINESS = ("Traceback", "py4j", "java.", "org.apache", "Exception", "SQLSTATE", "\tat ")


def stream(name: str, file_format: str = "json", more: str = "") -> str:
    return (
        f"CREATE STREAM {name} (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at)"
        f" WITH (connector = 'files', path = '{name}', format = '{file_format}'{more});\n"
    )


def queries_over(name: str) -> str:
    """Two that nothing is wrong with."""
    return (
        f"CREATE CONTINUOUS QUERY ones_of_{name} AS SELECT v FROM {name} WHERE k = 1;\n"
        f"CREATE CONTINUOUS QUERY sums_of_{name} AS"
        f" SELECT k, sum(v) AS total, window_end FROM {name} [RANGE 10 SECONDS] GROUP BY k;\n"
    )


def rows(first: int, last: int) -> list[dict[str, Any]]:
    """One a second."""
    return [{"k": n % 3, "v": n, "at": NOON + timedelta(seconds=n)} for n in range(first, last)]


def as_parquet(rows: list[dict[str, Any]], **changed: pa.Array | None) -> bytes:
    """A file of rows, of which columns are changed, or left out."""
    types = {"k": pa.int32(), "v": pa.int32(), "at": pa.timestamp("us", "UTC")}
    columns = {name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()}
    kept = {name: values for name, values in (columns | changed).items() if values is not None}
    file = io.BytesIO()
    pq.write_table(pa.table(kept), file)
    return file.getvalue()


def as_json(rows: list[dict[str, Any]]) -> bytes:
    lines = (json.dumps(row | {"at": f"{row['at']:%Y-%m-%d %H:%M:%S}"}) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


_WRITERS = {"parquet": as_parquet, "json": as_json}


@dataclass
class Troubled:
    """`sql` names its streams' folders as it does in `data`, and the evaluator reads them in `meant`."""

    root: Path
    spark: SparkSession | None
    sql: str

    def __post_init__(self) -> None:
        self.data, self.meant = self.root / "data", self.root / "meant"
        self.state, self.results = self.root / "state", self.root / "results"
        self._session = plait.open_text(self.sql, base=self.data, spark=self.spark)
        self._formats = {
            each.name: str(each.options["format"])
            for each in self._session.workload.catalog.streams.values()
            if each.connector == "files"
        }
        for folder in (self.data, self.meant):
            for name in self._formats:
                (folder / name).mkdir(parents=True)

    def put(self, name: str, content: bytes, meant: bytes | None = None) -> Path:
        """A file that appears as a whole; `meant` is what it should be, if it is not."""
        for folder, chosen in ((self.meant, content if meant is None else meant), (self.data, content)):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / "_draft").write_bytes(chosen)
            (folder / "_draft").replace(folder / name)
        return self.data / name

    def arrive(self, stream: str, first: int, last: int, spoilt: bytes | None = None) -> Path:
        """Rows of a stream in a file of their own; `spoilt` is what that holds instead."""
        format_ = self._formats[stream]
        good = _WRITERS[format_](rows(first, last))
        content = good if spoilt is None else spoilt
        return self.put(f"{stream}/{first:04}.{format_}", content, good)

    @contextmanager
    def running(self, planner: str = "plait", **options: Any) -> Iterator[plait.Running]:
        """A run that has ended afterwards, whatever became of it."""
        usual: dict[str, Any] = {"state": self.state, "results": self.results, "trigger_seconds": 0.1}
        running = self._session.run(planner, **usual | options)
        try:
            yield running
        finally:
            with suppress(PlaitError):
                running.stop()

    def drain(self, planner: str = "plait", **options: Any) -> None:
        """Go on to the end of the streams; nothing fails."""
        with self.running(planner, available_now=True, drain=True, **options) as running:
            running.wait()

    def published(self, query: str) -> list[tuple[Any, ...]]:
        return list(self._session.results(query, state=self.state).rows)

    def is_right(self, *queries: str, open_windows: bool = True) -> bool:
        """Whether these have exactly the rows that they mean: `open_windows` have given none yet."""
        with plait.open_text(self.sql, base=self.meant) as meaning:
            return not any(
                difference(self.published(query), meaning.evaluate(query, as_of_watermark=open_windows).rows)
                for query in queries
            )

    def await_right(self, *queries: str) -> None:
        wait_until(lambda: self.is_right(*queries))

    def check_drained(self, *queries: str) -> None:
        """All that these mean is there, each row once."""
        for query in queries:
            assert self.is_right(query, open_windows=False), query
            assert self.published(query), query


def states(running: plait.Running) -> dict[str, QueryState]:
    return {query.name: query.state for query in running.progress().queries}


def await_failed(running: plait.Running, *queries: str) -> None:
    """Until exactly these have failed."""
    wait_until(lambda: {query.name for query in running.progress().failed} == {*queries})


def query_of(running: plait.Running, name: str) -> QueryProgress:
    return next(query for query in running.progress().queries if query.name == name)


def said_of(running: plait.Running, query: str) -> str:
    """Why a query has failed, with what is to be done: in words for whoever runs it."""
    error = query_of(running, query).error
    assert error is not None, query
    assert error.hint, error.render()
    said = error.render()
    assert not any(words in said for words in NOBODYS_BUSINESS), said
    return said


def remarked(running: plait.Running, *words: str) -> bool:
    """Whether one remark beside the tables has all these words."""
    return any(all(word in remark for word in words) for remark in remarks(running.progress()))


def others(names: Collection[str], *culprits: str) -> list[str]:
    return [name for name in names if name not in culprits]
