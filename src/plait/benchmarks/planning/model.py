"""Queries as data, before they are text: what the generator makes and the printer disguises.

This is deliberately a second, smaller model beside `plait.plan`: a disguise that shared code with the
rewrite rules would share their mistakes. Columns are named by the FROM item they come from, items by a key
that is unique in the query; aliases, spelling and order are the printer's business.

What several spellings can say has one form here. `Equality` is a whole class of equal terms, whichever pairs
the text compares; a window is its range, slide and the offset of its ends; the conditions of inner joins are
conjuncts of the block, wherever the text puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar


@dataclass(frozen=True)
class Relation:
    """A stream (with an event-time column) or a table (without)."""

    name: str
    columns: tuple[tuple[str, str], ...]
    event_time: str | None = None
    delay_s: int = 0


# Expressions. Types are written as in SQL.


@dataclass(frozen=True)
class Column:
    item: str
    name: str
    type: str


@dataclass(frozen=True)
class Constant:
    sql: str
    type: str


@dataclass(frozen=True)
class WindowEdge:
    """`window_start` or `window_end`; the start only where all windows of the block have one range."""

    edge: str = "end"
    type: str = "TIMESTAMP"


@dataclass(frozen=True)
class Apply:
    """An operator (`+ - * / % ||`) or a function by its name."""

    function: str
    arguments: tuple[Expression, ...]
    type: str


@dataclass(frozen=True)
class Case:
    branches: tuple[tuple[Predicate, Expression], ...]
    otherwise: Expression | None
    type: str


@dataclass(frozen=True)
class Aggregation:
    """`argument` None is `count(*)`."""

    function: str
    argument: Expression | None
    type: str
    filter: Predicate | None = None


Expression: TypeAlias = Column | Constant | WindowEdge | Apply | Case | Aggregation


# Predicates.


@dataclass(frozen=True)
class Comparison:
    operator: str  # < <= > >= = <>
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Equality:
    """All members are equal: columns of one type and at most one constant."""

    members: tuple[Column | Constant, ...]


@dataclass(frozen=True)
class Between:
    value: Expression
    low: Constant
    high: Constant


@dataclass(frozen=True)
class Among:
    value: Expression
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class IsNull:
    value: Expression


@dataclass(frozen=True)
class Like:
    value: Expression
    pattern: Constant


@dataclass(frozen=True)
class Negation:
    term: Predicate


@dataclass(frozen=True)
class AllOf:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True)
class AnyOf:
    terms: tuple[Predicate, ...]


Predicate: TypeAlias = Comparison | Equality | Between | Among | IsNull | Like | Negation | AllOf | AnyOf


# Windows.


@dataclass(frozen=True)
class InstantWindow:
    """`[RANGE r]` of a select-project-join block."""

    range_s: int


@dataclass(frozen=True)
class TickWindow:
    """Ticks at multiples of the slide plus `offset_s`."""

    range_s: int
    slide_s: int
    offset_s: int = 0


@dataclass(frozen=True)
class RowWindow:
    rows: int
    slide_rows: int
    partition: tuple[str, ...] = ()


Window: TypeAlias = InstantWindow | TickWindow | RowWindow


# FROM items and blocks.


@dataclass(frozen=True)
class RelationItem:
    """A stream, with or without window, or a table."""

    key: str
    relation: Relation
    window: Window | None = None


@dataclass(frozen=True)
class BlockItem:
    """A block in FROM; `query` names the continuous query that it is, if it is one."""

    key: str
    block: Block
    window: Window | None = None
    query: str | None = None


Item: TypeAlias = RelationItem | BlockItem


@dataclass(frozen=True)
class OuterStep:
    """`… LEFT|RIGHT|FULL JOIN item ON on`, after the inner joins of the block."""

    kind: str
    item: Item
    on: tuple[Predicate, ...]


@dataclass(frozen=True)
class Output:
    name: str
    expression: Expression


@dataclass(frozen=True)
class OrderKey:
    """By the output of that name; NULLs as in Spark: first when ascending, last when descending."""

    output: str
    descending: bool


@dataclass(frozen=True)
class Select:
    """`conditions` are conjuncts over the inner items and, with outer steps, over the joined rows (WHERE)."""

    outputs: tuple[Output, ...]
    items: tuple[Item, ...]
    conditions: tuple[Predicate, ...] = ()
    outer: tuple[OuterStep, ...] = ()
    keys: tuple[Column, ...] = ()
    having: tuple[Predicate, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None

    @property
    def all_items(self) -> tuple[Item, ...]:
        return (*self.items, *(step.item for step in self.outer))

    @property
    def aggregates(self) -> bool:
        terms = (*(output.expression for output in self.outputs), *self.having)
        return bool(self.keys) or any(isinstance(part, Aggregation) for term in terms for part in parts(term))


@dataclass(frozen=True)
class UnionAll:
    branches: tuple[Select, ...]

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.branches[0].outputs


Block: TypeAlias = Select | UnionAll


def columns_of_item(item: Item) -> tuple[Column, ...]:
    """Everything that an item offers to the block that reads it."""
    if isinstance(item, RelationItem):
        return tuple(Column(item.key, name, type_) for name, type_ in item.relation.columns)
    return tuple(Column(item.key, output.name, output.expression.type) for output in item.block.outputs)


def children(term: Expression | Predicate) -> tuple[Expression | Predicate, ...]:
    match term:
        case Column() | Constant() | WindowEdge():
            return ()
        case Apply(_, arguments, _):
            return arguments
        case Case(branches, otherwise, _):
            inner = tuple(part for branch in branches for part in branch)
            return inner if otherwise is None else (*inner, otherwise)
        case Aggregation(_, argument, _, filter_):
            return tuple(part for part in (argument, filter_) if part is not None)
        case Comparison(_, left, right):
            return (left, right)
        case Equality(members):
            return members
        case Between(value, low, high):
            return (value, low, high)
        case Among(value, constants):
            return (value, *constants)
        case IsNull(value):
            return (value,)
        case Like(value, pattern):
            return (value, pattern)
        case Negation(inner_term):
            return (inner_term,)
        case AllOf(terms) | AnyOf(terms):
            return terms


def parts(term: Expression | Predicate) -> Iterator[Expression | Predicate]:
    """The term and everything below it, parents first."""
    yield term
    for child in children(term):
        yield from parts(child)


def items_used(term: Expression | Predicate) -> frozenset[str]:
    return frozenset(part.item for part in parts(term) if isinstance(part, Column))


Tree = TypeVar("Tree")


def rebuild(tree: Tree, change: Callable[[Any], Any]) -> Tree:
    """A copy with `change` applied to every node (dataclass) in it, the innermost first."""
    if isinstance(tree, tuple):
        return tuple(rebuild(part, change) for part in tree)  # type: ignore[return-value]
    if is_dataclass(tree) and not isinstance(tree, type):
        parts_of_tree = {field.name: rebuild(getattr(tree, field.name), change) for field in fields(tree)}
        result: Tree = change(replace(tree, **parts_of_tree))
        return result
    return tree


def substitute(tree: Tree, replacements: Mapping[Any, Any]) -> Tree:
    """A copy in which every node that is a key of `replacements` is replaced, the outermost first."""
    if isinstance(tree, tuple):
        return tuple(substitute(part, replacements) for part in tree)  # type: ignore[return-value]
    if is_dataclass(tree) and not isinstance(tree, type):
        if tree in replacements:
            found: Tree = replacements[tree]
            return found
        parts_of_tree = {f.name: substitute(getattr(tree, f.name), replacements) for f in fields(tree)}
        copied: Tree = replace(tree, **parts_of_tree)
        return copied
    return tree
