"""Prints expressions for Spark 4.2 in ANSI mode with session time zone UTC.

INTERVALs are BIGINTs of microseconds. Everything printed is total, constants included, because Spark also
evaluates those while it optimises.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.expressions.aggregates import AggregateCall
from plait.expressions.calendar import timestamp_text
from plait.expressions.functions.text import spark_text
from plait.expressions.nodes import Edge, Expression, Literal
from plait.expressions.printing import SAFE_SUM_DIGITS, Dialect, print_aggregate, print_expression
from plait.expressions.types import BIGINT, Kind, Type


def to_spark(
    expression: Expression,
    columns: Sequence[str],
    window_start: str | None = None,
    window_end: str | None = None,
) -> str:
    """SQL text over columns, and window edges, given as SQL references.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.nodes import Column
    >>> to_spark(build("add", Column(0, BIGINT), number_literal("1")), ["x"])
    'try_add(x, 1L)'
    """
    return print_expression(expression, _SPARK, columns, {Edge.START: window_start, Edge.END: window_end})


def aggregate_to_spark(
    call: AggregateCall,
    columns: Sequence[str],
    window_start: str | None = None,
    window_end: str | None = None,
) -> str:
    """SQL text of an aggregate with its FILTER."""
    return print_aggregate(call, _SPARK, columns, {Edge.START: window_start, Edge.END: window_end})


def _total(type_: Type, argument: str, condition: str) -> str:
    exact = _exact_sum(type_, argument, condition)
    return f"try_cast({exact} AS BIGINT)" if type_ == BIGINT else exact


def _average(type_: Type, argument: str, condition: str) -> str:
    exact = f"CAST({_exact_sum(type_, argument, condition)} AS DOUBLE)"
    return f"try_divide({exact}, CAST(count({argument}){condition} AS DOUBLE))"


def _exact_sum(type_: Type, argument: str, condition: str) -> str:
    """A sum that no order of rows can make overflow on the way, as far as 38 digits reach."""
    if type_ == BIGINT:
        return f"sum(CAST({argument} AS DECIMAL(20,0))){condition}"
    if type_.kind is Kind.DECIMAL and type_.precision > SAFE_SUM_DIGITS:
        return f"try_sum({argument}){condition}"
    return f"sum({argument}){condition}"


def type_to_spark(type_: Type) -> str:
    return "BIGINT" if type_.kind is Kind.INTERVAL else str(type_)


def quoted(name: str) -> str:
    """A column's name, whatever signs are in it.

    >>> print(quoted("a`b"))
    `a``b`
    """
    return f"`{name.replace('`', '``')}`"


def literal_to_spark(literal: Literal) -> str:
    value, type_ = literal.value, literal.type
    if value is None:
        return f"CAST(NULL AS {type_to_spark(type_)})"
    match type_.kind:
        case Kind.BOOLEAN:
            return str(value).upper()
        case Kind.INT:
            return str(value)
        case Kind.TINYINT:
            return f"{value}Y"
        case Kind.SMALLINT:
            return f"{value}S"
        case Kind.BIGINT | Kind.INTERVAL:
            return f"{value}L"
        case Kind.DECIMAL:
            return f"CAST({value:f}BD AS {type_})"
        case Kind.DOUBLE:
            return f"{value!r}D" if _is_finite(value) else f"CAST('{value}' AS DOUBLE)"
        case Kind.STRING:
            assert isinstance(value, str)
            return spark_text(value)
        case Kind.DATE:
            return f"DATE '{value}'"
        case Kind.TIMESTAMP:
            assert isinstance(value, int)
            return f"TIMESTAMP '{timestamp_text(value)}'"


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and value - value == 0


def _bind(variable: str, value: str, body: str) -> str:
    return f"transform(array({value}), {variable} -> {body})[0]"


_SPARK = Dialect(
    type_name=type_to_spark,
    literal=literal_to_spark,
    template=lambda function: function.spark,
    bind=_bind,
    distinct=", ".join,
    total=_total,
    average=_average,
    moment=lambda function, argument, condition: f"{function}({argument}){condition}",
)
