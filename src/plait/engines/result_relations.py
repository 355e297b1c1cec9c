"""Published results as a relation of DuckDB's, which reads the files when it is asked for rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["DuckDBPyConnection", "DuckDBPyRelation", "files_relation", "table_relation"]


def files_relation(
    folder: Path, columns: Sequence[str], query: str | None, connection: DuckDBPyConnection | None
) -> DuckDBPyRelation:
    """What the Parquet files of a folder hold whenever rows are asked for; of one query, if several share
    the folder."""
    files = _text(f"{folder}/*.parquet")
    whose = "" if query is None else f" WHERE query = {_text(query)}"
    named = ", ".join(_name(column) for column in columns)
    statement = f"SELECT {named} FROM read_parquet({files}){whose}"
    relation = (connection or duckdb).sql(statement)
    assert relation is not None  # a SELECT always is one
    return relation


def table_relation(rows: pa.Table, connection: DuckDBPyConnection | None) -> DuckDBPyRelation:
    """Rows that are no files."""
    return duckdb.from_arrow(rows) if connection is None else connection.from_arrow(rows)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
