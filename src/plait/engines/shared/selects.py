"""Queries that take single rows of a stream, in one pass over each batch: nothing is kept, nothing waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US
from plait.engines.shared.askers import (
    GIVEN_ALWAYS,
    NO_STARTS,
    STRETCH,
    Asker,
    asker_tables,
    is_given,
)
from plait.engines.shared.routing import Routing
from plait.expressions.duckdb import to_duckdb
from plait.observations import Meter, OperatorForm
from plait.sharing import identity
from plait.sharing.selects import WovenSelect
from plait.windows.stretches import ALWAYS, Stretch


class SelectPass:
    """The queries of one pass. `name` begins the names of its tables; `starts` are the moments after which
    queries see rows, `gives` what of their rows is given here, if not all."""

    def __init__(
        self,
        name: str,
        members: Sequence[WovenSelect],
        starts: Mapping[str, int] = NO_STARTS,
        gives: Mapping[str, Stretch] = GIVEN_ALWAYS,
    ) -> None:
        self._key = members[0].key
        self._columns = [f"c{k}" for k in range(len(self._key.scan.columns))]
        self._routing = Routing(name, [self._key.pattern], [(member.selection,) for member in members])
        self._askers = asker_tables(
            name,
            ["taker", "after_us", *STRETCH],
            (
                (
                    m.shaped.shape,
                    Asker(
                        m.query,
                        m.shaped,
                        (k, starts.get(m.query, BEGINNING_US), *astuple(gives.get(m.query, ALWAYS))),
                    ),
                )
                for k, m in enumerate(members)
            ),
        )

        self.meter = Meter(
            f"pass_{identity.of_select(self._key)}",
            OperatorForm.PASS,
            [member.query for member in members],
            [self.stream],
        )

    @property
    def stream(self) -> str:
        return self._key.scan.stream.lower()

    def open(self, database: Database) -> None:
        self._routing.create(database)
        for askers in self._askers.values():
            askers.create(database)

    def results(self, database: Database, rows: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The rows of all queries: their names, and a table whose first column is the number of the query."""
        references = [f"r.{name}" for name in self._columns]
        common = self._routing.common(self._columns)
        for shape, askers in self._askers.items():
            items = [
                f"{to_duckdb(e, [*references, *askers.constants])} AS c{n}"
                for n, e in enumerate(shape.expressions)
            ]
            rows_of_all = database.fetch_arrow(
                f"SELECT {', '.join(['q.query', *items])} FROM {self._routing.routed(rows, self._columns)} "
                f"JOIN {askers.name} AS q ON q.taker = v.taker "
                f"WHERE {common} AND r.t > q.after_us AND {is_given('r.t')}"
            )
            yield askers.queries, rows_of_all
