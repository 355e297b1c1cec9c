"""Prints expressions for DuckDB 2.0 with `TimeZone` UTC, so that they give what Spark gives.

TIMESTAMPs are without zone, in UTC; INTERVALs are BIGINTs of microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.expressions.aggregates import AggregateCall, aggregate_type
from plait.expressions.calendar import timestamp_text
from plait.expressions.functions.text import duckdb_text
from plait.expressions.nodes import Edge, Expression, Literal
from plait.expressions.printing import SAFE_SUM_DIGITS, Dialect, print_aggregate, print_expression
from plait.expressions.types import Kind, Type

_TYPE_NAMES = {Kind.INT: "INTEGER", Kind.STRING: "VARCHAR", Kind.INTERVAL: "BIGINT"}


def to_duckdb(
    expression: Expression,
    columns: Sequence[str],
    window_start: str | None = None,
    window_end: str | None = None,
) -> str:
    """SQL text over columns, and window edges, given as SQL references.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import INT
    >>> to_duckdb(build("add", Column(0, INT), number_literal("1")), ["x"])
    'TRY(x + 1)'
    """
    return print_expression(expression, _DUCKDB, columns, {Edge.START: window_start, Edge.END: window_end})


def aggregate_to_duckdb(
    call: AggregateCall,
    columns: Sequence[str],
    window_start: str | None = None,
    window_end: str | None = None,
) -> str:
    """SQL text of an aggregate with its FILTER."""
    return print_aggregate(call, _DUCKDB, columns, {Edge.START: window_start, Edge.END: window_end})


def _row_without_nulls(arguments: Sequence[str]) -> str:
    if len(arguments) == 1:
        return arguments[0]
    complete = " AND ".join(f"{argument} IS NOT NULL" for argument in arguments)
    return f"CASE WHEN {complete} THEN row({', '.join(arguments)}) END"


def _total(type_: Type, argument: str, condition: str) -> str:
    total_type = type_to_duckdb(aggregate_type("sum", (type_,)))
    return f"TRY_CAST({_exact_sum(type_, argument, condition)} AS {total_type})"


def _average(type_: Type, argument: str, condition: str) -> str:
    total = _total if type_.kind is Kind.DECIMAL else _exact_sum
    exact = f"CAST(CAST({total(type_, argument, condition)} AS VARCHAR) AS DOUBLE)"
    return f"({exact} / count({argument}){condition})"


def _moment(function: str, argument: str, condition: str) -> str:
    """DuckDB does not look at a value that is the only one, or equal to all others: of a NaN or an infinity
    the moment is NaN."""
    return f"({function}({argument}){condition} + 0 * max(abs({argument})){condition})"


def _exact_sum(type_: Type, argument: str, condition: str) -> str:
    if type_.kind is not Kind.DECIMAL or type_.precision <= SAFE_SUM_DIGITS:
        return f"sum({argument}){condition}"
    # DuckDB sums decimals as 128-bit integers, which these can overflow.
    # Digits without the point, summed as an integer of any size, and the point put back.
    digits = f"CAST(replace(CAST({argument} AS VARCHAR), '.', '') AS BIGNUM)"
    total = f"CAST(sum({digits}){condition} AS VARCHAR)"
    if type_.scale == 0:
        return total
    padded = f"regexp_replace({total}, '^-?', '\\0{'0' * type_.scale}')"
    return f"regexp_replace({padded}, '[0-9]{{{type_.scale}}}$', '.\\0')"


def type_to_duckdb(type_: Type) -> str:
    return _TYPE_NAMES.get(type_.kind, str(type_))


def literal_to_duckdb(literal: Literal) -> str:
    value, type_ = literal.value, literal.type
    name = type_to_duckdb(type_)
    if value is None:
        return f"CAST(NULL AS {name})"
    match type_.kind:
        case Kind.BOOLEAN:
            return str(value).upper()
        case Kind.INT:
            return str(value)
        case Kind.TINYINT | Kind.SMALLINT | Kind.BIGINT | Kind.INTERVAL:
            return f"CAST({value} AS {name})"
        case Kind.DECIMAL:
            return f"CAST('{value:f}' AS {name})"
        case Kind.DOUBLE:
            return f"CAST('{value!r}' AS DOUBLE)"
        case Kind.STRING:
            assert isinstance(value, str)
            return duckdb_text(value)
        case Kind.DATE:
            return f"DATE '{value}'"
        case Kind.TIMESTAMP:
            assert isinstance(value, int)
            return f"TIMESTAMP '{timestamp_text(value)}'"


def literal_text(literal: Literal) -> str | None:
    """The value as a text that a cast to its type reads; NULL is None."""
    value = literal.value
    match value, literal.type.kind:
        case (None, _):
            return None
        case (_, Kind.DECIMAL):
            return f"{value:f}"
        case (float(), _):
            return repr(value)
        case (int(), Kind.TIMESTAMP):
            return timestamp_text(value)
        case _:
            return str(value)


def _bind(variable: str, value: str, body: str) -> str:
    return f"list_transform([{value}], lambda {variable}: {body})[1]"


_DUCKDB = Dialect(
    type_name=type_to_duckdb,
    literal=literal_to_duckdb,
    template=lambda function: function.duckdb,
    bind=_bind,
    distinct=_row_without_nulls,
    total=_total,
    average=_average,
    moment=_moment,
)
