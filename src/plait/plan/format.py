"""Plans as text, and text as plans.

One node a line, inputs before what uses them, a shared sub-plan once; then the roots by name:

    r0 := scan flights [num INT, gate STRING]
    r1 := filter r0: (num#0 = 17)
    r2 := window r1: range 5 min
    q = r2

A column is written `name#position`. The name is for the eye; only the position counts, so a plan parses back
to itself whatever its columns are called. A literal without a type is an INT, a STRING or a BOOLEAN; every
other one carries its type (`17:BIGINT`, `null:DATE`); timestamps and intervals are microseconds. Operators
stand in parentheses, always.

`parse_plans` (module `parse`) is the strict inverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import assert_never

from plait.expressions.nodes import Call, Column, Expression, Literal, WindowEdge
from plait.expressions.types import INT
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
    walk_plan,
)
from plait.plan.notation import OPERATORS, UNITS_US, quoted_name, quoted_string
from plait.plan.parse import parse_plans

__all__ = ["call_text", "duration_text", "format_expression", "format_plans", "literal_text", "parse_plans"]

UNNAMED = "_"


def format_plans(plans: Mapping[str, Node]) -> str:
    """All plans as one text, in which equal sub-plans appear once."""
    numbers: dict[Node, int] = {}
    names: dict[Node, tuple[str, ...]] = {}
    lines: list[str] = []
    roots: list[str] = []
    for name, plan in plans.items():
        for node in walk_plan(plan):
            if node in numbers:
                continue
            numbers[node] = len(numbers)
            names[node] = _column_names(node, [names[child] for child in node.inputs])
            inputs = [f"r{numbers[child]}" for child in node.inputs]
            visible = [column for child in node.inputs for column in names[child]]
            lines.append(f"r{numbers[node]} := {_node_text(node, inputs, visible)}")
        roots.append(f"{quoted_name(name)} = r{numbers[plan]}")
    return "\n".join([*lines, *roots, ""])


def format_expression(expression: Expression, names: Sequence[str] = ()) -> str:
    """The expression with its columns called by `names`, or by position alone.

    >>> format_expression(Column(0, INT), ["num"]), format_expression(Column(0, INT))
    ('num#0', '#0')
    """
    match expression:
        case Column(index):
            return f"{quoted_name(names[index])}#{index}" if names else f"#{index}"
        case Literal():
            return literal_text(expression)
        case WindowEdge(edge):
            return edge.value
        case Call():
            return call_text(expression, [format_expression(a, names) for a in expression.arguments])
        case _:
            assert_never(expression)


def call_text(call: Call, arguments: Sequence[str]) -> str:
    """A call around its arguments' texts."""
    operator = OPERATORS.get(call.function)
    if operator is not None and len(arguments) >= 2:
        return f"({f' {operator} '.join(arguments)})"
    to = f" as {call.to}" if call.to is not None else ""
    return f"{call.function}({', '.join(arguments)}{to})"


def literal_text(literal: Literal) -> str:
    """A literal from which value and type can be read back.

    >>> from plait.expressions.types import DOUBLE
    >>> literal_text(Literal(17, INT)), literal_text(Literal(None, INT)), literal_text(Literal(1.5, DOUBLE))
    ('17', 'null:INT', '1.5:DOUBLE')
    """
    value, type_ = literal.value, literal.type
    if value is None:
        return f"null:{type_}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted_string(value)
    if isinstance(value, date):
        return f"{value.isoformat()}:{type_}"
    text = f"{value:f}" if isinstance(value, Decimal) else repr(value)
    return text if type_ == INT else f"{text}:{type_}"


def duration_text(microseconds: int) -> str:
    """
    >>> duration_text(300_000_000), duration_text(1_500_000), duration_text(0)
    ('5 min', '1500 ms', '0 us')
    """
    for unit, size in UNITS_US.items():
        if microseconds and microseconds % size == 0:
            return f"{microseconds // size} {unit}"
    return f"{microseconds} us"


def _node_text(node: Node, inputs: Sequence[str], names: Sequence[str]) -> str:
    def show(expressions: Sequence[Expression]) -> str:
        return ", ".join(format_expression(expression, names) for expression in expressions)

    match node:
        case StreamScan(source, columns) | TableScan(source, columns):
            fields = ", ".join(f"{quoted_name(column.name)} {column.type}" for column in columns)
            return f"{node.kind} {quoted_name(source)} [{fields}]"
        case Window(_, window):
            return f"window {inputs[0]}: {_window_text(window, names)}"
        case Filter(_, predicate):
            return f"filter {inputs[0]}: {show([predicate])}"
        case Project(_, expressions):
            return f"project {inputs[0]}: {show(expressions)}".rstrip()
        case Join(_, predicate):
            return f"join {', '.join(inputs)}: {show([predicate])}"
        case OuterJoin(outer, _, _, predicate):
            return f"{outer.value} join {', '.join(inputs)}: {show([predicate])}"
        case Aggregate(_, keys, aggregates):
            by = f" by {show(keys)}" if keys else ""
            calls = ", ".join(
                f"{call.function}({show(call.arguments)})"
                + (f" where {show([call.filter])}" if call.filter is not None else "")
                for call in aggregates
            )
            return f"aggregate {inputs[0]}{by}: {calls}".rstrip()
        case Top(_, order, count):
            keys_text = ", ".join(
                f"{show([key.expression])} {'desc' if key.descending else 'asc'} "
                f"nulls {'first' if key.nulls_first else 'last'}"
                for key in order
            )
            return f"top {inputs[0]}: {count} by {keys_text}"
        case Union():
            return f"union {', '.join(inputs)}"
        case _:
            assert_never(node)


def _window_text(window: WindowSpecification, names: Sequence[str]) -> str:
    match window:
        case RangeWindow(range_us):
            return f"range {duration_text(range_us)}"
        case TickWindow(range_us, slide_us, offset_us):
            offset = f" offset {duration_text(offset_us)}" if offset_us else ""
            return f"range {duration_text(range_us)} slide {duration_text(slide_us)}{offset}"
        case RowWindow(rows, slide_rows, partition):
            by = ", ".join(f"{quoted_name(names[index])}#{index}" for index in partition)
            return f"rows {rows} slide {slide_rows}" + (f" partition {by}" if partition else "")
        case _:
            assert_never(window)


def _column_names(node: Node, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    def name(expression: Expression) -> str:
        return inputs[0][expression.index] if isinstance(expression, Column) else UNNAMED

    match node:
        case StreamScan(_, columns) | TableScan(_, columns):
            return tuple(column.name for column in columns)
        case Window() | Filter() | Top() | Union():
            return inputs[0]
        case Project(_, expressions):
            return tuple(map(name, expressions))
        case Join() | OuterJoin():
            return tuple(column for names in inputs for column in names)
        case Aggregate(_, keys, aggregates):
            return (*map(name, keys), *(call.function for call in aggregates))
        case _:
            assert_never(node)
