"""What a conjunction says about one expression by comparing it with literals.

`x > 5 AND x > 3` is `x > 5`; `x IN (1, 2, 3) AND x > 1` is `x IN (2, 3)`; `x <> 1 AND x <> 2` is
`x NOT IN (1, 2)`. All of it is exact in three-valued logic: where x is NULL both sides are NULL, elsewhere
comparison with literals is two-valued. Only a contradiction (`x > 5 AND x < 3`) is FALSE for some x and
NULL for a NULL one: whoever asks says what that is where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import isnan
from typing import TypeAlias

from plait.expressions.nodes import Call, Expression, Literal
from plait.expressions.types import BOOLEAN
from plait.rewrite.algebra.comparisons import comparison, membership
from plait.rewrite.algebra.constants import compare_literals, is_true_of

_Bound: TypeAlias = tuple[str, Literal]
# What takes the place of a contradiction about an expression; None if its terms stay as they are.
Contradiction: TypeAlias = Callable[[Expression], Expression | None]


@dataclass
class _Constraints:
    terms: list[Expression] = field(default_factory=list)
    allowed: list[tuple[Literal, ...]] = field(default_factory=list)  # x is among each of these
    excluded: list[Literal] = field(default_factory=list)
    bounds: list[_Bound] = field(default_factory=list)

    @property
    def are_comparable(self) -> bool:
        """Whether it is certain how all literals compare with each other: by their values."""
        literals = [*self.excluded, *(bound for _, bound in self.bounds)]
        literals += [literal for among in self.allowed for literal in among]
        return len({literal.type for literal in literals}) == 1 and not any(
            isinstance(literal.value, float) and isnan(literal.value) for literal in literals
        )


def tighten(terms: Iterable[Expression], contradiction: Contradiction) -> list[Expression]:
    """The terms of a conjunction, with those on one expression merged.

    >>> from plait.expressions.nodes import Column
    >>> from plait.expressions.types import INT
    >>> x = Column(0, INT)
    >>> bounds = [Call("ge", (x, Literal(bound, INT))) for bound in (4, 6)]
    >>> [term] = tighten(bounds, lambda subject: None)
    >>> term.arguments[1].value
    6
    """
    groups: dict[Expression, _Constraints] = {}
    others: list[Expression] = []
    for term in terms:
        if not _collect(term, groups):
            others.append(term)
    for subject, constraints in groups.items():
        merged = _merged(subject, constraints, contradiction) if len(constraints.terms) > 1 else None
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


def _merged(
    subject: Expression, constraints: _Constraints, contradiction: Contradiction
) -> list[Expression] | None:
    """The constraints as few terms; None where they stay as they are."""
    if not constraints.are_comparable:
        return None
    instead = contradiction(subject)
    contradicted = None if instead is None else [instead]
    lower = _tightest([bound for bound in constraints.bounds if bound[0] in ("gt", "ge")])
    upper = _tightest([bound for bound in constraints.bounds if bound[0] in ("lt", "le")])
    bounds = [bound for bound in (lower, upper) if bound is not None]
    excluded = {literal.value for literal in constraints.excluded}
    if constraints.allowed:
        common = set.intersection(*({literal.value for literal in among} for among in constraints.allowed))
        common -= excluded
        admitted = [
            literal
            for literal in constraints.allowed[0]
            if literal.value in common and _is_within(literal, bounds)
        ]
        return [membership(subject, tuple(admitted))] if admitted else contradicted
    if lower is not None and upper is not None:
        sign = compare_literals(lower[1], upper[1])
        assert sign is not None
        if sign > 0 or (sign == 0 and (lower[0], upper[0]) != ("ge", "le")):
            return contradicted
        if sign == 0:
            return contradicted if lower[1].value in excluded else [comparison("eq", subject, lower[1])]
    terms = [comparison(function, subject, bound) for function, bound in bounds]
    inside = [literal for literal in dict.fromkeys(constraints.excluded) if _is_within(literal, bounds)]
    if len(inside) == 1:
        terms.append(comparison("ne", subject, inside[0]))
    elif inside:
        terms.append(Call("not", (membership(subject, tuple(inside)),)))
    return terms


def _is_within(literal: Literal, bounds: Iterable[_Bound]) -> bool:
    return all(is_true_of(function, literal, bound) for function, bound in bounds)


def _tightest(bounds: list[_Bound]) -> _Bound | None:
    """Of lower or of upper bounds, the one that implies the others; None if there are none."""
    return reduce(lambda best, other: best if _implies(best, other) else other, bounds) if bounds else None


def _implies(bound: _Bound, other: _Bound) -> bool:
    """Of two lower or two upper bounds."""
    sign = compare_literals(bound[1], other[1])
    assert sign is not None
    if sign == 0:
        return bound[0] == other[0] or bound[0] in ("gt", "lt")
    return sign > 0 if bound[0] in ("gt", "ge") else sign < 0
