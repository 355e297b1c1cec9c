"""A tree of window aggregates in DuckDB: one table of partials, from which all windows are answered.

A batch adds partials of its rows: one for each piece of time, variant of the predicate and group. When the
watermark moves, the ticks that it has passed are answered by statements whose number does not depend on the
number of queries or windows:

1. Which ticks there are: those of each window that hold a piece with rows (`plait.engines.shared.ticks`).
   Only pieces are looked at that a window can hold that has a tick now: a long window costs little until its
   tick comes.
2. The finals of all windows, once: by prefix sums where all that a window needs is exact, and most groups
   have rows in most pieces; otherwise the pieces of each tick are put together.
3. One statement a shape turns the finals of its queries' windows into result rows, each with its query.

What is needed of a group that has no rows in a range is nothing: it gives no row.

A tree of fewer keys has its partials from a finer one's where these are fewer than half of the rows, which
every batch decides for itself: it has counted both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import pyarrow as pa

from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US, Band
from plait.engines.incremental.state import StateTable
from plait.engines.incremental.statements import is_in_gap
from plait.engines.shared.askers import (
    GIVEN_ALWAYS,
    NO_STARTS,
    STRETCH,
    Asker,
    AskerTable,
    asker_tables,
    create_table,
    is_given,
)
from plait.engines.shared.routing import Routing, wanted_counts
from plait.engines.shared.ticks import Ticks, merge_sql
from plait.expressions.aggregates import AggregateCall, aggregate_type
from plait.expressions.duckdb import to_duckdb, type_to_duckdb
from plait.expressions.types import Kind
from plait.observations import Kept, Meter, OperatorForm, Selected
from plait.plan.nodes import TickWindow
from plait.sharing import identity
from plait.sharing.numbered import numbered
from plait.sharing.shapes import Shape
from plait.sharing.trees import TreeKey, WovenAggregate
from plait.windows.beginnings import first_tick_us
from plait.windows.edges import Progression, united
from plait.windows.partials import ROWS, Partial, PartialKind, partials_of
from plait.windows.stretches import ALWAYS, Stretch

# A coarser tree takes a finer one's partials if there are so many times as many rows. Either is grouped by
# one statement; a partial takes 1 to 1.5 times as long as a row, and less where rows have to find who wants
# them first (docs/decisions/0026). That is a ratio of two costs of one engine: no profile changes it.
_WORTH_IT = 2


@dataclass(frozen=True)
class _Target:
    """What finals are computed for: a window over the rows of a variant of the predicate."""

    variant: int
    window: TickWindow


@dataclass(frozen=True)
class _Statement:
    """What queries have in common whose rows one statement gives: a shape over columns of the finals."""

    shape: Shape
    columns: tuple[str, ...]
    exact: bool


class Tree:
    """The queries of one tree. `name` begins the names of its tables. `coarser` queries, of other trees, can
    have their partials from this one; `finer` is such a tree. `starts` are the moments after which queries
    see rows: the windows that start after them are theirs. `gives` is what of their rows is given here, if
    not all.

    What is stored is named by what it is, so that queries can come and go: a query that comes needs nothing
    of the pieces of before, and from then on time is cut at its edges too."""

    def __init__(
        self,
        name: str,
        members: Sequence[WovenAggregate],
        starts: Mapping[str, int] = NO_STARTS,
        gives: Mapping[str, Stretch] = GIVEN_ALWAYS,
        coarser: Sequence[WovenAggregate] = (),
        finer: Tree | None = None,
    ) -> None:
        self._name = name
        self._key: TreeKey = members[0].key
        self._members = members
        self._finer = finer
        self._starts = starts
        self._has_coarser = bool(coarser)
        served = [*members, *coarser]
        self._edges = united(member.window for member in served)
        self._partials = numbered(
            [ROWS, *(p for m in served for call in m.aggregates for p in partials_of(call))]
        )
        self._calls = numbered(call for m in members for call in m.aggregates)
        selections = dict.fromkeys(m.selection for m in served)
        self._variants = {each: identity.of_selection(each, self._key.scan) for each in selections}
        targets = [_Target(self._variants[m.selection], m.window) for m in members]
        self._targets = numbered(targets)
        self._askers = asker_tables(
            name,
            ["target", "first_tick", *STRETCH],
            (
                (
                    self._statement(member),
                    Asker(
                        member.query,
                        member.shaped,
                        (
                            self._targets[target],
                            self._first_tick_us(member),
                            *astuple(gives.get(member.query, ALWAYS)),
                        ),
                    ),
                )
                for member, target in zip(members, targets, strict=True)
            ),
        )
        self._routing = Routing(
            name, [self._key.pattern], [(each,) for each in self._variants], [*self._variants.values()]
        )
        self._distinct_windows = {member.window for member in members}
        self.meter = Meter(name, OperatorForm.TREE, [member.query for member in members], [self.stream])

    # What is stored

    def open(self, database: Database) -> None:
        """Make what is not kept in the file: who wants which rows, and the queries and windows of finals."""
        self._routing.create(database)
        windows = (
            map(str, (number, target.variant, window.range_us, window.slide_us, window.offset_us))
            for target, number in self._targets.items()
            for window in (target.window,)
        )
        numbers = dict.fromkeys(("target", "variant", "r", "s", "o"), "BIGINT")
        create_table(database, self._windows, numbers, windows)
        for askers in self._askers.values():
            askers.create(database)

    def tables(self) -> Iterator[StateTable]:
        """The table of partials."""
        keys = {f"k{n}": type_to_duckdb(key.type) for n, key in enumerate(self._key.keys)}
        kept = {name: _partial_type(each) for name, each in zip(self._stored, self._partials, strict=True)}
        yield StateTable(self._name, {"edge": "BIGINT", "variant": "BIGINT", **keys, **kept})

    @cached_property
    def _stored(self) -> list[str]:
        """The columns of partials in the table."""
        return [f"p_{identity.of_partial(each, self._key.scan)}" for each in self._partials]

    def _first_tick_us(self, member: WovenAggregate) -> int:
        """The first tick that is a query's."""
        if member.query not in self._starts:
            return BEGINNING_US
        return first_tick_us(member.window, self._starts[member.query])

    @property
    def stream(self) -> str:
        return self._key.scan.stream.lower()

    def take(self, database: Database, rows: str, from_us: int) -> None:
        """Add the partials of a batch's rows that are not late. The rows have an event time `t`. A finer tree
        has taken them before."""
        partials = self._of_rows(rows, from_us)
        if self._finer is not None and self._finer.has_fewer_than(database, rows):
            partials = self._of_finer(self._finer)
        if self._has_coarser:
            database.execute(f"CREATE OR REPLACE TEMP TABLE {self._taken} AS {partials}")
            partials = f"FROM {self._taken}"
        columns = ["edge", "variant", *self._key_names, *self._stored]
        self.meter.count(made=database.change(f"INSERT INTO {self._name} ({', '.join(columns)}) {partials}"))

    @property
    def _taken(self) -> str:
        """The partials of this batch."""
        return f"{self._name}_taken"

    def has_fewer_than(self, database: Database, rows: str) -> bool:
        """Whether this batch's partials are so few that they cost less than its rows."""
        ((is_so,),) = database.fetch(
            f"SELECT {_WORTH_IT} * (SELECT count(*) FROM {self._taken}) < (SELECT count(*) FROM {rows})"
        )
        return bool(is_so)

    def _of_finer(self, finer: Tree) -> str:
        """Partials made of those of a finer tree."""
        keys = [f"n.k{finer._key.keys.index(key)} AS k{n}" for n, key in enumerate(self._key.keys)]
        kept = [
            f"{merge_sql(each, f'n.p{finer._partials[each]}')}::{_partial_type(each)} AS p{n}"
            for each, n in self._partials.items()
        ]
        variants = ", ".join(
            f"({finer._variants[selection]}, {n})" for selection, n in self._variants.items()
        )
        groups = ["1", "2", *(f"n.k{finer._key.keys.index(key)}" for key in self._key.keys)]
        return (
            f"SELECT {_edge_sql(self._edges, 'n.edge')}, v.variant, {', '.join([*keys, *kept])} "
            f"FROM {finer._taken} AS n JOIN (VALUES {variants}) AS v(finer, variant) ON v.finer = n.variant "
            f"GROUP BY {', '.join(groups)}"
        )

    def _of_rows(self, rows: str, from_us: int) -> str:
        columns = [f"c{n}" for n in range(len(self._key.scan.columns))]
        references = [f"r.{column}" for column in columns]
        keys = [f"{to_duckdb(key, references)} AS k{n}" for n, key in enumerate(self._key.keys)]
        kept = [f"{_partial_sql(each, references)} AS p{n}" for each, n in self._partials.items()]
        common = self._routing.common(columns)
        groups = ["edge", "variant", *(f"k{n}" for n in range(len(keys)))]
        return (
            f"SELECT {_edge_sql(self._edges, 'r.t')} AS edge, v.taker AS variant, "
            f"{', '.join([*keys, *kept])} FROM {self._routing.routed(rows, columns)} "
            f"WHERE r.t >= {from_us} AND {common} GROUP BY {', '.join(groups)}"
        )

    def late_rows(self, database: Database, rows: str) -> Iterator[tuple[str, str, int]]:
        """Whom late rows concern: query, stream and how many there are."""
        columns = [f"c{n}" for n in range(len(self._key.scan.columns))]
        counts: dict[str, dict[int, int]] = {}
        for member in self._members:
            concerned = [f"NOT ({is_in_gap(member.window)})"] if _has_gaps(member.window) else []
            if member.query in self._starts:
                concerned.append(f"r.t >= {self._first_tick_us(member) - member.window.range_us}")
            condition = " AND ".join(concerned) or "true"
            if condition not in counts:
                counts[condition] = wanted_counts(database, self._routing, rows, columns, condition)
            yield member.query, self.stream, counts[condition].get(self._variants[member.selection], 0)

    def look(self, database: Database) -> Kept:
        """What is remembered: partials and groups, and of each query the rows that it takes."""
        rows = self._stored[self._partials[ROWS]]
        group = f"count(DISTINCT row({', '.join(self._key_names)}))" if self._key.keys else "1"
        timely = f"coalesce(sum({rows}) FILTER (WHERE edge < last), 0)::BIGINT"  # the last is not complete
        span = f"(SELECT min(edge) AS first, max(edge) AS last FROM {self._name})"
        found = database.fetch(
            f"SELECT variant, count(*), {group}, {timely}, first, last FROM {self._name}, {span} "
            "GROUP BY variant, first, last"
        )
        of_variant = {
            variant: Selected(taken * 1e6 / (last - first) if last > first else None, groups)
            for variant, _, groups, taken, first, last in found
        }
        selected = {
            member.query: of_variant[variant]
            for member in self._members
            if (variant := self._variants[member.selection]) in of_variant
        }
        return Kept(sum(row[1] for row in found), sum(row[2] for row in found), selected)

    def forget(self, database: Database, watermark_us: int) -> None:
        longest_us = max(window.range_us for window in self._distinct_windows)
        database.execute(f"DELETE FROM {self._name} WHERE edge < {watermark_us - longest_us}")

    # What is given

    def results(
        self, database: Database, before_us: int, now_us: int
    ) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The rows of all ticks after `before_us` and up to `now_us`: the queries, by number, and a table
        whose first column is that number."""
        closing = [window for window in self._distinct_windows if _first_tick_us(window, before_us) <= now_us]
        if not closing:
            return
        pieces = Band(before_us - max(window.range_us for window in closing), now_us)
        self._ticks.find(database, pieces, before_us, now_us)
        is_dense = self._ticks.are_dense(database, pieces)
        for by_prefix in (True, False):
            asking = {
                statement: askers
                for statement, askers in self._askers.items()
                if (statement.exact and is_dense) is by_prefix
            }
            if asking:
                targets = self._targets_of(asking)
                if by_prefix:
                    merged = self._ticks.by_prefix(pieces, targets)
                else:
                    in_blocks = self._ticks.are_long(database)
                    merged = self._ticks.by_pieces(pieces, targets, in_blocks=in_blocks)
                yield from self._results(database, self._finals(merged, asking), asking)

    def _results(
        self, database: Database, finals: str, asking: Mapping[_Statement, AskerTable]
    ) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The rows that statements make of finals. These are stored where several need them."""
        stored = f"{self._name}_finals"
        if len(asking) > 1:
            database.execute(f"CREATE OR REPLACE TEMP TABLE {stored} AS {finals}")
        for statement, askers in asking.items():
            x = f"MATERIALIZED ({finals})"
            if len(asking) > 1:
                columns = ", ".join(["target", "tick", *dict.fromkeys(statement.columns)])
                x = f"NOT MATERIALIZED (SELECT {columns} FROM {stored})"
            yield askers.queries, database.fetch_arrow(self._shaped(x, statement, askers))

    def _targets_of(self, asking: Mapping[_Statement, AskerTable]) -> str | None:
        """What statements ask about, where that is not all."""
        if len(self._askers) == 1:
            return None
        return " UNION ".join(f"SELECT target FROM {askers.name}" for askers in asking.values())

    def _finals(self, merged: str, asking: Mapping[_Statement, AskerTable]) -> str:
        """What statements need of the partials of ticks."""
        names = dict.fromkeys(name for statement in asking for name in statement.columns)
        keys = [f"f.{name}" for name in self._key_names]
        calls = [f"{self._final_sql(call)} AS a{n}" for call, n in self._calls.items() if f"a{n}" in names]
        return f"SELECT {', '.join(['f.target', 'f.tick', *keys, *calls])} FROM ({merged}) AS f"

    def _shaped(self, finals: str, statement: _Statement, askers: AskerTable) -> str:
        """The rows of the queries of one statement, and whose they are; of finals `x`."""
        references = [*(f"x.{name}" for name in statement.columns), *askers.constants]
        edge = "make_timestamp(x.tick)"
        items = [
            f"{to_duckdb(e, references, None, edge)} AS c{n}"
            for n, e in enumerate(statement.shape.expressions)
        ]
        where = [to_duckdb(term, references, None, edge) for term in statement.shape.terms]
        return (
            f"WITH x AS {finals} "
            f"SELECT {', '.join(['q.query', *items])} FROM x JOIN {askers.name} AS q USING (target) "
            f"WHERE {' AND '.join(['x.tick >= q.first_tick', is_given('x.tick - 1'), *where])}"
        )

    def _statement(self, member: WovenAggregate) -> _Statement:
        columns = (*self._key_names, *(f"a{self._calls[call]}" for call in member.aggregates))
        return _Statement(member.shaped.shape, columns, all(map(_is_exact, member.aggregates)))

    def _final_sql(self, call: AggregateCall) -> str:
        first, *others = (f"f.p{self._partials[each]}" for each in partials_of(call))
        type_ = type_to_duckdb(call.type)
        match call.function:
            case "count":
                return f"{first}::BIGINT"
            case "sum":
                return f"CASE WHEN {others[0]} > 0 THEN TRY_CAST({first} AS {type_}) END"
            case "avg":
                argument = call.arguments[0].type
                total = first
                if argument.kind is Kind.DECIMAL:
                    total = f"TRY_CAST({first} AS {type_to_duckdb(aggregate_type('sum', (argument,)))})"
                exact = (
                    f"CAST(CAST({total} AS VARCHAR) AS DOUBLE)" if argument.kind is not Kind.DOUBLE else total
                )
                return f"CASE WHEN {others[0]} > 0 THEN {exact} / {others[0]} END"
            case _:
                return first

    @cached_property
    def _ticks(self) -> Ticks:
        return Ticks(self._name, self._windows, self._key_names, self._partials, self._stored)

    @property
    def _windows(self) -> str:
        return f"{self._name}_windows"

    @property
    def _key_names(self) -> list[str]:
        return [f"k{n}" for n in range(len(self._key.keys))]


def _first_tick_us(window: TickWindow, after_us: int) -> int:
    return after_us - (after_us - window.offset_us) % window.slide_us + window.slide_us


def _has_gaps(window: TickWindow) -> bool:
    return window.range_us < window.slide_us


def _is_exact(call: AggregateCall) -> bool:
    return all(each.is_exact for each in partials_of(call))


def _edge_sql(edges: Sequence[Progression], time: str) -> str:
    """The last edge that is not after a time."""
    before = [f"{time} - ({time} + {each.step_us - each.phase_us}) % {each.step_us}" for each in edges]
    return f"greatest({', '.join(before)})" if len(before) > 1 else before[0]


def _partial_sql(partial: Partial, references: Sequence[str]) -> str:
    argument = "*" if partial.argument is None else to_duckdb(partial.argument, references)
    condition = ""
    if partial.filter is not None:
        condition = f" FILTER (WHERE {to_duckdb(partial.filter, references)})"
    return f"{partial.kind}({argument}){condition}"


def _partial_type(partial: Partial) -> str:
    if partial.kind is PartialKind.COUNT or partial.argument is None:
        return "BIGINT"
    type_ = partial.argument.type
    if partial.kind is not PartialKind.SUM:
        return type_to_duckdb(type_)
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL(38, {type_.scale})"
    return "DOUBLE" if type_.kind is Kind.DOUBLE else "HUGEINT"
