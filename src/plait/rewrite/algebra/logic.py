"""Three-valued logic in normal form: flat, sorted, without duplicates, with negation at the leaves.

The laws used hold in Kleene's logic, which is SQL's: AND and OR commute, associate, are idempotent,
distribute over each other and absorb (`a OR (a AND b)` is `a`); De Morgan's laws; double negation. The law
of the excluded middle does not hold (`p OR NOT p` is NULL where p is) and is not used.

`is_filter` says that the expression is the condition of a filter, a join, a FILTER clause or a CASE branch,
where NULL and FALSE are the same. It reaches through AND and OR but not through NOT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plait.expressions.nodes import FALSE, TRUE, Call, Expression, Literal
from plait.expressions.types import BOOLEAN
from plait.rewrite.algebra.comparisons import NEGATED, comparison, membership
from plait.rewrite.algebra.constants import NULL_BOOLEAN
from plait.rewrite.algebra.constraints import tighten
from plait.rewrite.algebra.order import in_order


def compare(function: str, left: Expression, right: Expression) -> Expression:
    """A comparison; that of a boolean with TRUE or FALSE is the boolean or its negation."""
    if left.type == BOOLEAN and function in ("eq", "ne"):
        for literal, other in ((left, right), (right, left)):
            if literal in (TRUE, FALSE):
                return other if (literal == TRUE) == (function == "eq") else negation(other)
    return comparison(function, left, right)


def is_member(value: Expression, items: tuple[Expression, ...]) -> Expression:
    if len(set(items)) == 1:
        return compare("eq", value, items[0])
    return membership(value, items)


def negation(expression: Expression) -> Expression:
    """NOT, pushed to the leaves: comparison is a total order, so that the opposite of `<` is `>=`."""
    match expression:
        case Literal(value):
            return NULL_BOOLEAN if value is None else FALSE if value else TRUE
        case Call("not", (inner,)):
            return inner
        case Call("and", terms):
            return disjunction([negation(term) for term in terms])
        case Call("or", terms):
            return conjunction([negation(term) for term in terms])
        case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge" as function, (left, right)):
            return compare(NEGATED[function], left, right)
        case _:
            return Call("not", (expression,))


def conjunction(terms: Iterable[Expression], is_filter: bool = False) -> Expression:
    """AND of terms in normal form.

    >>> from plait.expressions.nodes import Column
    >>> from plait.plan.format import format_expression
    >>> a, b = Column(0, BOOLEAN), Column(1, BOOLEAN)
    >>> format_expression(conjunction([b, TRUE, a, b]))
    '(#0 and #1)'
    """
    parts = [term for term in flat("and", terms) if term != TRUE]
    if is_filter and NULL_BOOLEAN in parts:
        return FALSE
    parts = tighten(dict.fromkeys(parts), lambda _: FALSE if is_filter else None)
    if FALSE in parts:
        return FALSE
    return _built("and", _absorbed(parts, "or"), TRUE)


def disjunction(terms: Iterable[Expression], is_filter: bool = False) -> Expression:
    """OR of terms in normal form: equalities of one expression with literals are one IN; what all share
    comes out.

    >>> from plait.expressions.nodes import Column
    >>> from plait.plan.format import format_expression
    >>> a, b, c = (Column(i, BOOLEAN) for i in range(3))
    >>> format_expression(disjunction([Call("and", (a, b)), Call("and", (a, c))]))
    '(#0 and (#1 or #2))'
    """
    parts = [term for term in flat("or", terms) if term != FALSE]
    if TRUE in parts:
        return TRUE
    if is_filter:
        parts = [term for term in parts if term != NULL_BOOLEAN]
    parts = _absorbed(_loosened(dict.fromkeys(parts), is_filter), "and")
    shared = _shared_terms(parts)
    if shared:
        rests = [
            conjunction([t for t in flat("and", [part]) if t not in shared], is_filter) for part in parts
        ]
        return conjunction([*shared, disjunction(rests, is_filter)], is_filter)
    return _built("or", parts, FALSE)


def flat(function: str, terms: Iterable[Expression]) -> list[Expression]:
    """The terms, with the arguments of the function in place of its calls."""
    return [
        inner
        for term in terms
        for inner in (
            flat(function, term.arguments) if isinstance(term, Call) and term.function == function else [term]
        )
    ]


def _built(function: str, terms: Sequence[Expression], empty: Literal) -> Expression:
    ordered = in_order(terms)
    if not ordered:
        return empty
    return ordered[0] if len(ordered) == 1 else Call(function, ordered)


def _absorbed(terms: list[Expression], inner: str) -> list[Expression]:
    """Without the terms that another one makes superfluous: `a OR (a AND b)` is `a`, and the dual."""
    if not any(isinstance(term, Call) and term.function == inner for term in terms):
        return terms
    parts = [frozenset(flat(inner, [term])) for term in terms]
    largest = max(map(len, parts))
    smaller = [part for part in parts if len(part) < largest]  # only such a one absorbs another
    return [term for term, mine in zip(terms, parts, strict=True) if not any(part < mine for part in smaller)]


def _shared_terms(disjuncts: list[Expression]) -> dict[Expression, None]:
    if len(disjuncts) < 2 or not all(isinstance(t, Call) and t.function == "and" for t in disjuncts):
        return {}  # one without an AND shares nothing: absorption would have left it alone
    first, *rest = (flat("and", [term]) for term in disjuncts)
    common = set(first).intersection(*rest)
    return {term: None for term in first if term in common}


def _loosened(terms: Iterable[Expression], is_filter: bool) -> list[Expression]:
    """Terms of a disjunction on one expression merged: the dual of `tighten`, by De Morgan.

    Where they hold of every value, such as `x > 3 OR x < 5`, a filter keeps all x but NULL.
    """

    def of_no_value(subject: Expression) -> Expression | None:
        return Call("is_null", (subject,)) if is_filter else None

    simple: list[Expression] = []
    others: list[Expression] = []
    for term in terms:
        match term:
            case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge" | "in") | Call("not", (Call("in"),)):
                simple.append(term)
            case _:
                others.append(term)
    if len(simple) < 2:
        return [*others, *simple]
    return others + [negation(term) for term in tighten(map(negation, simple), of_no_value)]
