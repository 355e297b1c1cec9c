"""Prints expressions for DuckDB 2.0 with `TimeZone` UTC, so that they give what Spark gives.

TIMESTAMPs are without zone, in UTC; INTERVALs are BIGINTs of microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.expressions.aggregates import AggregateCall, aggregate_type
from plait.expressions.calendar import timestamp_text
from plait.expressions.functions.text import duckdb_text
from plait.expressions.nodes import Edge, Expression, Literal
from plait.expressions.printing import Dialect, print_expression
from plait.expressions.types import DOUBLE, Kind, Type

# DuckDB sums decimals as 128-bit integers, which values of more digits than this can overflow.
_SAFE_SUM_DIGITS = 28

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
    arguments = [to_duckdb(argument, columns, window_start, window_end) for argument in call.arguments]
    condition = ""
    if call.filter is not None:
        condition = f" FILTER (WHERE {to_duckdb(call.filter, columns, window_start, window_end)})"

    def over(function: str, inner: str) -> str:
        return f"{function}({inner}){condition}"

    match call.function:
        case "count":
            return over("count", arguments[0] if arguments else "*")
        case "count_distinct":
            return over("count", f"DISTINCT {_row_without_nulls(arguments)}")
        case "sum" if call.arguments[0].type != DOUBLE:
            exact = _exact_sum(call.arguments[0].type, arguments[0], condition)
            return f"TRY_CAST({exact} AS {type_to_duckdb(call.type)})"
        case "avg" if call.arguments[0].type != DOUBLE:
            exact = _exact_sum(call.arguments[0].type, arguments[0], condition)
            if call.arguments[0].type.kind is Kind.DECIMAL:
                sum_type = aggregate_type("sum", (call.arguments[0].type,))
                exact = f"TRY_CAST({exact} AS {type_to_duckdb(sum_type)})"
            return f"(CAST(CAST({exact} AS VARCHAR) AS DOUBLE) / {over('count', arguments[0])})"
        case _:
            return over(call.function, arguments[0])


def _row_without_nulls(arguments: Sequence[str]) -> str:
    if len(arguments) == 1:
        return arguments[0]
    complete = " AND ".join(f"{argument} IS NOT NULL" for argument in arguments)
    return f"CASE WHEN {complete} THEN row({', '.join(arguments)}) END"


def _exact_sum(type_: Type, argument: str, condition: str) -> str:
    if type_.kind is not Kind.DECIMAL or type_.precision <= _SAFE_SUM_DIGITS:
        return f"sum({argument}){condition}"
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


def _bind(variable: str, value: str, body: str) -> str:
    return f"list_transform([{value}], lambda {variable}: {body})[1]"


_DUCKDB = Dialect(type_to_duckdb, literal_to_duckdb, lambda function: function.duckdb, _bind)
