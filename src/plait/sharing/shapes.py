"""Filters and projections that are equal but for constants: one statement serves all queries of a shape.

The constants that expressions compare or compute with, or are, become further columns, whose values each
query gives. Other constants stay: some functions need theirs as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.expressions.nodes import Call, Column, Expression, Literal
from plait.expressions.types import Type

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "int_divide", "modulo"})


def _can_be_column(function: str, constant: Literal) -> bool:
    """Whether an argument of a function may as well be a column."""
    return function in _COMPARISONS or (function in _ARITHMETIC and constant.type.is_numeric)


@dataclass(frozen=True)
class Shape:
    """Expressions over the columns of a relation of `width` columns, and over the query's constants after
    them."""

    width: int
    terms: tuple[Expression, ...]
    expressions: tuple[Expression, ...]
    constants: tuple[Type, ...]


@dataclass(frozen=True)
class Shaped:
    """What one query computes: a shape with its constants."""

    shape: Shape
    constants: tuple[Literal, ...]


def shaped(width: int, terms: Sequence[Expression], expressions: Sequence[Expression]) -> Shaped:
    """
    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> total = Column(0, INT)
    >>> few = shaped(1, [build("gt", total, number_literal("5"))], [total])
    >>> many = shaped(1, [build("gt", total, number_literal("50"))], [total])
    >>> few.shape == many.shape, few.constants[0].value, many.constants[0].value
    (True, 5, 50)
    """
    lifting = _Lifting(width)
    lifted_terms = tuple(map(lifting.lifted, terms))
    lifted_expressions = tuple(
        lifting.column(each) if isinstance(each, Literal) else lifting.lifted(each) for each in expressions
    )
    types = tuple(constant.type for constant in lifting.constants)
    return Shaped(Shape(width, lifted_terms, lifted_expressions, types), tuple(lifting.constants))


class _Lifting:
    def __init__(self, width: int) -> None:
        self._width = width
        self.constants: list[Literal] = []

    def lifted(self, expression: Expression) -> Expression:
        if not isinstance(expression, Call):
            return expression
        arguments = tuple(
            self.column(argument)
            if isinstance(argument, Literal) and _can_be_column(expression.function, argument)
            else self.lifted(argument)
            for argument in expression.arguments
        )
        return Call(expression.function, arguments, expression.to)

    def column(self, constant: Literal) -> Column:
        self.constants.append(constant)
        return Column(self._width + len(self.constants) - 1, constant.type)
