"""Makes catalogs and valid queries of every class at random, from a seed or from any `random.Random`.

Values come from small domains and constants from the same ones, so that joins meet and most results have
rows. Numbers that are compared after aggregation are integers and decimals: a sum of doubles depends on the
order of its terms, and `HAVING` could then differ between equal queries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plait.benchmarks.planning.model import (
    Aggregation,
    AllOf,
    Among,
    AnyOf,
    Apply,
    Between,
    Block,
    BlockItem,
    Case,
    Column,
    Comparison,
    Constant,
    Equality,
    Expression,
    InstantWindow,
    IsNull,
    Item,
    Like,
    Negation,
    OrderKey,
    OuterStep,
    Output,
    Predicate,
    Relation,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    UnionAll,
    Window,
    WindowEdge,
    columns_of_item,
)

STREAM_NAMES = ("flights", "checkins", "baggage", "weather", "sales", "sensors", "bids", "clicks")
TABLE_NAMES = ("cities", "categories", "plugs")
# Types with the column names that use them: names repeat across relations, so that aliases matter.
COLUMN_NAMES = {
    "INT": ("num", "kind", "level", "house", "slot"),
    "BIGINT": ("account", "serial"),
    "STRING": ("city", "status", "gate", "code"),
    "DECIMAL(9,2)": ("price", "weight"),
    "DOUBLE": ("ratio",),
    "BOOLEAN": ("active",),
}
KEY_TYPES = ("INT", "STRING")
WORDS = ("ATL", "BOS", "JFK", "open", "closed", "it's")
NUMBERS = ("INT", "BIGINT", "DECIMAL(9,2)")
WINDOWS_S = ((10, 10), (20, 10), (30, 10), (60, 20), (60, 60), (120, 60), (30, 20), (50, 20), (300, 60))
INSTANT_RANGES_S = (10, 30, 60, 60, 300)
SUMS = {"INT": "BIGINT", "BIGINT": "BIGINT", "DECIMAL(9,2)": "DECIMAL(19,2)"}


@dataclass(frozen=True)
class GeneratedCatalog:
    streams: tuple[Relation, ...]
    tables: tuple[Relation, ...]


def generate_catalog(rng: random.Random, streams: int = 4, tables: int = 2) -> GeneratedCatalog:
    def columns(extra: int) -> list[tuple[str, str]]:
        chosen = {rng.choice(COLUMN_NAMES[type_]): type_ for type_ in (*KEY_TYPES, "INT")}
        for _ in range(extra):
            type_ = rng.choice(tuple(COLUMN_NAMES))
            chosen.setdefault(rng.choice(COLUMN_NAMES[type_]), type_)
        listed = list(chosen.items())
        rng.shuffle(listed)
        return listed

    made = []
    for name in rng.sample(STREAM_NAMES, streams):
        listed = columns(rng.randint(1, 4))
        event_time = rng.choice(("ts", "at", "happened"))
        listed.insert(rng.randint(0, len(listed)), (event_time, "TIMESTAMP"))
        made.append(Relation(name, tuple(listed), event_time, rng.choice((0, 5, 30))))
    return GeneratedCatalog(
        tuple(made),
        tuple(Relation(name, tuple(columns(1))) for name in rng.sample(TABLE_NAMES, tables)),
    )


class QueryGenerator:
    """Makes queries over a catalog. `named` are queries that may be read by later ones, by name."""

    def __init__(self, rng: random.Random, catalog: GeneratedCatalog) -> None:
        self.rng = rng
        self.catalog = catalog
        self.named: dict[str, Block] = {}
        self._items = 0
        self.kinds: dict[str, Callable[[], Block]] = {
            "filter": self.filter_block,
            "join": self.join_block,
            "outer join": self.outer_join_block,
            "aggregate": self.aggregate_block,
            "row window": self.row_window_block,
            "aggregate of a join": self.aggregate_of_join_block,
            "rows with their aggregate": self.correlated_block,
            "aggregates side by side": self.side_by_side_block,
            "aggregate of an aggregate": self.nested_block,
            "union": self.union_block,
            "top": self.top_block,
            "over a query": self.over_query_block,
        }

    def query(self, kind: str | None = None) -> Block:
        return self.kinds[kind or self.rng.choice(tuple(self.kinds))]()

    # Classes of queries.

    def filter_block(self) -> Select:
        item = self.stream(None)
        columns = columns_of_item(item)
        return Select(self.projections(columns, 1, 4), (item,), self.conditions(columns, 1, 2))

    def join_block(self) -> Select:
        items: tuple[Item, ...] = tuple(
            self.stream(InstantWindow(self.rng.choice(INSTANT_RANGES_S)))
            for _ in range(self.rng.choice((2, 2, 3, 3, 4)))
        )
        if self.maybe(0.3) and self.catalog.tables:
            items = (*items, self.table())
        return self.joined(items)

    def outer_join_block(self) -> Select:
        ticks = self.maybe(0.3)
        window: Window = self.tick_window() if ticks else InstantWindow(self.rng.choice(INSTANT_RANGES_S))
        kind = self.rng.choice(("LEFT", "LEFT", "RIGHT", "FULL"))
        items: tuple[Item, ...] = (self.stream(window),)
        conditions: tuple[Predicate, ...] = ()
        if kind == "LEFT" and self.maybe(0.4):
            items = (*items, self.stream(window))
            conditions = self.equalities(items)
        with_table = kind == "LEFT" and self.maybe(0.3) and self.catalog.tables
        other: Item = self.table() if with_table else self.stream(window)
        on = self.equalities((items[0], other))
        if self.maybe(0.4):
            on = (*on, self.condition(columns_of_item(other)))
        columns = tuple(column for item in (*items, other) for column in columns_of_item(item))
        if self.maybe(0.5):
            conditions = (*conditions, self.condition(columns_of_item(items[0])))
        step = OuterStep(kind, other, on)
        if not ticks:
            return Select(self.projections(columns, 2, 4), items, conditions, (step,))
        return self.aggregated(items, columns, conditions, (step,))

    def aggregate_block(self) -> Select:
        item = self.stream(self.tick_window())
        columns = columns_of_item(item)
        return self.aggregated((item,), columns, self.conditions(columns, 0, 2))

    def row_window_block(self) -> Select:
        relation = self.rng.choice(self.catalog.streams)
        names = [name for name, type_ in relation.columns if type_ in KEY_TYPES]
        partition = tuple(self.rng.sample(names, self.rng.randint(0, min(2, len(names)))))
        rows, slide = self.rng.choice(((1, 1), (2, 1), (3, 3), (4, 2), (5, 3), (2, 3)))
        item = RelationItem(self.key(), relation, RowWindow(rows, slide, partition))
        columns = columns_of_item(item)
        return self.aggregated((item,), columns, self.conditions(columns, 0, 1))

    def aggregate_of_join_block(self) -> Select:
        window = self.tick_window()
        items: list[Item] = [self.stream(replace(window, range_s=window.slide_s * self.rng.randint(1, 4)))]
        for _ in range(self.rng.choice((1, 1, 2))):
            items.append(self.stream(replace(window, range_s=window.slide_s * self.rng.randint(1, 4))))
        if self.maybe(0.3) and self.catalog.tables:
            items.append(self.table())
        columns = tuple(column for item in items for column in columns_of_item(item))
        conditions = (*self.equalities(items), *self.conditions(columns, 0, 2))
        return self.aggregated(tuple(items), columns, conditions)

    def correlated_block(self) -> Select:
        """CQ1, CQ2 of the federation paper: rows of a window compared with the window's aggregate."""
        stream = self.rng.choice(self.catalog.streams)
        window = self.tick_window()
        rows = RelationItem(self.key(), stream, window)
        keys = self.key_columns(rows)
        value = self.number(columns_of_item(rows))
        inner_item = RelationItem(self.key(), stream, window)
        inner_keys = tuple(Column(inner_item.key, key.name, key.type) for key in keys)
        inner_value = Column(inner_item.key, value.name, value.type)
        function = self.rng.choice(("max", "avg", "min"))
        result = "DOUBLE" if function == "avg" else value.type
        usual = Select(
            (
                *(Output(f"key_{index}", key) for index, key in enumerate(inner_keys)),
                Output("usual", Aggregation(function, inner_value, result)),
            ),
            (inner_item,),
            keys=inner_keys,
        )
        aggregate = BlockItem(self.key(), usual)
        conditions: tuple[Predicate, ...] = tuple(
            Equality((key, Column(aggregate.key, f"key_{index}", key.type))) for index, key in enumerate(keys)
        )
        bound = Column(aggregate.key, "usual", result)
        conditions = (*conditions, Comparison(self.rng.choice((">=", "<=", ">")), value, bound))
        outputs = (
            *(Output(key.name, key) for key in keys),
            Output("high", Aggregation("count", None, "BIGINT")),
        )
        return Select(outputs, (rows, aggregate), conditions, keys=keys)

    def side_by_side_block(self) -> Select:
        """CQ3, CQ4, CQ6: aggregates of different ranges compared at the same tick."""
        stream = self.rng.choice(self.catalog.streams)
        window = self.tick_window()
        probe = RelationItem("probe", stream)
        key_names = [key.name for key in self.key_columns(probe)]
        value_name = self.number(columns_of_item(probe)).name
        parts: list[BlockItem] = []
        for _ in range(self.rng.choice((2, 2, 3))):
            item = RelationItem(
                self.key(), stream, replace(window, range_s=window.slide_s * self.rng.randint(1, 5))
            )
            columns = {column.name: column for column in columns_of_item(item)}
            keys = tuple(columns[name] for name in key_names)
            outputs = [Output(f"key_{index}", key) for index, key in enumerate(keys)]
            for index, function in enumerate(self.rng.sample(("max", "min", "sum", "count"), 2)):
                outputs.append(Output(f"value_{index}", self.call(function, columns[value_name])))
            conditions = self.conditions(tuple(columns.values()), 0, 1)
            parts.append(BlockItem(self.key(), Select(tuple(outputs), (item,), conditions, keys=keys)))
        equalities = tuple(
            Equality(
                tuple(Column(part.key, f"key_{index}", column_type(part, f"key_{index}")) for part in parts)
            )
            for index in range(len(key_names))
        )
        shown: list[Expression] = [column for part in parts for column in columns_of_item(part)]
        return Select(self.named_outputs([WindowEdge(), *shown]), tuple(parts), equalities)

    def nested_block(self) -> Select:
        """CQ5: an aggregate of an aggregate, at the same tick."""
        item = self.stream(self.tick_window())
        columns = columns_of_item(item)
        keys = self.key_columns(item)
        inner = Select(
            (
                *(Output(f"key_{index}", key) for index, key in enumerate(keys)),
                Output("total", self.call(self.rng.choice(("sum", "count", "max")), self.number(columns))),
            ),
            (item,),
            self.conditions(columns, 0, 1),
            keys=keys,
        )
        outer = BlockItem(self.key(), inner)
        inner_columns = columns_of_item(outer)
        outer_keys = inner_columns[:1] if len(inner_columns) > 2 else ()
        highest = Aggregation("max", inner_columns[-1], inner_columns[-1].type)
        outputs = self.named_outputs([WindowEdge(), *outer_keys, highest])
        conditions: tuple[Predicate, ...] = ()
        if self.maybe(0.4):
            conditions = (Comparison(">", inner_columns[-1], Constant("1", "INT")),)
        return Select(outputs, (outer,), conditions, keys=outer_keys)

    def union_block(self) -> UnionAll:
        """Branches of the same class over columns of the same types."""
        ticks = self.maybe(0.4)
        window = self.tick_window() if ticks else None
        shape = [self.rng.choice(KEY_TYPES) for _ in range(self.rng.randint(1, 2))]
        branches = []
        for _ in range(self.rng.choice((2, 2, 3))):
            item = self.stream(window)
            columns = columns_of_item(item)
            chosen = [self.rng.choice([c for c in columns if c.type == type_]) for type_ in shape]
            keys = tuple(dict.fromkeys(chosen)) if ticks else ()
            shown: list[Expression] = [*chosen, *([Aggregation("count", None, "BIGINT")] if ticks else [])]
            branches.append(
                Select(self.named_outputs(shown), (item,), self.conditions(columns, 0, 2), keys=keys)
            )
        return UnionAll(tuple(branches))

    def top_block(self) -> Select:
        item = self.stream(self.tick_window())
        columns = columns_of_item(item)
        conditions = self.conditions(columns, 0, 1)
        if self.maybe(0.3):
            select = Select(self.projections(columns, 2, 3), (item,), conditions)
        else:
            keys = self.key_columns(item)
            counted = Aggregation("count", None, "BIGINT")
            select = Select(self.named_outputs([*keys, counted]), (item,), conditions, keys=keys)
        names = [output.name for output in select.outputs]
        order = tuple(
            OrderKey(name, self.maybe(0.5)) for name in self.rng.sample(names, self.rng.randint(1, 2))
        )
        return replace(select, order=order, limit=self.rng.randint(1, 3))

    def over_query_block(self) -> Select:
        """An aggregate over another query's result: rolled up by a window of its own, or at its ticks."""
        candidates = [name for name, block in self.named.items() if self._readable(block)]
        if not candidates:
            return self.nested_block()
        name = self.rng.choice(candidates)
        block = self.named[name]
        window = None if _ticks(block) and self.maybe(0.5) else self.tick_window(aligned=True)
        item = BlockItem(self.key(), block, window, name)
        columns = columns_of_item(item)
        return self.aggregated((item,), columns, self.conditions(columns, 0, 1))

    # Parts of queries.

    def maybe(self, probability: float) -> bool:
        """Chance: least draws say no, so that what Hypothesis shrinks becomes simpler."""
        return self.rng.random() >= 1 - probability

    def key(self) -> str:
        self._items += 1
        return f"i{self._items}"

    def stream(self, window: Window | None) -> RelationItem:
        return RelationItem(self.key(), self.rng.choice(self.catalog.streams), window)

    def table(self) -> RelationItem:
        return RelationItem(self.key(), self.rng.choice(self.catalog.tables))

    def tick_window(self, aligned: bool = False) -> TickWindow:
        range_s, slide_s = self.rng.choice(WINDOWS_S)
        if aligned or self.maybe(0.8):
            return TickWindow(range_s, slide_s)
        return TickWindow(range_s, slide_s, self.rng.choice((0, 5)))

    def joined(self, items: tuple[Item, ...]) -> Select:
        columns = tuple(column for item in items for column in columns_of_item(item))
        conditions = self.equalities(items)
        for item in items:
            if self.maybe(0.35):
                conditions = (*conditions, self.condition(columns_of_item(item)))
        if self.maybe(0.3):
            left, right = (self.number(columns_of_item(item)) for item in items[:2])
            conditions = (*conditions, Comparison(self.rng.choice(("<", "<=", "<>", "<=>")), left, right))
        return Select(self.projections(columns, 2, 4), items, conditions)

    def equalities(self, items: Sequence[Item]) -> tuple[Predicate, ...]:
        """One class of equal keys over all items, sometimes with a constant."""
        type_ = self.key_type(items)
        members: list[Column | Constant] = [
            self.rng.choice([column for column in columns_of_item(item) if column.type == type_])
            for item in items
        ]
        if self.maybe(0.2):
            members.append(self.constant(type_))
        return (Equality(tuple(members)),)

    def key_type(self, items: Sequence[Item]) -> str:
        """A type of which all items have columns."""
        del items  # all relations have columns of these
        return self.rng.choice(KEY_TYPES)

    def aggregated(
        self,
        items: tuple[Item, ...],
        columns: Sequence[Column],
        conditions: tuple[Predicate, ...],
        outer: tuple[OuterStep, ...] = (),
    ) -> Select:
        groupable = [column for column in columns if column.type in KEY_TYPES]
        keys = tuple(self.rng.sample(groupable, min(len(groupable), self.rng.choice((0, 1, 1, 2)))))
        calls = [self.aggregation(columns) for _ in range(self.rng.randint(1, 3))]
        shown: list[Expression] = [*keys, *calls]
        if self.maybe(0.4):
            one_window = len(items) == 1 and items[0].window is not None and not outer
            shown.insert(0, WindowEdge("start" if one_window and self.maybe(0.3) else "end"))
        having: tuple[Predicate, ...] = ()
        if self.maybe(0.3):
            having = (
                Comparison(
                    ">=", Aggregation("count", None, "BIGINT"), Constant(self.rng.choice("12"), "INT")
                ),
            )
        return Select(self.named_outputs(shown), items, conditions, outer, keys, having)

    def key_columns(self, item: Item) -> tuple[Column, ...]:
        groupable = [column for column in columns_of_item(item) if column.type in KEY_TYPES]
        return tuple(self.rng.sample(groupable, self.rng.randint(1, min(2, len(groupable)))))

    def named_outputs(self, expressions: Sequence[Expression]) -> tuple[Output, ...]:
        return tuple(Output(f"o{index}", expression) for index, expression in enumerate(expressions))

    def projections(self, columns: Sequence[Column], least: int, most: int) -> tuple[Output, ...]:
        count = self.rng.randint(least, most)
        return self.named_outputs(
            [self.scalar(columns) if self.maybe(0.3) else self.rng.choice(columns) for _ in range(count)]
        )

    # Expressions.

    def number(self, columns: Sequence[Column]) -> Column:
        return self.rng.choice([column for column in columns if column.type in ("INT", "DECIMAL(9,2)")])

    def constant(self, type_: str) -> Constant:
        match type_:
            case "INT" | "BIGINT":
                return Constant(str(self.rng.randint(0, 5)), type_)
            case "STRING":
                return Constant("'" + self.rng.choice(WORDS).replace("'", "''") + "'", type_)
            case "BOOLEAN":
                return Constant(self.rng.choice(("TRUE", "FALSE")), type_)
            case "TIMESTAMP":
                return Constant(f"TIMESTAMP '2026-03-02 06:00:{self.rng.randint(10, 59)}'", type_)
            case _:
                return Constant(self.rng.choice(("0.50", "2.25", "4.00")), type_)

    def scalar(self, columns: Sequence[Column]) -> Expression:
        column = self.rng.choice(columns)
        match column.type:
            case "INT":
                other = self.rng.choice([c for c in columns if c.type == "INT"])
                function = self.rng.choice(("+", "*", "-", "coalesce", "abs", "case"))
                if function == "case":
                    return Case(((self.condition(columns), column),), self.constant("INT"), "INT")
                if function == "coalesce":
                    return Apply("coalesce", (column, self.constant("INT")), "INT")
                return (
                    Apply("abs", (column,), "INT")
                    if function == "abs"
                    else Apply(function, (column, other), "INT")
                )
            case "STRING":
                function = self.rng.choice(("upper", "lower", "||", "substring", "length"))
                if function == "length":
                    return Apply("length", (column,), "INT")
                if function == "substring":
                    return Apply("substring", (column, Constant("1", "INT"), Constant("2", "INT")), "STRING")
                return Apply(
                    function, (column, self.constant("STRING")) if function == "||" else (column,), "STRING"
                )
            case "BIGINT":
                return Apply("cast STRING", (column,), "STRING")
            case "TIMESTAMP":
                later = Apply("+", (column, Constant("INTERVAL 5 SECONDS", "INTERVAL")), "TIMESTAMP")
                return self.rng.choice((Apply("second", (column,), "INT"), later))
            case "DOUBLE":
                return Apply("+", (column, column), "DOUBLE")
            case _:
                return column

    def call(self, function: str, argument: Column) -> Aggregation:
        match function:
            case "sum":
                return Aggregation("sum", argument, SUMS[argument.type])
            case "count" | "count_distinct":
                return Aggregation(function, argument, "BIGINT")
            case "min" | "max":
                return Aggregation(function, argument, argument.type)
            case _:
                return Aggregation(function, argument, "DOUBLE")

    def aggregation(self, columns: Sequence[Column]) -> Aggregation:
        function = self.rng.choice(
            ("count", "count", "sum", "sum", "avg", "min", "max", "count_distinct", "stddev_samp", "var_pop")
        )
        if function == "count" and self.maybe(0.6):
            call = Aggregation("count", None, "BIGINT")
        else:
            numbers = [column for column in columns if column.type in NUMBERS]
            if not numbers:
                return Aggregation("count", None, "BIGINT")
            call = self.call(function, self.rng.choice(numbers))
        if self.maybe(0.2):
            return replace(call, filter=self.condition(columns))
        return call

    # Predicates.

    def conditions(self, columns: Sequence[Column], least: int, most: int) -> tuple[Predicate, ...]:
        return tuple(self.condition(columns) for _ in range(self.rng.randint(least, most)))

    def condition(self, columns: Sequence[Column], depth: int = 2) -> Predicate:
        if depth and self.maybe(0.25):
            terms = tuple(self.condition(columns, depth - 1) for _ in range(2))
            return self.rng.choice((AnyOf(terms), AllOf(terms), Negation(terms[0])))
        comparable = [column for column in columns if column.type != "BOOLEAN"]
        column = self.rng.choice(comparable or list(columns))
        chance = self.rng.random()
        if chance < 0.1:
            return self.rng.choice((IsNull(column), Negation(IsNull(column))))
        if column.type == "STRING" and chance < 0.3:
            return Like(column, Constant(self.rng.choice(("'%o%'", "'A%'", "'_O%'")), "STRING"))
        if column.type in ("INT", "BIGINT", "STRING") and chance < 0.5:
            constants = {self.constant(column.type) for _ in range(3)}
            among = Among(column, tuple(sorted(constants, key=lambda constant: constant.sql)))
            return Negation(among) if self.maybe(0.3) else among
        if column.type in ("INT", "BIGINT", "DECIMAL(9,2)") and chance < 0.65:
            low, high = sorted(
                (self.constant(column.type), self.constant(column.type)), key=lambda c: float(c.sql)
            )
            return Between(column, low, high)
        operator = self.rng.choice(("<", "<=", ">", ">=", "=", "<>", "<=>"))
        return Comparison(operator, column, self.constant(column.type))

    def _readable(self, block: Block) -> bool:
        """A query whose result another one can aggregate: it has a column to group by."""
        return isinstance(block, Select) and any(
            output.expression.type in ("INT", "DECIMAL(9,2)") for output in block.outputs
        )


def column_type(item: Item, name: str) -> str:
    return next(column.type for column in columns_of_item(item) if column.name == name)


def _ticks(block: Block) -> bool:
    """Whether a block gives one relation a tick of time, which a reader without window can use."""
    if isinstance(block, UnionAll):
        return all(_ticks(branch) for branch in block.branches)
    windows = [item.window for item in block.all_items]
    if any(isinstance(window, RowWindow) for window in windows):
        return False
    if any(isinstance(window, TickWindow) for window in windows):
        return True
    return any(isinstance(item, BlockItem) and _ticks(item.block) for item in block.all_items)
