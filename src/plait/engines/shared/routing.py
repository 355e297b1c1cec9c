"""Finds out, for each of many rows, which of many takers want it: in one join, however many there are.

Takers are told apart by the constants of their selections (`plait.sharing.patterns`). Values that are looked
up are an equality of the join. For bounds, the constants of all takers cut the line of values into cells, a
cell for each constant itself and one for each gap: a row finds the last constant that is not greater (an ASOF
join), hence its cell, and a taker wants an interval of cells:

    constants      c0       c1
    cells     -1   0    1   2    3
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.engines.duckdb import Database
from plait.expressions.duckdb import literal_to_duckdb, to_duckdb, type_to_duckdb
from plait.expressions.nodes import Column, conjunction
from plait.sharing.patterns import Pattern, Selection

_LAST_CELL = 2**62


class Routing:
    """`patterns` are over one relation; each taker has a selection for each of them.

    A relation is routed as `r`, with columns of the given names, to takers `v`, each with its number as
    `taker`.
    """

    def __init__(
        self, name: str, patterns: Sequence[Pattern], takers: Sequence[tuple[Selection, ...]]
    ) -> None:
        self._name = name
        self._takers = takers
        self._looked_up = {
            f"v{number}_{k}": column
            for number, pattern in enumerate(patterns)
            for k, column in enumerate(pattern.looked_up)
        }
        self._bounded: dict[int, Column] = {
            number: pattern.bounded for number, pattern in enumerate(patterns) if pattern.bounded is not None
        }

    def create(self, database: Database) -> None:
        """Make the tables of constants."""
        for number, column in self._bounded.items():
            self._cut(database, number, column)
        names = [f"{name} {type_to_duckdb(column.type)}" for name, column in self._looked_up.items()]
        given = f"{self._name}_given"
        database.execute(f"CREATE OR REPLACE TEMP TABLE {given} ({', '.join(['taker INTEGER', *names])})")
        values = [
            f"({', '.join([str(n), *(literal_to_duckdb(c) for each in taker for c in each.constants)])})"
            for n, taker in enumerate(self._takers)
        ]
        database.execute(f"INSERT INTO {given} VALUES {', '.join(values)}")
        joins = [f"LEFT JOIN {self._name}_intervals{number} USING (taker)" for number in self._bounded]
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._name}_takers AS SELECT * FROM {given} {' '.join(joins)}"
        )
        for number in self._by_cell:
            last = f"(SELECT 2 * count(*) - 1 FROM {self._name}_cuts{number})"
            cells = f"unnest(generate_series(low{number}, least(high{number}, {last})))"
            database.execute(
                f"CREATE OR REPLACE TEMP TABLE {self._name}_cells AS SELECT *, {cells} AS cell "
                f"FROM {self._name}_takers"
            )

    def routed(self, rows: str, columns: Sequence[str]) -> str:
        """What to select from: rows with their takers."""
        text = f"{rows} AS r"
        conditions = [f"r.{columns[column.index]} = v.{name}" for name, column in self._looked_up.items()]
        for number, column in self._bounded.items():
            value, cut = f"r.{columns[column.index]}", f"cut{number}"
            text += f" ASOF LEFT JOIN {self._name}_cuts{number} AS {cut} ON {value} >= {cut}.value"
            cell = (
                f"CASE WHEN {value} IS NULL THEN NULL WHEN {cut}.place IS NULL THEN -1 "
                f"ELSE 2 * {cut}.place + ({value} > {cut}.value)::INTEGER END"
            )
            conditions.append(
                f"{cell} = v.cell"
                if number in self._by_cell
                else f"{cell} BETWEEN v.low{number} AND v.high{number}"
            )
        takers = f"{self._name}_cells" if self._by_cell else f"{self._name}_takers"
        return f"{text} JOIN {takers} AS v ON {' AND '.join(conditions) or 'true'}"

    @property
    def _by_cell(self) -> tuple[int, ...]:
        """The pattern whose cells are an equality of the join, where no values are looked up."""
        return () if self._looked_up else tuple(self._bounded)[:1]

    def _cut(self, database: Database, number: int, column: Column) -> None:
        bounds, cuts = f"{self._name}_bounds{number}", f"{self._name}_cuts{number}"
        type_ = type_to_duckdb(column.type)
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {bounds} "
            f"(taker INTEGER, lower BOOLEAN, included BOOLEAN, value {type_})"
        )
        values = [
            f"({n}, {bound.lower}, {bound.included}, {literal_to_duckdb(bound.constant)})"
            for n, taker in enumerate(self._takers)
            for bound in taker[number].bounds
        ]
        database.execute(f"INSERT INTO {bounds} VALUES {', '.join(values)}")
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {cuts} AS "
            "SELECT value, row_number() OVER (ORDER BY value) - 1 AS place "
            f"FROM (SELECT DISTINCT value FROM {bounds})"
        )
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._name}_intervals{number} AS SELECT taker, "
            "coalesce(max(CASE WHEN lower THEN 2 * place + (NOT included)::INTEGER END), -1) "
            f"AS low{number}, "
            f"coalesce(min(CASE WHEN NOT lower THEN 2 * place - (NOT included)::INTEGER END), {_LAST_CELL}) "
            f"AS high{number} FROM {bounds} JOIN {cuts} USING (value) GROUP BY taker"
        )


def wanted_ids(
    database: Database, routing: Routing, rows: str, columns: Sequence[str], pattern: Pattern
) -> dict[int, set[int]]:
    """Which rows each taker wants, by their `id`."""
    rest = to_duckdb(conjunction(sorted(pattern.rest, key=repr)), [f"r.{name}" for name in columns])
    found: dict[int, set[int]] = {}
    for taker, id_ in database.fetch(
        f"SELECT v.taker, r.id FROM {routing.routed(rows, columns)} WHERE {rest}"
    ):
        found.setdefault(taker, set()).add(id_)
    return found
