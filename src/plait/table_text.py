"""Tables as text: for terminals, for `repr`, for files. Nothing is cut off unless a width is given."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

UNLIMITED = 1_000_000


def table_text(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Collection[int] = (),
    width: int | None = None,
) -> str:
    """The table; columns at the positions `numeric` are aligned right. Cells are folded to fit `width`.

    >>> print(table_text(["car", "mph"], [["SOXFAN4", "50"]], numeric={1}))
    car       mph
    ─────────────
    SOXFAN4    50
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(
            Text(printable(column)), justify="right" if position in numeric else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    output = io.StringIO()
    console = Console(file=output, width=width or UNLIMITED, color_system=None, force_terminal=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def value_text(value: object) -> str:
    """A value of a result row as it is shown.

    >>> value_text(None), value_text(True), value_text(1.5), value_text(datetime(2026, 1, 2, 3, 4, 5))
    ('NULL', 'true', '1.5', '2026-01-02 03:04:05')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Lines as `format = 'csv'` reads them.

    >>> csv_text([("car", "mph"), ("SOXFAN4", None)])
    'car,mph\\nSOXFAN4,\\n'
    """
    return "".join(",".join(map(csv_field, row)) + "\n" for row in rows)


def csv_field(value: object) -> str:
    """A value as `format = 'csv'` reads it: NULL is an empty field, an empty string is quoted.

    >>> csv_field(None), csv_field(""), csv_field("a,b")
    ('', '""', '"a,b"')
    """
    if value is None:
        return ""
    text = value_text(value)
    if isinstance(value, str) and (not text or text.strip() != text or any(c in text for c in ',"\r\n')):
        return '"' + text.replace('"', '""') + '"'
    return text


def json_value(value: object) -> object:
    """A value as JSON has it. What JSON has no numbers for is text: decimals, times, NaN and infinities.

    >>> json_value(Decimal("1.50")), json_value(datetime(2026, 1, 31, 12)), json_value(math.inf)
    ('1.50', '2026-01-31T12:00:00', 'Infinity')
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            return value.isoformat()
        case _:
            return value_text(value)


def printable(text: str) -> str:
    """The text on one line, without characters that would do something to a terminal.

    >>> printable("tab\\tand\\x1b[31mred")
    'tab\\\\tand\\\\x1b[31mred'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
