"""Quantities as people read them: three digits and a unit, and an exponent only beyond all units."""

from __future__ import annotations

from decimal import Decimal

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """
    >>> counted(1, "stream"), counted(2, "query", "queries")
    ('1 stream', '2 queries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def number_text(value: float) -> str:
    """Three significant digits; whole numbers up to 9,999 in full.

    >>> [number_text(value) for value in (0, 5, 0.1234, 0.000012, 1234, 56789, 12.345, 1.5e9, 1e100)]
    ['0', '5', '0.123', '0.000012', '1,234', '56.8k', '12.3', '1.5G', '1e+100']
    """
    if value == int(value) and abs(value) < 10_000:
        return f"{int(value):,}"
    if abs(value) >= 1000 * _SCALES[0][0]:
        return f"{value:.3g}"
    for scale, letter in _SCALES:
        if abs(value) >= scale * 0.9995:
            return f"{value / scale:.3g}{letter}"
    return f"{Decimal(f'{value:.3g}'):f}"


def rate_text(rows_per_s: float) -> str:
    """Rows a second, or a minute or an hour where that gives the better number.

    >>> rate_text(5), rate_text(0.05), rate_text(0.0005), rate_text(2000), rate_text(1 / 3600)
    ('5 rows/s', '3 rows/min', '1.8 rows/h', '2,000 rows/s', '1 row/h')
    """
    if rows_per_s >= 1 or rows_per_s == 0:
        number, unit = number_text(rows_per_s), "s"
    elif rows_per_s * 60 >= 1:
        number, unit = number_text(rows_per_s * 60), "min"
    else:
        number, unit = number_text(rows_per_s * 3600), "h"
    return f"{number} {'row' if number == '1' else 'rows'}/{unit}"


def bytes_text(count: float) -> str:
    """
    >>> bytes_text(512), bytes_text(2048), bytes_text(3.5e6), bytes_text(1e100)
    ('512 B', '2.05 kB', '3.5 MB', '1e+100 B')
    """
    for scale, letter in _SCALES:
        if scale * 0.9995 <= count < 1000 * _SCALES[0][0]:
            return f"{count / scale:.3g} {letter}B"
    return f"{number_text(count)} B"


def bytes_per_s_text(bytes_per_s: float) -> str:
    return f"{bytes_text(bytes_per_s)}/s"
