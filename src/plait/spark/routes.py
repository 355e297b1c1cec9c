"""Finds out in Spark which of many takers want a row: by a join with a small table, one comparison for all.

Takers are told apart by the constants of their selections (`plait.sharing.patterns`). A row has **route
values**: the columns that are looked up (`v0`, `v1`, …) and, for each column that is bounded, the cell that
its value is in (`w0`, `w1`, …). The constants of all takers cut the line of values into cells, one for each
constant and one for each gap, as in the database (`plait.engines.shared.routing`). The table has for each
taker the values that it looks up, and the interval of cells that it wants. Where nothing is looked up, it has
a row for each cell of the first interval instead, so that there always is an equality to join by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from plait.expressions.nodes import Column
from plait.expressions.spark import literal_to_spark, type_to_spark
from plait.sharing.patterns import Bound, Pattern, Selection, order


class Routes:
    """`takers` have a selection for each of the patterns, which are over the columns of a row."""

    def __init__(self, patterns: Sequence[Pattern], takers: Sequence[tuple[Selection, ...]]) -> None:
        self._takers = takers
        self._looked_up = [column for pattern in patterns for column in pattern.looked_up]
        self._cells = [
            (number, _Cells(pattern.bounded, [taker[number] for taker in takers]))
            for number, pattern in enumerate(patterns)
            if pattern.bounded is not None
        ]
        self._by_cell = bool(self._cells) and not self._looked_up

    @property
    def names(self) -> list[str]:
        """The names of the route values."""
        return [*(f"v{k}" for k in range(len(self._looked_up))), *(f"w{k}" for k in range(len(self._cells)))]

    def items(self, columns: Sequence[str]) -> list[str]:
        """The route values of a row with columns of these names, as SQL."""
        values = [
            *(columns[c.index] for c in self._looked_up),
            *(cells.sql(columns) for _, cells in self._cells),
        ]
        return [f"{value} AS {name}" for value, name in zip(values, self.names, strict=True)]

    @property
    def table_columns(self) -> list[tuple[str, str]]:
        """The columns of the table, with Spark's types."""
        found = [(f"v{k}", type_to_spark(column.type)) for k, column in enumerate(self._looked_up)]
        for k in range(len(self._cells)):
            if k == 0 and self._by_cell:
                found.append(("w0", "INT"))
            else:
                found += [(f"low{k}", "INT"), (f"high{k}", "INT")]
        return found

    def table_rows(self, taker: int) -> Iterator[list[str]]:
        """The rows of the table for a taker, as SQL."""
        selections = self._takers[taker]
        values = [literal_to_spark(constant) for each in selections for constant in each.constants]
        intervals = [cells.interval(selections[number].bounds) for number, cells in self._cells]
        if self._by_cell:
            low, high = intervals[0]
            rest = [str(cell) for cell in chain(*intervals[1:])]
            yield from ([str(cell), *rest] for cell in range(low, high + 1))
        else:
            yield [*values, *(str(cell) for cell in chain(*intervals))]

    def condition(self, row: str, table: str) -> str:
        """Whether a row with route values is one of a taker's."""
        terms = [f"{row}.v{k} = {table}.v{k}" for k in range(len(self._looked_up))]
        for k in range(len(self._cells)):
            if k == 0 and self._by_cell:
                terms.append(f"{row}.w0 = {table}.w0")
            else:
                terms.append(f"{row}.w{k} BETWEEN {table}.low{k} AND {table}.high{k}")
        return " AND ".join(terms) or "TRUE"


class _Cells:
    """The cells that the bounds of many takers cut the values of a column into."""

    def __init__(self, column: Column, selections: Sequence[Selection]) -> None:
        self._column = column
        constants = {order(b.constant): b.constant for selection in selections for b in selection.bounds}
        keys = sorted(constants)
        self._constants = [constants[key] for key in keys]
        self._places = {key: place for place, key in enumerate(keys)}

    def sql(self, columns: Sequence[str]) -> str:
        """The cell of a row; NULL of no value."""
        value = columns[self._column.index]
        return f"CASE WHEN {value} IS NOT NULL THEN {self._search(value, 0, len(self._constants))} END"

    def interval(self, bounds: Sequence[Bound]) -> tuple[int, int]:
        """The first and the last cell that bounds leave."""
        low, high = -1, 2 * len(self._constants) - 1
        for bound in bounds:
            cell = 2 * self._places[order(bound.constant)]
            if bound.lower:
                low = max(low, cell + (not bound.included))
            else:
                high = min(high, cell - (not bound.included))
        return low, high

    def _search(self, value: str, first: int, end: int) -> str:
        """Among the constants from the first to before the end, by halves: few comparisons for each row."""
        if first == end:
            return str(2 * first - 1)
        middle = (first + end) // 2
        constant = literal_to_spark(self._constants[middle])
        return (
            f"CASE WHEN {value} < {constant} THEN {self._search(value, first, middle)} "
            f"WHEN {value} = {constant} THEN {2 * middle} ELSE {self._search(value, middle + 1, end)} END"
        )
