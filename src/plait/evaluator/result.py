"""The rows of an evaluated query, and when two bags of rows are the same.

Values compare as Spark's do: NaN equals itself, 0.0 equals -0.0; doubles are equal to 1e-9 relative, because
engines sum in different orders. Everything else compares exactly.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from plait.expressions.types import Type
from plait.sharing.failing import Check

Row: TypeAlias = tuple[Any, ...]

RELATIVE_TOLERANCE = 1e-9
SHOWN_ROWS = 10


@dataclass(frozen=True)
class Result:
    """All rows, sorted by all columns, NULLs first.

    TIMESTAMP values are naive `datetime`s in UTC; those that Python cannot hold (after 9999) are text.
    `bad_records` counts, for each stream the query reads, the rows set aside because of their event time;
    `failed`, for expressions over rows of streams, those on which they are NULL as there is no such value.
    `times_us` are the event times of the rows: of a tick a microsecond before it.
    """

    columns: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[Row, ...]
    bad_records: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    failed: Mapping[Check, int] = field(default_factory=lambda: MappingProxyType({}))
    times_us: tuple[int, ...] = ()

    def before(self, us: int) -> list[Row]:
        """The rows whose event times are before that one."""
        return [row for row, time_us in zip(self.rows, self.times_us, strict=True) if time_us < us]


def same_rows(left: Iterable[Sequence[Any]], right: Iterable[Sequence[Any]]) -> bool:
    """Whether two bags of rows are equal, whatever their order.

    >>> same_rows([(1, 0.1 + 0.2), (None, 2.0)], [(None, 2.0), (1, 0.3)])
    True
    """
    return not difference(left, right)


def difference(left: Iterable[Sequence[Any]], right: Iterable[Sequence[Any]]) -> str:
    """What distinguishes two bags of rows, for a message; empty if they are equal.

    >>> print(difference([(1,), (2,), (2,)], [(2,), (3,)]))
    only left (2): (1,), (2,)
    only right (1): (3,)
    """
    only_left, only_right = only_in_one(left, right)
    lines = []
    for side, rows in (("left", only_left), ("right", only_right)):
        if rows:
            shown = ", ".join(map(str, rows[:SHOWN_ROWS])) + (", …" if len(rows) > SHOWN_ROWS else "")
            lines.append(f"only {side} ({len(rows)}): {shown}")
    return "\n".join(lines)


def only_in_one(left: Iterable[Sequence[Any]], right: Iterable[Sequence[Any]]) -> tuple[list[Row], list[Row]]:
    """The rows of each bag that have no equal one in the other.

    >>> only_in_one([(1,), (2,), (2,)], [(2,), (3,)])
    ([(1,), (2,)], [(3,)])
    """
    left_by_key, right_by_key = _by_exact_part(map(tuple, left)), _by_exact_part(map(tuple, right))
    only_left: list[Row] = []
    only_right: list[Row] = []
    for key in {**left_by_key, **right_by_key}:
        unmatched_left, unmatched_right = _unmatched(left_by_key.get(key, []), right_by_key.get(key, []))
        only_left += unmatched_left
        only_right += unmatched_right
    return only_left, only_right


def _by_exact_part(rows: Iterable[Row]) -> dict[Row, list[Row]]:
    """Rows by everything that compares exactly; doubles by their position only."""
    grouped: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[tuple((float,) if isinstance(v, float) else (type(v), v) for v in row)].append(row)
    return grouped


def _unmatched(left: list[Row], right: list[Row]) -> tuple[list[Row], list[Row]]:
    """Take away equal rows first, then rows that are equal within the tolerance."""
    left_counts, right_counts = Counter(map(_comparable, left)), Counter(map(_comparable, right))
    left_rest = list((left_counts - right_counts).elements())
    right_rest = list((right_counts - left_counts).elements())
    only_left = []
    for row in left_rest:
        partner = next((k for k, other in enumerate(right_rest) if _close(row, other)), None)
        if partner is None:
            only_left.append(row)
        else:
            del right_rest[partner]
    return only_left, right_rest


_NAN = math.nan  # one object, so that tuples holding it compare equal


def _comparable(row: Row) -> Row:
    return tuple(_NAN if isinstance(value, float) and math.isnan(value) else value for value in row)


def _close(left: Row, right: Row) -> bool:
    return all(
        a is b or a == b or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)
        for a, b in zip(left, right, strict=True)
        if isinstance(a, float)
    )
