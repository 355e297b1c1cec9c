"""Which names a SELECT block sees, and what each of them stands for.

A block sees the columns of its FROM items, by name or qualified by the item's alias, whatever their case.
Where the items tick, `window_start` and `window_end` (also `window.start`, `window.end`,
`alias.window_end`) are columns that nobody declared: real columns of that name win. The columns of `JOIN
… USING` are one column when they are not qualified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from plait.errors import PlaitError, Source, UserError, closest
from plait.expressions import coercion
from plait.expressions.nodes import Column, Edge, Expression, Literal, WindowEdge
from plait.expressions.types import INTERVAL
from plait.language.spans import span_of
from plait.plan.nodes import Node, RowTicking, Ticking

EDGES = {"window_start": Edge.START, "window_end": Edge.END}
WINDOW_FIELDS = {"start": "window_start", "end": "window_end"}


@dataclass(frozen=True)
class BoundRelation:
    """Rows that a block can read: a plan, the names of its columns, and how large it is written out.

    `range_us` is the range of its windows if it ticks by time and they are all alike; `window_start` needs
    it.
    """

    plan: Node
    columns: tuple[str, ...]
    range_us: int | None = None
    depth: int = 0  # blocks inside each other
    reads: int = 1  # streams and tables, each as often as it is read

    @property
    def ticks(self) -> bool:
        return isinstance(self.plan.timing, Ticking | RowTicking)


@dataclass(frozen=True)
class FromItem:
    """A relation in FROM. `offset` is the position of its first column among those of all items."""

    name: str | None
    relation: BoundRelation
    offset: int

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Lower-case column name → position; no relation has a name twice."""
        return {name.lower(): self.offset + i for i, name in enumerate(self.relation.columns)}

    def column(self, position: int) -> Column:
        return Column(position, self.relation.plan.types[position - self.offset])


@dataclass(frozen=True)
class VisibleColumn:
    """A column as `*` gives it: `origin` is the alias it could be qualified by."""

    name: str
    expression: Expression
    origin: str | None


@dataclass(frozen=True)
class Scope:
    """`merged`: the columns of USING by lower-case name; `hidden`: positions seen only when qualified."""

    items: tuple[FromItem, ...]
    merged: Mapping[str, VisibleColumn] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()

    @cached_property
    def _unqualified(self) -> Mapping[str, tuple[Column, ...]]:
        found: dict[str, tuple[Column, ...]] = {}
        for item in self.items:
            for name, position in item.positions.items():
                if position not in self.hidden:
                    found[name] = (*found.get(name, ()), item.column(position))
        return found

    @property
    def width(self) -> int:
        return sum(len(item.relation.columns) for item in self.items)

    def with_item(self, name: str | None, relation: BoundRelation) -> Scope:
        """The scope after one more FROM item."""
        return Scope((*self.items, FromItem(name, relation, self.width)), self.merged, self.hidden)

    def item(self, name: str) -> FromItem | None:
        return next((i for i in self.items if i.name is not None and i.name.lower() == name.lower()), None)

    def visible(self, item: FromItem | None = None) -> Iterator[VisibleColumn]:
        """What `*` stands for, or `alias.*`."""
        if item is None:
            yield from self.merged.values()
        for each in self.items if item is None else (item,):
            for name, position in zip(each.relation.columns, each.positions.values(), strict=True):
                if item is not None or position not in self.hidden:
                    yield VisibleColumn(name, each.column(position), each.name)

    def find(self, name: str) -> Expression | None:
        """The one real column of an unqualified name, if it is there exactly once."""
        merged = self.merged.get(name.lower())
        found = self._unqualified.get(name.lower(), ())
        candidates = found if merged is None else (merged.expression, *found)
        return candidates[0] if len(candidates) == 1 else None

    def resolve(self, node: exp.Column, source: Source) -> Expression:
        """What a written column name stands for; raises with the closest name if it is nothing."""
        if node.args.get("db") is not None:
            raise UserError(
                "unknown-column",
                f"`{'.'.join(part.name for part in node.parts)}` has too many parts",
                hint="columns are written `column` or `alias.column`",
                span=span_of(node, source),
            )
        if node.table:
            return self._qualified(node, source)
        expression = self.find(node.name)
        if expression is not None:
            return expression
        if node.name.lower() in self._unqualified:
            raise self._ambiguous(node, source)
        if node.name.lower() in EDGES:
            return self._edge(EDGES[node.name.lower()], self.items, node, source)
        raise UserError(
            "unknown-column",
            f"there is no column `{node.name}` here",
            hint=closest(node.name, [*self.merged, *(c for i in self.items for c in i.relation.columns)]),
            span=span_of(node, source),
        )

    def _qualified(self, node: exp.Column, source: Source) -> Expression:
        item = self.item(node.table)
        name = node.name.lower()
        if item is None:
            if node.table.lower() == "window" and name in WINDOW_FIELDS:
                return self._edge(EDGES[WINDOW_FIELDS[name]], self.items, node, source)
            raise self.unknown_alias(node.table, node, source)
        if name in item.positions:
            return item.column(item.positions[name])
        if name in EDGES:
            return self._edge(EDGES[name], (item,), node, source)
        raise UserError(
            "unknown-column",
            f"`{node.table}` has no column `{node.name}`",
            hint=closest(node.name, item.relation.columns),
            span=span_of(node, source),
        )

    def unknown_alias(self, alias: str, node: exp.Expr, source: Source) -> PlaitError:
        hint = closest(alias, [item.name for item in self.items if item.name is not None])
        if not hint.startswith("did you mean"):
            hint += "\na subquery sees only its own FROM: join it with the other items outside"
        return UserError(
            "unknown-alias",
            f"nothing in this FROM is called `{alias}`",
            hint=hint.strip(),
            span=span_of(node, source),
        )

    def _ambiguous(self, node: exp.Column, source: Source) -> PlaitError:
        owners = [i.name for i in self.items if node.name.lower() in i.positions and i.name is not None]
        choices = " or ".join(f"`{owner}.{node.name}`" for owner in owners)
        return UserError(
            "ambiguous-column",
            f"`{node.name}` is a column of several FROM items",
            hint=f"write {choices}" if choices else "give the FROM items aliases and qualify the column",
            span=span_of(node, source),
        )

    def _edge(self, edge: Edge, items: tuple[FromItem, ...], node: exp.Column, source: Source) -> Expression:
        ticking = [item.relation for item in items if item.relation.ticks]
        if not ticking:
            raise UserError(
                "no-window-edge",
                f"`{edge.value}` exists only where windows tick",
                detail="without aggregates, rows meet as they come and no window is evaluated",
                hint="use it in a block with GROUP BY, aggregates or ORDER BY … LIMIT over windows",
                span=span_of(node, source),
            )
        if edge is Edge.END or isinstance(ticking[0].plan.timing, RowTicking):
            return WindowEdge(edge)
        ranges_us = {relation.range_us for relation in ticking}
        range_us = ranges_us.pop()
        if ranges_us or range_us is None:
            raise UserError(
                "ambiguous-column",
                "`window_start` is not one time here: the windows have different ranges",
                hint="qualify it by the alias of one window (`a.window_start`), or use `window_end`",
                span=span_of(node, source),
            )
        return coercion.build("subtract", WindowEdge(Edge.END), Literal(range_us, INTERVAL))
