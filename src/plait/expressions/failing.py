"""Where an expression fails: a function gives NULL though none of its arguments is, because there is no such
value. Elsewhere that would be an error; here it is counted.

A failure counts only where it can matter: not in a branch of CASE that is not taken, not beside a term of AND
that is false or a term of OR that is true. So it does not depend on the order in which terms are written, or
evaluated. What is found is an expression again, which any engine computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from plait.expressions.coercion import build
from plait.expressions.functions import FUNCTIONS
from plait.expressions.functions.definition import Shape
from plait.expressions.keeping import kept
from plait.expressions.nodes import FALSE, TRUE, Call, Expression, Literal, conjunction, walk
from plait.expressions.types import (
    BIGINT,
    DOUBLE,
    INT,
    INTEGER_DIGITS,
    Type,
    decimal,
    integer_range,
)

_ZERO, _MINUS_ONE = Literal(0, INT), Literal(-1, INT)


@kept
def can_fail(call: Call) -> bool:
    """Whether a call can give NULL for arguments that are not, by their types and constants.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import INT
    >>> can_fail(build("divide", Column(0, INT), Column(1, INT)))
    True
    >>> can_fail(build("divide", Column(0, INT), number_literal("2")))
    False
    """
    constants = tuple(_constant(argument) for argument in call.arguments)
    if any(isinstance(each, Literal) and each.value is None for each in constants):
        return False
    values = tuple(each.value if isinstance(each, Literal) else None for each in constants)
    types = tuple(argument.type for argument in call.arguments)
    return FUNCTIONS[call.function].fails(Shape(types, call.type, values))


def can_any_fail(expression: Expression) -> bool:
    """Whether anything in an expression can."""
    return any(isinstance(part, Call) and can_fail(part) for part in walk(expression))


def failing(expression: Expression) -> dict[Call, Expression]:
    """The calls that can fail, each with what is true of the rows on which it fails, and that matters.

    >>> from plait.expressions.coercion import build
    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import DOUBLE
    >>> from plait.plan.format import format_expression
    >>> ratio = build("divide", Column(0, DOUBLE), Column(1, DOUBLE))
    >>> print(*map(format_expression, failing(ratio).values()))
    (not(is_null(#0)) and not(is_null(#1)) and (#1 = 0.0:DOUBLE))
    """
    found: dict[Call, list[Expression]] = {}
    _look(expression, (), found)
    return {call: disjunction(conditions) for call, conditions in found.items()}


def fails(call: Call) -> Expression:
    """What is true of the rows on which a call fails, wherever it stands."""
    arguments = [argument for argument in call.arguments if not isinstance(argument, Literal)]
    given = [Call("not", (Call("is_null", (argument,)),)) for argument in arguments]
    return conjunction([*given, _has_no_value(call)])


def _has_no_value(call: Call) -> Expression:
    """Whether a call of arguments that are not NULL is. DuckDB computes what may raise an error row by row if
    it does for one, so for numbers it is said in other words."""
    match call.function, call.arguments:
        case (("divide" | "modulo"), (_, divisor)):
            return build("eq", divisor, _ZERO)
        case "int_divide", (dividend, divisor):
            is_least = build("eq", dividend, _least(call.type))
            return build(
                "or", build("eq", divisor, _ZERO), build("and", build("eq", divisor, _MINUS_ONE), is_least)
            )
        case (("negate" | "abs"), (argument,)) if call.type.is_integer:
            return build("eq", argument, _least(call.type))
        case ("add" | "subtract" | "multiply") as function, arguments if _fits_decimal(function, call.type):
            digits = decimal(INTEGER_DIGITS[call.type.kind], 0)
            exact = build(function, *(_as_decimal(each, digits) for each in arguments))
            greatest = Literal(integer_range(call.type)[1], call.type)
            return build("or", build("lt", exact, _least(call.type)), build("gt", exact, greatest))
        case _:
            return Call("is_null", (call,))


def _as_decimal(number: Expression, digits: Type) -> Expression:
    if isinstance(number, Literal) and isinstance(number.value, int):
        return Literal(Decimal(number.value), digits)
    return build("cast", number, to=digits)


def _fits_decimal(function: str, type_: Type) -> bool:
    return type_.is_integer and not (function == "multiply" and type_ == BIGINT)


def _least(type_: Type) -> Literal:
    return Literal(integer_range(type_)[0], type_)


def disjunction(terms: Iterable[Expression]) -> Expression:
    """One of them, of one or more."""
    different = tuple(dict.fromkeys(terms))
    return different[0] if len(different) == 1 else Call("or", different)


def not_false(term: Expression) -> Expression:
    """True, or NULL."""
    return Call("coalesce", (term, TRUE))


def _look(expression: Expression, when: tuple[Expression, ...], found: dict[Call, list[Expression]]) -> None:
    """Find what can fail in an expression, which matters when all of that is true."""
    if not isinstance(expression, Call):
        return
    arguments = expression.arguments
    match expression.function:
        case "case":
            before: tuple[Expression, ...] = ()
            for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
                _look(condition, (*when, *before), found)
                _look(value, (*when, *before, condition), found)
                before = (*before, _not_true(condition))
            _look(arguments[-1], (*when, *before), found)
        case "coalesce":
            for place, argument in enumerate(arguments):
                absent = tuple(Call("is_null", (each,)) for each in arguments[:place])
                _look(argument, (*when, *absent), found)
        case "and":
            for place, argument in enumerate(arguments):
                _look(argument, (*when, *map(not_false, _others(arguments, place))), found)
        case "or":
            for place, argument in enumerate(arguments):
                _look(argument, (*when, *map(_not_true, _others(arguments, place))), found)
        case _:
            for argument in arguments:
                _look(argument, when, found)
    if can_fail(expression):
        found.setdefault(expression, []).append(conjunction([*when, fails(expression)]))


def _others(arguments: Sequence[Expression], place: int) -> list[Expression]:
    return [each for other, each in enumerate(arguments) if other != place]


def _not_true(term: Expression) -> Expression:
    return Call("not", (Call("coalesce", (term, FALSE)),))


def _constant(argument: Expression) -> Expression:
    """A constant, also one that becomes a DOUBLE, which makes nothing 0 that is not."""
    if isinstance(argument, Call) and argument.function == "cast" and argument.type == DOUBLE:
        (argument,) = argument.arguments
    return argument
