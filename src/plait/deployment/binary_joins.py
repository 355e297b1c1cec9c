"""A join of several inputs as joins of two in a row: the predicate of each, and the columns at the end."""

from __future__ import annotations

from plait.expressions.nodes import Call, Column, Expression, columns_of, conjunction, conjuncts
from plait.plan.nodes import Join, Node, OuterJoin, Project
from plait.space import restricted


def predicate_of_step(join: Join, members: tuple[int, ...], new: int, *, all_terms: bool) -> Expression:
    """What of the predicate is about a new input and those joined already (whose columns come first)."""
    terms = conjuncts(restricted(join, (*members, new)).predicate)
    first_of_new = sum(len(join.inputs[member].types) for member in members)
    return conjunction([t for t in terms if all_terms or max(columns_of(t), default=-1) >= first_of_new])


def in_order(join: Join, members: tuple[int, ...], output: Node) -> Project:
    """The joined columns as the join itself has them."""
    starts, position = {}, 0
    for member in members:
        starts[member] = position
        position += len(join.inputs[member].types)
    columns = (starts[k] + i for k, each in enumerate(join.inputs) for i in range(len(each.types)))
    return Project(output, tuple(Column(index, output.types[index]) for index in columns))


def equalities(join: Join | OuterJoin) -> tuple[tuple[Expression, Expression], ...]:
    """What the predicate of a join of two inputs says is equal: something of the left and of the right.

    Both are over the columns of the join.
    """
    first_of_right = join.starts[1]
    pairs = []
    for term in conjuncts(join.predicate):
        if isinstance(term, Call) and term.function == "eq":
            one, other = term.arguments
            if _is_left(one, first_of_right) and _is_right(other, first_of_right):
                pairs.append((one, other))
            elif _is_left(other, first_of_right) and _is_right(one, first_of_right):
                pairs.append((other, one))
    return tuple(pairs)


def _is_left(expression: Expression, first_of_right: int) -> bool:
    columns = columns_of(expression)
    return bool(columns) and max(columns) < first_of_right


def _is_right(expression: Expression, first_of_right: int) -> bool:
    columns = columns_of(expression)
    return bool(columns) and min(columns) >= first_of_right
