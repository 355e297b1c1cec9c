"""A join of rows that many queries share, in DuckDB: a delta join a batch, and each combination to its
takers.

The rows of each stream that some query may want are kept for as long as partners can come: until the
watermark has passed them by the greatest range. A batch joins its new rows of each stream with the old rows
of the streams before it and with all rows of those after it, so each combination is found once, in the batch
that brings its last row. It is given at once: of an inner join nothing has to wait.

Rows l and r meet if `r.t − l.t < range_l and l.t − r.t < range_r`: by the greatest ranges in the join, by its
own for a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple

import pyarrow as pa

from plait.engines.duckdb import Database, quoted
from plait.engines.incremental.bands import BEGINNING_US
from plait.engines.incremental.state import StateTable
from plait.engines.shared.askers import (
    GIVEN_ALWAYS,
    NO_STARTS,
    STRETCH,
    Asker,
    AskerTable,
    asker_tables,
    is_given,
)
from plait.engines.shared.routing import Routing, wanted_counts
from plait.expressions.duckdb import to_duckdb, type_to_duckdb
from plait.observations import Kept, Meter, OperatorForm
from plait.plan.nodes import StreamScan
from plait.sharing.joins import WovenJoin
from plait.sharing.numbered import numbered
from plait.sharing.shapes import Shape
from plait.windows.stretches import ALWAYS, Stretch


class SharedJoin:
    """The queries of one join. `name` begins the names of its tables; `starts` are the moments after which
    queries see rows, `gives` what of their rows is given here, if not all."""

    def __init__(
        self,
        name: str,
        members: Sequence[WovenJoin],
        starts: Mapping[str, int] = NO_STARTS,
        gives: Mapping[str, Stretch] = GIVEN_ALWAYS,
    ) -> None:
        self._name = name
        self._key = members[0].key
        self._members = members
        self._starts = starts
        inputs = range(len(self._key.scans))
        self._ranges_us = [max(member.ranges_us[k] for member in members) for k in inputs]
        self._columns = [f"c{k}" for k in range(sum(len(scan.columns) for scan in self._key.scans))]
        takers = [member.selections for member in members]
        self._routing = Routing(name, self._key.patterns, takers)
        self._selections = [numbered(taker[k] for taker in takers) for k in inputs]
        self._wanted = [
            Routing(f"{name}_{k}", [pattern], [(each,) for each in self._selections[k]])
            for k, pattern in enumerate(self._key.patterns)
        ]
        self._askers = asker_tables(
            name,
            ["taker", "after_us", *STRETCH, *(f"r{k}" for k in inputs)],
            (
                (
                    member.shaped.shape,
                    Asker(
                        member.query,
                        member.shaped,
                        (
                            taker,
                            self._after_us(member),
                            *astuple(gives.get(member.query, ALWAYS)),
                            *member.ranges_us,
                        ),
                    ),
                )
                for taker, member in enumerate(members)
            ),
        )

        streams = dict.fromkeys(scan.stream.lower() for scan in self._key.scans)
        queries = [member.query for member in members]
        self.meter = Meter(name, OperatorForm.JOIN, queries, [*streams])

    def tables(self) -> Iterator[StateTable]:
        """The tables of rows. Their columns are named as the stream's: which are read may change."""
        for number, scan in enumerate(self._key.scans):
            types = map(type_to_duckdb, scan.types)
            columns = dict(zip(_stored_columns(scan), types, strict=True))
            yield StateTable(f"{self._name}_rows{number}", {**columns, "t": "BIGINT"})

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        self._routing.create(database)
        for wanted in self._wanted:
            wanted.create(database)
        for askers in self._askers.values():
            askers.create(database)

    def results(
        self, database: Database, rows: Mapping[str, str], from_us: int
    ) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """Take a batch's rows, by stream, that are not late, and give the combinations that they complete."""
        for number, scan in enumerate(self._key.scans):
            database.execute(
                f"CREATE OR REPLACE TEMP TABLE {self._name}_new{number} AS "
                f"{self._rows_wanted(number, rows[scan.stream.lower()], from_us)}"
            )
        combined = f"{self._name}_combined"
        branches = (self._combinations(number) for number in range(len(self._key.scans)))
        self.meter.count(made=database.create_bounded(combined, " UNION ALL ".join(branches)))
        for shape, askers in self._askers.items():
            yield askers.queries, database.fetch_arrow(self._shaped(combined, shape, askers))
        for number, scan in enumerate(self._key.scans):
            database.execute(
                f"INSERT INTO {self._name}_rows{number} ({', '.join([*_stored_columns(scan), 't'])}) "
                f"SELECT {', '.join([*self._columns_of(number), 't'])} FROM {self._name}_new{number}"
            )

    def look(self, database: Database) -> Kept:
        """What is remembered."""
        counts = (f"SELECT count(*) AS n FROM {table.name}" for table in self.tables())
        ((rows,),) = database.fetch(f"SELECT sum(n)::BIGINT FROM ({' UNION ALL '.join(counts)})")
        return Kept(rows)

    def late_rows(self, database: Database, rows: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
        """Whom late rows concern: query, stream and how many there are. They have an `id`, as one may concern
        a query in several ways."""
        inputs: dict[str, list[int]] = {}
        for number, scan in enumerate(self._key.scans):
            inputs.setdefault(scan.stream.lower(), []).append(number)
        for stream, numbers in inputs.items():
            for after_us in sorted({*map(self._after_us, self._members)}):
                seen = f"(SELECT * FROM {rows[stream]} WHERE t > {after_us})"
                counts = self._late_counts(database, numbers, seen)
                for n, member in enumerate(self._members):
                    if self._after_us(member) == after_us:
                        yield member.query, stream, counts.get(n, 0)

    def _after_us(self, member: WovenJoin) -> int:
        """The moment after which a query sees rows."""
        return self._starts.get(member.query, BEGINNING_US)

    def _late_counts(self, database: Database, numbers: Sequence[int], rows: str) -> dict[int, int]:
        """How many rows of a stream, which some inputs read, each query wants, by its place."""
        taken = [[self._selections[k][member.selections[k]] for k in numbers] for member in self._members]
        if len(numbers) == 1:
            routing, columns = self._wanted[numbers[0]], self._columns_of(numbers[0])
            counts = wanted_counts(database, routing, rows, columns)
            return {place: counts.get(taker, 0) for place, (taker,) in enumerate(taken)}
        wanted = " UNION ALL ".join(self._wanted_ids(number, rows) for number in numbers)
        takers = ", ".join(
            f"({place}, {number}, {taker})"
            for place, own in enumerate(taken)
            for number, taker in zip(numbers, own, strict=True)
        )
        found = database.fetch(
            f"SELECT m.place, count(DISTINCT w.id) FROM ({wanted}) AS w "
            f"JOIN (VALUES {takers}) AS m(place, input, taker) USING (input, taker) GROUP BY m.place"
        )
        return dict(found)

    def _wanted_ids(self, number: int, rows: str) -> str:
        """Which rows of a stream the selections of an input want, by their `id`."""
        columns, routing = self._columns_of(number), self._wanted[number]
        return (
            f"SELECT {number} AS input, v.taker, r.id FROM {routing.routed(rows, columns)} "
            f"WHERE {routing.common(columns)}"
        )

    def _columns_of(self, number: int) -> list[str]:
        return [f"c{k}" for k in range(len(self._key.scans[number].columns))]

    def forget(self, database: Database, watermark_us: int) -> None:
        for number, range_us in enumerate(self._ranges_us):
            database.execute(f"DELETE FROM {self._name}_rows{number} WHERE t <= {watermark_us - range_us}")

    def _rows_wanted(self, number: int, rows: str, from_us: int) -> str:
        """The new rows of a stream that some query may want."""
        columns, routing = self._columns_of(number), self._wanted[number]
        kept = [*columns, "t"]
        timely = f"WHERE r.t >= {from_us} AND {routing.common(columns)}"
        if not routing.tells_apart:
            return f"SELECT {', '.join(kept)} FROM {rows} AS r {timely}"
        routed = routing.routed(f"(SELECT *, row_number() OVER () AS id FROM {rows})", columns)
        once = ", ".join(f"r.{name}" for name in [*kept, "id"])
        return f"SELECT {', '.join(kept)} FROM (SELECT DISTINCT ON (id) {once} FROM {routed} {timely})"

    def _combinations(self, new: int) -> str:
        """What the new rows of one stream complete."""
        tables = []
        for number, scan in enumerate(self._key.scans):
            columns = zip(_stored_columns(scan), self._columns_of(number), strict=True)
            kept = ", ".join([*(f"{column} AS {name}" for column, name in columns), "t"])
            stored, coming = f"(SELECT {kept} FROM {self._name}_rows{number})", f"{self._name}_new{number}"
            both = f"(FROM {stored} UNION ALL FROM {coming})"
            tables.append(f"{coming if number == new else stored if number < new else both} AS i{number}")
        references = [
            f"i{k}.c{n}" for k, scan in enumerate(self._key.scans) for n in range(len(scan.columns))
        ]
        items = [f"{reference} AS c{k}" for k, reference in enumerate(references)]
        items += [f"i{k}.t AS t{k}" for k in range(len(self._key.scans))]
        meeting = [to_duckdb(self._key.predicate, references), *_meeting(self._ranges_us, "i{}.t")]
        return f"SELECT {', '.join(items)} FROM {', '.join(tables)} WHERE {' AND '.join(meeting)}"

    def _shaped(self, combined: str, shape: Shape, askers: AskerTable) -> str:
        references = [*(f"r.{name}" for name in self._columns), *askers.constants]
        items = [f"{to_duckdb(e, references)} AS c{n}" for n, e in enumerate(shape.expressions)]
        where = [to_duckdb(term, references) for term in shape.terms]
        where += [self._common(number) for number in range(len(self._key.scans))]
        where += _meeting([f"q.r{k}" for k in range(len(self._key.scans))], "r.t{}")
        times = [f"r.t{k}" for k in range(len(self._key.scans))]
        where += [f"{time} > q.after_us" for time in times]
        where.append(is_given(f"greatest({', '.join(times)})"))
        return (
            f"SELECT {', '.join(['q.query', *items])} FROM {self._routing.routed(combined, self._columns)} "
            f"JOIN {askers.name} AS q ON q.taker = v.taker WHERE {' AND '.join(where)}"
        )

    def _common(self, number: int) -> str:
        """What all queries ask of a row of one of the streams. Rows are still kept of queries that are gone,
        which may have asked for less."""
        before = sum(len(scan.columns) for scan in self._key.scans[:number])
        columns = self._columns[before : before + len(self._key.scans[number].columns)]
        return self._routing.common(columns, number)


def _stored_columns(scan: StreamScan) -> list[str]:
    return [quoted(f"c_{field.name}") for field in scan.columns]


def _meeting(ranges_us: Sequence[object], time: str) -> list[str]:
    """When rows of several streams meet, by pairs."""
    return [
        f"{time.format(right)} - {time.format(left)} < {ranges_us[left]} "
        f"AND {time.format(left)} - {time.format(right)} < {ranges_us[right]}"
        for right in range(len(ranges_us))
        for left in range(right)
    ]
