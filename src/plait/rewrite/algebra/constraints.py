"""What a conjunction says about one expression by comparing it with literals.

`x > 5 AND x > 3` is `x > 5`; `x IN (1, 2, 3) AND x > 1` is `x IN (2, 3)`; `x <> 1 AND x <> 2` is
`x NOT IN (1, 2)`. All of it is exact in three-valued logic: where x is NULL both sides are NULL, elsewhere
comparison with literals is two-valued. Only a contradiction (`x > 5 AND x < 3`) is FALSE for some x and
NULL for a NULL one, so it becomes FALSE only where the two are the same: in a filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from plait.expressions.nodes import FALSE, Call, Expression, Literal
from plait.expressions.types import BOOLEAN
from plait.rewrite.algebra.comparisons import comparison, membership
from plait.rewrite.algebra.constants import compare_literals, is_true_of

_Bound: TypeAlias = tuple[str, Literal]


@dataclass
class _Constraints:
    terms: list[Expression] = field(default_factory=list)
    allowed: list[tuple[Literal, ...]] = field(default_factory=list)  # x is among each of these
    excluded: list[Literal] = field(default_factory=list)
    bounds: list[_Bound] = field(default_factory=list)

    def admit(self, value: Literal) -> bool | None:
        """Whether x may be this value; None if that is not certain."""
        answers = [is_true_of(function, value, bound) for function, bound in self.bounds]
        answers += [is_true_of("ne", value, excluded) for excluded in self.excluded]
        answers += [_is_among(value, literals) for literals in self.allowed]
        return None if None in answers else all(answers)


def tighten(terms: Iterable[Expression], is_filter: bool) -> list[Expression]:
    """The terms of a conjunction, with those on one expression merged.

    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import INT
    >>> x = Column(0, INT)
    >>> bounds = [Call("ge", (x, Literal(bound, INT))) for bound in (4, 6)]
    >>> [term] = tighten(bounds, is_filter=False)
    >>> term.arguments[1].value
    6
    """
    groups: dict[Expression, _Constraints] = {}
    others: list[Expression] = []
    for term in terms:
        if not _collect(term, groups):
            others.append(term)
    for subject, constraints in groups.items():
        merged = _merged(subject, constraints, is_filter) if len(constraints.terms) > 1 else None
        others += constraints.terms if merged is None else merged
    return others


def _collect(term: Expression, groups: dict[Expression, _Constraints]) -> bool:
    """Note what the term says about its subject; false if it is not of the kind dealt with here."""
    match term:
        case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge", (subject, Literal() as literal)):
            items: Sequence[Expression] = [literal]
        case Call("in", (subject, *items)) | Call("not", (Call("in", (subject, *items)),)):
            pass
        case _:
            return False
    literals = tuple(item for item in items if isinstance(item, Literal))
    if len(literals) < len(items):
        return False
    function = term.function
    if subject.type == BOOLEAN or any(literal.value is None for literal in literals):
        return False
    constraints = groups.setdefault(subject, _Constraints())
    constraints.terms.append(term)
    if function in ("eq", "in"):
        constraints.allowed.append(literals)
    elif function in ("ne", "not"):
        constraints.excluded += literals
    else:
        constraints.bounds.append((function, literals[0]))
    return True


def _merged(subject: Expression, constraints: _Constraints, is_filter: bool) -> list[Expression] | None:
    """The constraints as few terms; None where they stay as they are."""
    contradiction: list[Expression] | None = [FALSE] if is_filter else None
    if constraints.allowed:
        answers = {value: constraints.admit(value) for value in constraints.allowed[0]}
        if None in answers.values():
            return None
        admitted = tuple(value for value, answer in answers.items() if answer)
        return [membership(subject, admitted)] if admitted else contradiction
    lowers = [bound for bound in constraints.bounds if bound[0] in ("gt", "ge")]
    uppers = [bound for bound in constraints.bounds if bound[0] in ("lt", "le")]
    lower, upper = _tightest(lowers), _tightest(uppers)
    if (lowers and lower is None) or (uppers and upper is None):
        return None
    if lower is not None and upper is not None:
        sign = compare_literals(lower[1], upper[1])
        if sign is None:
            return None
        if sign > 0 or (sign == 0 and (lower[0], upper[0]) != ("ge", "le")):
            return contradiction
        if sign == 0:
            excluded = _is_among(lower[1], tuple(constraints.excluded))
            return contradiction if excluded else [comparison("eq", subject, lower[1])]
    kept = [bound for bound in (lower, upper) if bound is not None]
    inside = [
        value
        for value in dict.fromkeys(constraints.excluded)
        if all(is_true_of(function, value, bound) is not False for function, bound in kept)
    ]
    terms = [comparison(function, subject, bound) for function, bound in kept]
    if len(inside) == 1:
        terms.append(comparison("ne", subject, inside[0]))
    elif inside:
        terms.append(Call("not", (membership(subject, tuple(inside)),)))
    return terms


def _tightest(bounds: list[_Bound]) -> _Bound | None:
    """The bound that implies the others; None if there is none, or if it is not certain which."""
    return next((bound for bound in bounds if all(_implies(bound, other) for other in bounds)), None)


def _implies(bound: _Bound, other: _Bound) -> bool:
    """Of two lower or two upper bounds."""
    sign = compare_literals(bound[1], other[1])
    if sign is None:
        return False
    if sign == 0:
        return bound[0] == other[0] or bound[0] in ("gt", "lt")
    return sign > 0 if bound[0] in ("gt", "ge") else sign < 0


def _is_among(value: Literal, literals: tuple[Literal, ...]) -> bool | None:
    answers = [is_true_of("eq", value, literal) for literal in literals]
    if any(answers):
        return True
    return None if None in answers else False
