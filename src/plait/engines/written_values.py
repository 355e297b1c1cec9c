"""How values are written in text (CSV, JSON): one rule for every engine that reads them.

Engines take much more for a number or a time than this, each something else, so a text is held against its
type's pattern first. The patterns mean the same in RE2 (DuckDB) and in Java (Spark).
"""

from __future__ import annotations

from plait.expressions.types import Kind, Type

_INTEGER = "[+-]?[0-9]+"
_DOUBLE = "(?i)[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = _DATE + "([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"


def written_pattern(type_: Type) -> str | None:
    """A regular expression for the whole text of a value; None if every text is one.

    >>> from plait.expressions.types import BIGINT
    >>> written_pattern(BIGINT)
    '[+-]?[0-9]+'
    """
    match type_.kind:
        case Kind.STRING:
            return None
        case Kind.BOOLEAN:
            return "(?i)true|false"
        case Kind.DECIMAL:
            scale = type_.scale
            return f"[+-]?([0-9]+([.][0-9]{{0,{scale}}}0*)?|[.][0-9]{{1,{scale or 1}}}0*)"
        case Kind.DOUBLE:
            return _DOUBLE
        case Kind.DATE:
            return _DATE
        case Kind.TIMESTAMP:
            return _TIMESTAMP
        case _:
            return _INTEGER
