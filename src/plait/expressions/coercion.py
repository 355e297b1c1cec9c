"""Builds calls from what a user wrote: implicit casts, literals in the type that is wanted, shorthands.

Implicit casts are those of `functions.rules`, and of literals: NULL becomes any type, text becomes a DATE,
TIMESTAMP or INTERVAL when it is one, an integer beside decimals takes only the digits it has (so that
`price * 2` needs one more digit, not ten). A cast of a literal that loses nothing is carried out at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal

from plait.expressions.calendar import date_to_us, parse_date, parse_timestamp
from plait.expressions.functions import EXTRACT_FIELDS, FUNCTIONS, SHORTHANDS, FunctionTypeError, resolve
from plait.expressions.functions.moments import FIXED_UNITS_US, normalised_unit
from plait.expressions.functions.rules import common_type, is_implicit
from plait.expressions.nodes import Call, Expression, Literal
from plait.expressions.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Kind,
    Type,
    Value,
    decimal,
    integer_range,
)

__all__ = ["SHORTHAND_EXPANSIONS", "build", "coerce", "common_type", "number_literal", "parse_interval"]


def build(name: str, *arguments: Expression, to: Type | None = None) -> Expression:
    """A call of a function, or of what a shorthand stands for, with the implicit casts it needs.

    >>> from plait.expressions.nodes import Column
    >>> build("add", Column(0, INT), Literal(1, BIGINT)).type == BIGINT
    True
    """
    if name == "datediff" and len(arguments) == 3:
        name = "timestampdiff"
    if name in SHORTHAND_EXPANSIONS:
        return _expanded(name, arguments)
    if name == "negate" and len(arguments) == 1 and isinstance(arguments[0], Literal):
        folded = _negated(arguments[0])
        if folded is not None:
            return folded
    if name == "cast" and len(arguments) == 1 and to is not None and arguments[0].type == to:
        return arguments[0]
    parameters = _parameters(name, _with_narrow_integers(name, arguments), to)
    call = Call(name, tuple(map(_converted, arguments, parameters)), to)
    return _as_date_if_whole_days(call, arguments)


def coerce(expression: Expression, to: Type) -> Expression:
    """The expression as another type, if that is an implicit cast; else a FunctionTypeError."""
    if expression.type == to:
        return expression
    if isinstance(expression, Literal):
        return _literal_as(expression, to)
    if not is_implicit(expression.type, to):
        raise FunctionTypeError(
            f"{expression.type} is no {to}", f"write CAST(… AS {to}) if that is what you mean"
        )
    return Call("cast", (expression,), to)


def number_literal(text: str) -> Literal:
    """A number as written: `1` is an INT, `1.5` a DECIMAL(2,1), `1e0` a DOUBLE; Spark's suffixes work too.

    >>> str(number_literal("1.50").type), number_literal("-9223372036854775808").value
    ('DECIMAL(3,2)', -9223372036854775808)
    """
    if len(text) > _MAX_NUMBER_CHARACTERS:
        raise FunctionTypeError(f"{text[:40]}… has too many digits")
    number = r"(-?)([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,5})?(bd|[yslfd])?"
    match = re.fullmatch(number, text.strip().lower())
    if match is None:
        raise FunctionTypeError(f"{text} is no number")
    sign, digits, exponent, suffix = match.groups()
    written = sign + digits + (exponent or "")
    if suffix in ("y", "s", "l"):
        return _integer_literal(text, written, {"y": TINYINT, "s": SMALLINT, "l": BIGINT}[suffix])
    if suffix in ("d", "f") or (exponent and suffix != "bd"):
        value = float(written) + 0.0  # no negative zero
        if value in (float("inf"), float("-inf")):
            raise FunctionTypeError(f"{text} is beyond every DOUBLE")
        return Literal(value, DOUBLE)
    if suffix is None and "." not in digits:
        whole = int(written)
        for type_ in (INT, BIGINT):
            if _in_range(whole, type_):
                return Literal(whole, type_)
    return _decimal_literal(text, Decimal(written))


def parse_interval(text: str) -> int | None:
    """Microseconds of `5 minutes`, `1 day 2 hours`, `-1.5 seconds`; None if it has no fixed length.

    >>> parse_interval("1 minute 30 seconds")
    90000000
    """
    part = re.compile(r"\s*([+-]?[0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]+)\s*", re.IGNORECASE)
    at, total = 0, Decimal(0)
    while at < len(text):
        match = part.match(text, at)
        unit = normalised_unit(match[2]) if match else None
        if match is None or unit is None or unit not in FIXED_UNITS_US:
            return None
        total += Decimal(match[1]) * FIXED_UNITS_US[unit]
        at = match.end()
    whole = int(total)
    return whole if text and whole == total and _in_range(whole, BIGINT) else None


def _parameters(name: str, arguments: tuple[Expression, ...], to: Type | None) -> tuple[Type, ...]:
    """The types the arguments are to have, text literals read as moments or intervals if need be."""
    constants = tuple(a.value if isinstance(a, Literal) else None for a in arguments)
    is_null = [isinstance(a, Literal) and a.value is None for a in arguments]
    is_text = [isinstance(a, Literal) and a.type == STRING and a.value is not None for a in arguments]
    declared = [argument.type for argument in arguments]
    open_nulls = tuple(None if null else t for null, t in zip(is_null, declared, strict=True))
    try:
        return resolve(name, open_nulls, to, constants).parameters
    except FunctionTypeError as error:
        for types in (open_nulls, declared):
            open_text = tuple(None if text else t for text, t in zip(is_text, types, strict=True))
            parameters = _resolved_or_none(name, open_text, to, constants)
            if parameters is not None and any(is_text) and _are_readable(parameters, is_text):
                return parameters
        raise error


def _resolved_or_none(
    name: str, types: tuple[Type | None, ...], to: Type | None, constants: tuple[Value, ...]
) -> tuple[Type, ...] | None:
    try:
        return resolve(name, types, to, constants).parameters
    except FunctionTypeError:
        return None


def _are_readable(parameters: tuple[Type, ...], is_text: list[bool]) -> bool:
    """Whether text literals stand only where text can be read as what is wanted."""
    readable = (STRING, DATE, TIMESTAMP, INTERVAL)
    return all(parameter in readable for parameter, text in zip(parameters, is_text, strict=True) if text)


def _with_narrow_integers(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Integer literals beside decimals as the decimals of their digits."""
    function = FUNCTIONS.get(name)
    if function is None or not any(a.type.kind is Kind.DECIMAL for a in arguments):
        return arguments
    return tuple(
        _decimal_literal(str(a.value), Decimal(a.value))
        if isinstance(a, Literal)
        and a.type.is_integer
        and isinstance(a.value, int)
        and i not in function.literals
        else a
        for i, a in enumerate(arguments)
    )


def _converted(expression: Expression, to: Type) -> Expression:
    """Like `coerce`, where the rule has accepted the argument: a TIMESTAMP may become a DATE."""
    if expression.type == TIMESTAMP and to == DATE and not isinstance(expression, Literal):
        return Call("cast", (expression,), to)
    return coerce(expression, to)


def _literal_as(literal: Literal, to: Type) -> Expression:
    value = literal.value
    if value is None:
        return Literal(None, to)
    if isinstance(value, str):
        return _text_as(value, to)
    if literal.type == TIMESTAMP and to == DATE:
        return Call("cast", (literal,), to)
    if literal.type == DATE and to == TIMESTAMP:
        assert isinstance(value, date)
        return Literal(date_to_us(value), to)
    if literal.type.is_exact and not isinstance(value, bool) and isinstance(value, int | Decimal):
        converted = _number_as(value, to)
        if converted is not None:
            return converted
    raise FunctionTypeError(f"{literal.type} is no {to}", f"write CAST(… AS {to}) if that is what you mean")


def _number_as(value: int | Decimal, to: Type) -> Literal | None:
    if to == DOUBLE:
        return Literal(float(value), DOUBLE)
    if to.kind is Kind.DECIMAL:
        exact = Decimal(value)
        scaled = exact.quantize(Decimal(1).scaleb(-to.scale), context=_WIDE)
        if scaled == exact and scaled.copy_abs() < Decimal(10) ** (to.precision - to.scale):
            return Literal(scaled, to)
    if to.is_integer and isinstance(value, int) and _in_range(value, to):
        return Literal(value, to)
    return None


def _text_as(text: str, to: Type) -> Literal:
    shown = text if len(text) <= 40 else text[:39] + "…"
    parsed: date | int | None = None
    if to == DATE:
        parsed = parse_date(text)
    elif to == TIMESTAMP:
        parsed = parse_timestamp(text)
    elif to == INTERVAL:
        parsed = parse_interval(text)
    else:
        raise FunctionTypeError(
            f"the text {shown!r} is no {to}", f"write it without quotes, or CAST('{shown}' AS {to})"
        )
    if parsed is None:
        raise FunctionTypeError(f"the text {shown!r} is no {to}", f"write it like {_EXAMPLES[to]}")
    return Literal(parsed, to)


def _negated(literal: Literal) -> Literal | None:
    value = literal.value
    if value is None:
        return literal if literal.type.is_numeric or literal.type == INTERVAL else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or literal.type == TIMESTAMP:
        return None
    whole_type = BIGINT if literal.type == INTERVAL else literal.type
    if whole_type.is_integer and not _in_range(-value, whole_type):
        return None
    if isinstance(value, Decimal):
        return Literal(value.copy_negate() if value else value, literal.type)  # `-value` would round
    return Literal(-value if value else value, literal.type)


def _integer_literal(text: str, written: str, type_: Type) -> Literal:
    if not re.fullmatch(r"-?[0-9]+", written) or not _in_range(int(written), type_):
        raise FunctionTypeError(f"{text} is no {type_}")
    return Literal(int(written), type_)


def _decimal_literal(text: str, value: Decimal) -> Literal:
    value = value if value else value.copy_abs()  # no negative zero
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_DECIMAL_PRECISION:
        raise FunctionTypeError(
            f"{text} has more than {MAX_DECIMAL_PRECISION} digits", "write it as a DOUBLE: 1.5e0"
        )
    return Literal(value.quantize(Decimal(1).scaleb(-scale), context=_WIDE), decimal(precision, scale))


def _in_range(value: int | float | Decimal, type_: Type) -> bool:
    low, high = integer_range(type_)
    return low <= value <= high


def _as_date_if_whole_days(call: Call, arguments: tuple[Expression, ...]) -> Expression:
    """A DATE plus or minus a constant number of days is a DATE; plus anything else it is a TIMESTAMP."""
    if call.function not in ("add", "subtract") or call.type != TIMESTAMP:
        return call
    if not any(argument.type == DATE for argument in arguments):
        return call
    interval = next((a for a in call.arguments if a.type == INTERVAL), None)
    is_whole_days = (
        isinstance(interval, Literal)
        and isinstance(interval.value, int)
        and interval.value % FIXED_UNITS_US["DAY"] == 0
    )
    return Call("cast", (call,), DATE) if is_whole_days else call


def _if(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    return build("case", condition, then, otherwise)


def _is_not_null(value: Expression) -> Expression:
    return build("not", build("is_null", value))


def _nvl2(value: Expression, then: Expression, otherwise: Expression) -> Expression:
    return build("case", _is_not_null(value), then, otherwise)


def _locate(part: Expression, text: Expression) -> Expression:
    return build("instr", text, part)


def _date_part(field: Expression, moment: Expression) -> Expression:
    name = EXTRACT_FIELDS.get(str(field.value).lower()) if isinstance(field, Literal) else None
    if name is None:
        known = ", ".join(sorted({key.upper() for key in EXTRACT_FIELDS if not key.endswith("s")}))
        raise FunctionTypeError("the field to extract is not known", f"use one of {known}")
    return build(name, moment)


def _truncate_date(day: Expression, unit: Expression) -> Expression:
    return Call("cast", (build("date_trunc", unit, day),), DATE)


def _date_sub(day: Expression, days: Expression) -> Expression:
    return build("date_add", day, build("negate", days))


def _timestamp_add(unit: Expression, count: Expression, moment: Expression) -> Expression:
    name = normalised_unit(unit.value) if isinstance(unit, Literal) else None
    if name is None or name not in FIXED_UNITS_US:
        raise FunctionTypeError(
            "`timestampadd(unit, n, t)` takes a unit of fixed length",
            f"use one of {', '.join(FIXED_UNITS_US)}, or add_months(d, n)",
        )
    return build("add", moment, build("multiply", Literal(FIXED_UNITS_US[name], INTERVAL), count))


def _cast_to(to: Type) -> Callable[..., Expression]:
    return lambda value: build("cast", value, to=to)


SHORTHAND_EXPANSIONS: Mapping[str, tuple[int, Callable[..., Expression]]] = {
    "if": (3, _if),
    "isnotnull": (1, _is_not_null),
    "nvl2": (3, _nvl2),
    "locate": (2, _locate),
    "date_part": (2, _date_part),
    "trunc": (2, _truncate_date),
    "date_sub": (2, _date_sub),
    "timestampadd": (3, _timestamp_add),
    "to_date": (1, _cast_to(DATE)),
    "to_timestamp": (1, _cast_to(TIMESTAMP)),
}

_WIDE = Context(prec=100)
_MAX_NUMBER_CHARACTERS = 400  # a DOUBLE may be written with more than 300 digits
_EXAMPLES = {DATE: "'2024-12-31'", TIMESTAMP: "'2024-12-31 23:59:59.5'", INTERVAL: "'1 hour 30 minutes'"}


def _expanded(name: str, arguments: tuple[Expression, ...]) -> Expression:
    count, expand = SHORTHAND_EXPANSIONS[name]
    if len(arguments) != count:
        raise FunctionTypeError(
            f"`{SHORTHANDS[name].usage}` takes {count} argument{'s' if count > 1 else ''}"
        )
    return expand(*arguments)
