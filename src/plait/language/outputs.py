"""What a SELECT gives out: the names of its columns, and the first rows by an order.

A column is called as its alias says, else as it is written; an expression without alias is called by its
text. Columns of different FROM items that would have the same name are called `alias_column` instead, so
that `SELECT b.status, c.status` has two names. Any other doubling is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel

from plait.errors import Source, UnsupportedError, UserError
from plait.expressions.nodes import Column, Expression
from plait.expressions.types import INTERVAL
from plait.language.spans import span_of
from plait.plan.nodes import Node, Project, SortKey, Top

LONGEST_NAME = 128
MOST_LIMITED_ROWS = 2_147_483_647

_NAMES = Spark().generator(normalize_functions=False, unsupported_level=ErrorLevel.IGNORE, comments=False)


@dataclass(frozen=True)
class OutputColumn:
    """An item of a SELECT list. `expression` is over what the block's FROM gives and its aggregates.

    `origin` is the alias of the FROM item of a plain column without AS.
    """

    name: str
    expression: Expression
    node: exp.Expr
    origin: str | None = None


def written_name(node: exp.Expr) -> str:
    """The name of an item without alias.

    >>> from sqlglot import parse_one
    >>> written_name(parse_one("a + -b"))
    'a + -b'
    """
    if isinstance(node, exp.Column):
        return node.name
    return _NAMES.generate(node)[:LONGEST_NAME]


def name_outputs(outputs: Sequence[OutputColumn], source: Source) -> tuple[str, ...]:
    """One name for each column."""
    counts = Counter(output.name.lower() for output in outputs)
    names: list[str] = []
    seen: set[str] = set()
    for output in outputs:
        name = output.name
        if counts[name.lower()] > 1 and output.origin is not None:
            name = f"{output.origin}_{name}"
        if name.lower() in seen:
            raise UserError(
                "duplicate-column",
                f"two columns are called `{output.name}`",
                hint="give one of them another name with AS",
                span=span_of(output.node, source),
            )
        seen.add(name.lower())
        names.append(name)
    return tuple(names)


@dataclass(frozen=True)
class Limit:
    order: tuple[SortKey, ...]
    count: int


def limit_count(node: exp.Limit, source: Source) -> int:
    """The k of LIMIT k."""
    count = node.expression
    is_number = isinstance(count, exp.Literal) and not count.is_string and count.name.isdecimal()
    if not is_number or not 0 < int(count.name) <= MOST_LIMITED_ROWS:
        raise UserError(
            "limit",
            f"LIMIT takes a whole number from 1 to {MOST_LIMITED_ROWS:,}",
            hint="for example LIMIT 10",
            span=span_of(node, source),
        )
    return int(count.name)


def check_order_and_limit(query: exp.Expr, source: Source) -> None:
    """ORDER BY and LIMIT come together: a stream has no end, and no order but that of time."""
    order, limit = query.args.get("order"), query.args.get("limit")
    if order is not None and limit is None:
        raise UnsupportedError(
            "order-without-limit",
            "ORDER BY needs LIMIT: rows leave a query as they come",
            hint="add LIMIT k for the first k rows of every tick, or leave ORDER BY out",
            span=span_of(order, source),
        )
    if limit is not None and order is None:
        raise UnsupportedError(
            "limit-without-order",
            "LIMIT needs ORDER BY: which rows come first would be left to chance",
            hint="add ORDER BY before LIMIT",
            span=span_of(limit, source),
        )


def ordinal(node: exp.Expr, count: int, clause: str, source: Source) -> int | None:
    """The index that `ORDER BY 1` or `GROUP BY 1` means; None if it is no number."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdecimal():
        return None
    position = int(node.name)
    if not 1 <= position <= count:
        raise UserError(
            "ordinal",
            f"{clause} {position} means the selected column of that number, and there are {count}",
            span=span_of(node, source),
        )
    return position - 1


def project(plan: Node, expressions: Sequence[Expression], limit: Limit | None) -> Node:
    """The selected columns, of the first rows if limited. Sort keys not selected exist in between."""
    if limit is None:
        return Project(plan, tuple(expressions))
    columns = list(expressions)
    keys = []
    for key in limit.order:
        if key.expression not in columns:
            columns.append(key.expression)
        position = Column(columns.index(key.expression), key.expression.type)
        keys.append(SortKey(position, key.descending, key.nulls_first))
    top = Top(Project(plan, tuple(columns)), tuple(keys), limit.count)
    if len(columns) == len(expressions):
        return top
    return Project(top, tuple(Column(i, e.type) for i, e in enumerate(expressions)))


def check_column_type(expression: Expression, node: exp.Expr, source: Source) -> None:
    """A column of a result, a group or an order is not an interval."""
    if expression.type == INTERVAL:
        raise UserError(
            "interval",
            "an interval lives inside expressions and is no column",
            hint="use a number, for example timestampdiff(SECOND, a, b), or add it to a time",
            span=span_of(node, source),
        )
