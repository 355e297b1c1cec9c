"""The normal form of a whole expression.

`simplify` keeps the value, NULL included; `simplify_predicate` keeps only when it is TRUE. Both go bottom-up
through the constructors of `logic`, `comparisons` and `constants`, and remember their result on the
expression, since the rules ask again and again.
"""

from __future__ import annotations

from collections.abc import Collection

from plait.expressions.functions import FUNCTIONS
from plait.expressions.keeping import kept_form
from plait.expressions.nodes import FALSE, TRUE, Call, Column, Expression, Literal, columns_of, transform
from plait.expressions.types import Kind, Type
from plait.rewrite.algebra.constants import NULL_BOOLEAN, cast_literal, fold
from plait.rewrite.algebra.logic import compare, conjunction, disjunction, flat, is_member, negation
from plait.rewrite.algebra.order import in_order, sort_key


def simplify(expression: Expression) -> Expression:
    """The same value in normal form.

    >>> from plait.expressions.types import INT
    >>> from plait.plan.format import format_expression
    >>> x = Column(0, INT)
    >>> format_expression(simplify(Call("not", (Call("lt", (Literal(5, INT), x)),))))
    '(#0 <= 5)'
    """
    return _simplified(expression) if isinstance(expression, Call) else expression


@kept_form
def _simplified(call: Expression) -> Expression:
    assert isinstance(call, Call)
    return _constructed(call, tuple(map(simplify, call.arguments)))


def simplify_predicate(expression: Expression) -> Expression:
    """TRUE for the same rows, in normal form; where it is not TRUE it may be NULL or FALSE.

    >>> from plait.expressions.types import INT
    >>> from plait.plan.format import format_expression
    >>> x = Column(0, INT)
    >>> is_present = Call("not", (Call("is_null", (x,)),))
    >>> format_expression(simplify_predicate(Call("and", (is_present, Call("eq", (x, Literal(1, INT)))))))
    '(#0 = 1)'
    """
    if not isinstance(expression, Call):
        return FALSE if expression == NULL_BOOLEAN else expression
    return _simplified_predicate(expression)


@kept_form
def _simplified_predicate(call: Expression) -> Expression:
    return _without_implied_presence(_as_filter(simplify(call)))


def rejects_null(predicate: Expression, column: int) -> bool:
    """Whether the predicate is certainly not TRUE in rows where the column is NULL."""
    return with_nulls(predicate, {column}) in (FALSE, NULL_BOOLEAN)


def null_rejected_columns(predicate: Expression) -> frozenset[int]:
    """The columns whose NULL the predicate rejects."""
    return frozenset(column for column in columns_of(predicate) if rejects_null(predicate, column))


def with_nulls(expression: Expression, columns: Collection[int]) -> Expression:
    """The expression in rows where these columns are NULL."""
    return simplify(
        transform(
            expression,
            lambda e: Literal(None, e.type) if isinstance(e, Column) and e.index in columns else e,
        )
    )


def _constructed(call: Call, arguments: tuple[Expression, ...]) -> Expression:
    """The call in normal form, over arguments that are."""
    match call.function:
        case "and":
            return conjunction(arguments)
        case "or":
            return disjunction(arguments)
        case "not":
            return negation(arguments[0])
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return compare(call.function, *arguments)
        case "in":
            return is_member(arguments[0], arguments[1:])
        case "null_safe_eq":
            return _null_safe_equality(*in_order(arguments))
        case "cast":
            assert call.to is not None
            return _cast(arguments[0], call.to)
        case "case":
            return _case(arguments)
        case "coalesce":
            return _coalesce(arguments)
        case _:
            return fold(_commuted(_rebuilt(call, arguments)))


def _rebuilt(call: Call, arguments: tuple[Expression, ...]) -> Call:
    return call if arguments == call.arguments else Call(call.function, arguments, call.to)


def _commuted(call: Call) -> Call:
    """Operands in order where that changes nothing: two doubles' sum commutes, but sums do not associate."""
    if not FUNCTIONS[call.function].commutative:
        return call
    kinds = {argument.type.kind for argument in call.arguments}
    if call.function == "add" and Kind.INTERVAL in kinds:
        return _rebuilt(call, tuple(sorted(call.arguments, key=lambda a: a.type.kind is Kind.INTERVAL)))
    if len(kinds) > 1:
        return call
    ordered = _rebuilt(call, tuple(sorted(call.arguments, key=sort_key)))
    return ordered if ordered.type == call.type else call


def _null_safe_equality(left: Expression, right: Expression | None = None) -> Expression:
    """`<=>` of operands in order, of which equal ones are given once."""
    if right is None:
        return TRUE
    if isinstance(right, Literal) and right.value is None:
        return fold(Call("is_null", (left,)))
    return Call("null_safe_eq", (left, right))


def _cast(argument: Expression, to: Type) -> Expression:
    if argument.type == to:
        return argument
    if isinstance(argument, Literal):
        literal = cast_literal(argument, to)
        if literal is not None:
            return literal
    return Call("cast", (argument,), to)


def _case(arguments: tuple[Expression, ...]) -> Expression:
    """Branches that are never taken go, and so does what follows one that always is."""
    otherwise = arguments[-1]
    branches: list[tuple[Expression, Expression]] = []
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        condition = simplify_predicate(condition)
        if condition == TRUE:
            otherwise = value
            break
        if condition != FALSE:
            branches.append((condition, value))
    while branches and branches[-1][1] == otherwise:
        branches.pop()
    if not branches:
        return otherwise
    return Call("case", (*(part for branch in branches for part in branch), otherwise))


def _coalesce(arguments: tuple[Expression, ...]) -> Expression:
    """Flat, without NULLs and repetitions, ending with the first value that is certainly there."""
    values: dict[Expression, None] = {}
    for value in flat("coalesce", arguments):
        if not _is_null(value):
            values[value] = None
            if isinstance(value, Literal):
                break
    if not values:
        return Literal(None, arguments[0].type)
    first, *rest = values
    return Call("coalesce", (first, *rest)) if rest else first


def _as_filter(expression: Expression) -> Expression:
    """An expression in normal form, where NULL counts as FALSE."""
    match expression:
        case Literal(None):
            return FALSE
        case Call("and", terms):
            return conjunction(map(_as_filter, terms), is_filter=True)
        case Call("or", terms):
            return disjunction(map(_as_filter, terms), is_filter=True)
        case Call("in", (subject, *items)) if any(map(_is_null, items)):
            present = tuple(item for item in items if not _is_null(item))
            return is_member(subject, present) if present else FALSE
        case Call("not", (Call("in", (_, *items)),)) if any(map(_is_null, items)):
            return FALSE
        case Call("null_safe_eq", (subject, Literal() as literal)):
            return compare("eq", subject, literal)
        case _:
            return expression


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _without_implied_presence(predicate: Expression) -> Expression:
    """`x IS NOT NULL` goes where another term is not TRUE for a NULL x anyway."""
    match predicate:
        case Call("and", terms):
            kept = [
                term
                for term in terms
                if (column := present_column(term)) is None
                or not any(rejects_null(other, column) for other in terms if other is not term)
            ]
            return predicate if len(kept) == len(terms) else conjunction(kept, is_filter=True)
        case _:
            return predicate


def present_column(term: Expression) -> int | None:
    """The column of a term `x IS NOT NULL`."""
    match term:
        case Call("not", (Call("is_null", (Column(index),)),)):
            return index
        case _:
            return None
