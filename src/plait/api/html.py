"""Tables and text as notebooks show them. They look as a notebook's own do, in light and in dark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[int] = ()) -> str:
    """A table; columns of numbers, by their positions, stand at the right."""
    sides = ["right" if position in numeric else "left" for position in range(len(columns))]
    head = "".join(_cell("th", *each) for each in zip(columns, sides, strict=True))
    lines = ("".join(_cell("td", *each) for each in zip(row, sides, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="text-align:{side}">{escape(text)}</{tag}>'


def html_line(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def html_text(text: str) -> str:
    """Text as it is, lines and spaces."""
    return f"<pre>{escape(text)}</pre>"
