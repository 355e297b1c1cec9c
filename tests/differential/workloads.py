"""Workloads made at random from a seed: streams and tables as files, and queries of every class over them.

Everything follows from the seed. A query that gives no rows over the data is drawn again a few times: results
that are empty prove little.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.differential.arrivals import (
    DELAYS_US,
    Row,
    StoredStream,
    StoredTable,
    arriving,
    stored_value,
    with_late_rows,
)
from tests.differential.queries import KINDS, OVER_A_QUERY, RandomQuery, RunningQueries, random_query

from plait.benchmarks.planning.generator import GeneratedCatalog, generate_catalog
from plait.benchmarks.planning.model import Relation
from plait.engines.duckdb import Database
from plait.evaluator import StoredData, evaluate
from plait.expressions.arrow import arrow_schema
from plait.language import load_text
from plait.workload import Workload

FORMATS = ("parquet", "parquet", "csv", "json")
DRAWS = 6  # how often a query without rows is drawn again
FIRST_WRITTEN = 1_700_000_000  # files are read in the order of their times


@dataclass(frozen=True)
class RandomWorkload:
    seed: int
    streams: tuple[StoredStream, ...]
    tables: tuple[StoredTable, ...]
    queries: tuple[RandomQuery, ...]

    def of_parquet(self) -> RandomWorkload:
        """The same with all streams stored as Parquet, which the database reads itself."""
        return replace(self, streams=tuple(replace(stream, format="parquet") for stream in self.streams))

    @property
    def relations(self) -> list[StoredStream | StoredTable]:
        return [*self.streams, *self.tables]

    @property
    def rows(self) -> dict[str, Sequence[Row]]:
        return {stored.relation.name: stored.rows for stored in self.relations}

    def text(self) -> str:
        """The SQL file of a workload that is stored beside it."""
        return "\n".join((*self.declarations(), *(query.sql for query in self.queries))) + "\n"

    def declarations(self) -> Iterator[str]:
        for stream in self.streams:
            columns = ", ".join(f"{name} {type_}" for name, type_ in stream.relation.columns)
            time = stream.relation.event_time
            watermark = f"WATERMARK FOR {time} AS {time} - INTERVAL {stream.delay_us} MICROSECONDS"
            yield (
                f"CREATE STREAM {stream.relation.name} ({columns}, {watermark}) WITH "
                f"(connector = 'files', path = 'data/{stream.relation.name}', format = '{stream.format}', "
                f"files_per_batch = 1);"
            )
        for table in self.tables:
            columns = ", ".join(f"{name} {type_}" for name, type_ in table.relation.columns)
            yield (
                f"CREATE TABLE {table.relation.name} ({columns}) WITH "
                f"(connector = 'files', path = 'data/{table.relation.name}', format = '{table.format}');"
            )

    def write(self, folder: Path) -> Path:
        """Store the data, one file a cut, and the SQL file beside it; gives the SQL file."""
        written = FIRST_WRITTEN
        for stream in self.streams:
            for number, cut in enumerate(stream.cuts):
                path = folder / "data" / stream.relation.name / f"{number:03}.{stream.format}"
                write_rows(path, stream.relation, stream.format, cut)
                written += 1
                os.utime(path, (written, written))
        for table in self.tables:
            path = folder / "data" / table.relation.name / f"rows.{table.format}"
            write_rows(path, table.relation, table.format, table.rows)
        sql = folder / "workload.sql"
        sql.write_text(self.text())
        return sql

    def load(self) -> Workload:
        return load_text(self.text())

    def only(self, name: str) -> RandomWorkload:
        """The workload with one of its queries, and those before it if it may read them."""
        position = next(k for k, query in enumerate(self.queries) if query.name == name)
        reads = self.queries[position].kind == OVER_A_QUERY
        return replace(self, queries=self.queries[0 if reads else position : position + 1])


def random_workload(
    seed: int,
    kinds: Sequence[str] = KINDS,
    *,
    rows: int = 30,
    cuts: int = 3,
    late_rows: int = 0,
    queries_by: random.Random | None = None,
) -> RandomWorkload:
    """One query of each of the kinds, named q0, q1, …, over two to four streams and two tables.

    With `late_rows`, each stream has so many rows more, older than its delay allows. `queries_by` chooses the
    queries, if it shall not be the seed.
    """
    rng = random.Random(seed)
    catalog = _catalog(rng)
    streams = tuple(
        arriving(
            relation,
            rng.choice(DELAYS_US),
            rng.choice(FORMATS),
            rng,
            rows=rows,
            cuts=rng.randint(max(2, cuts - 1), cuts),
        )
        for relation in catalog.streams
    )
    if late_rows:
        streams = tuple(with_late_rows(stream, rng, late_rows) for stream in streams)
    tables = tuple(_table(relation, rng) for relation in catalog.tables)
    empty = RandomWorkload(seed, streams, tables, ())
    return replace(empty, queries=_queries(empty, kinds, RunningQueries(queries_by or rng, catalog)))


def _catalog(rng: random.Random) -> GeneratedCatalog:
    made = generate_catalog(rng, streams=rng.randint(2, 4), tables=2)
    # A second time in some streams: a value like any other.
    streams = tuple(
        replace(relation, columns=(*relation.columns, ("noted", "TIMESTAMP")))
        if rng.random() < 0.3
        else relation
        for relation in made.streams
    )
    return GeneratedCatalog(streams, made.tables)


def _table(relation: Relation, rng: random.Random) -> StoredTable:
    file_format = rng.choice(("parquet", "csv"))
    rows = tuple(
        tuple(stored_value(type_, file_format, rng) for _, type_ in relation.columns)
        for _ in range(rng.randint(3, 8))
    )
    return StoredTable(relation, file_format, rows)


def _queries(
    workload: RandomWorkload, kinds: Sequence[str], generator: RunningQueries
) -> tuple[RandomQuery, ...]:
    with Database(threads=1) as database:
        queries: list[RandomQuery] = []
        for number, kind in enumerate(kinds):
            for _ in range(DRAWS):
                query = random_query(f"q{number}", kind, generator)
                around = queries if kind == OVER_A_QUERY else []
                if has_rows(replace(workload, queries=(*around, query)), query.name, database):
                    break
            queries.append(query)
            if query.block is not None and kind != OVER_A_QUERY:
                generator.named[query.name] = query.block
    return tuple(queries)


def has_rows(workload: RandomWorkload, query: str, database: Database) -> bool:
    loaded = workload.load()
    with StoredData.from_rows(loaded.catalog, workload.rows, database=database) as data:
        return bool(evaluate(loaded.queries[query], data).rows)


def write_rows(path: Path, relation: Relation, file_format: str, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name, _ in relation.columns]
    match file_format:
        case "parquet":
            pq.write_table(arrow_table(relation, rows), path)
        case "csv":
            lines = [",".join(names), *(",".join(map(_csv_field, row)) for row in rows)]
            path.write_text("".join(f"{line}\n" for line in lines))
        case _:
            lines = [
                json.dumps({n: _json_value(v) for n, v in zip(names, row, strict=True) if v is not None})
                for row in rows
            ]
            path.write_text("".join(f"{line}\n" for line in lines))


def _csv_field(value: object) -> str:
    """An empty field is NULL, a quoted one a string, if only the empty one."""
    match value:
        case None:
            return ""
        case str():
            return '"' + value.replace('"', '""') + '"'
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _json_value(value: object) -> object:
    return str(value) if isinstance(value, datetime | Decimal) else value


def arrow_table(relation: Relation, rows: Sequence[Row]) -> pa.Table:
    declared = load_text(f"CREATE TABLE r ({', '.join(f'{n} {t}' for n, t in relation.columns)});").catalog
    schema = arrow_schema(
        [name for name, _ in relation.columns], [column.type for column in declared.tables["r"].columns]
    )
    columns = [
        pa.array([row[index] for row in rows], field.type) if rows else pa.array([], field.type)
        for index, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
