"""The types of values. They are Spark's, less those whose behaviour differs between engines.

FLOAT is a storage type only: a FLOAT column is widened to DOUBLE where it is read. INTERVAL (day-time, in
microseconds) lives inside expressions and is never a result column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

MAX_DECIMAL_PRECISION = 38

# What a literal holds. Timestamps and intervals are microseconds (of the Unix epoch, UTC).
Value: TypeAlias = bool | int | float | Decimal | str | date | None

# The moments there are: from the first microsecond of year 1 to the last of year 9999.
TIMESTAMP_RANGE_US = (-62_135_596_800_000_000, 253_402_300_799_999_999)


class Kind(Enum):
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"


@dataclass(frozen=True)
class Type:
    kind: Kind
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL:
            if not (1 <= self.precision <= MAX_DECIMAL_PRECISION and 0 <= self.scale <= self.precision):
                raise ValueError(f"no such type: DECIMAL({self.precision},{self.scale})")
        elif self.precision or self.scale:
            raise ValueError(f"{self.kind.value} takes no precision")

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_DIGITS

    @property
    def is_exact(self) -> bool:
        """Integer or decimal: arithmetic without rounding of binary fractions."""
        return self.is_integer or self.kind is Kind.DECIMAL

    @property
    def is_numeric(self) -> bool:
        return self.is_exact or self.kind is Kind.DOUBLE


BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
INTERVAL = Type(Kind.INTERVAL)

# Decimal digits that hold every value of an integer type, as Spark widens them.
INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}
INTEGER_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
INTEGER_ORDER = (TINYINT, SMALLINT, INT, BIGINT)


def decimal(precision: int, scale: int) -> Type:
    return Type(Kind.DECIMAL, precision, scale)


def parse_type(text: str) -> Type:
    """The inverse of `str(type)`.

    >>> parse_type("DECIMAL(10,2)")
    Type(kind=<Kind.DECIMAL: 'DECIMAL'>, precision=10, scale=2)
    """
    match = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", text)
    if match:
        return decimal(int(match[1]), int(match[2]))
    return Type(Kind(text))


def integer_range(type_: Type) -> tuple[int, int]:
    """Least and greatest value of an integer type.

    >>> integer_range(TINYINT)
    (-128, 127)
    """
    bits = INTEGER_BITS[type_.kind]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
