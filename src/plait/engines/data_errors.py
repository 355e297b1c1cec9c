"""What is wrong with stored data, so that it can be found and mended: relation, file, line and a way out.

Nothing here shows the value of a secret: a path that holds one is shown as it was declared. The reasons that
DuckDB gives are kept, its advice is not: it is about options of its own, which nobody can set here.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from plait.catalog import ColumnDefinition, OptionValue, Relation, Secret, Stream
from plait.errors import ExternalError, UserError, closest

FORMATS = ("csv", "json", "parquet")

# What reading a file from Python may raise.
READING_ERRORS = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)

_ADVICE = re.compile(
    r"\n*(This can happen|Possible (fixes|Solution)|Try (setting|auto-detecting)|  file = ).*", re.DOTALL
)
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
MAX_SHOWN = 60
MAX_REASON_LINE = 200


def option(relation: Relation, key: str) -> str:
    """The text of an option that has to be there."""
    value = relation.options.get(key)
    if value is None:
        raise UserError("missing-option", f"{described(relation)} has no option `{key}`")
    return value.reveal() if isinstance(value, Secret) else str(value)


def described(relation: Relation) -> str:
    return f"{'stream' if isinstance(relation, Stream) else 'table'} `{relation.name}`"


def shown(relation: Relation, file: Path) -> str:
    """The relation's path, or a file of its folder, without the values of secrets."""
    path: OptionValue = relation.options["path"]
    if not isinstance(path, Secret):
        return str(file)
    return str(path) if file == Path(path.reveal()) else f"{path}/{file.name}"


def missing_column(
    relation: Relation, column: ColumnDefinition, file: Path, present: Sequence[str], hint: str = ""
) -> UserError:
    return UserError(
        "stored-columns",
        f"column `{column.name}` of {described(relation)} is not in its data",
        detail=f"in {shown(relation, file)}",
        hint=_with_file_hint(relation, file, hint or closest(column.name, present)),
    )


def header_hint(relation: Relation, column: ColumnDefinition, header: Sequence[str], delimiter: str) -> str:
    """What may be the matter with a CSV file whose first line does not name a column."""
    names = {definition.name.lower() for definition in relation.columns}
    line = delimiter.join(header)
    for other, called in _DELIMITERS.items():
        if other != delimiter and names <= {part.strip().lower() for part in line.split(other)}:
            return f"its values are separated by {called}: declare delimiter = '{other}'"
    likely = closest(column.name, header)
    if likely.startswith("did you mean") or names & {name.strip().lower() for name in header}:
        return likely
    return (
        f"its first line is {_clipped(line)!r}: if that is a row and does not name the columns, "
        "declare header = false"
    )


def bad_value(relation: Relation, column: ColumnDefinition, file: Path, value: str) -> UserError:
    """A text in a CSV or JSON file that is no value of the column's type."""
    hint = ""
    if value.strip().lower() in ("null", "none", "na", "\\n"):
        is_csv = option(relation, "format").lower() == "csv"
        hint = "an empty field is NULL" if is_csv else "NULL is null without quotes, or a member left out"
    line = _line_of(relation, column, file, value)
    return UserError(
        "stored-value",
        f"column `{column.name}` of {described(relation)} holds {_clipped(value)!r}, "
        f"which is no {column.storage or column.type}",
        detail=f"in {shown(relation, file)}" + (f", line {line}" if line else ""),
        hint=hint,
    )


def unreadable(relation: Relation, file: Path, error: Exception) -> UserError:
    """A file that cannot be read at all, or not as what it is declared to be."""
    format_ = option(relation, "format").lower()
    match error:
        case ExternalError():
            reason = reason_of_duckdb(relation, file, error.detail)
        case OSError():
            reason = error.strerror or type(error).__name__  # its text holds the path
        case _:
            reason = str(error)
    hint = ""
    if format_ == "json":
        line = _first_line_that_is_no_object(file)
        if line:
            reason = f"line {line} is no JSON object"
        hint = 'every line is to be one object, such as {"a": 1, "b": null}'
    elif "Number of Columns" in reason:
        delimiter = str(relation.options.get("delimiter", ","))
        hint = (
            f"quote values in which {_DELIMITERS.get(delimiter, delimiter)} is no separator; "
            "an empty field is NULL"
        )
    return UserError(
        "unreadable-data",
        f"the data of {described(relation)} cannot be read as {relation.options['format']}: "
        f"{shown(relation, file)}",
        detail=reason,
        hint=_with_file_hint(relation, file, hint),
    )


def opened_text(file: Path, errors: str = "strict") -> IO[str]:
    """A text file, maybe compressed, as the CSV reader of Python wants it."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return file.open(encoding="utf-8-sig", errors=errors, newline="")


def _with_file_hint(relation: Relation, file: Path, hint: str) -> str:
    """Say first if the file does not look as if it belonged there."""
    if relation.connector != "files":
        return hint
    format_ = option(relation, "format").lower()
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    ending = suffixes[-1][1:].lower() if suffixes else ""
    hints = [hint] if hint else []
    if ending in FORMATS and ending != format_:
        hints.insert(0, f"the file is called .{ending}: declare format = '{ending}' if that is what it is")
    if ending not in ("", format_) and file != Path(option(relation, "path")):
        hints.append("all files of the folder are read, except those with a leading _ or .")
    return "\n".join(hints)


def reason_of_duckdb(relation: Relation, file: Path, detail: str) -> str:
    """What DuckDB says is wrong, without its advice and without the values of secrets."""
    reason = _KIND.sub("", _ADVICE.sub("", detail))
    for spelled in (literal_path(file), str(file.resolve())):
        reason = reason.replace(spelled, shown(relation, file))
    lines = [line for line in reason.splitlines() if line.strip()]
    return "\n".join(_clipped(line, MAX_REASON_LINE) for line in lines)


def literal_path(file: Path) -> str:
    """The path with the signs escaped that DuckDB would take for a pattern.

    It is resolved, so that DuckDB spells it in only one other way when it complains: without the escapes.

    >>> literal_path(Path("/data/../data/a[1].csv"))
    '/data/a[[]1].csv'
    """
    return re.sub(r"([*?\[])", r"[\1]", str(file.resolve()))


def _line_of(relation: Relation, column: ColumnDefinition, file: Path, value: str) -> int | None:
    """The first line on which the column has that text; None if Python does not find it."""
    is_csv = option(relation, "format").lower() == "csv"
    values = _csv_values(relation, column, file) if is_csv else _json_values(column, file)
    try:
        return next((line for line, found in values if found == value), None)
    except (*READING_ERRORS, ValueError, IndexError):
        return None


def _csv_values(relation: Relation, column: ColumnDefinition, file: Path) -> Iterator[tuple[int, str]]:
    names = [definition.name.lower() for definition in relation.columns]
    with opened_text(file) as lines:
        rows = csv.reader(lines, delimiter=str(relation.options.get("delimiter", ",")))
        if relation.options.get("header", True):
            names = [name.strip().lower() for name in next(rows)]
        position = names.index(column.name.lower())
        before = rows.line_num
        for row in rows:
            if row:
                yield before + 1, row[position]
            before = rows.line_num


def _json_values(column: ColumnDefinition, file: Path) -> Iterator[tuple[int, str]]:
    with opened_text(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                # Numbers as they are written.
                member = json.loads(line, parse_int=str, parse_float=str).get(column.name)
                if not isinstance(member, str):
                    member = json.dumps(json.loads(line).get(column.name), separators=(",", ":"))
                yield number, member


def _first_line_that_is_no_object(file: Path) -> int | None:
    """DuckDB's own line numbers are not reliable for JSON."""
    number = 0
    try:
        with opened_text(file) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip() and not isinstance(json.loads(line), dict):
                    return number
    except READING_ERRORS:
        return None
    except (ValueError, RecursionError):
        return number
    return None


def _clipped(text: str, length: int = MAX_SHOWN) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
