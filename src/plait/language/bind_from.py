"""FROM: what a block reads, the window of each item, and how the items are joined.

Decides whether rows meet as they come or tick by tick. A block ticks if it aggregates, limits rows, or
reads something that ticks without a window of its own; then every window ticks, all alike. Otherwise
`[RANGE r]` says how long a row stays there to be joined. Comma lists and inner joins become one join of
many inputs, outer joins nest from left to right, as in Spark, where a comma binds like any join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from sqlglot import exp

from plait.errors import PlaitError, Source, UnsupportedError, UserError
from plait.expressions import coercion
from plait.expressions.functions import FunctionTypeError
from plait.expressions.nodes import Expression, conjunction, conjuncts
from plait.language.attempts import Attempts, Reported
from plait.language.bind_expressions import ExpressionBinder
from plait.language.bind_windows import (
    AlignedClause,
    WrittenWindow,
    duration_text,
    instant_window,
    read_clause,
    read_window_call,
    read_window_table,
    tick_window,
)
from plait.language.dialect import WindowTable
from plait.language.scope import BoundRelation, Scope, VisibleColumn
from plait.language.spans import span_of
from plait.plan.nodes import (
    Flowing,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    RowTicking,
    Static,
    Ticking,
    TickWindow,
    Window,
    Windowed,
)

MOST_JOINED_STREAMS = 64


class Origin(Enum):
    STREAM = "stream"
    TABLE = "table"
    QUERY = "query"
    SUBQUERY = "subquery"


@dataclass(frozen=True)
class NamedRelation:
    """What a name of the catalog stands for; only a stream has an event-time column."""

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
    def label(self) -> str:
        return f"`{self.alias}`" if self.alias is not None else "the subquery"

    @property
    def is_static(self) -> bool:
        return isinstance(self.named.relation.plan.timing, Static)

    @property
    def ticks_by_itself(self) -> bool:
        return self.window is None and self.named.relation.ticks


@dataclass(frozen=True)
class BoundFrom:
    plan: Node
    scope: Scope

    @property
    def range_us(self) -> int | None:
        """The range of the windows if they tick by time and are all alike."""
        ranges_us = {item.relation.range_us for item in self.scope.items if item.relation.ticks}
        return ranges_us.pop() if len(ranges_us) == 1 else None


class FromBinder:
    """Binds the FROM clauses of one query text. `bind_query` binds a subquery."""

    def __init__(
        self,
        relations: Relations,
        bind_query: Callable[[exp.Query, Mapping[str, BoundRelation | None]], BoundRelation],
        source: Source,
        errors: list[PlaitError],
    ) -> None:
        self._relations = relations
        self._bind_query = bind_query
        self._source = source
        self._errors = errors

    # Items

    def items(self, select: exp.Select, ctes: Mapping[str, BoundRelation | None]) -> list[WrittenItem]:
        """Everything that FROM names, subqueries bound. `ctes` maps a name with errors of its own to None."""
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
        items = [attempts.run(self._item, node, ctes) for node in nodes]
        attempts.check()
        bound = [item for item in items if item is not None]
        self._check_aliases(bound)
        return bound

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

    def _item(self, node: exp.Expr, ctes: Mapping[str, BoundRelation | None]) -> WrittenItem:
        match node:
            case exp.Table():
                item = WrittenItem(node, node.alias_or_name, self._named(node, ctes), None)
            case exp.Subquery():
                if not isinstance(node.this, exp.Query):
                    raise self._unsupported(node, "a parenthesised join", "leave out the parentheses")
                relation = self._bind_query(node, ctes)
                item = WrittenItem(node, node.alias or None, NamedRelation(Origin.SUBQUERY, relation), None)
            case WindowTable():
                item = self._window_table(node, ctes)
            case _:
                raise self._unsupported(
                    node, f"`{node.key.upper()}` in FROM", "read streams, tables and queries"
                )
        item = self._renamed(item)
        clause = node.args.get("window")
        if clause is None:
            return item
        return replace(item, window=read_clause(clause, item.named.relation, item.alias, self._source))

    def _unsupported(self, node: exp.Expr, construct: str, hint: str) -> PlaitError:
        return UnsupportedError(
            "unsupported-syntax",
            f"Plait does not support {construct}",
            hint=hint,
            span=span_of(node, self._source),
        )

    def _named(self, node: exp.Table, ctes: Mapping[str, BoundRelation | None]) -> NamedRelation:
        if not isinstance(node.this, exp.Identifier):
            raise self._unsupported(node, "table functions other than HOP and TUMBLE", "")
        if node.name.lower() in ctes:
            relation = ctes[node.name.lower()]
            if relation is None:
                raise Reported
            return NamedRelation(Origin.SUBQUERY, relation)
        return self._relations.read(node, self._source)

    def _window_table(self, node: WindowTable, ctes: Mapping[str, BoundRelation | None]) -> WrittenItem:
        inner = self._item(node.args["table"], ctes)
        written = read_window_table(node, self._source)
        if inner.window is not None:
            raise self._second_window(written)
        if inner.named.event_time is None:
            raise self._no_event_time(inner, written)
        descriptor = node.args["descriptor"]
        if descriptor.name.lower() != inner.named.event_time.lower():
            raise self._not_event_time(descriptor, inner, written)
        return WrittenItem(node, node.alias or inner.alias, inner.named, written)

    def _renamed(self, item: WrittenItem) -> WrittenItem:
        """`… AS x (a, b)` gives the columns new names."""
        alias = item.node.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or not alias.columns:
            return item
        names = tuple(column.name for column in alias.columns)
        relation = self.renamed(item.named.relation, names, alias)
        return replace(item, named=replace(item.named, relation=relation))

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

    # Windows

    def group_window(
        self, calls: Sequence[exp.Anonymous], items: Sequence[WrittenItem]
    ) -> tuple[WrittenItem, AlignedClause] | None:
        """The stream that `GROUP BY window(…)` is about, and its window."""
        if not calls:
            return None
        written = [read_window_call(call, self._source) for call in calls]
        if any(replace(other, span=written[0].span) != written[0] for other in written):
            raise UserError(
                "second-window",
                "GROUP BY names two different windows",
                hint="keep one",
                span=written[-1].span,
            )
        moving = [item for item in items if not item.is_static]
        if len(moving) != 1:
            raise UnsupportedError(
                "window-call",
                "window() is for one stream, perhaps joined with tables",
                hint="give each stream its window: `a [RANGE 5 MINUTES SLIDE 1 MINUTE]`",
                span=written[0].span,
            )
        stream = moving[0]
        if stream.window is not None:
            raise self._second_window(written[0])
        if stream.named.event_time is None:
            raise self._no_event_time(stream, written[0])
        event_time = exp.column(stream.named.event_time, table=stream.alias)
        scope = _scope_of(items)
        for call in calls:
            time = call.expressions[0]
            expected = scope.resolve(event_time, self._source)
            if not isinstance(time, exp.Column) or scope.resolve(time, self._source) != expected:
                raise self._not_event_time(time, stream, written[0])
        return stream, written[0]

    def _second_window(self, written: AlignedClause) -> PlaitError:
        return UserError(
            "second-window",
            f"this stream has a window already, besides {written.spelling}",
            hint="keep one of them",
            span=written.span,
        )

    def _no_event_time(self, item: WrittenItem, written: AlignedClause) -> PlaitError:
        return UnsupportedError(
            "window-call",
            f"{written.spelling} needs a stream with an event-time column; {item.label} is none",
            hint="its event time travels with its rows: put [RANGE … SLIDE …] behind it",
            span=written.span,
        )

    def _not_event_time(self, node: exp.Expr, item: WrittenItem, written: AlignedClause) -> PlaitError:
        return UserError(
            "not-event-time",
            f"{written.spelling} goes by the event time of {item.label}, which is `{item.named.event_time}`",
            hint=f"write `{item.named.event_time}`",
            span=span_of(node, self._source),
        )

    def place_windows(
        self,
        items: Sequence[WrittenItem],
        ticks: bool,
        grouped: tuple[WrittenItem, AlignedClause] | None,
    ) -> list[BoundRelation]:
        """Every item with its window, in a block that ticks or does not."""
        if grouped is not None:
            stream, written = grouped
            items = [replace(item, window=written) if item is stream else item for item in items]
        attempts = Attempts(self._errors)
        moving = sum(not item.is_static for item in items)
        placed = [
            attempts.run(self._ticking, item) if ticks else attempts.run(self._instant, item, moving == 1)
            for item in items
        ]
        attempts.check()
        relations = [relation for relation in placed if relation is not None]
        self._check_together(items, relations)
        return relations

    def _ticking(self, item: WrittenItem) -> BoundRelation:
        relation = item.named.relation
        if item.window is not None:
            self._check_windowable(item)
            window = tick_window(item.window)
            range_us = window.range_us if isinstance(window, TickWindow) else None
            return BoundRelation(Window(relation.plan, window), relation.columns, range_us)
        if isinstance(relation.plan.timing, Windowed):
            raise UserError(
                "no-window",
                f"{item.label} needs a window of its own here: this block is evaluated tick by tick",
                detail="the windows inside it only say which rows meet, not when an answer is due",
                hint="write the window behind it: `(SELECT …) x [RANGE 5 MINUTES SLIDE 1 MINUTE]`",
                span=span_of(item.node, self._source),
            )
        if isinstance(relation.plan.timing, Flowing):
            raise UserError(
                "no-window",
                f"{item.label} needs a window: an aggregate is taken of the rows of a window",
                hint=f"write `{item.alias or '(SELECT …) x'} [RANGE 5 MINUTES SLIDE 1 MINUTE]`",
                span=span_of(item.node, self._source),
            )
        return relation

    def _instant(self, item: WrittenItem, is_alone: bool) -> BoundRelation:
        relation = item.named.relation
        if item.window is not None:
            self._check_windowable(item)
            return BoundRelation(Window(relation.plan, instant_window(item.window)), relation.columns)
        timing = relation.plan.timing
        needs_window = isinstance(timing, Flowing) or item.named.origin is Origin.QUERY
        if not isinstance(timing, Static) and needs_window and not is_alone:
            raise UserError(
                "no-window",
                f"{item.label} needs a window: its rows would wait for ever for rows to join",
                hint=f"write `{item.alias or '(SELECT …) x'} [RANGE 5 MINUTES]`",
                span=span_of(item.node, self._source),
            )
        return relation

    def _check_windowable(self, item: WrittenItem) -> None:
        if item.is_static:
            assert item.window is not None
            raise UserError(
                "table-window",
                f"{item.label} is a table, and only streams have windows",
                hint="leave the window out: a table is joined as it is",
                span=item.window.span,
            )

    def _check_together(self, items: Sequence[WrittenItem], relations: Sequence[BoundRelation]) -> None:
        timings = [relation.plan.timing for relation in relations]
        for item, timing in zip(items, timings, strict=True):
            if isinstance(timing, RowTicking) and len(items) > 1:
                raise UnsupportedError(
                    "row-window-join",
                    f"{item.label} has a row window, which cannot be joined",
                    hint="use a time window: [RANGE 5 MINUTES SLIDE 1 MINUTE]",
                    span=span_of(item.node, self._source),
                )
        ticking = [(item, t) for item, t in zip(items, timings, strict=True) if isinstance(t, Ticking)]
        for item, timing in ticking[1:]:
            first_item, first = ticking[0]
            if timing != first:
                raise UserError(
                    "different-ticks",
                    f"{first_item.label} and {item.label} do not tick together",
                    detail=f"{first_item.label}: {_tick_text(first)}; {item.label}: {_tick_text(timing)}",
                    hint="give all windows of a block the same SLIDE",
                    span=span_of(item.node, self._source),
                )
        streams = sum(len(timing.ranges_us) for timing in timings if isinstance(timing, Windowed))
        if streams > MOST_JOINED_STREAMS:
            raise UnsupportedError(
                "join-too-wide",
                f"this joins {streams} windowed streams; {MOST_JOINED_STREAMS} is the limit",
                span=span_of(items[0].node, self._source),
            )

    # Joins

    def join(
        self, select: exp.Select, items: Sequence[WrittenItem], relations: Sequence[BoundRelation]
    ) -> BoundFrom:
        """The joined items and the names that the rest of the block sees."""
        attempts = Attempts(self._errors)
        scope = Scope(()).with_item(items[0].alias, relations[0])
        inputs: list[Node] = [relations[0].plan]
        terms: list[Expression] = []
        joins = select.args.get("joins") or ()
        for join, item, relation in zip(joins, items[1:], relations[1:], strict=True):
            bound = attempts.run(self._condition, join, scope, item, relation)
            if bound is None:
                scope = scope.with_item(item.alias, relation)
                continue
            scope, predicate = bound
            if join.side:
                attempts.check()
                left = self._inner(inputs, terms, select)
                inputs = [self._outer(OuterKind(join.side.lower()), left, relation.plan, predicate, join)]
                terms = []
            else:
                inputs.append(relation.plan)
                terms += conjuncts(predicate)
        attempts.check()
        return BoundFrom(self._inner(inputs, terms, select), scope)

    def _condition(
        self, join: exp.Join, scope: Scope, item: WrittenItem, relation: BoundRelation
    ) -> tuple[Scope, Expression]:
        """The scope with one more item, and the condition under which its rows join."""
        self._check_join_kind(join)
        together = scope.with_item(item.alias, relation)
        on, using = join.args.get("on"), join.args.get("using")
        if using:
            return self._using(join, using, scope, together)
        if on is not None:
            binder = ExpressionBinder(lambda node: together.resolve(node, self._source), self._source, "ON")
            return together, binder.condition(on)
        if join.kind != "CROSS":
            raise UserError(
                "no-join-condition",
                f"the join with {item.label} has no condition",
                hint="add ON …; where every pair is meant, write CROSS JOIN",
                span=span_of(join, self._source),
            )
        return together, conjunction(())

    def _check_join_kind(self, join: exp.Join) -> None:
        if join.kind in ("SEMI", "ANTI"):
            hint = (
                "use JOIN and select the left columns"
                if join.kind == "SEMI"
                else "use LEFT JOIN … WHERE … IS NULL"
            )
            raise self._unsupported(join, f"{join.kind} joins", hint)
        if join.kind not in ("", "INNER", "OUTER", "CROSS") or join.side not in ("", "LEFT", "RIGHT", "FULL"):
            raise self._unsupported(
                join, f"{join.side or join.kind} joins", "use INNER, LEFT, RIGHT or FULL joins"
            )
        if join.kind == "CROSS" and (join.args.get("on") or join.args.get("using")):
            raise UserError(
                "cross-join",
                "a CROSS JOIN has no condition",
                hint="write JOIN … ON …",
                span=span_of(join, self._source),
            )

    def _using(
        self, join: exp.Join, using: Sequence[exp.Identifier], left: Scope, together: Scope
    ) -> tuple[Scope, Expression]:
        right = together.items[-1]
        terms: list[Expression] = []
        merged = dict(together.merged)
        hidden = set(together.hidden)
        for identifier in using:
            name = identifier.name
            column = exp.Column(this=identifier.copy())
            left_column = left.resolve(column, self._source)
            right_column = Scope((right,)).resolve(column, self._source)
            try:
                terms.append(coercion.build("eq", left_column, right_column))
                either = coercion.build("coalesce", left_column, right_column)
            except FunctionTypeError as error:
                raise UserError(
                    "type", error.message, hint=error.hint, span=span_of(identifier, self._source)
                ) from None
            chosen = {"RIGHT": right_column, "FULL": either}.get(join.side, left_column)
            merged[name.lower()] = VisibleColumn(name, chosen, None)
            hidden |= {
                item.positions[name.lower()] for item in together.items if name.lower() in item.positions
            }
        return Scope(together.items, merged, frozenset(hidden)), conjunction(terms)

    def _inner(self, inputs: Sequence[Node], terms: list[Expression], select: exp.Select) -> Node:
        if len(inputs) == 1:
            return inputs[0]
        if all(isinstance(node.timing, Static) for node in inputs):
            raise UnsupportedError(
                "no-stream",
                "this joins tables only",
                hint="join the tables in one FROM with a stream",
                span=span_of(select.args["from_"], self._source),
            )
        return Join(tuple(inputs), conjunction(terms))

    def _outer(self, kind: OuterKind, left: Node, right: Node, predicate: Expression, join: exp.Join) -> Node:
        kept = {OuterKind.LEFT: (left,), OuterKind.RIGHT: (right,), OuterKind.FULL: (left, right)}[kind]
        if any(isinstance(node.timing, Static) for node in kept):
            raise UnsupportedError(
                "kept-table",
                f"this {kind.value.upper()} JOIN keeps the rows of a table that nothing matches",
                detail="a row may still come that matches, so the answer would never be final",
                hint="keep the rows of the stream: `stream LEFT JOIN table ON …`",
                span=span_of(join, self._source),
            )
        return OuterJoin(kind, left, right, predicate)


def _scope_of(items: Sequence[WrittenItem]) -> Scope:
    scope = Scope(())
    for item in items:
        scope = scope.with_item(item.alias, item.named.relation)
    return scope


def _tick_text(timing: Ticking) -> str:
    text = f"every {duration_text(timing.slide_us)}"
    return f"{text}, offset by {duration_text(timing.offset_us)}" if timing.offset_us else text
