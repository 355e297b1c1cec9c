"""The queries that a shared operator has rows for, as tables: so statements are the same in every batch, and
not longer for more queries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from plait.engines.duckdb import Database
from plait.expressions.duckdb import literal_text, type_to_duckdb
from plait.sharing.shapes import Shaped
from plait.windows.stretches import Stretch

_Key = TypeVar("_Key", bound=Hashable)

# Queries that see all rows have no moment after which they do.
NO_STARTS: Mapping[str, int] = MappingProxyType({})
# Nor have those a stretch of which all rows are given.
GIVEN_ALWAYS: Mapping[str, Stretch] = MappingProxyType({})
STRETCH = ("from_us", "until_us")


def is_given(time: str) -> str:
    """Whether a query `q` of an asker table with a stretch gives its row of that event time."""
    return f"{time} >= q.from_us AND {time} < q.until_us"


@dataclass(frozen=True)
class Asker:
    """A query, and numbers that it finds its rows by."""

    query: str
    shaped: Shaped
    numbers: tuple[int, ...]


class AskerTable:
    """Queries of one shape: a table with the place of each among them as `query`, numbers of the given names,
    and the constants of the shape as `q0`, `q1`, …"""

    def __init__(self, name: str, numbers: Sequence[str], askers: Sequence[Asker]) -> None:
        self.name = name
        self.queries = tuple(asker.query for asker in askers)
        self._numbers = numbers
        self._askers = askers
        self._types = askers[0].shaped.shape.constants

    @property
    def constants(self) -> list[str]:
        """The columns of constants, of the table as `q`."""
        return [f"q.q{k}" for k in range(len(self._types))]

    def create(self, database: Database) -> None:
        columns = {"query": "INTEGER", **dict.fromkeys(self._numbers, "BIGINT")}
        columns |= {f"q{k}": type_to_duckdb(type_) for k, type_ in enumerate(self._types)}
        rows = (
            [str(place), *map(str, each.numbers), *map(literal_text, each.shaped.constants)]
            for place, each in enumerate(self._askers)
        )
        create_table(database, self.name, columns, rows)


def asker_tables(
    name: str, numbers: Sequence[str], askers: Iterable[tuple[_Key, Asker]]
) -> dict[_Key, AskerTable]:
    """A table for all askers of the same key, which says more than their shape, or just that."""
    alike: dict[_Key, list[Asker]] = {}
    for key, asker in askers:
        alike.setdefault(key, []).append(asker)
    return {
        key: AskerTable(f"{name}_queries{number}", numbers, asking)
        for number, (key, asking) in enumerate(alike.items())
    }


def create_table(
    database: Database, name: str, columns: Mapping[str, str], rows: Iterable[Iterable[str | None]]
) -> None:
    """A table that is not kept, of columns with their types and rows of values as texts. It takes little
    more time for many rows than for few: they are not a part of the statement."""
    values = [[*column] for column in zip(*rows, strict=True)] or [[] for _ in columns]
    items = [
        f"unnest(${place}::VARCHAR[])::{type_} AS {column}"
        for place, (column, type_) in enumerate(columns.items(), start=1)
    ]
    database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {', '.join(items)}", values)
