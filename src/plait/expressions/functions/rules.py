"""Typing rules: which arguments a function takes, which implicit casts bring them there, what it returns.

Implicit casts never lose anything: numbers widen (TINYINT < SMALLINT < INT < BIGINT < DECIMAL < DOUBLE), a
DATE is the TIMESTAMP of its midnight. The one exception is a parameter of type DATE, which takes the date
of a TIMESTAMP, as Spark's does. Decimal arithmetic follows Spark's precisions and is refused where Spark
would round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from plait.expressions.functions.definition import Arguments, FunctionTypeError, Resolved, Rule
from plait.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTEGER_DIGITS,
    INTEGER_ORDER,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)

CAST_DECIMAL_HINT = "CAST an operand to DOUBLE or to a DECIMAL with fewer digits"


def as_decimal(type_: Type) -> Type:
    """The decimal that holds every value of an exact type.

    >>> str(as_decimal(INT))
    'DECIMAL(10,0)'
    """
    return type_ if type_.kind is Kind.DECIMAL else decimal(INTEGER_DIGITS[type_.kind], 0)


def bounded_decimal(precision: int, scale: int, what: str) -> Type:
    if precision > MAX_DECIMAL_PRECISION:
        raise FunctionTypeError(
            f"{what} would need {precision} digits, but a DECIMAL has {MAX_DECIMAL_PRECISION} at most",
            CAST_DECIMAL_HINT,
        )
    return decimal(precision, scale)


def common_type(types: Iterable[Type]) -> Type:
    """The least type that all the given ones can be implicitly cast to.

    >>> str(common_type([INT, decimal(5, 2)]))
    'DECIMAL(12,2)'
    """
    return reduce(_common_pair, types)


def _common_pair(left: Type, right: Type) -> Type:
    if left == right:
        return left
    if left.is_numeric and right.is_numeric:
        if DOUBLE in (left, right):
            return DOUBLE
        if left.is_integer and right.is_integer:
            return max(left, right, key=INTEGER_ORDER.index)
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        whole_digits = max(a.precision - a.scale, b.precision - b.scale)
        return bounded_decimal(whole_digits + scale, scale, f"a common type of {left} and {right}")
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    raise FunctionTypeError(f"{left} and {right} have no common type", _conversion_hint(left, right))


def _conversion_hint(left: Type, right: Type) -> str:
    types = {left, right}
    if INTERVAL in types:
        return "make the interval a number: timestampdiff(unit, from, to)"
    if STRING in types:
        other = right if left == STRING else left
        read = f"CAST(… AS {other}) around the STRING; text that is no {other} gives NULL"
        # Engines write fractions differently.
        return (
            f"write {read}" if other == DOUBLE else f"write CAST(… AS STRING) around the {other},\nor {read}"
        )
    if types & {DATE, TIMESTAMP}:
        return "make the time a number: unix_seconds(t) gives one"
    number = right if left == BOOLEAN else left
    return f"write CAST(… AS {number}) around the BOOLEAN"


def is_implicit(given: Type, wanted: Type) -> bool:
    """Whether `given` becomes `wanted` without a CAST being written."""
    if given == wanted:
        return True
    try:
        return common_type((given, wanted)) == wanted
    except FunctionTypeError:
        return False


def takes(result: Type, *parameters: Type, optional: int = 0) -> Rule:
    """Fixed parameters, of which the last `optional` may be left out."""

    def rule(arguments: Arguments) -> Resolved:
        count = len(arguments.types)
        if not len(parameters) - optional <= count <= len(parameters):
            raise arguments.refused(_arity(len(parameters) - optional, len(parameters)))
        wanted = parameters[:count]
        for given, parameter in zip(arguments.types, wanted, strict=True):
            if given is not None and not _is_accepted(given, parameter):
                raise arguments.refused(
                    f"{given} is no {parameter}", f"write CAST(… AS {parameter}) if that is what you mean"
                )
        return Resolved(wanted, result)

    return rule


def _is_accepted(given: Type, parameter: Type) -> bool:
    return is_implicit(given, parameter) or (given == TIMESTAMP and parameter == DATE)


def _arity(least: int, most: int) -> str:
    count = str(most) if least == most else f"{least} to {most}"
    return f"it takes {count} argument{'' if most == 1 else 's'}"


def alike(
    result: Type | None = None,
    *,
    least: int = 2,
    most: int | None = 2,
    when: Callable[[Type], bool] = lambda _: True,
    wanted: str = "",
    of_nulls: Type = INT,
) -> Rule:
    """Arguments of one common type, which is also the result's unless `result` says otherwise.

    Where all are NULL, that type is `of_nulls`.
    """

    def rule(arguments: Arguments) -> Resolved:
        count = len(arguments.types)
        if count < least or (most is not None and count > most):
            needed = f"it takes at least {least} arguments" if most is None else _arity(least, most)
            raise arguments.refused(needed)
        type_ = _common_argument(arguments, arguments.types, of_nulls)
        if not when(type_):
            raise arguments.refused(f"it takes {wanted}")
        return Resolved((type_,) * count, type_ if result is None else result)

    return rule


def _common_argument(arguments: Arguments, types: Iterable[Type | None], of_nulls: Type = INT) -> Type:
    known = [type_ for type_ in types if type_ is not None]
    if not known:
        return of_nulls
    try:
        return common_type(known)
    except FunctionTypeError as error:
        raise arguments.refused(error.message, error.hint) from None


def logical(least: int, most: int | None) -> Rule:
    return alike(
        BOOLEAN,
        least=least,
        most=most,
        when=lambda type_: type_ == BOOLEAN,
        wanted="BOOLEAN",
        of_nulls=BOOLEAN,
    )


def any_type(result: Type) -> Rule:
    def rule(arguments: Arguments) -> Resolved:
        if len(arguments.types) != 1:
            raise arguments.refused(_arity(1, 1))
        return Resolved((arguments.types[0] or BOOLEAN,), result)

    return rule


def case_rule(arguments: Arguments) -> Resolved:
    """`case(c1, v1, c2, v2, …, else)`."""
    types = arguments.types
    if len(types) < 3 or len(types) % 2 == 0:
        raise arguments.refused("it takes conditions with values, then the ELSE")
    for condition in types[:-1:2]:
        if condition not in (BOOLEAN, None):
            raise arguments.refused(f"a condition is BOOLEAN, not {condition}")
    value = _common_argument(arguments, (*types[1::2], types[-1]))
    parameters = tuple(BOOLEAN if i % 2 == 0 and i < len(types) - 1 else value for i in range(len(types)))
    return Resolved(parameters, value)


def addition(arguments: Arguments) -> Resolved:
    left, right = _two(arguments)
    kinds = {_kind(left), _kind(right)}
    if kinds & {Kind.TIMESTAMP, Kind.DATE} and kinds <= {Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL, None}:
        if _is_moment(left) and _is_moment(right):
            raise arguments.refused("two times cannot be added")
        return Resolved((TIMESTAMP, INTERVAL) if _is_moment(left) else (INTERVAL, TIMESTAMP), TIMESTAMP)
    return _interval_or_number(arguments, left, right, _sum_decimal)


def subtraction(arguments: Arguments) -> Resolved:
    left, right = _two(arguments)
    if _is_moment(right) and (left is None or _is_moment(left)):
        return Resolved((TIMESTAMP, TIMESTAMP), INTERVAL)
    if _is_moment(left) and _kind(right) in (Kind.INTERVAL, None):
        return Resolved((TIMESTAMP, INTERVAL), TIMESTAMP)
    return _interval_or_number(arguments, left, right, _sum_decimal)


def multiplication(arguments: Arguments) -> Resolved:
    left, right = _two(arguments)
    if left == INTERVAL and (right is None or right.is_integer):
        return Resolved((INTERVAL, BIGINT), INTERVAL)
    if right == INTERVAL and (left is None or left.is_integer):
        return Resolved((BIGINT, INTERVAL), INTERVAL)
    return _number_pair(arguments, left, right, _product_decimal)


def is_number_or_interval(type_: Type) -> bool:
    return type_.is_numeric or type_ == INTERVAL


def _two(arguments: Arguments) -> tuple[Type | None, Type | None]:
    if len(arguments.types) != 2:
        raise arguments.refused(_arity(2, 2))
    left, right = arguments.types
    return left, right


def _kind(type_: Type | None) -> Kind | None:
    return None if type_ is None else type_.kind


def _is_moment(type_: Type | None) -> bool:
    return type_ in (DATE, TIMESTAMP)


_DecimalRule = Callable[[Type, Type], Type]


def _interval_or_number(
    arguments: Arguments, left: Type | None, right: Type | None, decimals: _DecimalRule
) -> Resolved:
    if {left, right} <= {INTERVAL, None} and (left or right):
        return Resolved((INTERVAL, INTERVAL), INTERVAL)
    return _number_pair(arguments, left, right, decimals)


def _number_pair(
    arguments: Arguments, left: Type | None, right: Type | None, decimals: _DecimalRule
) -> Resolved:
    left, right = left or _type_of_null(right), right or _type_of_null(left)
    if not (left.is_numeric and right.is_numeric):
        raise arguments.refused("it takes numbers", _number_hint(left, right))
    if Kind.DECIMAL in (left.kind, right.kind) and DOUBLE not in (left, right):
        a, b = as_decimal(left), as_decimal(right)
        return Resolved((a, b), decimals(a, b))
    type_ = common_type((left, right))
    return Resolved((type_, type_), type_)


def _type_of_null(other: Type | None) -> Type:
    """What a NULL beside a number becomes: the same, or the shortest DECIMAL, for the sake of digits."""
    if other is None:
        return INT
    return decimal(1, 0) if other.kind is Kind.DECIMAL else other


def _number_hint(left: Type, right: Type) -> str:
    if Kind.STRING in (left.kind, right.kind):
        return "write CAST(… AS INT) or another number around the STRING; join text with ||"
    return ""


def _sum_decimal(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    whole_digits = max(left.precision - left.scale, right.precision - right.scale)
    return bounded_decimal(whole_digits + scale + 1, scale, f"the sum of {left} and {right}")


def _product_decimal(left: Type, right: Type) -> Type:
    return bounded_decimal(
        left.precision + right.precision + 1, left.scale + right.scale, f"the product of {left} and {right}"
    )
