"""How wide a text will be, without asking a font.

The widths are those of DejaVu Sans, the widest of the sans-serif fonts in common use, so that a text that
fits by this table fits in any of them.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"

_WIDTHS_IN_EM = {
    0.28: "ijl'",
    0.30: "IJ",
    0.32: " ,.",
    0.34: "/\\:;|",
    0.37: "f-",
    0.39: "()[]t",
    0.42: "!r",
    0.46: '"',
    0.50: "*_`",
    0.53: "?sz",
    0.55: "cL·",
    0.58: "kF",
    0.60: "vxyP",
    0.63: "aeo",
    0.64: "bdghnpqu0123456789${}ESTY",
    0.69: "ABCKRVXZ",
    0.75: "HNUG",
    0.79: "DOQ&",
    0.84: "w#+<=>^~×−",
    0.87: "M",
    0.98: "mW%",
    1.00: "@…→",
}
_WIDTH_OF = {character: width for width, characters in _WIDTHS_IN_EM.items() for character in characters}
_OTHER_EM = 0.70
_BOLD = 1.12


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width in pixels of a text of the given font size.

    >>> text_width("il", 10) < text_width("MW", 10)
    True
    """
    width = sum(_WIDTH_OF.get(character) or _other(character) for character in text) * size
    return width * _BOLD if bold else width


def _other(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0.0
    return 1.0 if unicodedata.east_asian_width(character) in "WF" else _OTHER_EM


def shortened(text: str, limit: float, size: float, *, bold: bool = False) -> str:
    """The text, or as much of its beginning as fits into `limit` pixels with an ellipsis.

    >>> shortened("a name that goes on and on", 80, 10)
    'a name that…'
    """
    if text_width(text, size, bold=bold) <= limit:
        return text
    end = len(text)
    while end and text_width(text[:end].rstrip() + ELLIPSIS, size, bold=bold) > limit:
        end -= 1
    return text[:end].rstrip() + ELLIPSIS


def wrapped(text: str, limit: float, size: float) -> list[str]:
    """The text in lines of at most `limit` pixels; a longer word is shortened.

    >>> wrapped("no site has the cores for it", 80, 10)
    ['no site has the', 'cores for it']
    """
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, limit, size))
    return lines
