"""Types as Arrow has them: how rows travel between Spark, DuckDB and result files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from plait.expressions.types import Kind, Type

_SIMPLE = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


def type_to_arrow(type_: Type) -> pa.DataType:
    """
    >>> from plait.expressions.types import BIGINT
    >>> type_to_arrow(BIGINT)
    DataType(int64)
    """
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(type_.precision, type_.scale)
    return _SIMPLE[type_.kind]


def arrow_schema(names: Sequence[str], types: Sequence[Type]) -> pa.Schema:
    """The schema of rows with these columns, all of which may be NULL."""
    return pa.schema([pa.field(n, type_to_arrow(t)) for n, t in zip(names, types, strict=True)])
