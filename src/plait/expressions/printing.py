"""What the two SQL printers share: expressions become text by the templates of their functions, aggregates
by what the engines say differently.

An argument that a template uses several times is written out each time while it is short; a longer one is
bound to a variable, by a lambda over a list of one, so that text grows with the expression and not
exponentially with its depth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter

from plait.expressions.aggregates import AggregateCall
from plait.expressions.functions import FUNCTIONS, Function
from plait.expressions.functions.definition import Shape, Staged, Template
from plait.expressions.nodes import Call, Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.types import DOUBLE, MAX_DECIMAL_PRECISION, Type

# An argument longer than this is bound to a variable instead of being repeated.
_REPEATED_CHARACTERS = 80

# Sums of DECIMALs with more digits than this have no ten digits to spare, and may overflow on the way.
SAFE_SUM_DIGITS = MAX_DECIMAL_PRECISION - 10


@dataclass(frozen=True)
class Dialect:
    """How an engine writes types, literals and functions, and `bind(variable, value, body)`.

    Of aggregates it is what stands behind DISTINCT, and those of exact numbers of a type, each with its
    condition: `total(type, argument, condition)` and `average(type, argument, condition)`. The moments of
    doubles, such as the variance, are `moment(function, argument, condition)`.
    """

    type_name: Callable[[Type], str]
    literal: Callable[[Literal], str]
    template: Callable[[Function], Template]
    bind: Callable[[str, str, str], str]
    distinct: Callable[[Sequence[str]], str]
    total: Callable[[Type, str, str], str]
    average: Callable[[Type, str, str], str]
    moment: Callable[[str, str, str], str]


def print_expression(
    expression: Expression, dialect: Dialect, columns: Sequence[str], edges: Mapping[Edge, str | None]
) -> str:
    """SQL of an expression, self-contained: it needs no parentheses around it."""
    match expression:
        case Column():
            return columns[expression.index]
        case Literal():
            return dialect.literal(expression)
        case WindowEdge():
            reference = edges[expression.edge]
            if reference is None:
                raise ValueError(f"there is no {expression.edge.value} here")
            return reference
        case Call():
            printed = [
                print_expression(argument, dialect, columns, edges) for argument in expression.arguments
            ]
            return _print_call(expression, dialect, printed)


def print_aggregate(
    call: AggregateCall, dialect: Dialect, columns: Sequence[str], edges: Mapping[Edge, str | None]
) -> str:
    """SQL of an aggregate with its FILTER."""
    arguments = [print_expression(argument, dialect, columns, edges) for argument in call.arguments]
    condition = ""
    if call.filter is not None:
        condition = f" FILTER (WHERE {print_expression(call.filter, dialect, columns, edges)})"
    match call.function:
        case "count":
            return f"count({arguments[0] if arguments else '*'}){condition}"
        case "count_distinct":
            return f"count(DISTINCT {dialect.distinct(arguments)}){condition}"
        case "sum" if call.arguments[0].type != DOUBLE:
            return dialect.total(call.arguments[0].type, arguments[0], condition)
        case "avg" if call.arguments[0].type != DOUBLE:
            return dialect.average(call.arguments[0].type, arguments[0], condition)
        case "stddev_samp" | "stddev_pop" | "var_samp" | "var_pop":
            return dialect.moment(call.function, arguments[0], condition)
        case _:
            return f"{call.function}({arguments[0]}){condition}"


def _print_call(call: Call, dialect: Dialect, printed: Sequence[str]) -> str:
    template = dialect.template(FUNCTIONS[call.function])
    if callable(template):
        constants = tuple(a.value if isinstance(a, Literal) else None for a in call.arguments)
        template = template(Shape(tuple(a.type for a in call.arguments), call.type, constants))
    stages = (template.value, template.result) if isinstance(template, Staged) else (template,)
    uses = _uses(stages)

    names, bound = list(printed), []
    for i, text in enumerate(printed):
        if uses[str(i)] > 1 and len(text) > _REPEATED_CHARACTERS:
            names[i] = f"__plait_{i}"
            bound.append((names[i], text))

    fields = {"type": dialect.type_name(call.type), "arguments": ", ".join(names)}
    sql = stages[0].format(*names, **fields)
    if len(stages) == 2:
        if len(sql) > _REPEATED_CHARACTERS:
            sql = dialect.bind(
                "__plait_value", sql, stages[1].format(*names, value="__plait_value", **fields)
            )
        else:
            sql = stages[1].format(*names, value=sql, **fields)
    for variable, text in reversed(bound):
        sql = dialect.bind(variable, text, sql)
    return sql


@lru_cache(maxsize=4096)
def _uses(stages: tuple[str, ...]) -> Counter[str]:
    return Counter(
        field for stage in stages for _, field, _, _ in Formatter().parse(stage) if field is not None
    )
