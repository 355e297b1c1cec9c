"""The signs of plan text that printer and parser share: operators, units, names and their quotes."""

from __future__ import annotations

import re

OPERATORS = {
    "and": "and",
    "or": "or",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
}
FUNCTIONS_BY_OPERATOR = {operator: function for function, operator in OPERATORS.items()}

# Largest first: a duration is printed in the largest unit that divides it.
UNITS_US = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL_WORDS = frozenset({"null", "true", "false", "nan", "inf"})


def quoted_name(name: str) -> str:
    """The name itself if it reads as one, else in backquotes.

    >>> quoted_name("gate"), quoted_name("gate no."), quoted_name("null")
    ('gate', '`gate no.`', '`null`')
    """
    if _PLAIN_NAME.fullmatch(name) and name not in _LITERAL_WORDS:
        return name
    return f"`{_escaped(name, '`')}`"


def unquoted_name(text: str) -> str:
    return _unescaped(text[1:-1]) if text.startswith("`") else text


def quoted_string(value: str) -> str:
    """A string on one line, whatever is in it.

    >>> print(quoted_string("it's " + chr(10)))
    'it\\'s \\u{a}'
    """
    return "'" + _escaped(value, "'") + "'"


def unquoted_string(text: str) -> str:
    return _unescaped(text[1:-1])


def _escaped(text: str, quote: str) -> str:
    return "".join(
        f"\\{c}" if c in (quote, "\\") else c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u\{([0-9a-f]+)\}|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)
