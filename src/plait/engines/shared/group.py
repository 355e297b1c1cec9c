"""Queries over one set of streams, which have one watermark: what each kind of them needs of a batch.

| kind | computed by |
|---|---|
| rows of one stream | one pass (`selects`), at once |
| joins of rows | one delta join a family (`joins`), at once |
| window aggregates of one stream | one tree for all windows (`tree`), when the watermark has passed a tick |
| rows looked up in tables, or united | its plan, over the rows of the batch, at once |
| anything else | its plan, over rows that are stored once for all of them (`incremental.increments`) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from plait.batches import BatchRows
from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US, END_US
from plait.engines.incremental.increments import Increments
from plait.engines.incremental.state import StateTable
from plait.engines.incremental.statements import is_in_gap
from plait.engines.shared.joins import SharedJoin
from plait.engines.shared.selects import SelectPass
from plait.engines.shared.tree import Tree
from plait.expressions.duckdb import to_duckdb
from plait.expressions.nodes import conjunction
from plait.plan.nodes import Node, StreamScan, TickWindow, Window, walk_plan
from plait.sharing import identity
from plait.sharing.chains import chain_above, comes_at_once, inputs_of
from plait.sharing.families import families
from plait.sharing.joins import JoinKey, WovenJoin, placed
from plait.sharing.trees import TreeKey, WovenAggregate, finest
from plait.windows.beginnings import Beginning


@dataclass(frozen=True)
class SharedQuery:
    """A canonical plan, its name, and the moment after which it sees rows, if there is one."""

    name: str
    plan: Node
    after_us: int | None = None


@dataclass(frozen=True)
class Arrivals:
    """The rows of a batch: a relation for each stream, with the columns of its scan as `c0`, `c1`, … and
    `t`."""

    rows: Mapping[str, str]
    tables: Mapping[str, Path]


class Group:
    """`name` begins the names of all tables. `scans` say which columns of the streams are handed over.
    `parts` are those of queries that have one of what is shared (`State`)."""

    def __init__(
        self,
        name: str,
        queries: Sequence[SharedQuery],
        scans: Mapping[str, StreamScan],
        parts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._scans = scans
        starts = {query.name: query.after_us for query in queries if query.after_us is not None}
        found = families(((query.name, query.plan) for query in queries), scans)
        self._passes = [SelectPass(f"{name}pass_{n}_", each, starts) for n, each in enumerate(found.selects)]
        self._trees = [*_trees(f"{name}tree_", found.aggregates, starts)]
        self.parts: dict[str, str] = {}
        self._joins = [
            SharedJoin(
                f"{name}join_{identity.of_join(members[0].key)}_{identity.short(part)}", members, starts
            )
            for part, members in self._placed(found.joins, parts)
        ]
        by_plans = {*found.others}
        others = [query for query in queries if query.name in by_plans]
        self._cohorts = [
            _Cohort(name, [query for query in others if query.after_us == after_us], after_us)
            for after_us in dict.fromkeys(query.after_us for query in others)
        ]

    def _placed(
        self, joins: Sequence[Sequence[WovenJoin]], parts: Mapping[str, str]
    ) -> Iterator[tuple[str, list[WovenJoin]]]:
        by_key: dict[JoinKey, list[WovenJoin]] = {}
        for member in chain.from_iterable(joins):
            by_key.setdefault(member.key, []).append(member)
        for alike in by_key.values():
            for part, members in placed(alike, parts).items():
                self.parts |= dict.fromkeys((member.query for member in members), part)
                yield part, members

    def tables(self) -> Iterator[StateTable]:
        """The tables of the state."""
        for part in self._kept:
            yield from part.tables()

    @property
    def _kept(self) -> list[_Kept]:
        return [*self._trees, *self._joins, *(cohort.others for cohort in self._cohorts)]

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        opened: list[_Opened] = [*self._passes, *self._trees, *self._joins]
        for part in opened:
            part.open(database)

    def results(
        self, database: Database, arrived: Arrivals, before_us: int, now_us: int
    ) -> Iterator[BatchRows]:
        """Take the rows that are not before `before_us`, and give what is final when the watermark is
        `now_us`."""
        for part in self._kept:
            part.forget(database, before_us)
        for each in self._passes:
            yield from map(_numbered, each.results(database, arrived.rows[each.stream]))
        for join in self._joins:
            yield from map(_numbered, join.results(database, arrived.rows, before_us))
        for tree in self._trees:
            tree.take(database, arrived.rows[tree.stream], before_us)
            yield from map(_numbered, tree.results(database, before_us, now_us))
        for cohort in self._cohorts:
            for node in cohort.at_once.inputs:
                cohort.at_once.hold(database, node, self._input_rows(node, arrived, cohort.from_us))
            for node in cohort.others.inputs:
                from_us = max(before_us, cohort.from_us)
                cohort.others.take(database, node, self._input_rows(node, arrived, from_us))
            for plan, rows in chain(
                cohort.at_once.results(database, arrived.tables, BEGINNING_US, END_US),
                cohort.others.results(database, arrived.tables, before_us, now_us),
            ):
                yield from (BatchRows((name,), rows) for name in cohort.names[plan])

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
        counts: dict[tuple[str, str], int] = {}  # of streams and conditions
        for names, stream, condition in self._late_for:
            if (stream, condition) not in counts:
                rows = database.fetch(f"SELECT count(*) FROM {late[stream]} AS r WHERE {condition}")
                ((counts[stream, condition],),) = rows
            yield from ((name, stream, counts[stream, condition]) for name in names)

    @cached_property
    def _late_for(self) -> list[tuple[Sequence[str], str, str]]:
        """Which rows of their streams queries miss if they come late: all that their plans read in some way
        and that they see at all."""
        found: list[tuple[Sequence[str], str, str]] = []
        for cohort in self._cohorts:
            for plan, names in cohort.names.items():
                ways: dict[str, list[str]] = {}
                for node in () if comes_at_once(plan) else inputs_of(plan):
                    stream, _, where = self._read(node)
                    seen = f"r.t >= {cohort.from_us}"
                    ways.setdefault(stream, []).append(
                        f"({where} AND {_is_in_a_window(plan, node)} AND {seen})"
                    )
                found += [(names, stream, " OR ".join(dict.fromkeys(each))) for stream, each in ways.items()]
        return found

    def _input_rows(self, node: Node, arrived: Arrivals, before_us: int) -> str:
        """The rows of an input, from those of its stream."""
        stream, items, where = self._read(node)
        return (
            f"(SELECT {', '.join([*items, 'r.t'])} FROM {arrived.rows[stream]} AS r "
            f"WHERE r.t >= {before_us} AND {where})"
        )

    def _read(self, node: Node) -> tuple[str, list[str], str]:
        """The stream of an input, its columns and its condition, over a row `r` of the stream."""
        simple = chain_above(node)
        assert isinstance(simple.base, StreamScan), node.kind
        key = simple.base.stream.lower()
        places = {field.name: index for index, field in enumerate(self._scans[key].columns)}
        references = [f"r.c{places[field.name]}" for field in simple.base.columns]
        items = [f"{to_duckdb(e, references)} AS c{n}" for n, e in enumerate(simple.expressions)]
        return key, items, to_duckdb(conjunction(list(simple.terms)), references)


def _is_in_a_window(plan: Node, node: Node) -> str:
    """Whether a row of an input, with a time `t`, is in some window of the plan: there may be gaps."""
    reading = [each for each in walk_plan(plan) if node in each.inputs]
    windows = [each.window for each in reading if isinstance(each, Window)]
    gaps = [is_in_gap(window) for window in windows if isinstance(window, TickWindow)]
    return f"NOT ({' AND '.join(gaps)})" if len(gaps) == len(reading) else "true"


class _Cohort:
    """Queries of no family that see rows after one moment, or all rows: what is kept of a stream for them is
    theirs alone."""

    def __init__(self, name: str, queries: Sequence[SharedQuery], after_us: int | None) -> None:
        beginning = None if after_us is None else Beginning(after_us)
        self.from_us = BEGINNING_US if after_us is None else after_us + 1
        own = f"{name}after_{after_us}_".replace("-", "m") if after_us is not None else name
        self.names: dict[Node, list[str]] = {}
        for query in queries:
            plan = query.plan if beginning is None else beginning.cut(query.plan)
            self.names.setdefault(plan, []).append(query.name)
        self.at_once = _increments([plan for plan in self.names if comes_at_once(plan)], f"{own}now_")
        self.others = _increments([plan for plan in self.names if not comes_at_once(plan)], own, beginning)


def _trees(
    name: str, families: Sequence[Sequence[WovenAggregate]], starts: Mapping[str, int]
) -> Iterator[Tree]:
    """The trees of families of window aggregates; those that others have partials from come first."""
    by_key = {members[0].key: members for members in families}
    finer = {key: found for key in by_key if (found := finest(key, by_key)) is not None}
    made: dict[TreeKey, Tree] = {}
    for key, members in sorted(by_key.items(), key=lambda each: each[0] in finer):
        coarser = [member for other, of in finer.items() if of == key for member in by_key[other]]
        made[key] = Tree(
            f"{name}{identity.of_tree(key)}",
            members,
            coarser=coarser,
            finer=made.get(finer[key]) if key in finer else None,
            starts=starts,
        )
        yield made[key]


def _increments(plans: Sequence[Node], prefix: str, beginning: Beginning | None = None) -> Increments:
    return Increments(plans, [node for plan in plans for node in inputs_of(plan)], prefix, beginning)


def _numbered(result: tuple[tuple[str, ...], pa.Table]) -> BatchRows:
    """The rows of queries, of which the first column says whose they are."""
    names, rows = result
    return BatchRows(names, rows.drop_columns("query"), rows["query"])


class _Kept(Protocol):
    def tables(self) -> Iterator[StateTable]: ...
    def forget(self, database: Database, watermark_us: int) -> None: ...


class _Opened(Protocol):
    def open(self, database: Database) -> None: ...
