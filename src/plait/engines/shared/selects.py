"""Queries that take single rows of a stream, in one pass over each batch: nothing is kept, nothing waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.shared.routing import Routing
from plait.expressions.duckdb import literal_to_duckdb, to_duckdb, type_to_duckdb
from plait.expressions.nodes import conjunction
from plait.sharing.selects import WovenSelect
from plait.sharing.shapes import Shape


class SelectPass:
    """The queries of one pass. `name` begins the names of its tables."""

    def __init__(self, name: str, members: Sequence[WovenSelect]) -> None:
        self._key = members[0].key
        self._members = members
        self._columns = [f"c{k}" for k in range(len(self._key.scan.columns))]
        self._routing = Routing(name, [self._key.pattern], [(member.selection,) for member in members])

    @property
    def stream(self) -> str:
        return self._key.scan.stream.lower()

    def open(self, database: Database) -> None:
        self._routing.create(database)

    def results(self, database: Database, rows: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The rows of all queries: their names, and a table whose first column is the number of the query."""
        references = [f"r.{name}" for name in self._columns]
        rest = to_duckdb(conjunction(sorted(self._key.pattern.rest, key=repr)), references)
        shapes: dict[Shape, list[tuple[int, WovenSelect]]] = {}
        for number, member in enumerate(self._members):
            shapes.setdefault(member.shaped.shape, []).append((number, member))
        for shape, members in shapes.items():
            values = ", ".join(
                f"({', '.join([str(n), str(taker), *map(literal_to_duckdb, m.shaped.constants)])})"
                for n, (taker, m) in enumerate(members)
            )
            names = ["query", "taker", *(f"q{k}" for k in range(len(shape.constants)))]
            constants = [f"q.q{k}::{type_to_duckdb(type_)}" for k, type_ in enumerate(shape.constants)]
            items = [
                f"{to_duckdb(e, [*references, *constants])} AS c{n}" for n, e in enumerate(shape.expressions)
            ]
            yield (
                tuple(m.query for _, m in members),
                database.fetch_arrow(
                    f"SELECT {', '.join(['q.query', *items])} "
                    f"FROM {self._routing.routed(rows, self._columns)} "
                    f"JOIN (VALUES {values}) AS q({', '.join(names)}) ON q.taker = v.taker WHERE {rest}"
                ),
            )
