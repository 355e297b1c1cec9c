"""Queries over one set of streams, which have one watermark: what each kind of them needs of a batch.

| kind | computed by |
|---|---|
| rows of one stream | one pass (`selects`), at once |
| joins of rows | one delta join a family (`joins`), at once |
| window aggregates of one stream | one tree for all windows (`tree`), when the watermark has passed a tick |
| rows looked up in tables, or united | its plan, over the rows of the batch, at once |
| anything else | its plan, over rows that are stored once for all of them (`incremental.increments`) |

Plans of the last two kinds that are equal but for constants are computed as one (`tagged`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Protocol, TypeAlias, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import BatchRows
from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US, END_US
from plait.engines.incremental.increments import Increments
from plait.engines.incremental.state import StateTable
from plait.engines.incremental.statements import stored_relations
from plait.engines.shared.joins import SharedJoin
from plait.engines.shared.selects import SelectPass
from plait.engines.shared.tagged import TaggedRows
from plait.engines.shared.tree import Tree
from plait.observations import Kept, Meter, OperatorForm
from plait.plan.nodes import Node, StreamScan, sources_of
from plait.plan.signature import signature
from plait.sharing import identity
from plait.sharing.chains import comes_at_once, inputs_of
from plait.sharing.families import families
from plait.sharing.tagged import TaggedPlans
from plait.sharing.trees import TreeKey, WovenAggregate, finest
from plait.windows.beginnings import Beginning
from plait.windows.stretches import ALWAYS, Stretch


@dataclass(frozen=True)
class SharedQuery:
    """A canonical plan, its name, and the moment after which it sees rows, if there is one; `part` is that of
    the queries that it shares a tree or a join with, of those that it could. Of a query that is handed over,
    a stretch of its rows is given, and rows of streams `until_us` are counted."""

    name: str
    plan: Node
    after_us: int | None = None
    part: str = ""
    until_us: int | None = None
    gives: Stretch = ALWAYS


@dataclass(frozen=True)
class Arrivals:
    """The rows of a batch: a relation for each stream, with the columns of its scan as `c0`, `c1`, … and
    `t`; and how many each has."""

    rows: Mapping[str, str]
    tables: Mapping[str, Path]
    counts: Mapping[str, int]

    def of(self, streams: Iterable[str]) -> int:
        """The rows of these streams."""
        return sum(self.counts.get(stream, 0) for stream in streams)


Look: TypeAlias = Callable[[Database], Kept]


class Group:
    """`name` begins the names of all tables. `scans` say which columns of the streams are handed over.
    `parts` are those of queries that have rows in a tree or a join already: they stay there. Operators of the
    group `before`, which is open, go on as they are if they are of the same queries: a change concerns few of
    them."""

    def __init__(
        self,
        name: str,
        queries: Sequence[SharedQuery],
        scans: Mapping[str, StreamScan],
        parts: Mapping[str, str] = MappingProxyType({}),
        before: Group | None = None,
    ) -> None:
        starts = {query.name: query.after_us for query in queries if query.after_us is not None}
        gives = {query.name: query.gives for query in queries if query.gives != ALWAYS}
        chosen = {query.name: parts.get(query.name, query.part) for query in queries}
        found = families(((query.name, query.plan) for query in queries), scans, parts=chosen)
        self._made: dict[str, _Made] = {}
        self._before = {} if before is None else before._made
        self._unopened: list[_Opened] = []
        self._passes = [
            self._operator(SelectPass, f"{name}pass_{n}_", each, _own(starts, each), _own(gives, each))
            for n, each in enumerate(found.selects)
        ]
        self._trees = [*self._woven_trees(f"{name}tree_", found.aggregates, chosen, starts, gives)]
        parted: list[Sequence[_Member]] = [*found.aggregates, *found.joins]
        self.parts = {member.query: chosen[member.query] for family in parted for member in family}
        self._joins = [
            self._operator(
                SharedJoin,
                f"{name}join_{identity.of_join(members[0].key)}_{identity.short(chosen[members[0].query])}",
                members,
                _own(starts, members),
                _own(gives, members),
            )
            for members in found.joins
        ]
        by_plans = {*found.others}
        others = [query for query in queries if query.name in by_plans]
        self._cohorts = [
            self._operator(
                _Cohort,
                name if after_us is None else f"{name}after_{after_us}_".replace("-", "m"),
                [query for query in others if query.after_us == after_us],
                scans,
                after_us,
            )
            for after_us in dict.fromkeys(query.after_us for query in others)
        ]
        self._before = {}

    def _operator(self, make: Callable[..., _Operator], name: str, *of: object) -> _Operator:
        """The operator of that name, as it was before if it was made of the same."""
        known = self._before.get(name)
        if known is not None and known.of == of:
            self._made[name] = known
            return cast(_Operator, known.operator)
        operator = make(name, *of)
        self._made[name] = _Made(operator, of)
        self._unopened.append(operator)
        return operator

    def _woven_trees(
        self,
        name: str,
        families: Sequence[Sequence[WovenAggregate]],
        parts: Mapping[str, str],
        starts: Mapping[str, int],
        gives: Mapping[str, Stretch],
    ) -> Iterator[Tree]:
        """The trees of families of window aggregates; those that others of their part have partials from come
        first."""
        by_key = {(parts[members[0].query], members[0].key): members for members in families}
        finer = {
            (part, key): (part, found)
            for part, key in by_key
            if (found := finest(key, (other for its, other in by_key if its == part))) is not None
        }
        made: dict[tuple[str, TreeKey], Tree] = {}
        for key, members in sorted(by_key.items(), key=lambda each: each[0] in finer):
            part, shared = key
            made[key] = self._operator(
                Tree,
                f"{name}{identity.of_tree(shared)}" + f"_{identity.short(part)}" * bool(part),
                members,
                _own(starts, members),
                _own(gives, members),
                [member for other, of in finer.items() if of == key for member in by_key[other]],
                made.get(finer[key]) if key in finer else None,
            )
            yield made[key]

    @property
    def operators(self) -> Iterable[str]:
        """What the names of their tables begin with."""
        return self._made.keys()

    def tables(self) -> Iterator[StateTable]:
        """The tables of the state."""
        for part in self._kept:
            yield from part.tables()

    @property
    def _kept(self) -> list[_Kept]:
        return [*self._trees, *self._joins, *self._cohorts]

    @property
    def meters(self) -> list[Meter]:
        """Of all operators."""
        alone: list[_Metered] = [*self._passes, *self._trees, *self._joins]
        return [
            *(each.meter for each in alone),
            *(meter for cohort in self._cohorts for meter in cohort.meters),
        ]

    @property
    def looks(self) -> dict[str, Look]:
        """What operators remember can be looked at, by the operator's id."""
        return {each.meter.id: each.look for each in self._kept}

    def open(self, database: Database) -> None:
        """Make what is not kept in the file, of operators that are new."""
        for operator in self._unopened:
            operator.open(database)
        self._unopened = []

    def results(
        self, database: Database, arrived: Arrivals, before_us: int, now_us: int
    ) -> Iterator[BatchRows]:
        """Take the rows that are not before `before_us`, and give what is final when the watermark is
        `now_us`."""
        for part in self._kept:
            with part.meter.timed():
                part.forget(database, before_us)
        for each in self._passes:
            yield from _metered(each.meter, arrived, each.results(database, arrived.rows[each.stream]))
        for join in self._joins:
            yield from _metered(join.meter, arrived, join.results(database, arrived.rows, before_us))
        for tree in self._trees:
            with tree.meter.timed():
                tree.take(database, arrived.rows[tree.stream], before_us)
            yield from _metered(tree.meter, arrived, tree.results(database, before_us, now_us))
        for cohort in self._cohorts:
            yield from cohort.results(database, arrived, before_us, now_us)

    def late_rows(self, database: Database, late: Mapping[str, str]) -> Mapping[str, Mapping[str, int]]:
        """How many late rows each query has missed, by stream."""
        found: dict[str, dict[str, int]] = {}
        for query, stream, count in self._missed(database, late):
            if count:
                found.setdefault(query, {})[stream] = count
        return found

    def _missed(self, database: Database, late: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
        for tree in self._trees:
            yield from tree.late_rows(database, late[tree.stream])
        for join in self._joins:
            yield from join.late_rows(database, late)
        for cohort in self._cohorts:
            yield from cohort.late_rows(database, late)


class _Cohort:
    """Queries of no family that see rows after one moment, or all rows: what is kept of a stream for them is
    theirs alone, in tables whose names begin with that. Plans that are equal but for constants are computed
    as one."""

    def __init__(
        self,
        name: str,
        queries: Sequence[SharedQuery],
        scans: Mapping[str, StreamScan],
        after_us: int | None,
    ) -> None:
        beginning = None if after_us is None else Beginning(after_us)
        self._gives = {query.name: query.gives for query in queries}
        self._names: dict[Node, list[str]] = {}
        for query in queries:
            plan = query.plan if beginning is None else beginning.cut(query.plan)
            self._names.setdefault(plan, []).append(query.name)
        self._merged = TaggedPlans(self._names)
        self._rows = TaggedRows(
            f"{name}plans_", self._merged, scans, BEGINNING_US if after_us is None else after_us + 1
        )
        at_once = [plan for plan in self._merged.results if comes_at_once(plan)]
        others = [plan for plan in self._merged.results if not comes_at_once(plan)]
        self._at_once = _increments(at_once, f"{name}now_")
        self._others = _increments(others, name, beginning)
        streams = {key.lower(): None for query in queries for key in sources_of(query.plan)[0]}
        names = [query.name for query in queries]
        self.meter = Meter(f"{name}rows", OperatorForm.ROWS, names, [*streams])
        self._plan_meters = {plan: self._plan_meter(name, plan) for plan in self._merged.results}

    def _plan_meter(self, name: str, plan: Node) -> Meter:
        whose = self._merged.results[plan]
        plans = whose.values() if isinstance(whose, Mapping) else [whose]
        names = [name for each in plans for name in self._names[each]]
        return Meter(f"{name}plan_{identity.short(signature(plan))}", OperatorForm.PLAN, names)

    @property
    def meters(self) -> list[Meter]:
        return [self.meter, *self._plan_meters.values()]

    def tables(self) -> Iterator[StateTable]:
        return self._others.tables()

    def forget(self, database: Database, watermark_us: int) -> None:
        self._others.forget(database, watermark_us)

    def look(self, database: Database) -> Kept:
        """What is remembered."""
        counts = [f"SELECT count(*) AS n FROM {table.name}" for table in self.tables()]
        if not counts:
            return Kept(0)
        ((rows,),) = database.fetch(f"SELECT sum(n)::BIGINT FROM ({' UNION ALL '.join(counts)})")
        return Kept(rows)

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        self._rows.open(database)

    def results(
        self, database: Database, arrived: Arrivals, before_us: int, now_us: int
    ) -> Iterator[BatchRows]:
        with self.meter.timed():
            made = 0
            for node in self._at_once.inputs:
                rows = self._rows.input_rows(node, arrived.rows, BEGINNING_US)
                made += self._at_once.hold(database, node, rows)
            for node in self._others.inputs:
                rows = self._rows.input_rows(node, arrived.rows, before_us)
                made += self._others.take(database, node, rows)
        self.meter.count(rows_in=arrived.of(self.meter.streams), made=made, out=made)
        began = perf_counter()
        tables = {**stored_relations(arrived.tables), **self._rows.relations}
        for plan, found, times_us in chain(
            self._at_once.results(database, tables, BEGINNING_US, END_US),
            self._others.results(database, tables, before_us, now_us),
        ):
            # What several plans need is of the first that does.
            self._plan_meters[plan].count(out=found.num_rows, seconds=perf_counter() - began)
            yield from self._of_queries(self._merged.results[plan], found, times_us)
            began = perf_counter()

    def late_rows(self, database: Database, late: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
        for plan, stream, count in self._rows.late_rows(database, late):
            yield from ((name, stream, count) for name in self._names[plan])

    def _of_queries(
        self, whose: Node | Mapping[int, Node], rows: pa.Table, times_us: pa.ChunkedArray
    ) -> Iterator[BatchRows]:
        if not isinstance(whose, Mapping):
            yield from (self._given((name,), rows, times_us) for name in self._names[whose])
            return
        names = [self._names[plan] for plan in whose.values()]
        tags = pa.array([*whose], pa.int64())
        last = rows.num_columns - 1
        is_wanted = pc.is_in(rows.column(last), tags)  # others are of variants in larger plans
        wanted, times_us = rows.filter(is_wanted), times_us.filter(is_wanted)
        own = wanted.select(range(last))
        places = pc.index_in(wanted.column(last), tags)
        yield self._given(tuple(first for first, *_ in names), own, times_us, places)
        for place, (_, *equal) in enumerate(names):
            if equal:
                is_its = pc.equal(places, place)
                of_plan, its_us = own.filter(is_its), times_us.filter(is_its)
                yield from (self._given((name,), of_plan, its_us) for name in equal)

    def _given(
        self,
        names: tuple[str, ...],
        rows: pa.Table,
        times_us: pa.ChunkedArray,
        whose: pa.ChunkedArray | None = None,
    ) -> BatchRows:
        """What of rows is to be given here, which have these event times."""
        gives = [self._gives[name] for name in names]
        if all(each == ALWAYS for each in gives):
            return BatchRows(names, rows, whose)
        places = pa.array([0] * rows.num_rows, pa.int64()) if whose is None else whose
        from_us = pc.take(pa.array([each.from_us for each in gives]), places)
        until_us = pc.take(pa.array([each.until_us for each in gives]), places)
        is_given = pc.and_(pc.greater_equal(times_us, from_us), pc.less(times_us, until_us))
        return BatchRows(names, rows.filter(is_given), None if whose is None else whose.filter(is_given))


def _own(by_query: Mapping[str, _Value], members: Iterable[_Member]) -> dict[str, _Value]:
    """What is said of these queries alone."""
    return {member.query: by_query[member.query] for member in members if member.query in by_query}


def _increments(plans: Sequence[Node], prefix: str, beginning: Beginning | None = None) -> Increments:
    return Increments(plans, [node for plan in plans for node in inputs_of(plan)], prefix, beginning)


def _numbered(result: tuple[tuple[str, ...], pa.Table]) -> BatchRows:
    """The rows of queries, of which the first column says whose they are."""
    names, rows = result
    return BatchRows(names, rows.drop_columns("query"), rows["query"])


def _metered(
    meter: Meter, arrived: Arrivals, results: Iterator[tuple[tuple[str, ...], pa.Table]]
) -> list[BatchRows]:
    """The rows that an operator gives of a batch, which it is seen to compute."""
    with meter.timed():
        found = [*map(_numbered, results)]
    meter.count(rows_in=arrived.of(meter.streams), out=sum(each.rows.num_rows for each in found))
    return found


class _Metered(Protocol):
    meter: Meter


class _Kept(_Metered, Protocol):
    def tables(self) -> Iterator[StateTable]: ...
    def forget(self, database: Database, watermark_us: int) -> None: ...
    def look(self, database: Database) -> Kept: ...


class _Opened(Protocol):
    def open(self, database: Database) -> None: ...


class _Member(Protocol):
    @property
    def query(self) -> str: ...


_Operator = TypeVar("_Operator", bound=_Opened)
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Made:
    """An operator, and what it was made of besides its name."""

    operator: _Opened
    of: tuple[object, ...]
