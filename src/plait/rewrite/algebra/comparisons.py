"""Comparisons in one spelling.

- a literal stands on the right; between other operands there is `<` and `<=` but no `>` or `>=`, and
  operands of `=` and `<>` are sorted;
- an integer is compared with a literal by `=`, `<>`, `<=` or `>=`: `x > 5` is `x >= 6`;
- a widened integer is compared with a literal as it was before widening: widening keeps order and never
  fails;
- `b = TRUE` is `b`.

All are exact in three-valued logic: each side is NULL exactly if an operand is.
"""

from __future__ import annotations

from plait.expressions.nodes import FALSE, TRUE, Call, Expression, Literal
from plait.expressions.types import integer_range
from plait.rewrite.algebra.constants import NULL_BOOLEAN, cast_literal, is_true_of
from plait.rewrite.algebra.order import in_order, sort_key

MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def comparison(function: str, left: Expression, right: Expression) -> Expression:
    """`left function right` in normal form, unless it is of booleans with a literal: see `logic`.

    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import INT
    >>> from plait.plan.format import format_expression
    >>> format_expression(comparison("lt", Literal(5, INT), Column(0, INT)))
    '(#0 >= 6)'
    """
    if _is_null(left) or _is_null(right):
        return NULL_BOOLEAN
    if isinstance(left, Literal) and isinstance(right, Literal):
        truth = is_true_of(function, left, right)
        if truth is not None:
            return TRUE if truth else FALSE
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, function = right, left, MIRRORED[function]
    if isinstance(right, Literal):
        return _with_literal(function, left, right)
    if function in ("gt", "ge") or (function in ("eq", "ne") and sort_key(right) < sort_key(left)):
        left, right, function = right, left, MIRRORED[function]
    return Call(function, (left, right))


def membership(value: Expression, items: tuple[Expression, ...]) -> Expression:
    """`value IN (items)`: items sorted and once, one item is an equality."""
    if _is_null(value):
        return NULL_BOOLEAN
    if isinstance(value, Call) and all(isinstance(item, Literal) for item in items):
        narrow = _before_widening(value)
        if narrow is not None:
            fitting = [_narrowed(item, narrow) for item in items if isinstance(item, Literal)]
            kept = tuple(item for item in fitting if item is not None)
            if kept:  # an item out of range is never equal; a list must not become empty
                return membership(narrow, kept)
    items = in_order(items)
    if len(items) == 1:
        return comparison("eq", value, items[0])
    if isinstance(value, Literal):
        answers = [is_true_of("eq", value, i) if isinstance(i, Literal) else None for i in items]
        if any(answers):
            return TRUE
        if None not in answers:
            return FALSE
    return Call("in", (value, *items))


def _with_literal(function: str, left: Expression, right: Literal) -> Expression:
    if isinstance(left, Call):
        narrow = _before_widening(left)
        literal = _narrowed(right, narrow) if narrow is not None else None
        if narrow is not None and literal is not None:
            return _with_literal(function, narrow, literal)
    if left.type.is_integer and function in ("lt", "gt"):
        assert isinstance(right.value, int)
        low, high = integer_range(right.type)
        bound = right.value + (1 if function == "gt" else -1)
        if low <= bound <= high:
            function, right = ("ge" if function == "gt" else "le"), Literal(bound, right.type)
    return Call(function, (left, right))


def _before_widening(expression: Call) -> Expression | None:
    """`x` if the expression is `x` cast from an integer type to a wider one."""
    if expression.function != "cast":
        return None
    (narrow,) = expression.arguments
    if not (narrow.type.is_integer and expression.type.is_integer):
        return None
    return narrow if integer_range(narrow.type)[1] <= integer_range(expression.type)[1] else None


def _narrowed(literal: Literal, narrow: Expression) -> Literal | None:
    return cast_literal(literal, narrow.type)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None
