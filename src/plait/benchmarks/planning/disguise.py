"""Builds a query differently without changing what it means. How it is spelled is the printer's part.

Every change is an equivalence that a careful user would know; none of it is shared with `plait.rewrite`,
which has to undo them all. Written as `before ≡ after`, with the conditions under which it holds:

| change | holds |
|---|---|
| conjuncts, keys, items, union branches in another order | always (joins: inner ones) |
| `a < b ≡ NOT (a >= b)`, `x BETWEEN l AND h ≡ x >= l AND x <= h` | with NULLs too |
| `x IN (a, b) ≡ x = a OR x = b`, De Morgan | with NULLs too |
| `a + b ≡ b + a`, `a * b ≡ b * a` | always |
| `a LEFT JOIN b ≡ b RIGHT JOIN a`, FULL either way | two inputs |
| an output or key taken from another member of its equality class | inner joins, equal types |
| a stream and its own conditions in a subquery below the window | windows of time, not of rows |
| a condition on grouping keys before or after grouping | groups without rows give no row |
| HAVING as WHERE of an enclosing block, and the reverse | no LIMIT between |
| the whole query in an enclosing projection | always |
| another query read by name or written out | always |
| columns of a subquery in another order | no LIMIT (ties) and no row window (numbering) depends on it |
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from plait.benchmarks.planning.model import (
    Aggregation,
    AllOf,
    Among,
    AnyOf,
    Apply,
    Between,
    Block,
    BlockItem,
    Column,
    Comparison,
    Equality,
    Expression,
    IsNull,
    Item,
    Negation,
    OuterStep,
    Output,
    Predicate,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    UnionAll,
    Window,
    columns_of_item,
    items_used,
    parts,
    rebuild,
    substitute,
)

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
SWAPPED = {"LEFT": "RIGHT", "RIGHT": "LEFT", "FULL": "FULL"}


def disguise(block: Block, rng: random.Random) -> Block:
    """A query with the same rows, built another way. Output names stay."""
    return _Disguise(rng).block(block)


class _Disguise:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._keys = 0

    def block(self, block: Block) -> Block:
        if isinstance(block, UnionAll):
            branches = [self.select(branch) for branch in block.branches]
            self.rng.shuffle(branches)
            return UnionAll(tuple(branches))
        select = self.select(block)
        return self._wrapped(select) if self._maybe(0.15) else select

    def select(self, select: Select) -> Select:
        select = rebuild(select, self._respell_term)
        select = self._exchange_equal_columns(select)
        select = self._swap_outer_join(select)
        select = self._move_key_conditions(select)
        select = self._push_into_block_items(select)
        select = self._wrap_streams(select)
        if select.having and select.limit is None and self._maybe(0.4):
            select = self._having_outside(select)
        select = replace(
            select,
            items=tuple(self._item(item) for item in select.items),
            outer=tuple(replace(step, item=self._item(step.item)) for step in select.outer),
            conditions=self._shuffled(select.conditions),
            keys=self._shuffled(select.keys),
            having=self._shuffled(select.having),
        )
        if not select.outer:
            select = replace(select, items=self._shuffled(select.items))
        return select

    def _item(self, item: Item) -> Item:
        if isinstance(item, RelationItem):
            return item
        block = self.block(item.block)
        if isinstance(block, Select) and block.limit is None and not isinstance(item.window, RowWindow):
            block = replace(block, outputs=self._shuffled(block.outputs))
        if item.query is not None and not self._maybe(0.4):
            return item
        return replace(item, block=block, query=None)

    # Terms.

    def _respell_term(self, node: Any) -> Any:
        """One local change to a predicate or expression, or none."""
        match node:
            case Comparison(operator, left, right) if operator in NEGATED and self._maybe(0.15):
                return Negation(Comparison(NEGATED[operator], left, right))
            case Between(value, low, high) if self._maybe():
                bounds = Comparison(">=", value, low), Comparison("<=", value, high)
                if self._maybe(0.3):
                    outside = Comparison("<", value, low), Comparison(">", value, high)
                    return Negation(AnyOf(outside))
                return AllOf(bounds)
            case Among(value, constants) if self._maybe() and len(constants) > 1:
                return AnyOf(tuple(Comparison("=", value, constant) for constant in constants))
            case Negation(AnyOf(terms)) if self._maybe():
                return AllOf(tuple(_negated(term) for term in terms))
            case Negation(AllOf(terms)) if self._maybe():
                return AnyOf(tuple(_negated(term) for term in terms))
            case AnyOf(terms) if self._maybe(0.15):
                return Negation(AllOf(tuple(_negated(term) for term in terms)))
            case IsNull() if self._maybe(0.1):
                return Negation(Negation(node))
            case Apply("+" | "*" as function, (left, right), type_) if self._maybe():
                return Apply(function, (right, left), type_)
            case _:
                return node

    # Blocks.

    def _exchange_equal_columns(self, select: Select) -> Select:
        """Take an output or condition's column from another member of its equality class."""
        if select.outer:
            return select
        others: dict[Column, list[Column]] = {}
        for condition in select.conditions:
            if isinstance(condition, Equality):
                columns = [member for member in condition.members if isinstance(member, Column)]
                for column in columns:
                    others[column] = columns

        def exchange(node: Any) -> Any:
            if isinstance(node, Column) and node in others and self._maybe(0.3):
                return self.rng.choice(others[node])
            return node

        chosen = {key: exchange(key) for key in select.keys}

        def follow(node: Any) -> Any:
            """Outside aggregates, outputs and HAVING may use grouping keys alone: they follow the key."""
            return chosen.get(node, node) if isinstance(node, Column) else node

        change = follow if select.aggregates else exchange
        if len(set(chosen.values())) < len(chosen):
            return select
        keys = tuple(chosen.values())
        return replace(
            select, outputs=rebuild(select.outputs, change), having=rebuild(select.having, change), keys=keys
        )

    def _swap_outer_join(self, select: Select) -> Select:
        if len(select.items) != 1 or len(select.outer) != 1 or not self._maybe():
            return select
        step = select.outer[0]
        return replace(
            select, items=(step.item,), outer=(OuterStep(SWAPPED[step.kind], select.items[0], step.on),)
        )

    def _move_key_conditions(self, select: Select) -> Select:
        """A condition on grouping keys alone filters whole groups: before or after is the same."""
        if not select.keys or select.outer:
            return select
        conditions: list[Predicate] = []
        having: list[Predicate] = []
        for condition in select.conditions:
            columns = {part for part in parts(condition) if isinstance(part, Column)}
            moves = columns and columns <= set(select.keys) and self._maybe(0.3)
            (having if moves else conditions).append(condition)
        for condition in select.having:
            columns = {part for part in parts(condition) if isinstance(part, Column)}
            free = not any(isinstance(part, Aggregation) for part in parts(condition))
            moves = free and columns <= set(select.keys) and self._maybe(0.3)
            (conditions if moves else having).append(condition)
        return replace(select, conditions=tuple(conditions), having=tuple(having))

    def _push_into_block_items(self, select: Select) -> Select:
        """A condition on an aggregate subquery's columns becomes its HAVING."""
        if select.outer:
            return select
        conditions = list(select.conditions)
        items = []
        for item in select.items:
            block = item.block if isinstance(item, BlockItem) and item.window is None else None
            if (
                isinstance(item, BlockItem)
                and isinstance(block, Select)
                and block.keys
                and block.limit is None
            ):
                inside = {Column(item.key, o.name, o.expression.type): o.expression for o in block.outputs}
                mine = [c for c in conditions if _is_only_of(c, item.key) and self._maybe(0.3)]
                conditions = [condition for condition in conditions if condition not in mine]
                pushed = tuple(substitute(condition, inside) for condition in mine)
                query = None if pushed else item.query
                item = replace(item, block=replace(block, having=(*block.having, *pushed)), query=query)
            items.append(item)
        return replace(select, items=tuple(items), conditions=tuple(conditions))

    def _wrap_streams(self, select: Select) -> Select:
        """`s [W] … WHERE p(s)` as `(SELECT … FROM s WHERE p) [W]`."""
        if select.outer:
            return select
        conditions = list(select.conditions)
        items: list[Item] = []
        for item in select.items:
            if not isinstance(item, RelationItem) or not _may_wrap(item.window) or not self._maybe(0.2):
                items.append(item)
                continue
            inner = RelationItem(self._key(), item.relation)
            below = [c for c in conditions if _is_only_of(c, item.key) and self._maybe(0.7)]
            conditions = [condition for condition in conditions if condition not in below]
            inside = {column: replace(column, item=inner.key) for column in columns_of_item(item)}
            needed = {
                p.name
                for t in _terms(select)
                for p in parts(t)
                if isinstance(p, Column) and p.item == item.key
            }
            outputs = tuple(
                Output(name, Column(inner.key, name, type_))
                for name, type_ in item.relation.columns
                if name in needed or self._maybe(0.5)
            )
            if not outputs:
                name, type_ = item.relation.columns[0]
                outputs = (Output(name, Column(inner.key, name, type_)),)
            block = Select(outputs, (inner,), tuple(substitute(condition, inside) for condition in below))
            items.append(BlockItem(item.key, block, item.window))
        return replace(select, items=tuple(items), conditions=tuple(conditions))

    def _having_outside(self, select: Select) -> Select:
        """HAVING as WHERE of an enclosing block, which needs the aggregates as columns."""
        key = self._key()
        calls: dict[Expression, None] = dict.fromkeys(
            p for term in select.having for p in parts(term) if isinstance(p, Aggregation)
        )
        extra = tuple(
            Output(f"{key}_{index}", term) for index, term in enumerate(dict.fromkeys((*calls, *select.keys)))
        )
        outside = {output.expression: Column(key, output.name, output.expression.type) for output in extra}
        inner = replace(select, outputs=(*select.outputs, *extra), having=())
        outputs = tuple(Output(o.name, Column(key, o.name, o.expression.type)) for o in select.outputs)
        return Select(outputs, (BlockItem(key, inner),), substitute(select.having, outside))

    def _wrapped(self, select: Select) -> Select:
        key = self._key()
        outputs = tuple(Output(o.name, Column(key, o.name, o.expression.type)) for o in select.outputs)
        return Select(outputs, (BlockItem(key, select),))

    # Chance.

    def _maybe(self, probability: float = 0.5) -> bool:
        return self.rng.random() >= 1 - probability  # the least draw says no: simpler examples

    def _shuffled(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        result = list(values)
        self.rng.shuffle(result)
        return tuple(result)

    def _key(self) -> str:
        self._keys += 1
        return f"d{self._keys}"


def _negated(term: Predicate) -> Predicate:
    return term.term if isinstance(term, Negation) else Negation(term)


def _may_wrap(window: Window | None) -> bool:
    """Filters do not move across a window of rows, and only HOP, which takes no subquery, has an offset."""
    return not isinstance(window, RowWindow) and not (isinstance(window, TickWindow) and window.offset_s)


def _is_only_of(condition: Predicate, key: str) -> bool:
    return items_used(condition) == {key}


def _terms(select: Select) -> tuple[Expression | Predicate, ...]:
    return (
        *(output.expression for output in select.outputs),
        *select.conditions,
        *select.keys,
        *select.having,
        *(term for step in select.outer for term in step.on),
    )
