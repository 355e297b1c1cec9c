"""Random queries of every class that Plait runs, over streams that are stored in cuts.

The classes of the planning benchmark's generator, with odd windows (a range of 7 s and a slide of 3 s, a
range below the slide, offsets), and those that only running makes interesting: what is kept by which side of
an outer join, tables below and above a tick, roll-ups of joins, windows of a fraction of a second.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plait.benchmarks.planning.generator import KEY_TYPES, GeneratedCatalog, QueryGenerator
from plait.benchmarks.planning.model import (
    Block,
    BlockItem,
    Equality,
    Expression,
    InstantWindow,
    Item,
    OrderKey,
    OuterStep,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    WindowEdge,
    columns_of_item,
)
from plait.benchmarks.planning.printer import Printer

# Range and slide, in seconds: tumbling, sliding, gaps, no multiples.
WINDOWS_S = ((5, 5), (10, 10), (20, 10), (7, 3), (3, 7), (9, 4), (15, 10), (1, 1), (30, 20), (12, 4))
RANGES_S = (1, 3, 5, 10, 20)

# Classes that are treated apart: one reads the queries before it; one has windows finer than the model's.
OVER_A_QUERY = "over a query"
FINE_WINDOW = "fine window"


@dataclass(frozen=True)
class RandomQuery:
    """`block` is None for a query that was written as text."""

    name: str
    kind: str
    sql: str
    block: Block | None = None


class RunningQueries(QueryGenerator):
    """The planning benchmark's generator with windows that fit a minute of data, and more classes."""

    def __init__(self, rng: random.Random, catalog: GeneratedCatalog) -> None:
        super().__init__(rng, catalog)
        self.kinds = {
            "filter": self.filter_block,
            "join": self.join_block,
            "self join": self.self_join_block,
            "left join": lambda: self.outer_rows_block("LEFT"),
            "right join": lambda: self.outer_rows_block("RIGHT"),
            "full join": lambda: self.outer_rows_block("FULL"),
            "chain of outer joins": self.outer_chain_block,
            "outer join of ticks": self.outer_ticks_block,
            "aggregate": self.aggregate_block,
            "count distinct": self.distinct_block,
            "many panes": self.many_panes_block,
            "row window": self.row_window_block,
            "aggregate of a join": self.aggregate_of_join_block,
            "roll-up of a join": self.roll_up_of_join_block,
            "rows with their aggregate": self.correlated_block,
            "aggregates side by side": self.side_by_side_block,
            "aggregate of an aggregate": self.nested_block,
            "roll-up of an aggregate": self.roll_up_block,
            "union": self.union_rows_block,
            "union of ticks": self.union_ticks_block,
            "top": self.top_block,
            "table in a join": self.table_in_join_block,
            "table below a tick": self.table_below_block,
            "table above a tick": self.table_above_block,
            OVER_A_QUERY: self.over_query_block,
        }

    def tick_window(self, aligned: bool = False) -> TickWindow:
        range_s, slide_s = self.rng.choice(WINDOWS_S)
        offset_s = 0 if aligned or self.maybe(0.6) else self.rng.randrange(slide_s)
        return TickWindow(range_s, slide_s, offset_s)

    def key_type(self, items: Sequence[Item]) -> str:
        """Now and then any type that all items have: what NULL, NaN and -0.0 are as keys differs by type."""
        if self.maybe(0.7):
            return super().key_type(items)
        types = [{column.type for column in columns_of_item(item)} for item in items]
        return self.rng.choice(sorted(set.intersection(*types)))

    def instant(self) -> InstantWindow:
        return InstantWindow(self.rng.choice(RANGES_S))

    def join_block(self) -> Select:
        return self.joined(tuple(self.stream(self.instant()) for _ in range(self.rng.choice((2, 2, 3)))))

    def self_join_block(self) -> Select:
        relation = self.rng.choice(self.catalog.streams)
        return self.joined(tuple(RelationItem(self.key(), relation, self.instant()) for _ in range(2)))

    def outer_rows_block(self, kind: str) -> Select:
        left, right = self.stream(self.instant()), self.stream(self.instant())
        on = self.equalities((left, right))
        if self.maybe(0.4):
            on = (*on, self.condition(columns_of_item(self.rng.choice((left, right)))))
        conditions = (self.condition(columns_of_item(left)),) if self.maybe(0.3) else ()
        columns = (*columns_of_item(left), *columns_of_item(right))
        outputs = self.projections(columns, 2, 4)
        return Select(outputs, (left,), conditions, (OuterStep(kind, right, on),))

    def outer_chain_block(self) -> Select:
        first, second, third = (self.stream(self.instant()) for _ in range(3))
        steps = (
            OuterStep("LEFT", second, self.equalities((first, second))),
            OuterStep("LEFT", third, self.equalities((first, third))),
        )
        columns = tuple(column for item in (first, second, third) for column in columns_of_item(item))
        return Select(self.projections(columns, 2, 4), (first,), (), steps)

    def outer_ticks_block(self) -> Select:
        """Two aggregates at the same ticks, of different streams, and what only one of them has."""
        window = self.tick_window(aligned=True)
        type_ = self.rng.choice(KEY_TYPES)
        parts = []
        for _ in range(2):
            item = self.stream(replace(window, range_s=self.rng.choice((window.range_s, window.slide_s))))
            key = self.rng.choice([c for c in columns_of_item(item) if c.type == type_])
            value = self.call(self.rng.choice(("count", "sum", "max")), self.number(columns_of_item(item)))
            conditions = self.conditions(columns_of_item(item), 0, 1)
            inner = Select(self.named_outputs([key, value]), (item,), conditions, keys=(key,))
            parts.append(BlockItem(self.key(), inner))
        left, right = (columns_of_item(part) for part in parts)
        step = OuterStep(
            self.rng.choice(("LEFT", "RIGHT", "FULL")), parts[1], (Equality((left[0], right[0])),)
        )
        shown: list[Expression] = [WindowEdge(), *left, *right]
        return Select(self.named_outputs(shown), (parts[0],), outer=(step,))

    def distinct_block(self) -> Select:
        item = self.stream(self.tick_window())
        columns = columns_of_item(item)
        select = self.aggregated((item,), columns, self.conditions(columns, 0, 1))
        counted = [c for c in columns if c.type in ("INT", "STRING", "DECIMAL(9,2)", "TIMESTAMP")]
        calls = [self.call("count_distinct", self.rng.choice(counted)) for _ in range(self.rng.randint(1, 2))]
        return replace(select, outputs=self.named_outputs([*(o.expression for o in select.outputs), *calls]))

    def many_panes_block(self) -> Select:
        """More ticks a row than Spark should write rows for."""
        item = self.stream(TickWindow(self.rng.choice((20, 33)), 1))
        columns = columns_of_item(item)
        return self.aggregated((item,), columns, self.conditions(columns, 0, 1))

    def row_window_block(self) -> Select:
        select = super().row_window_block()
        item = select.items[0]
        if not isinstance(item, RelationItem) or not isinstance(item.window, RowWindow) or self.maybe(0.7):
            return select
        columns = columns_of_item(item)
        shown = self.named_outputs([WindowEdge("start"), WindowEdge(), *self.rng.sample(columns, 2)])
        order = (OrderKey(shown[2].name, self.maybe(0.5)),)
        return Select(shown, (item,), select.conditions, order=order, limit=2)

    def roll_up_of_join_block(self) -> Select:
        item = BlockItem(self.key(), self.with_number(self.join_block()), self.tick_window(aligned=True))
        return self.aggregated((item,), columns_of_item(item), ())

    def roll_up_block(self) -> Select:
        inner = self.stream(self.tick_window())
        keys = self.key_columns(inner)
        total = self.call(self.rng.choice(("sum", "count", "max")), self.number(columns_of_item(inner)))
        part = Select(self.named_outputs([*keys, total]), (inner,), keys=keys)
        item = BlockItem(self.key(), part, self.tick_window(aligned=True))
        return self.aggregated((item,), columns_of_item(item), ())

    def union_rows_block(self) -> Block:
        return self._union(ticks=False)

    def union_ticks_block(self) -> Block:
        return self._union(ticks=True)

    def _union(self, ticks: bool) -> Block:
        while True:
            block = self.union_block()
            if (block.branches[0].items[0].window is not None) == ticks:
                return block

    def table_in_join_block(self) -> Select:
        """Rows, combined or not, with a table: inner, or on the side that is not kept."""
        items: tuple[Item, ...] = (self.stream(None),)
        if self.maybe(0.5):
            items = (self.stream(self.instant()), self.stream(self.instant()))
        table = self.table()
        if self.maybe(0.5):
            return self.joined((*items, table))
        columns = tuple(column for item in (*items, table) for column in columns_of_item(item))
        step = OuterStep("LEFT", table, self.equalities((items[0], table)))
        conditions = self.equalities(items) if len(items) > 1 else ()
        return Select(self.projections(columns, 2, 4), items, conditions, (step,))

    def table_below_block(self) -> Select:
        items = (self.stream(self.tick_window()), self.table())
        columns = tuple(column for item in items for column in columns_of_item(item))
        return self.aggregated(items, columns, self.equalities(items))

    def table_above_block(self) -> Select:
        item = self.stream(self.tick_window())
        keys = self.key_columns(item)
        total = self.call("count", self.number(columns_of_item(item)))
        part = BlockItem(self.key(), Select(self.named_outputs([*keys, total]), (item,), keys=keys))
        table = self.table()
        key = columns_of_item(part)[0]
        partner = self.rng.choice([c for c in columns_of_item(table) if c.type == key.type])
        shown: list[Expression] = [WindowEdge(), *columns_of_item(part), *columns_of_item(table)[:2]]
        return Select(self.named_outputs(shown), (part, table), (Equality((key, partner)),))

    def with_number(self, select: Select) -> Select:
        """The block with one more output that can be summed, and one that can be grouped by."""
        columns = tuple(column for item in select.all_items for column in columns_of_item(item))
        groupable = self.rng.choice([column for column in columns if column.type in KEY_TYPES])
        shown = [*(output.expression for output in select.outputs), self.number(columns), groupable]
        return replace(select, outputs=self.named_outputs(shown))


KINDS = (*RunningQueries(random.Random(0), GeneratedCatalog((), ())).kinds, FINE_WINDOW)


def random_query(name: str, kind: str, generator: RunningQueries) -> RandomQuery:
    if kind == FINE_WINDOW:
        return RandomQuery(name, kind, _fine_window(name, generator))
    block = generator.query(kind)
    return RandomQuery(name, kind, Printer(generator.rng).query(name, block), block)


def _fine_window(name: str, generator: RunningQueries) -> str:
    """Windows whose edges no millisecond falls on, by each of the spellings."""
    rng = generator.rng
    relation = rng.choice(generator.catalog.streams)
    key = rng.choice([column for column, type_ in relation.columns if type_ in KEY_TYPES])
    time = relation.event_time
    spelling = rng.randrange(3)
    begin = f"CREATE CONTINUOUS QUERY {name} AS SELECT {key}, count(*) AS n, min({time}) AS first"
    match spelling:
        case 0:
            window = rng.choice(("RANGE 1500 MS SLIDE 700 MS", "RANGE 333 US SLIDE 1 S", "RANGE 1000001 US"))
            return f"{begin}, window_start, window_end FROM {relation.name} [{window}] GROUP BY {key};"
        case 1:
            offset = rng.choice(("1 microsecond", "999 milliseconds", "250 us"))
            window = f"window({time}, '2 seconds', '1 second', '{offset}')"
            return f"{begin}, window.start, window.end FROM {relation.name} GROUP BY {window}, {key};"
        case _:
            sizes = "INTERVAL 1 SECOND, INTERVAL 2500 MILLISECONDS, INTERVAL 1 MICROSECOND"
            source = f"HOP(TABLE {relation.name}, DESCRIPTOR({time}), {sizes})"
            return f"{begin}, window_start, window_end FROM {source} GROUP BY {key};"
