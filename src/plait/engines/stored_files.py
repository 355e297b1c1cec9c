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
are all read except those with a leading `_` or `.`, as Spark does.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from plait.catalog import ColumnDefinition, Relation, Secret, Stream
from plait.engines.duckdb import Database, quoted, text_literal
from plait.errors import ExternalError, UserError, closest
from plait.expressions.duckdb import type_to_duckdb
from plait.expressions.types import INTEGER_BITS, INTEGER_DIGITS, Kind, Type

FORMATS = ("csv", "json", "parquet")

# How a value may be written in CSV and JSON, as regular expressions of DuckDB for the whole text.
_INTEGER = "[+-]?[0-9]+"
_DOUBLE = "(?i)[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = _DATE + "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"

_SIGNED_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_UNSIGNED_BITS = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}


def load(database: Database, relation: Relation, table: str) -> None:
    """Create `table` with the relation's columns as `c0`, `c1`, … from its stored files."""
    files = data_files(relation)
    file_format = _option(relation, "format").lower()
    match file_format:
        case "parquet":
            _load_parquet(database, relation, files, table)
        case "csv":
            _load_text(database, relation, _csv_source(relation, files), table)
        case "json":
            _load_text(database, relation, _json_source(relation, files), table)
        case _:
            raise UserError(
                "unknown-format",
                f"{_described(relation)} has the unknown format `{file_format}`",
                hint=closest(file_format, FORMATS),
            )


def data_files(relation: Relation) -> list[Path]:
    """The files that hold the relation's rows, sorted by name."""
    if relation.connector != "files":
        raise UserError(
            "no-stored-data",
            f"{_described(relation)} has no stored data",
            hint="declare it WITH (connector = 'files', path = '…', format = 'parquet' | 'csv' | 'json')",
        )
    path = Path(_option(relation, "path"))
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(
            "no-such-path", f"the data of {_described(relation)} is not there: {_shown(relation, path)}"
        )
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    if not files:
        raise UserError(
            "no-files", f"the folder of {_described(relation)} holds no files: {_shown(relation, path)}"
        )
    return files


def _load_parquet(database: Database, relation: Relation, files: Sequence[Path], table: str) -> None:
    selects = []
    for file in files:
        source = f"read_parquet({text_literal(_literal_path(file))})"
        try:
            described = database.fetch(f"DESCRIBE SELECT * FROM {source}")
        except ExternalError as error:
            raise _unreadable(relation, file.name, error) from error
        stored = {str(name).lower(): (str(name), str(type_)) for name, type_, *_ in described}
        items = []
        for index, column in enumerate(relation.columns):
            name, stored_type = stored.get(column.name.lower(), ("", ""))
            if not name:
                raise _missing_column(relation, column, file, [n for n, _ in stored.values()])
            if not _holds(column, stored_type):
                raise UserError(
                    "stored-type",
                    f"column `{column.name}` of {_described(relation)} is declared "
                    f"{column.storage or column.type} but stored as {stored_type}",
                    detail=f"in {_shown(relation, file)}",
                    hint="declare the stored type, and CAST in the queries",
                )
            items.append(f"{quoted(name)}::{type_to_duckdb(column.type)} AS c{index}")
        selects.append(f"SELECT {', '.join(items)} FROM {source}")
    try:
        database.execute(f"CREATE TABLE {table} AS {' UNION ALL '.join(selects)}")
    except ExternalError as error:
        raise _unreadable(relation, str(files[0].parent), error) from error


def _load_text(database: Database, relation: Relation, source: str, table: str) -> None:
    """Read every value as text (`v0`, `v1`, …) first, so that a bad one can be shown."""
    raw = database.unused_name("raw")
    try:
        database.execute(f"CREATE TABLE {raw} AS {source}")
    except ExternalError as error:
        raise _unreadable(relation, _option(relation, "path"), error) from error
    checks, items = [], []
    for index, column in enumerate(relation.columns):
        written, parsed = _parsing(column, f"v{index}")
        items.append(f"{parsed} AS c{index}")
        checks.append(
            f"(SELECT {index}, file, v{index} FROM {raw} "
            f"WHERE v{index} IS NOT NULL AND NOT ({written} AND {parsed} IS NOT NULL) LIMIT 1)"
        )
    bad = database.fetch(" UNION ALL ".join(checks))
    if not bad:
        database.execute(f"CREATE TABLE {table} AS SELECT {', '.join(items)} FROM {raw}")
    database.execute(f"DROP TABLE {raw}")
    if bad:
        index, file, value = bad[0]
        column = relation.columns[index]
        shown = value if len(value) <= 60 else value[:59] + "…"
        raise UserError(
            "stored-value",
            f"column `{column.name}` of {_described(relation)} holds {shown!r}, "
            f"which is no {column.storage or column.type}",
            detail=f"in {_shown(relation, file)}",
        )


def _csv_source(relation: Relation, files: Sequence[Path]) -> str:
    delimiter = _option(relation, "delimiter") if "delimiter" in relation.options else ","
    has_header = relation.options.get("header", True)
    selects = []
    for file in files:
        declared = [column.name for column in relation.columns]
        header = _csv_header(relation, file, delimiter) if has_header else declared
        positions = []
        for column in relation.columns:
            found = [i for i, name in enumerate(header) if name.strip().lower() == column.name.lower()]
            if not found:
                raise _missing_column(relation, column, file, header)
            if len(found) > 1:
                raise UserError(
                    "stored-columns",
                    f"column `{column.name}` of {_described(relation)} is there twice",
                    detail=f"in {_shown(relation, file)}",
                )
            positions.append(found[0])
        items = ", ".join(f"h{position} AS v{index}" for index, position in enumerate(positions))
        columns = ", ".join(f"h{i}: 'VARCHAR'" for i in range(len(header)))
        selects.append(
            f"SELECT {items}, {text_literal(str(file))} AS file "
            f"FROM read_csv({text_literal(_literal_path(file))}, columns = {{{columns}}}, "
            f"header = {bool(has_header)}, delim = {text_literal(delimiter)}, "
            f"auto_detect = false, quote = '\"', escape = '\"', allow_quoted_nulls = false)"
        )
    return " UNION ALL ".join(selects)


def _csv_header(relation: Relation, file: Path, delimiter: str) -> list[str]:
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
            header = next(csv.reader(lines, delimiter=delimiter), None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            "unreadable-data",
            f"the data of {_described(relation)} cannot be read: {_shown(relation, file)}",
            detail=_shown(relation, error),
        ) from error
    if not header:
        raise UserError(
            "stored-columns",
            f"the data of {_described(relation)} has no header line: {_shown(relation, file)}",
            hint=f"its first line is to be {delimiter.join(column.name for column in relation.columns)}",
        )
    return header


def _json_source(relation: Relation, files: Sequence[Path]) -> str:
    columns = ", ".join(f"{text_literal(column.name)}: 'VARCHAR'" for column in relation.columns)
    items = ", ".join(f"{quoted(column.name)} AS v{index}" for index, column in enumerate(relation.columns))
    return " UNION ALL ".join(
        f"SELECT {items}, {text_literal(str(file))} AS file FROM read_json("
        f"{text_literal(_literal_path(file))}, format = 'newline_delimited', records = true, "
        f"columns = {{{columns}}})"
        for file in files
    )


def _parsing(column: ColumnDefinition, text: str) -> tuple[str, str]:
    """Whether the text is written as the type demands, and its value (NULL if out of range)."""

    def matches(pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    type_ = column.type
    plain = f"TRY_CAST({text} AS {type_to_duckdb(type_)})"
    match type_.kind:
        case Kind.BOOLEAN:
            return matches("(?i)true|false"), plain
        case Kind.STRING:
            return "true", text
        case Kind.DECIMAL:
            return matches(
                f"[+-]?([0-9]+([.][0-9]{{0,{type_.scale}}}0*)?|[.][0-9]{{1,{type_.scale or 1}}}0*)"
            ), plain
        case Kind.DOUBLE:
            if column.storage.upper() == "FLOAT":
                return matches(_DOUBLE), f"TRY_CAST({text} AS FLOAT)::DOUBLE"
            return matches(_DOUBLE), plain
        case Kind.DATE:
            return matches(_DATE), plain
        case Kind.TIMESTAMP:
            return matches(_TIMESTAMP), f"TRY_CAST({text} AS TIMESTAMPTZ)::TIMESTAMP"
        case _:
            return matches(_INTEGER), plain


def _holds(column: ColumnDefinition, stored: str) -> bool:
    """Whether every value of the stored DuckDB type is one of the declared type, unchanged."""
    type_ = column.type
    match type_.kind:
        case Kind.BOOLEAN | Kind.DATE:
            return stored == str(type_)
        case Kind.STRING:
            return stored == "VARCHAR"
        case Kind.DOUBLE:
            return stored == "FLOAT" or (stored == "DOUBLE" and column.storage.upper() != "FLOAT")
        case Kind.TIMESTAMP:
            return stored in _TIMESTAMPS
        case Kind.DECIMAL:
            return _decimal_holds(type_, stored)
        case kind if kind in INTEGER_BITS:
            bits = INTEGER_BITS[kind]
            return _SIGNED_BITS.get(stored, 65) <= bits or _UNSIGNED_BITS.get(stored, 65) < bits
        case _:
            return False


def _decimal_holds(type_: Type, stored: str) -> bool:
    whole_digits = type_.precision - type_.scale
    if match := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", stored):
        precision, scale = int(match[1]), int(match[2])
        return scale <= type_.scale and precision - scale <= whole_digits
    stored_digits = {bits: INTEGER_DIGITS[kind] for kind, bits in INTEGER_BITS.items()}
    return stored in _SIGNED_BITS and stored_digits[_SIGNED_BITS[stored]] <= whole_digits


def _literal_path(file: Path) -> str:
    """The path with the signs escaped that DuckDB would take for a pattern.

    >>> _literal_path(Path("/data/a[1].csv"))
    '/data/a[[]1].csv'
    """
    return re.sub(r"([*?\[])", r"[\1]", str(file.absolute()))


def _option(relation: Relation, key: str) -> str:
    value = relation.options.get(key)
    if value is None:
        raise UserError("missing-option", f"{_described(relation)} has no option `{key}`")
    return value.reveal() if isinstance(value, Secret) else str(value)


def _shown(relation: Relation, text: object) -> str:
    """A text that may hold the relation's path, with the names of secrets in place of their values."""
    path = relation.options.get("path")
    return str(text).replace(path.reveal(), str(path)) if isinstance(path, Secret) else str(text)


def _described(relation: Relation) -> str:
    return f"{'stream' if isinstance(relation, Stream) else 'table'} `{relation.name}`"


def _missing_column(
    relation: Relation, column: ColumnDefinition, file: Path, present: Iterable[str]
) -> UserError:
    return UserError(
        "stored-columns",
        f"column `{column.name}` of {_described(relation)} is not in its data",
        detail=f"in {_shown(relation, file)}",
        hint=closest(column.name, present),
    )


def _unreadable(relation: Relation, place: str, error: ExternalError) -> UserError:
    format_ = _option(relation, "format")
    # The fixes that DuckDB goes on to propose are options of its own, which nobody can set here.
    reason = re.split(r"\n\n|\n?Possible fixes", error.detail)[0]
    return UserError(
        "unreadable-data",
        f"the data of {_described(relation)} cannot be read as {format_}: {_shown(relation, place)}",
        detail=_shown(relation, reason),
    )
