"""Queries over one set of streams, which have one watermark: what each kind of them needs of a batch.

| kind | computed by |
|---|---|
| rows of one stream | one pass (`selects`), at once |
| joins of rows | one delta join a family (`joins`), at once |
| window aggregates of one stream | one tree for all windows (`tree`), when the watermark has passed a tick |
| rows looked up in tables, or united | its plan, over the rows of the batch, at once |
| anything else | its plan, over rows that are stored once for all of them (`incremental.increments`) |

Plans of the last two kinds that differ in constants alone are computed as one (`tagged`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from plait.batches import BatchRows
from plait.engines.duckdb import Database
from plait.engines.incremental.bands import BEGINNING_US, END_US
from plait.engines.incremental.increments import Increments
from plait.engines.incremental.statements import is_in_gap
from plait.engines.shared.joins import SharedJoin
from plait.engines.shared.selects import SelectPass
from plait.engines.shared.tagged import TaggedRows
from plait.engines.shared.tree import Tree
from plait.expressions.duckdb import to_duckdb
from plait.expressions.nodes import conjunction
from plait.plan.nodes import Node, StreamScan, TickWindow, Window, walk_plan
from plait.sharing.chains import chain_above, comes_at_once, inputs_of
from plait.sharing.families import families
from plait.sharing.tagged import TaggedPlan, tagged_plans
from plait.sharing.trees import TreeKey, WovenAggregate, finest


@dataclass(frozen=True)
class SharedQuery:
    """A canonical plan, and its name."""

    name: str
    plan: Node


@dataclass(frozen=True)
class Arrivals:
    """The rows of a batch: a relation for each stream, with the columns of its scan as `c0`, `c1`, … and
    `t`."""

    rows: Mapping[str, str]
    tables: Mapping[str, Path]


class Group:
    """`name` begins the names of all tables. `scans` say which columns of the streams are handed over."""

    def __init__(self, name: str, queries: Sequence[SharedQuery], scans: Mapping[str, StreamScan]) -> None:
        self._scans = scans
        found = families(((query.name, query.plan) for query in queries), scans)
        self._passes = [SelectPass(f"{name}pass_{n}_", each) for n, each in enumerate(found.selects)]
        self._trees = [*_trees(f"{name}tree_", found.aggregates)]
        self._joins = [SharedJoin(f"{name}join_{n}_", each) for n, each in enumerate(found.joins)]
        by_plans = {*found.others}
        self._names: dict[Node, list[str]] = {}
        for query in queries:
            if query.name in by_plans:
                self._names.setdefault(query.plan, []).append(query.name)
        self._merged = {merged.plan: merged for merged in tagged_plans(self._names, scans)}
        self._tagged = [
            TaggedRows(f"{name}tagged_{n}_", each) for n, each in enumerate(self._merged.values())
        ]
        self._tagged_inputs: Mapping[Node, TaggedRows] = {
            each.node: rows
            for rows, merged in zip(self._tagged, self._merged.values(), strict=True)
            for each in merged.inputs
        }
        in_others = {plan for merged in self._merged.values() for plan in merged.plans}
        plans = [*(plan for plan in self._names if plan not in in_others), *self._merged]
        self._at_once = _increments([plan for plan in plans if comes_at_once(plan)], f"{name}now_")
        self._others = _increments([plan for plan in plans if not comes_at_once(plan)], name)

    def tables(self) -> Iterator[str]:
        """The statements that make the tables of the state."""
        kept: list[_Kept] = [*self._trees, *self._joins, self._others]
        for part in kept:
            yield from part.tables()

    def open(self, database: Database) -> None:
        """Make what is not kept in the file."""
        opened: list[_Opened] = [*self._passes, *self._trees, *self._joins, *self._tagged]
        for part in opened:
            part.open(database)

    def results(
        self, database: Database, arrived: Arrivals, before_us: int, now_us: int
    ) -> Iterator[BatchRows]:
        """Take the rows that are not before `before_us`, and give what is final when the watermark is
        `now_us`."""
        kept: list[_Kept] = [*self._trees, *self._joins, self._others]
        for part in kept:
            part.forget(database, before_us)
        for each in self._passes:
            yield from map(_numbered, each.results(database, arrived.rows[each.stream]))
        for join in self._joins:
            yield from map(_numbered, join.results(database, arrived.rows, before_us))
        for tree in self._trees:
            tree.take(database, arrived.rows[tree.stream], before_us)
            yield from map(_numbered, tree.results(database, before_us, now_us))
        for node in self._at_once.inputs:
            self._at_once.hold(database, node, self._input_rows(node, arrived, BEGINNING_US))
        for node in self._others.inputs:
            self._others.take(database, node, self._input_rows(node, arrived, before_us))
        for plan, rows in chain(
            self._at_once.results(database, arrived.tables, BEGINNING_US, END_US),
            self._others.results(database, arrived.tables, before_us, now_us),
        ):
            if plan in self._merged:
                yield from self._of_merged(self._merged[plan], rows)
            else:
                yield from (BatchRows((name,), rows) for name in self._names[plan])

    def _of_merged(self, merged: TaggedPlan, rows: pa.Table) -> Iterator[BatchRows]:
        """The rows of all queries of plans that are computed as one."""
        names = [self._names[plan] for plan in merged.plans]
        width = len(merged.plans[0].types)
        own, tags = rows.select(range(width)), rows.column(width)
        yield BatchRows(tuple(first for first, *_ in names), own, tags)
        for tag, (_, *equal) in enumerate(names):
            if equal:
                of_plan = own.filter(pc.equal(tags, tag))
                yield from (BatchRows((name,), of_plan) for name in equal)

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
        for plan, conditions in self._late_for.items():
            for stream, condition in conditions.items():
                if (stream, condition) not in counts:
                    rows = database.fetch(f"SELECT count(*) FROM {late[stream]} AS r WHERE {condition}")
                    ((counts[stream, condition],),) = rows
                yield from ((name, stream, counts[stream, condition]) for name in self._names[plan])

    @cached_property
    def _late_for(self) -> Mapping[Node, Mapping[str, str]]:
        """Which rows of its streams a plan misses if they come late: all that it reads in some way."""
        found: dict[Node, dict[str, str]] = {}
        for plan in self._names:
            ways: dict[str, list[str]] = {}
            for node in () if comes_at_once(plan) else inputs_of(plan):
                stream, _, where = self._read(node)
                ways.setdefault(stream, []).append(f"({where} AND {_is_in_a_window(plan, node)})")
            found[plan] = {stream: " OR ".join(dict.fromkeys(each)) for stream, each in ways.items()}
        return found

    def _input_rows(self, node: Node, arrived: Arrivals, before_us: int) -> str:
        """The rows of an input, from those of its stream."""
        if node in self._tagged_inputs:
            return self._tagged_inputs[node].input_rows(node, arrived.rows, before_us)
        stream, items, where = self._read(node)
        return (
            f"(SELECT {', '.join([*items, 'r.t'])} FROM {arrived.rows[stream]} AS r "
            f"WHERE r.t >= {before_us} AND {where})"
        )

    def _read(self, node: Node) -> tuple[str, list[str], str]:
        """The stream of an input, its columns and its condition, over a row `r` of the stream."""
        chain = chain_above(node)
        assert isinstance(chain.base, StreamScan), node.kind
        key = chain.base.stream.lower()
        places = {field.name: index for index, field in enumerate(self._scans[key].columns)}
        references = [f"r.c{places[field.name]}" for field in chain.base.columns]
        items = [f"{to_duckdb(e, references)} AS c{n}" for n, e in enumerate(chain.expressions)]
        return key, items, to_duckdb(conjunction(list(chain.terms)), references)


def _is_in_a_window(plan: Node, node: Node) -> str:
    """Whether a row of an input, with a time `t`, is in some window of the plan: there may be gaps."""
    reading = [each for each in walk_plan(plan) if node in each.inputs]
    windows = [each.window for each in reading if isinstance(each, Window)]
    gaps = [is_in_gap(window) for window in windows if isinstance(window, TickWindow)]
    return f"NOT ({' AND '.join(gaps)})" if len(gaps) == len(reading) else "true"


def _trees(name: str, families: Sequence[Sequence[WovenAggregate]]) -> Iterator[Tree]:
    """The trees of families of window aggregates; those that others have partials from come first."""
    by_key = {members[0].key: members for members in families}
    finer = {key: found for key in by_key if (found := finest(key, by_key)) is not None}
    made: dict[TreeKey, Tree] = {}
    for key, members in sorted(by_key.items(), key=lambda each: each[0] in finer):
        coarser = [member for other, of in finer.items() if of == key for member in by_key[other]]
        place = f"{name}{len(made)}_"
        made[key] = Tree(
            place, members, coarser=coarser, finer=made.get(finer[key]) if key in finer else None
        )
        yield made[key]


def _increments(plans: Sequence[Node], prefix: str) -> Increments:
    return Increments(plans, [node for plan in plans for node in inputs_of(plan)], prefix)


def _numbered(result: tuple[tuple[str, ...], pa.Table]) -> BatchRows:
    """The rows of queries, of which the first column says whose they are."""
    names, rows = result
    return BatchRows(names, rows.drop_columns("query"), rows["query"])


class _Kept(Protocol):
    def tables(self) -> Iterator[str]: ...
    def forget(self, database: Database, watermark_us: int) -> None: ...


class _Opened(Protocol):
    def open(self, database: Database) -> None: ...
