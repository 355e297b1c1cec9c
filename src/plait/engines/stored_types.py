"""Whether what is stored with types of its own (Parquet, DuckDB, Arrow) has the declared columns.

A stored column may be narrower than declared (INT for BIGINT, FLOAT for DOUBLE), never wider: no value is
rounded or lost on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from plait.catalog import ColumnDefinition, Relation
from plait.engines.data_errors import described
from plait.engines.duckdb import quoted
from plait.errors import UserError
from plait.expressions.duckdb import type_to_duckdb
from plait.expressions.types import INTEGER_BITS, INTEGER_DIGITS, Kind, Type

_SIGNED_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_UNSIGNED_BITS = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}


def select_items(
    relation: Relation,
    schema: Iterable[tuple[Any, ...]],
    where: str,
    missing: Callable[[ColumnDefinition, Sequence[str]], UserError],
) -> str:
    """The declared columns as `c0`, `c1`, …, of something that DuckDB describes by this schema.

    Columns are found by name, whatever its case. `where` says which data it is, `missing` makes the error for
    a column that is not among the names.
    """
    stored = {str(name).lower(): (str(name), str(type_)) for name, type_, *_ in schema}
    items = []
    for index, column in enumerate(relation.columns):
        name, stored_type = stored.get(column.name.lower(), ("", ""))
        if not name:
            raise missing(column, [n for n, _ in stored.values()])
        if not _holds(column, stored_type):
            raise UserError(
                "stored-type",
                f"column `{column.name}` of {described(relation)} is declared "
                f"{column.storage or column.type} but stored as {stored_type}",
                detail=where,
                hint="declare the stored type, and CAST in the queries",
            )
        items.append(f"{quoted(name)}::{type_to_duckdb(column.type)} AS c{index}")
    return ", ".join(items)


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
