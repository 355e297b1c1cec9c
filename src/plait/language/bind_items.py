"""FROM items: what a block reads, before anything is said about its windows.

A name is a query of WITH, or else a stream, table or query of the workload. `HOP` and `TUMBLE` stand for
the stream in them, with their window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeAlias

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError
from plait.language.attempts import Attempts, Reported
from plait.language.dialect import WindowTable
from plait.language.scope import BoundRelation
from plait.language.spans import span_of
from plait.language.window_spellings import AlignedClause, WrittenWindow, read_clause, read_window_table
from plait.plan.nodes import Static

# A name of WITH whose own text has errors maps to None: reading it is no further error.
CommonTables: TypeAlias = Mapping[str, BoundRelation | None]


class Origin(Enum):
    STREAM = "stream"
    TABLE = "table"
    QUERY = "query"
    SUBQUERY = "subquery"


@dataclass(frozen=True)
class NamedRelation:
    """What a name stands for; only a stream has an event-time column."""

    origin: Origin
    relation: BoundRelation
    event_time: str | None = None


class Relations(Protocol):
    """The catalog and the other queries, as a block sees them."""

    def read(self, node: exp.Table, source: Source) -> NamedRelation: ...


@dataclass(frozen=True)
class WrittenItem:
    """A FROM item before its block has decided what its window means."""

    node: exp.Expr
    alias: str | None
    named: NamedRelation
    window: WrittenWindow | None

    @property
    def relation(self) -> BoundRelation:
        return self.named.relation

    @property
    def label(self) -> str:
        return f"`{self.alias}`" if self.alias is not None else "the subquery"

    @property
    def is_static(self) -> bool:
        return isinstance(self.relation.plan.timing, Static)

    @property
    def ticks_by_itself(self) -> bool:
        return self.window is None and self.relation.ticks


class ItemBinder:
    """Binds the FROM items of one query text. `bind_query` binds a subquery."""

    def __init__(
        self,
        relations: Relations,
        bind_query: Callable[[exp.Query, CommonTables], BoundRelation],
        source: Source,
        errors: list[PlaitError],
    ) -> None:
        self._relations = relations
        self._bind_query = bind_query
        self._source = source
        self._errors = errors

    def items(self, select: exp.Select, ctes: CommonTables) -> list[WrittenItem]:
        """Everything that FROM names, in order."""
        clause = select.args.get("from_")
        if clause is None:
            raise UserError(
                "no-from",
                "this SELECT reads nothing",
                hint="a continuous query reads a stream: SELECT … FROM stream",
                span=span_of(select, self._source),
            )
        nodes = [clause.this, *(join.this for join in select.args.get("joins") or ())]
        attempts = Attempts(self._errors)
        bound = [attempts.run(self._item, node, ctes) for node in nodes]
        attempts.check()
        items = [item for item in bound if item is not None]
        self._check_aliases(items)
        return items

    def _check_aliases(self, items: Sequence[WrittenItem]) -> None:
        seen: set[str] = set()
        for item in items:
            if item.alias is None:
                continue
            if item.alias.lower() in seen:
                raise UserError(
                    "duplicate-alias",
                    f"two FROM items are called `{item.alias}`",
                    hint="give each an alias of its own: `s a, s b`",
                    span=span_of(item.node, self._source),
                )
            seen.add(item.alias.lower())

    def _item(self, node: exp.Expr, ctes: CommonTables) -> WrittenItem:
        match node:
            case exp.Table():
                item = WrittenItem(node, node.alias_or_name, self._named(node, ctes), None)
            case exp.Subquery() if isinstance(node.this, exp.Query):
                relation = self._bind_query(node, ctes)
                item = WrittenItem(node, node.alias or None, NamedRelation(Origin.SUBQUERY, relation), None)
            case WindowTable():
                item = self._window_table(node, ctes)
            case _:
                raise UnsupportedError(
                    "unsupported-syntax",
                    f"Plait does not support `{node.key.upper()}` in FROM",
                    hint="FROM takes streams, tables, queries and subqueries (SELECT …)",
                    span=span_of(node, self._source),
                )
        item = self._renamed(item)
        clause = node.args.get("window")
        if clause is None:
            return item
        return replace(item, window=read_clause(clause, item.relation, item.alias, self._source))

    def _named(self, node: exp.Table, ctes: CommonTables) -> NamedRelation:
        if not isinstance(node.this, exp.Identifier):
            raise UnsupportedError(
                "unsupported-syntax",
                "Plait does not support table functions other than HOP and TUMBLE",
                hint="declare what is read with CREATE STREAM or CREATE TABLE",
                span=span_of(node, self._source),
            )
        if node.name.lower() in ctes:
            relation = ctes[node.name.lower()]
            if relation is None:
                raise Reported
            return NamedRelation(Origin.SUBQUERY, relation)
        return self._relations.read(node, self._source)

    def _window_table(self, node: WindowTable, ctes: CommonTables) -> WrittenItem:
        inner = self._item(node.args["table"], ctes)
        written = read_window_table(node, self._source)
        check_aligned(inner, written)
        descriptor = node.args["descriptor"]
        if descriptor.name.lower() != (inner.named.event_time or "").lower():
            raise not_event_time(descriptor, inner, written, self._source)
        return WrittenItem(node, node.alias or inner.alias, inner.named, written)

    def _renamed(self, item: WrittenItem) -> WrittenItem:
        """`… AS x (a, b)` gives the columns new names."""
        alias = item.node.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or not alias.columns:
            return item
        names = tuple(column.name for column in alias.columns)
        relation = self.renamed(item.relation, names, alias)
        event_time = item.named.event_time
        if event_time is not None:
            before = [name.lower() for name in item.relation.columns]
            event_time = names[before.index(event_time.lower())]
        return replace(item, named=replace(item.named, relation=relation, event_time=event_time))

    def renamed(self, relation: BoundRelation, names: tuple[str, ...], node: exp.Expr) -> BoundRelation:
        """A relation under the column names that an alias lists."""
        if len(names) != len(relation.columns):
            raise UserError(
                "alias-columns",
                f"the alias names {len(names)} columns, and there are {len(relation.columns)}",
                span=span_of(node, self._source),
            )
        if len({name.lower() for name in names}) < len(names):
            raise UserError(
                "duplicate-column", "the alias names a column twice", span=span_of(node, self._source)
            )
        return replace(relation, columns=names)


def check_aligned(item: WrittenItem, written: AlignedClause) -> None:
    """HOP, TUMBLE and window() are for a stream that has no other window."""
    if item.window is not None:
        raise UserError(
            "second-window",
            f"{item.label} has a window already, besides {written.spelling}",
            hint="keep one of them",
            span=written.span,
        )
    if item.named.event_time is None:
        raise UnsupportedError(
            "no-event-time",
            f"{written.spelling} needs a stream with an event-time column; {item.label} is none",
            hint="its event time travels with its rows: put [RANGE … SLIDE …] behind it",
            span=written.span,
        )


def not_event_time(node: exp.Expr, item: WrittenItem, written: AlignedClause, source: Source) -> PlaitError:
    return UserError(
        "not-event-time",
        f"{written.spelling} goes by the event time of {item.label}, which is `{item.named.event_time}`",
        hint=f"write `{item.named.event_time}`",
        span=span_of(node, source),
    )
