"""Which functions exist. One table; typing, both printers, the binder and the documentation read it.

`docs/functions.md` is made from it by `plait.expressions.documentation`. A function is in the table only if
Spark and DuckDB agree on edge values, which the tests check one by one; `REFUSED` names what is left out on
purpose, with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from plait.expressions.functions.casts import CASTS
from plait.expressions.functions.definition import (
    Arguments,
    Function,
    FunctionTypeError,
    Resolved,
    Shorthand,
)
from plait.expressions.functions.logic import CONDITIONAL_SHORTHANDS, CONDITIONALS, LOGIC
from plait.expressions.functions.moments import EXTRACT_FIELDS, TIME_SHORTHANDS, TIMES
from plait.expressions.functions.numbers import ARITHMETIC, NUMBERS
from plait.expressions.functions.refused import REFUSED
from plait.expressions.functions.text import TEXT_SHORTHANDS, TEXTS
from plait.expressions.types import Type, Value

__all__ = [
    "EXTRACT_FIELDS",
    "FUNCTIONS",
    "REFUSED",
    "SHORTHANDS",
    "SQL_NAMES",
    "Function",
    "FunctionTypeError",
    "Shorthand",
    "resolve",
    "result_type",
]

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for family in (LOGIC, CONDITIONALS, ARITHMETIC, NUMBERS, TEXTS, TIMES, CASTS)
    for function in family
}

SHORTHANDS: Mapping[str, Shorthand] = {
    shorthand.name: shorthand
    for family in (CONDITIONAL_SHORTHANDS, TEXT_SHORTHANDS, TIME_SHORTHANDS)
    for shorthand in family
}

# How SQL spells a function (lower case) → its name here. Units and fields are given as text literals.
SQL_NAMES: Mapping[str, str] = {
    **{spelling: function.name for function in FUNCTIONS.values() for spelling in function.spellings},
    **{spelling: shorthand.name for shorthand in SHORTHANDS.values() for spelling in shorthand.spellings},
}


def result_type(
    name: str, types: tuple[Type, ...], to: Type | None = None, constants: tuple[Value, ...] = ()
) -> Type:
    """The type of a call whose arguments have exactly the types the function wants, or a FunctionTypeError.

    >>> from plait.expressions.types import BIGINT, INT
    >>> str(result_type("add", (INT, INT)))
    'INT'
    """
    function = FUNCTIONS.get(name)
    if function is not None and function.literals:
        return _result_type(name, types, to, constants)
    return _cached_result_type(name, types, to)


def resolve(
    name: str, types: tuple[Type | None, ...], to: Type | None = None, constants: tuple[Value, ...] = ()
) -> Resolved:
    """The types the arguments must be cast to, and the result's. A type of None is an untyped NULL."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise FunctionTypeError(f"there is no function `{name}`")
    padded = constants if constants else (None,) * len(types)
    return function.rule(Arguments(function.usage, types, padded, to))


def _result_type(name: str, types: tuple[Type, ...], to: Type | None, constants: tuple[Value, ...]) -> Type:
    resolved = resolve(name, types, to, constants)
    if resolved.parameters != types:
        given, wanted = (", ".join(map(str, side)) for side in (types, resolved.parameters))
        raise FunctionTypeError(
            f"`{FUNCTIONS[name].usage}` has ({given}) where casts to ({wanted}) are missing"
        )
    return resolved.result


@lru_cache(maxsize=16_384)
def _cached_result_type(name: str, types: tuple[Type, ...], to: Type | None) -> Type:
    return _result_type(name, types, to, ())
