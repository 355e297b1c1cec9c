"""Stored data of a declared relation, read into a DuckDB table with exactly the declared schema.

What does not fit the declaration is an error that names relation, file and column, never a silent NULL or a
rounded value: Spark and DuckDB round and guess differently.

- parquet: columns by name whatever the case; a stored column may be narrower than declared (INT for BIGINT,
  FLOAT for DOUBLE).
- csv: UTF-8, `"` doubled inside quotes, values separated by the option `delimiter` (a comma), a first line
  that names the columns unless the option `header` is false; an empty field is NULL, a quoted empty one the
  empty string.
- json: one object a line; a missing member is NULL. JSON numbers pass through doubles: write longer decimals
  as strings.

Timestamps in text are ISO 8601, UTC unless they carry an offset. A path is a file, or a folder whose files
are all read, whatever they are called, except those with a leading `_` or `.`, and empty ones, as Spark does.
Files are read one after the other, so that an error can name the one that is wrong.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plait.catalog import ColumnDefinition, Relation, Stream
from plait.engines.data_errors import (
    FORMATS,
    READING_ERRORS,
    bad_value,
    described,
    header_hint,
    literal_path,
    missing_column,
    opened_text,
    option,
    shown,
    unreadable,
)
from plait.engines.duckdb import Database, quoted, text_literal
from plait.engines.stored_types import select_items
from plait.engines.written_values import written_pattern
from plait.errors import ExternalError, InternalError, UserError, closest
from plait.expressions.duckdb import type_to_duckdb
from plait.expressions.types import Kind


def load(database: Database, relation: Relation, table: str, max_rows: int | None = None) -> None:
    """Create `table` with the relation's columns as `c0`, `c1`, … from its stored files.

    With `max_rows` only the first so many are read.
    """
    files = data_files(relation)
    if _format(relation) == "parquet":
        columns = [f"c{k} {type_to_duckdb(column.type)}" for k, column in enumerate(relation.columns)]
        _read(database, relation, files, table, columns, max_rows)
    else:
        with database.temporary("text") as text:
            # Every value as text first, so that a bad one can be shown.
            columns = [f"v{k} VARCHAR" for k in range(len(relation.columns))]
            _read(database, relation, files, text, [*columns, "file INTEGER"], max_rows)
            _parse(database, relation, files, text, table)


def count(database: Database, relation: Relation) -> int:
    """How many rows are stored; the values are not looked at."""
    rows = 0
    for number, file in enumerate(data_files(relation)):
        source = _source(database, relation, file, number)
        try:
            ((more,),) = database.fetch(f"SELECT count(*) FROM ({source})")
        except ExternalError as error:
            raise unreadable(relation, file, error) from None
        rows += more
    return rows


def check_columns(database: Database, relation: Relation, file: Path) -> None:
    """A UserError if the declared columns are not in the file; its rows are not looked at."""
    _source(database, relation, file, 0)


def position(relation: Relation, column: str) -> int:
    """The k of a column's `ck`, whatever the case of its name."""
    for index, definition in enumerate(relation.columns):
        if definition.name.lower() == column.lower():
            return index
    raise InternalError("unknown-column", f"`{relation.name}` has no column `{column}`")


def _close_to(path: Path) -> str:
    """A hint that names something with almost that name beside it."""
    try:
        hint = closest(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        return ""
    return hint if hint.startswith("did") else ""


def data_files(relation: Relation) -> list[Path]:
    """The files that hold the relation's rows, sorted by name. There may be none, if all files are empty."""
    path = Path(option(relation, "path"))
    try:
        if not (path.is_file() or path.is_dir()):
            raise UserError(
                "no-such-path",
                f"the data of {described(relation)} is not there: {shown(relation, path)}",
                hint=_close_to(path) or "mend the path, or make the folder",
                span=relation.span if isinstance(relation, Stream) else None,
            )
        files = [path] if path.is_file() else _files_in(path)
        filled = [file for file in files if _is_filled(file)]
    except OSError as error:
        raise unreadable(relation, path, error) from None
    if not files:
        raise UserError(
            "no-files", f"the folder of {described(relation)} holds no files: {shown(relation, path)}"
        )
    return filled


def _files_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._")


def _is_filled(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:  # it was taken away just now
        return False


def _format(relation: Relation) -> str:
    file_format = option(relation, "format").lower()
    if file_format not in FORMATS:
        raise UserError(
            "unknown-format",
            f"{described(relation)} has the unknown format `{relation.options['format']}`",
            hint=closest(str(relation.options["format"]), FORMATS),
        )
    return file_format


def _read(
    database: Database,
    relation: Relation,
    files: Sequence[Path],
    table: str,
    columns: Sequence[str],
    max_rows: int | None,
) -> None:
    database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    rows = 0
    for number, file in enumerate(files):
        source = _source(database, relation, file, number)
        limit = "" if max_rows is None else f" LIMIT {max_rows - rows}"
        try:
            ((inserted,),) = database.fetch(f"INSERT INTO {table} {source}{limit}")
        except ExternalError as error:
            raise unreadable(relation, file, error) from None
        rows += inserted
        if rows == max_rows:
            return


def _source(database: Database, relation: Relation, file: Path, number: int) -> str:
    """The rows of one file as a query: parquet as `c0`, …, text as `v0`, … and the file's number."""
    match _format(relation):
        case "parquet":
            return _parquet_source(database, relation, file)
        case "csv":
            return _csv_source(relation, file, number)
        case _:
            return _json_source(relation, file, number)


def _parquet_source(database: Database, relation: Relation, file: Path) -> str:
    (source,) = parquet_sources(database, relation, [file])
    return source


def parquet_sources(database: Database, relation: Relation, files: Iterable[Path]) -> list[str]:
    """The rows of Parquet files as queries, one for all files that have the same columns."""
    alike: dict[tuple[tuple[Any, ...], ...], list[Path]] = {}
    for file in files:
        try:
            schema = database.fetch(f"DESCRIBE SELECT * FROM {_parquet([file])}")
        except ExternalError as error:
            raise unreadable(relation, file, error) from None
        alike.setdefault(tuple(schema), []).append(file)
    return [_parquet_query(relation, schema, group) for schema, group in alike.items()]


def _parquet_query(relation: Relation, schema: Iterable[tuple[Any, ...]], files: Sequence[Path]) -> str:
    first = files[0]
    items = select_items(
        relation,
        schema,
        f"in {shown(relation, first)}",
        lambda column, present: missing_column(relation, column, first, present),
    )
    return f"SELECT {items} FROM {_parquet(files)}"


def _parquet(files: Iterable[Path]) -> str:
    paths = ", ".join(text_literal(literal_path(file)) for file in files)
    # Else a folder called `k=v` would give all rows a column `k`.
    return f"read_parquet([{paths}], hive_partitioning = false)"


def _csv_source(relation: Relation, file: Path, number: int) -> str:
    delimiter = _delimiter(relation)
    has_header = bool(relation.options.get("header", True))
    header = [column.name for column in relation.columns]
    if has_header:
        header = csv_header(relation, file)
    positions = []
    for column in relation.columns:
        found = [i for i, name in enumerate(header) if name.strip().lower() == column.name.lower()]
        if not found:
            hint = header_hint(relation, column, header, delimiter)
            raise missing_column(relation, column, file, header, hint)
        if len(found) > 1:
            raise UserError(
                "stored-columns",
                f"column `{column.name}` of {described(relation)} is there twice",
                detail=f"in {shown(relation, file)}",
            )
        positions.append(found[0])
    items = ", ".join(f"h{position} AS v{index}" for index, position in enumerate(positions))
    columns = ", ".join(f"h{i}: 'VARCHAR'" for i in range(len(header)))
    return (
        f"SELECT {items}, {number} AS file "
        f"FROM read_csv({text_literal(literal_path(file))}, columns = {{{columns}}}, "
        f"header = {has_header}, delim = {text_literal(delimiter)}, "
        f"auto_detect = false, quote = '\"', escape = '\"', allow_quoted_nulls = false)"
    )


def csv_header(relation: Relation, file: Path) -> list[str]:
    """The names in a CSV file's first line."""
    delimiter = _delimiter(relation)
    try:
        # What follows the first line is not looked at, even if it is no UTF-8.
        with opened_text(file, errors="surrogateescape") as lines:
            header = next(csv.reader(lines, delimiter=delimiter), None)
        "".join(header or ()).encode()
    except (*READING_ERRORS, UnicodeEncodeError) as error:
        raise unreadable(relation, file, error) from None
    if not header:
        raise UserError(
            "stored-columns",
            f"the data of {described(relation)} has no header line: {shown(relation, file)}",
            hint=f"its first line is to be {delimiter.join(column.name for column in relation.columns)}",
        )
    return header


def _json_source(relation: Relation, file: Path, number: int) -> str:
    columns = ", ".join(f"{text_literal(column.name)}: 'VARCHAR'" for column in relation.columns)
    items = ", ".join(f"{quoted(column.name)} AS v{index}" for index, column in enumerate(relation.columns))
    return (
        f"SELECT {items}, {number} AS file FROM read_json("
        f"{text_literal(literal_path(file))}, format = 'newline_delimited', records = true, "
        f"columns = {{{columns}}})"
    )


def _parse(database: Database, relation: Relation, files: Sequence[Path], text: str, table: str) -> None:
    """Make `table` of the values `v0`, `v1`, … that were read as text."""
    checks, items = [], []
    for index, column in enumerate(relation.columns):
        written, parsed = _parsing(column, f"v{index}")
        items.append(f"{parsed} AS c{index}")
        checks.append(
            f"(SELECT {index}, file, v{index} FROM {text} "
            f"WHERE v{index} IS NOT NULL AND NOT ({written} AND {parsed} IS NOT NULL) LIMIT 1)"
        )
    for index, number, value in database.fetch(" UNION ALL ".join(checks)):
        raise bad_value(relation, relation.columns[index], files[number], value)
    database.execute(f"CREATE TABLE {table} AS SELECT {', '.join(items)} FROM {text}")


def _parsing(column: ColumnDefinition, text: str) -> tuple[str, str]:
    """Whether the text is written as the type demands, and its value (NULL if out of range)."""
    pattern = written_pattern(column.type)
    written = "true" if pattern is None else f"regexp_full_match({text}, '{pattern}')"
    match column.type.kind:
        case Kind.STRING:
            return written, text
        case Kind.DOUBLE:
            value = f"TRY_CAST({text} AS {column.storage or 'DOUBLE'})::DOUBLE"
            # A number that is too large is read as infinity: take that only where it is written.
            return written, f"CASE WHEN isfinite({value}) OR {text} ILIKE '%n%' THEN {value} END"
        case Kind.TIMESTAMP:
            return written, f"TRY_CAST({text} AS TIMESTAMPTZ)::TIMESTAMP"
        case _:
            return written, f"TRY_CAST({text} AS {type_to_duckdb(column.type)})"


def _delimiter(relation: Relation) -> str:
    return option(relation, "delimiter") if "delimiter" in relation.options else ","
