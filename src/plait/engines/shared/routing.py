"""Finds out, for each of many rows, which of many takers want it: in one join, however many there are.

Takers are told apart by the constants of their selections (`plait.sharing.patterns`). Values that are looked
up are an equality of the join. For bounds, the constants of all takers cut the line of values into cells, a
cell for each constant itself and one for each gap: a row finds the last constant that is not greater (an ASOF
join), hence its cell, and a taker wants an interval of cells:

    constants      c0       c1
    cells     -1   0    1   2    3

What a taker compares with its own parameters is a condition of the join, too. Terms that need constants as
written are numbered: a row has the numbers of those that are true of it, and a taker wants one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, product

from plait.engines.duckdb import Database
from plait.engines.shared.askers import create_table
from plait.expressions.duckdb import literal_text, to_duckdb, type_to_duckdb
from plait.expressions.nodes import Column, conjunction
from plait.expressions.types import INT
from plait.sharing.numbered import numbered
from plait.sharing.patterns import Pattern, Selection, common_terms, own_terms

_LAST_CELL = 2**62

# Cells are listed, for an equality to join by, if these are no more than so many; else takers say from which
# cell to which.
_MOST_CELLS = 200_000


class Routing:
    """`patterns` are over relations whose columns stand beside each other; a taker has a selection of each.

    A relation is routed as `r`, with columns of the given names, to takers `v`, each with its number as
    `taker`: its place, unless `numbers` are given.
    """

    def __init__(
        self,
        name: str,
        patterns: Sequence[Pattern],
        takers: Sequence[tuple[Selection, ...]],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._name = name
        self._patterns = patterns
        self._takers = dict(zip(numbers or range(len(takers)), takers, strict=True))
        self._starts = [*accumulate((pattern.width for pattern in patterns), initial=0)]
        self._looked_up = {
            f"v{number}_{k}": self._starts[number] + column.index
            for number, pattern in enumerate(patterns)
            for k, column in enumerate(pattern.looked_up)
        }
        self._bounded: dict[int, Column] = {
            number: pattern.bounded for number, pattern in enumerate(patterns) if pattern.bounded is not None
        }
        selections = [[taker[number] for taker in takers] for number in range(len(patterns))]
        self._common = [conjunction(list(common_terms(each))) for each in selections]
        self._own = [own_terms(each) for each in selections]
        written = [numbered(each.written for each in of_pattern) for of_pattern in selections]
        self._written = {number: terms for number, terms in enumerate(written) if len(terms) > 1}
        self._by_cell = False  # whether cells are listed

    @property
    def tells_apart(self) -> bool:
        """Whether rows find takers by more than a comparison with each of them."""
        return bool(self._looked_up or self._bounded or self._written)

    def create(self, database: Database) -> None:
        """Make the tables of constants."""
        for number, column in self._bounded.items():
            self._cut(database, number, column)
        looked_up = [column.type for pattern in self._patterns for column in pattern.looked_up]
        columns = dict(zip(self._looked_up, looked_up, strict=True))
        for number, pattern in enumerate(self._patterns):
            columns |= {f"p{number}_{k}": type_ for k, type_ in enumerate(pattern.parameters)}
        columns |= {f"w{number}": INT for number in self._written}
        types = {"taker": "BIGINT", **{name: type_to_duckdb(type_) for name, type_ in columns.items()}}
        given = f"{self._name}_given"
        create_table(database, given, types, self._rows())
        joins = [f"LEFT JOIN {self._name}_intervals{number} USING (taker)" for number in self._bounded]
        takers = f"{self._name}_takers"
        database.execute(f"CREATE OR REPLACE TEMP TABLE {takers} AS SELECT * FROM {given} {' '.join(joins)}")
        if not self._looked_up and self._bounded:
            self._list_cells(database, next(iter(self._bounded)), takers)

    def _rows(self) -> Iterator[list[str | None]]:
        """The constants of each taker: a row for each choice that it leaves."""
        for number, taker in self._takers.items():
            own = [literal_text(each) for selection in taker for each in selection.parameters]
            own += [str(terms[taker[place].written]) for place, terms in self._written.items()]
            for constants in product(*(alternatives for each in taker for alternatives in each.constants)):
                yield [str(number), *map(literal_text, constants), *own]

    def _list_cells(self, database: Database, number: int, takers: str) -> None:
        """Let takers have a row for each cell of a pattern that they want, unless these are too many."""
        last = f"least(high{number}, (SELECT 2 * count(*) - 1 FROM {self._name}_cuts{number}))"
        ((count,),) = database.fetch(
            f"SELECT coalesce(sum(greatest({last} - low{number} + 1, 0)), 0) FROM {takers}"
        )
        self._by_cell = count <= _MOST_CELLS
        if self._by_cell:
            database.execute(
                f"CREATE OR REPLACE TEMP TABLE {self._name}_cells AS "
                f"SELECT *, unnest(generate_series(low{number}, {last})) AS cell FROM {takers}"
            )

    def common(self, columns: Sequence[str], number: int = 0) -> str:
        """What all takers ask of a row of one of the relations, whose columns have these names."""
        return to_duckdb(self._common[number], [f"r.{name}" for name in columns])

    def routed(self, rows: str, columns: Sequence[str]) -> str:
        """What to select from: rows with their takers. That they have what all takers ask for (`common`) is a
        condition to be added."""
        text = f"{self._with_written(rows, columns)} AS r"
        conditions = [f"r.w{number} = v.w{number}" for number in self._written]
        conditions += [f"r.{columns[place]} = v.{name}" for name, place in self._looked_up.items()]
        for number, column in self._bounded.items():
            value, cut = f"r.{columns[self._starts[number] + column.index]}", f"cut{number}"
            text += f" ASOF LEFT JOIN {self._name}_cuts{number} AS {cut} ON {value} >= {cut}.value"
            cell = (
                f"CASE WHEN {value} IS NULL THEN NULL WHEN {cut}.place IS NULL THEN -1 "
                f"ELSE 2 * {cut}.place + ({value} > {cut}.value)::INTEGER END"
            )
            is_listed = self._by_cell and number == next(iter(self._bounded))
            conditions.append(
                f"{cell} = v.cell" if is_listed else f"{cell} BETWEEN v.low{number} AND v.high{number}"
            )
        for number, (pattern, terms) in enumerate(zip(self._patterns, self._own, strict=True)):
            start = self._starts[number]
            references = [f"r.{name}" for name in columns[start : start + pattern.width]]
            references += [f"v.p{number}_{k}" for k in range(len(pattern.parameters))]
            conditions += [to_duckdb(term, references) for term in terms]
        takers = f"{self._name}_cells" if self._by_cell else f"{self._name}_takers"
        return f"{text} JOIN {takers} AS v ON {' AND '.join(conditions) or 'true'}"

    def _with_written(self, rows: str, columns: Sequence[str]) -> str:
        """Rows, each once for every different one of the terms as written that is true of it."""
        for number, different in self._written.items():
            start = self._starts[number]
            references = columns[start : start + self._patterns[number].width]
            numbers = ", ".join(
                f"CASE WHEN {to_duckdb(conjunction(list(terms)), references)} THEN {k} END"
                for terms, k in different.items()
            )
            true = f"list_filter([{numbers}], lambda k: k IS NOT NULL)"
            rows = f"(SELECT *, unnest({true}) AS w{number} FROM {rows})"
        return rows

    def _cut(self, database: Database, number: int, column: Column) -> None:
        bounds, cuts = f"{self._name}_bounds{number}", f"{self._name}_cuts{number}"
        types = {"taker": "BIGINT", "lower": "BOOLEAN", "included": "BOOLEAN"}
        values = (
            [str(n), str(bound.lower), str(bound.included), literal_text(bound.constant)]
            for n, taker in self._takers.items()
            for bound in taker[number].bounds
        )
        create_table(database, bounds, {**types, "value": type_to_duckdb(column.type)}, values)
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


def wanted_counts(
    database: Database, routing: Routing, rows: str, columns: Sequence[str], condition: str = "true"
) -> dict[int, int]:
    """How many rows each taker wants, of those for which a condition is true."""
    found = database.fetch(
        f"SELECT v.taker, count(*) FROM {routing.routed(rows, columns)} "
        f"WHERE {routing.common(columns)} AND {condition} GROUP BY v.taker"
    )
    return dict(found)
