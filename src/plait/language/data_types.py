"""From the types of SQL text to ours. Decides which are stored, which are widened and which are refused.

FLOAT exists in storage alone: a FLOAT column is read as DOUBLE, a cast to FLOAT is refused.
"""

from __future__ import annotations

from sqlglot import exp

from plait.errors import Source, Span, UnsupportedError, UserError, closest
from plait.expressions import types
from plait.expressions.types import Kind, Type
from plait.language.limits import clip
from plait.language.spans import span_of

_TYPES = {
    exp.DType.BOOLEAN: types.BOOLEAN,
    exp.DType.TINYINT: types.TINYINT,
    exp.DType.SMALLINT: types.SMALLINT,
    exp.DType.INT: types.INT,
    exp.DType.BIGINT: types.BIGINT,
    exp.DType.DOUBLE: types.DOUBLE,
    exp.DType.TEXT: types.STRING,
    exp.DType.VARCHAR: types.STRING,
    exp.DType.DATE: types.DATE,
    # Spark's TIMESTAMP is an instant; sqlglot calls that TIMESTAMPTZ.
    exp.DType.TIMESTAMPTZ: types.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: types.TIMESTAMP,
}
_INSTEAD = {
    exp.DType.CHAR: "STRING (lengths are not checked)",
    exp.DType.VARCHAR: "STRING (lengths are not checked)",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP (times are UTC)",
    exp.DType.TIMESTAMP: "TIMESTAMP (times are UTC)",
    exp.DType.DATETIME: "TIMESTAMP",
    exp.DType.TIME: "STRING, or a TIMESTAMP",
    exp.DType.BINARY: "STRING, hexadecimal for example",
    exp.DType.VARBINARY: "STRING, hexadecimal for example",
    exp.DType.JSON: "one column per field, or STRING",
    exp.DType.VARIANT: "one column per field, or STRING",
    exp.DType.UUID: "STRING",
    exp.DType.UBIGINT: "DECIMAL(20,0)",
    exp.DType.UINT: "BIGINT",
    exp.DType.INTERVAL: "BIGINT, a number of microseconds",
}
NESTED_TYPES = {"ARRAY": "one row per element", "MAP": "one column per key", "STRUCT": "one column per field"}
ACCEPTED = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, DATE, TIMESTAMP"


def stored_type(node: exp.Expr, source: Source) -> tuple[Type, str]:
    """The type of a declared column, and its storage type where that differs (FLOAT), else ''."""
    if isinstance(node, exp.DataType) and node.this is exp.DType.FLOAT:
        return types.DOUBLE, "FLOAT"
    return value_type(node, source), ""


def value_type(node: exp.Expr, source: Source) -> Type:
    """The type that a cast names."""
    kind = node.this if isinstance(node, exp.DataType) else None
    if kind is exp.DType.FLOAT:
        raise UnsupportedError(
            "type", "FLOAT values exist in storage only", hint="use DOUBLE", span=span_of(node, source)
        )
    if kind is exp.DType.DECIMAL:
        return _decimal(node, source)
    if kind not in _TYPES or any(value for part, value in node.args.items() if part != "this"):
        instead = _INSTEAD.get(kind) if kind is not None else None
        raise no_such_type(_written(node, source), span_of(node, source), instead)
    return _TYPES[kind]


def no_such_type(written: str, span: Span, instead: str | None = None) -> UserError:
    """The error for a type that we do not have, with the one to use instead or the closest by name."""
    suggestion = closest(written, (*(type_.name for type_ in Kind), "INTEGER", "LONG", "VARCHAR"))
    hint = f"use {instead}" if instead else suggestion or f"there is {ACCEPTED}"
    return UnsupportedError("type", f"there is no type {written}", hint=hint, span=span)


def _decimal(node: exp.Expr, source: Source) -> Type:
    sizes = [parameter.name for parameter in node.expressions]
    try:
        if len(sizes) > 2:
            raise ValueError("too many parameters")
        precision, scale = (int(sizes[0]) if sizes else 10, int(sizes[1]) if len(sizes) > 1 else 0)
        return types.decimal(precision, scale)
    except ValueError:
        raise UserError(
            "type",
            f"there is no type {_written(node, source)}",
            hint="DECIMAL(p,s) has 1 to 38 digits, of which s (0 to p) are behind the point",
            span=span_of(node, source),
        ) from None


def _written(node: exp.Expr, source: Source) -> str:
    span = span_of(node, source)
    return clip(source.text[span.start : span.end])
