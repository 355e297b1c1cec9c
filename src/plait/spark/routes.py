"""Finds out in Spark which of many takers want a row: by a join with a small table, one comparison for all.

Takers are told apart by the constants of their selections (`plait.sharing.patterns`). A row has **route
values**: the columns that are looked up (`v0`, `v1`, …) and, for each column that is bounded, the cell that
its value is in (`w0`, `w1`, …). The constants of all takers cut the line of values into cells, one for each
constant and one for each gap, as in the database (`plait.engines.shared.routing`). The table has for each
taker the values that it looks up, and the interval of cells that it wants.

Where nothing is looked up, blocks of cells are, so that there always is an equality to join by. Cells are the
leaves of a binary tree, a block is all cells below a node of it, and a node has a number (`b0`), twice its
parent's or one more:

    cells        -1   0   1   2
    numbers       4   5   6   7
                  └─2─┘   └─3─┘

The table has the blocks that an interval is made of, and a row looks up all blocks that its cell is in, of
which each taker that wants it has exactly one. Where intervals are short, blocks are single cells. The longer
they are, the larger blocks may be: a thousand takers of `v > c` have a million cells, but some ten
thousand blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

from plait.expressions.nodes import Column
from plait.expressions.spark import literal_to_spark
from plait.expressions.types import INT, Type, Value
from plait.sharing.patterns import Bound, Pattern, Selection, order

# A larger table takes longer to hand out in each batch than looking up some blocks more for each row.
_MOST_BLOCKS = 10_000
# A CASE of more branches is too long to be compiled, and a thousand take seconds in each batch.
_MOST_BRANCHES = 200


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
        self._blocks: _Blocks | None = None
        if self._cells and not self._looked_up:
            (number, cells), *_ = self._cells
            self._blocks = _Blocks(cells.count, [cells.interval(taker[number].bounds) for taker in takers])

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
    def blocks(self) -> list[str]:
        """What a row with route values needs besides, to be joined with the table, as SQL."""
        return [f"{self._blocks.sql('w0')} AS b0"] if self._blocks else []

    @property
    def table_columns(self) -> list[tuple[str, Type]]:
        """The columns of the table."""
        found = [(f"v{k}", column.type) for k, column in enumerate(self._looked_up)]
        for k in range(len(self._cells)):
            if k == 0 and self._blocks:
                found.append(("b0", INT))
            else:
                found += [(f"low{k}", INT), (f"high{k}", INT)]
        return found

    def table_rows(self, taker: int) -> Iterator[Sequence[Value]]:
        """The rows of the table for a taker."""
        selections = self._takers[taker]
        intervals = [cells.interval(selections[number].bounds) for number, cells in self._cells]
        if self._blocks:
            rest = [*chain(*intervals[1:])]
            yield from ([block, *rest] for block in self._blocks.of(intervals[0]))
        else:
            choices = [alternatives for each in selections for alternatives in each.constants]
            for constants in product(*choices):
                yield [*(constant.value for constant in constants), *chain(*intervals)]

    def condition(self, row: str, table: str) -> str:
        """Whether a row with route values and blocks is one of a taker's."""
        terms = [f"{row}.v{k} = {table}.v{k}" for k in range(len(self._looked_up))]
        for k in range(len(self._cells)):
            if k == 0 and self._blocks:
                terms.append(f"{row}.b0 = {table}.b0")
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

    @property
    def count(self) -> int:
        return 2 * len(self._constants) + 1

    def sql(self, columns: Sequence[str]) -> str:
        """The cell of a row; NULL of no value."""
        value, count = columns[self._column.index], len(self._constants)
        cell = self._branches(value, 0, count) if count <= _MOST_BRANCHES else self._search(value)
        return f"CASE WHEN {value} IS NOT NULL THEN {cell} END"

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

    def _branches(self, value: str, first: int, end: int) -> str:
        """Among the constants from the first to before the end, by halves: few comparisons for each row."""
        if first == end:
            return str(2 * first - 1)
        middle = (first + end) // 2
        constant = literal_to_spark(self._constants[middle])
        return (
            f"CASE WHEN {value} < {constant} THEN {self._branches(value, first, middle)} "
            f"WHEN {value} = {constant} THEN {2 * middle} ELSE {self._branches(value, middle + 1, end)} END"
        )

    def _search(self, value: str) -> str:
        """The same in an array, by steps that halve: for each row slower than branches, but short."""
        steps = ", ".join(str(1 << k) for k in reversed(range(len(self._constants).bit_length())))
        constants = f"array({', '.join(map(literal_to_spark, self._constants))})"
        return (
            f"aggregate(array({steps}), 0, "
            f"(n, step) -> IF(get({constants}, n + step - 1) <= {value}, n + step, n), "
            f"n -> 2 * n - IF(get({constants}, n - 1) = {value}, 2, 1))"
        )


class _Blocks:
    """The blocks of so many cells, which intervals of them are made of."""

    def __init__(self, count: int, intervals: Sequence[tuple[int, int]]) -> None:
        depth = (count - 1).bit_length()
        self._first = (1 << depth) + 1  # the number of cell 0
        lengths = [max(0, high - low + 1) for low, high in intervals]
        # Of the largest blocks. An interval is made of these, and of at most two of each height below.
        self._height = next(
            (
                height
                for height in range(depth)
                if sum((length >> height) + 2 * height for length in lengths) <= _MOST_BLOCKS
            ),
            depth,
        )

    def of(self, interval: tuple[int, int]) -> Iterator[int]:
        """The numbers of the blocks that make up an interval."""
        first, end = interval[0] + self._first, interval[1] + self._first + 1
        for _ in range(self._height):
            if first < end and first % 2:
                yield first
                first += 1
            if first < end and end % 2:
                end -= 1
                yield end
            first, end = first // 2, end // 2
        yield from range(first, end)

    def sql(self, cell: str) -> str:
        """The numbers of the blocks that a cell is in, a row for each."""
        numbers = (f"shiftright({cell} + {self._first}, {height})" for height in range(self._height + 1))
        return f"explode(array({', '.join(numbers)}))"
