"""Writes `docs/functions.md` from the tables of functions and aggregates, so that it cannot be out of date.

The examples in it are built from the same tables; tests evaluate each on both engines and through the
language.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

from plait.expressions.aggregates import AGGREGATES
from plait.expressions.calendar import datetime_to_us, timestamp_text
from plait.expressions.coercion import build, number_literal
from plait.expressions.functions import FUNCTIONS, REFUSED, SHORTHANDS, Function, Shorthand
from plait.expressions.functions.definition import Category, ExampleValue
from plait.expressions.nodes import Expression, Literal
from plait.expressions.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP

_INTRODUCTION = """\
# Functions

<!-- Made by `python -m plait.expressions.documentation`; a test compares it with the table of functions. -->

Values, types and casts are Spark's. Every expression is total: what would raise an error (overflow,
division by zero, a cast of something else) gives NULL. Each function below gives the same value on Spark
and on DuckDB, which is tested on edge values; where their own functions differ, ours is Spark's unless the
table says otherwise.

Implicit casts lose nothing: TINYINT → SMALLINT → INT → BIGINT → DECIMAL → DOUBLE, DATE → TIMESTAMP, NULL →
any type, and a text *literal* → DATE, TIMESTAMP or INTERVAL. Nothing turns text into a number, or a number
into text, but a CAST. A function of a DATE takes a TIMESTAMP too, and looks at its date.

- Integers keep the wider type; `/` always gives a DOUBLE. `1.5` is a DECIMAL(2,1), `1e0` a DOUBLE.
- `+ - *` of DECIMALs have the digits the exact result needs, and are refused beyond 38: CAST an operand.
- TIMESTAMP ± INTERVAL is a TIMESTAMP, TIMESTAMP − TIMESTAMP an INTERVAL. DATE ± a constant of whole days is
  a DATE, DATE ± any other INTERVAL a TIMESTAMP. Moments lie in the years 1 to 9999; others are NULL. An
  INTERVAL has a fixed length: no months.
- NaN equals itself and is greater than every number; −0.0 is 0.0.
- A CAST to an integer drops the fraction, to a DECIMAL rounds half up. DOUBLE to STRING is refused: CAST to
  a DECIMAL first.
- Text casts to a DATE from `yyyy-mm-dd`, to a TIMESTAMP from `yyyy-mm-dd[ hh:mm[:ss[.ffffff][Z|±hh:mm]]]`.
"""

_PATTERNS = """
## Regular expressions

Patterns are constants, in the syntax Java and RE2 share: `. [a-z] [^a-z] \\d \\w \\s \\D \\W \\S ^ $ | ( )
(?: ) * + ? {m,n}` and lazy `*? +? ??`. `.` is any character but a newline and `$` the very end of the text.
Look-around, back references, flags, `\\b`, possessive quantifiers and repeated groups that can be empty are
refused.
"""


def render_function_table() -> str:
    """The text of `docs/functions.md`."""
    sections = [_INTRODUCTION]
    entries: list[Function | Shorthand] = [*FUNCTIONS.values(), *SHORTHANDS.values()]
    for category in Category:
        rows = [
            (entry.usage, _meaning(entry), f"{example_text(entry)} → {_result_text(entry.example.result)}")
            for entry in entries
            if entry.category is category
        ]
        sections.append(_table(category.value, ("write", "meaning", "example"), rows, code=(0, 2)))
    sections.append(_PATTERNS)
    aggregates = [(a.usage, a.documentation, ", ".join(a.spellings)) for a in AGGREGATES.values()]
    sections.append(_table("Aggregates", ("write", "meaning", "names"), aggregates, code=(0, 2)))
    sections.append(
        _table("Refused", ("function", "why, and what to use"), sorted(REFUSED.items()), code=(0,))
    )
    return "".join(sections)


def example_expression(entry: Function | Shorthand) -> Expression:
    """The example of a function as an expression of constants."""
    return build(entry.name, *map(_literal, entry.example.arguments), to=entry.example.to)


def example_text(entry: Function | Shorthand) -> str:
    """The example of a function as a user writes it.

    >>> example_text(FUNCTIONS["substring"])
    "substring('Plait', 2, 3)"
    """
    arguments = [value_text(value) for value in entry.example.arguments]
    if entry.written:
        return entry.written.format(*arguments, to=entry.example.to)
    return f"{entry.spellings[0]}({', '.join(arguments)})"


def value_text(value: ExampleValue) -> str:
    """A constant as a user writes it.

    >>> value_text(datetime(2024, 2, 29, 12))
    "TIMESTAMP '2024-02-29 12:00:00'"
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return f"{value!r}e0"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime():
            return f"TIMESTAMP '{timestamp_text(datetime_to_us(value))}'"
        case date():
            return f"DATE '{value}'"
        case int() | Decimal():
            return str(value)


def _result_text(value: ExampleValue) -> str:
    return repr(value) if isinstance(value, float) else value_text(value)


def _meaning(entry: Function | Shorthand) -> str:
    """What it does, and its other names."""
    shown = entry.usage.split("(")[0]
    others = [f"`{spelling}`" for spelling in entry.spellings if spelling != shown]
    return f"{entry.documentation} Also named {', '.join(others)}." if others else entry.documentation


def _literal(value: ExampleValue) -> Literal:
    match value:
        case None:
            return Literal(None, INT)
        case bool():
            return Literal(value, BOOLEAN)
        case float():
            return Literal(value, DOUBLE)
        case str():
            return Literal(value, STRING)
        case datetime():
            return Literal(datetime_to_us(value), TIMESTAMP)
        case date():
            return Literal(value, DATE)
        case int() | Decimal():
            return number_literal(str(value))


def _table(
    title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]], code: tuple[int, ...]
) -> str:
    lines = [f"\n## {title}\n", f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for row in rows:
        cells = (f"`{cell}`" if i in code else cell for i, cell in enumerate(row))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render_function_table(), end="")  # noqa: T201 - it is the page
