"""How the predicates of many queries on the same rows are told apart in one pass.

A predicate is a conjunction. Its terms are of three kinds: a column equals a constant, a column is compared
with a constant, anything else. What the constants are is left to each query; the rest is its **pattern**, and
queries of one pattern are told apart by a table of their constants:

| pattern | a row finds its queries by |
|---|---|
| equalities | its values of these columns, looked up in the table of constants |
| bounds of one column | the cell that its value is in, between two of all queries' constants |
| neither | nothing: all queries of the pattern want the same rows |

Bounds stay with the rest where there are equalities too, or where they are of several columns. Two queries
whose predicates differ in the rest have different patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from plait.expressions.nodes import TRUE, Call, Column, Expression, Literal, conjunction

# How a comparison reads with its operands the other way round.
_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


# A row is handed over without a look if so many patterns are too few to tell whether anybody wants it.
_MOST_PATTERNS = 8


@dataclass(frozen=True)
class Pattern:
    """`rest` are the terms that all queries of the pattern share. Columns are in increasing order."""

    rest: frozenset[Expression]
    looked_up: tuple[Column, ...] = ()
    bounded: Column | None = None


@dataclass(frozen=True)
class Bound:
    """`lower` bounds are below the values that are wanted."""

    constant: Literal
    lower: bool
    included: bool


@dataclass(frozen=True)
class Selection:
    """The predicate of one query: its pattern, and the constants for its looked-up columns, or its bounds."""

    pattern: Pattern
    constants: tuple[Literal, ...] = ()
    bounds: tuple[Bound, ...] = ()


def selection_of(terms: Iterable[Expression]) -> Selection:
    """The pattern of a conjunction, and what is left to the query.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> number, load = Column(0, INT), Column(1, INT)
    >>> high = build("gt", load, number_literal("5"))
    >>> one = selection_of([build("eq", number, number_literal("17")), high])
    >>> other = selection_of([build("eq", number, number_literal("18")), high])
    >>> one.pattern == other.pattern, [constant.value for constant in one.constants]
    (True, [17])
    """
    equal: dict[Column, Literal] = {}
    bounds: dict[Column, list[tuple[Bound, Expression]]] = {}
    rest: set[Expression] = set()
    for term in terms:
        compared = _comparison(term)
        if compared is None:
            rest.add(term)
            continue
        function, column, constant = compared
        if function == "eq" and column not in equal:
            equal[column] = constant
        elif function == "eq":
            rest.add(term)
        else:
            bound = Bound(constant, lower=function in ("gt", "ge"), included=function in ("le", "ge"))
            bounds.setdefault(column, []).append((bound, term))
    if not equal and len(bounds) == 1:
        ((column, of_column),) = bounds.items()
        return Selection(Pattern(frozenset(rest), bounded=column), bounds=tuple(b for b, _ in of_column))
    rest.update(term for of_column in bounds.values() for _, term in of_column)
    columns = tuple(sorted(equal, key=lambda column: column.index))
    return Selection(Pattern(frozenset(rest), columns), tuple(equal[column] for column in columns))


def relaxed(selections: Sequence[Selection]) -> tuple[Expression, ...]:
    """Terms that are true of every row that one of the selections wants. They have one pattern.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> load = Column(0, INT)
    >>> low, high = (build("lt", load, number_literal("5")), build("le", load, number_literal("9")))
    >>> relaxed([selection_of([low]), selection_of([high])]) == (high,)
    True
    """
    pattern = selections[0].pattern
    terms = sorted(pattern.rest, key=repr)
    for place, column in enumerate(pattern.looked_up):
        constants = dict.fromkeys(selection.constants[place] for selection in selections)
        terms.append(Call("in" if len(constants) > 1 else "eq", (column, *constants)))
    if pattern.bounded is not None:
        for lower, function in ((True, "ge"), (False, "le")):
            found = [[b.constant for b in each.bounds if b.lower is lower] for each in selections]
            if all(found):
                outermost = (min if lower else max)(
                    ((max if lower else min)(constants, key=order) for constants in found), key=order
                )
                terms.append(Call(function, (pattern.bounded, outermost)))
    return tuple(terms)


def wanted_by_any(selections: Iterable[Selection]) -> Expression:
    """What is true of every row that one of the selections wants; true if more would be long to say."""
    by_pattern: dict[Pattern, list[Selection]] = {}
    for selection in selections:
        by_pattern.setdefault(selection.pattern, []).append(selection)
    if len(by_pattern) > _MOST_PATTERNS:
        return TRUE
    terms = [conjunction(relaxed(each)) for each in by_pattern.values()]
    if TRUE in terms:
        return TRUE
    return terms[0] if len(terms) == 1 else Call("or", tuple(terms))


def order(constant: Literal) -> Any:
    """Constants of one type compare by this as the engines compare them: NaN is the greatest, and 0.0 is
    -0.0."""
    value = constant.value
    if not isinstance(value, float):
        return value
    return (True, 0.0) if math.isnan(value) else (False, value)


def _comparison(term: Expression) -> tuple[str, Column, Literal] | None:
    """A column compared with a constant, as function, column and constant."""
    if not isinstance(term, Call) or term.function not in _TURNED:
        return None
    match term.arguments:
        case (Column() as column, Literal() as constant) if constant.value is not None:
            return term.function, column, constant
        case (Literal() as constant, Column() as column) if constant.value is not None:
            return _TURNED[term.function], column, constant
        case _:
            return None
