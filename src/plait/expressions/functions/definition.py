"""What a function is: its types, its two spellings in engine SQL, its documentation.

A function is described once, by a `Function`. Its `rule` decides the types each argument must have
(implicit casts bring them there) and the type of the result. Its two templates say how Spark and DuckDB
compute it, so that both give the same value for every argument: expressions are total, and whatever an
engine would raise is NULL.

A template is a format string over the printed arguments: `{0}`, `{1}`, …, `{arguments}` for all of them,
`{type}` for the result's type. An argument may stand in it more than once: printers bind long arguments to
a variable, so that nested calls do not grow exponentially. `Staged` does the same for a value computed on
the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from plait.expressions.types import Type, Value


class FunctionTypeError(ValueError):
    """A function cannot be applied to these arguments. The message is meant for the user."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Category(Enum):
    LOGIC = "Logic and comparison"
    CONDITIONAL = "Conditionals"
    ARITHMETIC = "Arithmetic"
    NUMBER = "Numbers"
    TEXT = "Text"
    TIME = "Time"
    CAST = "Casts"


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call as a typing rule sees them.

    A type of None is a NULL whose type is still open. `constants` are the values of literals, None elsewhere.
    """

    usage: str
    types: tuple[Type | None, ...]
    constants: tuple[Value, ...]
    to: Type | None = None

    def refused(self, reason: str = "", hint: str = "") -> FunctionTypeError:
        given = ", ".join("NULL" if type_ is None else str(type_) for type_ in self.types)
        message = f"`{self.usage}` cannot take ({given})"
        return FunctionTypeError(f"{message}: {reason}" if reason else message, hint)

    def invalid(self, reason: str, hint: str = "") -> FunctionTypeError:
        """The types are right but a constant is not."""
        return FunctionTypeError(f"`{self.usage}`: {reason}", hint)


@dataclass(frozen=True)
class Resolved:
    """The types the arguments must have, and the result's."""

    parameters: tuple[Type, ...]
    result: Type


Rule: TypeAlias = Callable[[Arguments], Resolved]


@dataclass(frozen=True)
class Shape:
    """What a template may depend on, besides the printed arguments."""

    types: tuple[Type, ...]
    result: Type
    constants: tuple[Value, ...]


@dataclass(frozen=True)
class Staged:
    """A template in two steps: `result` may use `{value}`, the printed first step, any number of times."""

    value: str
    result: str


Template: TypeAlias = str | Staged | Callable[[Shape], str | Staged]


def never(shape: Shape) -> bool:
    """Of a function that gives a value whenever it is given some, or whose NULL is meant."""
    del shape
    return False


def always(shape: Shape) -> bool:
    del shape
    return True


ExampleValue: TypeAlias = bool | int | float | Decimal | str | date | datetime | None


@dataclass(frozen=True)
class Example:
    """Literal arguments and the value they give. A `datetime` is a TIMESTAMP; `to` is a cast's target."""

    arguments: tuple[ExampleValue, ...]
    result: ExampleValue
    to: Type | None = None


@dataclass(frozen=True)
class Function:
    """One row of the table of functions.

    `usage` is how it is written, `written` a format string for that unless it is `spelling(arguments)`.
    `strict`: NULL in any argument gives NULL. `literals`: the positions of arguments that must be constants.
    `fails`: whether arguments that are not NULL can give NULL because there is no such value, which would be
    an error elsewhere.
    """

    name: str
    category: Category
    usage: str
    documentation: str
    rule: Rule
    spark: Template
    duckdb: Template
    example: Example
    spellings: tuple[str, ...] = ()
    written: str = ""
    strict: bool = True
    commutative: bool = False
    literals: frozenset[int] = frozenset()
    fails: Callable[[Shape], bool] = never


@dataclass(frozen=True)
class Shorthand:
    """A spelling that `coercion.build` replaces by calls of functions: `if(c, a, b)` is a `case`."""

    name: str
    category: Category
    usage: str
    documentation: str
    example: Example
    spellings: tuple[str, ...]
    written: str = ""


def verbatim(sql: str) -> str:
    """Text for a template that is not to be formatted."""
    return sql.replace("{", "{{").replace("}", "}}")
