"""How the predicates of many queries on the same rows are told apart in one pass.

A predicate is a conjunction. Its terms are of three kinds: a column is one of some constants, a column is
compared with a constant, anything else. What the constants are is left to each query; the rest is its
**pattern**, and queries of one pattern are told apart by a table of their constants:

| pattern | a row finds its queries by |
|---|---|
| equalities | its values of these columns, looked up in the table of constants |
| bounds of one column | the cell that its value is in, between two of all queries' constants |
| neither | nothing: it is compared with each query's constants |

Of what is left, bounds of other columns among it, constants that are compared or computed with are the
queries' own, too, where rows can be **tagged**: each row that has found a query is compared with its
constants. Terms that need constants as they are written (LIKE, long lists) are then the queries' own as a
whole: each different one is evaluated once a row. Otherwise all of it belongs to the pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from plait.expressions.nodes import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    transform,
    walk,
)
from plait.expressions.types import Type
from plait.sharing.shapes import shaped

# How a comparison reads with its operands the other way round.
_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}

# A row is handed over without a look if so many patterns are too few to tell whether anybody wants it.
_MOST_PATTERNS = 8

# Columns are looked up as long as the choices that their constants leave are no more than so many: the table
# has a row for each.
MOST_CHOICES = 100


@dataclass(frozen=True)
class Pattern:
    """`rest` are terms that the queries of the pattern share, over the columns of a relation and, from
    `width` on, over parameters of these types, whose values are each query's own. Columns are in increasing
    order."""

    width: int
    rest: tuple[Expression, ...] = ()
    looked_up: tuple[Column, ...] = ()
    bounded: Column | None = None
    parameters: tuple[Type, ...] = ()
    has_written: bool = False


@dataclass(frozen=True)
class Bound:
    """`lower` bounds are below the values that are wanted."""

    constant: Literal
    lower: bool
    included: bool

    def term(self, column: Column) -> Expression:
        function = ("ge" if self.included else "gt") if self.lower else ("le" if self.included else "lt")
        return Call(function, (column, self.constant))


@dataclass(frozen=True)
class Selection:
    """The predicate of one query: its pattern, the constants that each of its looked-up columns may be equal
    to, its bounds, its parameters, and terms that need their constants as written."""

    pattern: Pattern
    constants: tuple[tuple[Literal, ...], ...] = ()
    bounds: tuple[Bound, ...] = ()
    parameters: tuple[Literal, ...] = ()
    written: tuple[Expression, ...] = ()

    @property
    def rest(self) -> tuple[Expression, ...]:
        """The rest of the predicate, with the query's own constants."""
        return tuple(map(self._own, self.pattern.rest))

    @property
    def terms(self) -> tuple[Expression, ...]:
        """The predicate."""
        pattern = self.pattern
        looked_up = zip(pattern.looked_up, self.constants, strict=True)
        found = [*self.rest, *self.written]
        found += [_is_one_of(column, constants) for column, constants in looked_up]
        if pattern.bounded is not None:
            found += [bound.term(pattern.bounded) for bound in self.bounds]
        return tuple(found)

    def _own(self, term: Expression) -> Expression:
        width = self.pattern.width

        def own(node: Expression) -> Expression:
            if isinstance(node, Column) and node.index >= width:
                return self.parameters[node.index - width]
            return node

        return transform(term, own)


def selection_of(
    terms: Iterable[Expression], width: int, *, tagged: bool = True, most_choices: int = MOST_CHOICES
) -> Selection:
    """The pattern of a conjunction over a relation of so many columns, and what is left to the query.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> number, load = Column(0, INT), Column(1, INT)
    >>> one, other = (
    ...     selection_of([build("eq", number, number_literal(n)), build("gt", load, number_literal(m))], 2)
    ...     for n, m in (("17", "5"), ("18", "6"))
    ... )
    >>> one.pattern == other.pattern, [c.value for (c,) in one.constants], [p.value for p in one.parameters]
    (True, [17], [5])
    """
    equal: dict[Column, tuple[Literal, ...]] = {}
    bounds: dict[Column, list[Bound]] = {}
    rest: list[Expression] = []
    for term in terms:
        match _constraint(term):
            case (column, Bound() as bound):
                bounds.setdefault(column, []).append(bound)
            case (column, tuple() as constants) if column not in equal:
                equal[column] = constants
            case _:
                rest.append(term)
    choices = 1
    for column in sorted(equal, key=lambda each: (len(equal[each]), each.index)):
        choices *= len(equal[column])
        if choices > most_choices:
            rest.append(_is_one_of(column, equal.pop(column)))
    columns = tuple(sorted(equal, key=lambda column: column.index))
    bounded = None
    if not equal and bounds and (tagged or len(bounds) == 1):
        bounded = min(bounds, key=lambda column: column.index)
    rest += [bound.term(column) for column, own in bounds.items() if column != bounded for bound in own]
    # Alike in all queries, whatever their constants are.
    rest.sort(key=lambda term: (repr(shaped(width, [term], []).shape), repr(term)))
    parameters: tuple[Literal, ...] = ()
    written: tuple[Expression, ...] = ()
    types: tuple[Type, ...] = ()
    if tagged:
        written = tuple(term for term in rest if _needs_constants(term, width))
        lifted = shaped(width, [term for term in rest if term not in written], [])
        rest, parameters, types = [*lifted.shape.terms], lifted.constants, lifted.shape.constants
    return Selection(
        Pattern(width, tuple(rest), columns, bounded, types, bool(written)),
        tuple(equal[column] for column in columns),
        () if bounded is None else tuple(bounds[bounded]),
        parameters,
        written,
    )


def _needs_constants(term: Expression, width: int) -> bool:
    """Whether some constant of a term cannot be a parameter."""
    (lifted,) = shaped(width, [term], []).shape.terms
    return any(isinstance(part, Literal) for part in walk(lifted))


def common_terms(selections: Sequence[Selection]) -> tuple[Expression, ...]:
    """Terms of the rest, and as written, that are the same for all selections, which have one pattern."""
    alike = [next(iter(each)) for each in _rests(selections) if len(each) == 1]
    written = {selection.written for selection in selections}
    return (*alike, *(written.pop() if len(written) == 1 else ()))


def own_terms(selections: Sequence[Selection]) -> tuple[Expression, ...]:
    """The others, over the columns and the parameters."""
    terms = selections[0].pattern.rest
    return tuple(term for term, each in zip(terms, _rests(selections), strict=True) if len(each) > 1)


def _rests(selections: Sequence[Selection]) -> list[dict[Expression, None]]:
    """For each term of the rest, what the selections have there."""
    return [dict.fromkeys(each) for each in zip(*(selection.rest for selection in selections), strict=True)]


def relaxed(selections: Sequence[Selection]) -> tuple[Expression, ...]:
    """Terms that are true of every row that one of the selections wants. They have one pattern.

    >>> from plait.expressions.coercion import build, number_literal
    >>> from plait.expressions.types import INT
    >>> load = Column(0, INT)
    >>> low, high = (build("lt", load, number_literal("5")), build("le", load, number_literal("9")))
    >>> relaxed([selection_of([low], 1), selection_of([high], 1)]) == (high,)
    True
    """
    pattern = selections[0].pattern
    terms = [*common_terms(selections)]
    for place, column in enumerate(pattern.looked_up):
        constants = dict.fromkeys(c for selection in selections for c in selection.constants[place])
        terms.append(_is_one_of(column, tuple(constants)))
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


def _constraint(term: Expression) -> tuple[Column, tuple[Literal, ...] | Bound] | None:
    """What a term says of a column: which constants it may be equal to, or a bound."""
    if not isinstance(term, Call):
        return None
    match term.arguments:
        case (Column() as column, *constants) if term.function == "in":
            literals = [each for each in constants if isinstance(each, Literal) and each.value is not None]
            different = {order(each): each for each in literals}
            if len(literals) < len(constants):
                return None
            return column, tuple(different.values())
        case (Column() as column, Literal() as constant):
            function = term.function
        case (Literal() as constant, Column() as column):
            function = _TURNED.get(term.function, "")
        case _:
            return None
    if function not in _TURNED or constant.value is None:
        return None
    if function == "eq":
        return column, (constant,)
    return column, Bound(constant, lower=function in ("gt", "ge"), included=function in ("le", "ge"))


def _is_one_of(column: Column, constants: Sequence[Literal]) -> Expression:
    return Call("in" if len(constants) > 1 else "eq", (column, *constants))
