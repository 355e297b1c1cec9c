"""What an operator does, in a few words for the eye.

Columns are positions in a plan; here they get back the names they had where they were read, qualified by
their source where two of them would look alike. Casts and types are left out. The exact text of a plan is
`plan.format`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import assert_never

from plait.expressions.aggregates import AggregateCall
from plait.expressions.nodes import Call, Column, Expression, Literal, WindowEdge
from plait.expressions.types import Kind
from plait.plan.format import duration_text
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    RangeWindow,
    RowWindow,
    StreamScan,
    TableScan,
    TickWindow,
    Top,
    Union,
    Window,
    WindowSpecification,
)
from plait.sharing.failing import Check

REMEMBERED_NODES = 10_000


@dataclass(frozen=True)
class _Operator:
    sign: str
    precedence: int


_OPERATORS = {
    "or": _Operator("OR", 1),
    "and": _Operator("AND", 2),
    "eq": _Operator("=", 4),
    "ne": _Operator("<>", 4),
    "lt": _Operator("<", 4),
    "le": _Operator("<=", 4),
    "gt": _Operator(">", 4),
    "ge": _Operator(">=", 4),
    "null_safe_eq": _Operator("<=>", 4),
    "like": _Operator("LIKE", 4),
    "rlike": _Operator("RLIKE", 4),
    "add": _Operator("+", 5),
    "subtract": _Operator("-", 5),
    "concat": _Operator("||", 5),
    "multiply": _Operator("*", 6),
    "divide": _Operator("/", 6),
    "int_divide": _Operator("DIV", 6),
    "modulo": _Operator("%", 6),
}
_NOT = 3
_ATOM = 9


@dataclass(frozen=True)
class Name:
    """A column as the reader knows it; `source` is empty for what was computed."""

    source: str
    text: str


def description(node: Node) -> str:
    """What the node itself does, its inputs aside."""
    match node:
        case StreamScan(_, columns) | TableScan(_, columns):
            return ", ".join(column.name for column in columns) or "no columns"
        case Window(_, window):
            return window_text(window, _texts(names_of(node)))
        case Filter(input_, predicate):
            return expression_text(predicate, _texts(names_of(input_)))
        case Project(input_, expressions):
            texts = _texts(names_of(input_))
            return ", ".join(expression_text(expression, texts) for expression in expressions) or "no columns"
        case Join(_, predicate) | OuterJoin(_, _, _, predicate):
            text = expression_text(predicate, _texts(names_of(node)))
            outer = f"{node.outer.value} outer, " if isinstance(node, OuterJoin) else ""
            return outer + ("all pairs" if text == "TRUE" else text)
        case Aggregate(input_, keys, aggregates):
            texts = _texts(names_of(input_))
            calls = ", ".join(_aggregate_text(call, texts) for call in aggregates)
            by = ", ".join(expression_text(key, texts) for key in keys)
            return " by ".join(filter(None, (calls or "groups", by)))
        case Top(input_, order, count):
            texts = _texts(names_of(input_))
            return f"first {count} by " + ", ".join(
                expression_text(key.expression, texts) + (" DESC" if key.descending else "") for key in order
            )
        case Union(inputs):
            return f"of {len(inputs)} streams"
        case _:
            assert_never(node)


def window_text(window: WindowSpecification, names: Sequence[str] = ()) -> str:
    """
    >>> window_text(TickWindow(300_000_000, 60_000_000))
    '[5 min every 1 min]'
    """
    match window:
        case RangeWindow(range_us):
            return f"[{duration_text(range_us)}]"
        case TickWindow(range_us, slide_us, offset_us):
            every = f" every {duration_text(slide_us)}" if slide_us != range_us else " tumbling"
            offset = f" + {duration_text(offset_us)}" if offset_us else ""
            return f"[{duration_text(range_us)}{every}{offset}]"
        case RowWindow(rows, slide_rows, partition):
            by = ", ".join(names[index] if names else f"#{index}" for index in partition)
            every = f" every {slide_rows}" if slide_rows != rows else ""
            return f"[{rows} rows{every}{' of each ' + by if by else ''}]"
        case _:
            assert_never(window)


@lru_cache(maxsize=REMEMBERED_NODES)
def names_of(node: Node) -> tuple[Name, ...]:
    """The names of a node's columns, by position."""
    match node:
        case StreamScan(source, columns) | TableScan(source, columns):
            return tuple(Name(source, column.name) for column in columns)
        case Window(input_) | Filter(input_) | Top(input_):
            return names_of(input_)
        case Union(inputs):
            return names_of(inputs[0])
        case Join() | OuterJoin():
            return tuple(name for each in node.inputs for name in names_of(each))
        case Project(input_, expressions):
            return tuple(_name(expression, names_of(input_)) for expression in expressions)
        case Aggregate(input_, keys, aggregates):
            names = names_of(input_)
            calls = (Name("", _aggregate_text(call, _texts(names))) for call in aggregates)
            return (*(_name(key, names) for key in keys), *calls)
        case _:
            assert_never(node)


def _name(expression: Expression, names: Sequence[Name]) -> Name:
    if isinstance(expression, Column):
        return names[expression.index]
    return Name("", expression_text(expression, _texts(names)))


def _texts(names: Sequence[Name]) -> list[str]:
    """Short where that is enough to tell columns apart."""
    seen = Counter(name.text for name in names)
    return [
        f"{name.source}.{name.text}" if name.source and seen[name.text] > 1 else name.text for name in names
    ]


def _aggregate_text(call: AggregateCall, names: Sequence[str]) -> str:
    arguments = ", ".join(expression_text(argument, names) for argument in call.arguments) or "*"
    function, distinct = call.function, ""
    if function == "count_distinct":
        function, distinct = "count", "DISTINCT "
    where = f" where {expression_text(call.filter, names)}" if call.filter is not None else ""
    return f"{function}({distinct}{arguments}){where}"


def expression_text(expression: Expression, names: Sequence[str]) -> str:
    """The expression in SQL's words, without casts.

    >>> from plait.expressions.types import INT
    >>> num, one, two = Column(0, INT), Literal(1, INT), Literal(2, INT)
    >>> expression_text(Call("multiply", (Call("add", (num, one)), two)), ["num"])
    '(num + 1) * 2'
    """
    return _text(expression, names)[0]


def failing_text(check: Check) -> str:
    """What it is that can fail: there a cast is not left out."""
    names = [column.name for column in check.scan.columns]
    text = expression_text(check.call, names)
    return f"CAST({text} AS {check.call.type})" if check.call.function == "cast" else text


def _text(expression: Expression, names: Sequence[str]) -> tuple[str, int]:
    """The text and how tightly it holds together."""
    match expression:
        case Column(index):
            return names[index], _ATOM
        case Literal():
            return _literal_text(expression), _ATOM
        case WindowEdge(edge):
            return edge.value, _ATOM
        case Call("cast" | "try_cast", (argument,)):
            return _text(argument, names)
        case Call("not", (Call("is_null", (argument,)),)):
            return f"{_within(argument, names, 4)} IS NOT NULL", 4
        case Call("is_null", (argument,)):
            return f"{_within(argument, names, 4)} IS NULL", 4
        case Call("not", (argument,)):
            return f"NOT {_within(argument, names, _NOT)}", _NOT
        case Call("in", (value, *choices)):
            listed = ", ".join(expression_text(choice, names) for choice in choices)
            return f"{_within(value, names, 4)} IN ({listed})", 4
        case Call("negate", (argument,)):
            return f"-{_within(argument, names, _ATOM)}", _ATOM
        case Call("case", (*branches, otherwise)):
            return _case_text(branches, otherwise, names), _ATOM
        case Call(function, arguments) if function in _OPERATORS and len(arguments) > 1:
            operator = _OPERATORS[function]
            first, *rest = arguments
            parts = [_within(first, names, operator.precedence)]
            parts += [_within(argument, names, operator.precedence + 1) for argument in rest]
            return f" {operator.sign} ".join(parts), operator.precedence
        case Call(function, arguments):
            return f"{function}({', '.join(expression_text(a, names) for a in arguments)})", _ATOM
        case _:
            assert_never(expression)


def _within(expression: Expression, names: Sequence[str], precedence: int) -> str:
    text, own = _text(expression, names)
    return text if own >= precedence else f"({text})"


def _case_text(branches: Sequence[Expression], otherwise: Expression, names: Sequence[str]) -> str:
    texts = [expression_text(branch, names) for branch in branches]
    whens = "".join(f" WHEN {when} THEN {then}" for when, then in zip(texts[::2], texts[1::2], strict=True))
    return f"CASE{whens} ELSE {expression_text(otherwise, names)} END"


def _literal_text(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int) and literal.type.kind is Kind.INTERVAL:
        return duration_text(value)
    if isinstance(value, int) and literal.type.kind is Kind.TIMESTAMP:
        return _moment_text(value)
    return str(value)


def _moment_text(microseconds: int) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:  # Python's calendar ends with the year 9999
        return f"{microseconds} µs"
    return f"'{moment:%Y-%m-%d %H:%M:%S}'"
