"""What follows from equalities within one conjunction, in one way of writing it.

Expressions joined by `=` in a conjunction form classes; in a row that passes, all members of a class have
one value, which is not NULL. From the classes, whichever equalities they were written by, the conjunction
is written anew:

- a class with a literal: each member equals the literal;
- else, within one input: its least member equals each other one;
- across inputs: the least member of the first input equals the least of each other one, also where a
  literal already implies it: `a.x = 17 AND b.y = 17` says `a.x = b.y`, and a join by equality is worth
  knowing.

Every other term is then written with the literal of a class in place of its members (unless literals alone
remain of it), and, if equal columns make it a term of one input alone, for every input in which it can be
said; else with the first of its equals.
Only the members' equality is used, so this holds for bags, for NULLs (only TRUE counts) and for any timing.
Values of type DOUBLE are not exchanged in other terms: both zeros are equal but not the same.

Terms that the inputs guarantee already (`facts`) take part in classes but are not written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from plait.expressions.nodes import (
    FALSE,
    Call,
    Column,
    Expression,
    Literal,
    WindowEdge,
    columns_of,
    conjunction,
    conjuncts,
    shift,
    transform,
    walk,
)
from plait.expressions.types import DOUBLE
from plait.plan.nodes import Node
from plait.rewrite.algebra.constants import compare_literals
from plait.rewrite.algebra.facts import facts
from plait.rewrite.algebra.logic import compare
from plait.rewrite.algebra.order import in_order, sort_key
from plait.rewrite.algebra.simplify import present_column, simplify, simplify_predicate


def closed_predicate(inputs: Sequence[Node], predicate: Expression) -> Expression:
    """The predicate of a filter on one input, or of a join of several, closed under equality."""
    terms = conjuncts(predicate)
    known: list[tuple[Expression, ...]] = []
    start = 0
    for child in inputs:
        known.append(tuple(simplify(shift(fact, start)) for fact in facts(child)))
        start += len(child.types)
    all_terms = [*terms, *(fact for of_input in known for fact in of_input)]
    if not any(_equality(term) for term in all_terms) or len(all_terms) == 1:
        return predicate
    owners = [number for number, child in enumerate(inputs) for _ in child.types]
    closure = _Closure(owners, known, terms)
    return simplify_predicate(conjunction(closure.written()))


def equality_classes(terms: Sequence[Expression]) -> tuple[list[list[Expression]], list[Expression]]:
    """The classes that the equalities among the terms make, and the other terms."""
    return _groups(_united(map(_equality, terms))), [term for term in terms if _equality(term) is None]


def first_equals(node: Node) -> list[Expression]:
    """For each column of a node, the first one that is known to equal it."""
    firsts: list[Expression] = [Column(index, type_) for index, type_ in enumerate(node.types)]
    classes, _ = equality_classes(facts(node))
    for members in classes:
        equal = sorted(m.index for m in members if isinstance(m, Column) and m.type != DOUBLE)
        for index in equal:
            firsts[index] = firsts[equal[0]]
    return firsts


@dataclass(frozen=True)
class _Class:
    """Equal expressions: those of one input under its number, others under None, and the literal if any."""

    members: dict[int | None, tuple[Expression, ...]]
    literal: Literal | None

    @property
    def representatives(self) -> list[Expression]:
        """The least member of each input, in the order of the inputs."""
        return [self.members[owner][0] for owner in sorted(o for o in self.members if o is not None)]


class _Closure:
    def __init__(
        self,
        owners: Sequence[int],
        known: Sequence[tuple[Expression, ...]],
        terms: Sequence[Expression],
    ) -> None:
        self.owners = owners
        self.known = known
        self.guarantees = [_Guarantees(of_input) for of_input in known]
        self.known_classes = [_united(map(_equality, of_input)) for of_input in known]
        self.terms = terms
        self.contradicts = False
        all_facts = [fact for of_input in known for fact in of_input]
        self.classes = [
            self._class(group) for group in _groups(_united(map(_equality, [*terms, *all_facts])))
        ]
        # Columns whose value may be taken from an equal: of which class each is.
        self.class_of = {
            member.index: a_class
            for a_class in self.classes
            for group in a_class.members.values()
            for member in group
            if isinstance(member, Column) and member.type != DOUBLE
        }

    def _class(self, group: Sequence[Expression]) -> _Class:
        literals = [member for member in in_order(group) if isinstance(member, Literal)]
        self.contradicts |= any(
            compare_literals(literals[0], other) not in (0, None) for other in literals[1:]
        )
        members: dict[int | None, list[Expression]] = {}
        for member in in_order(group):
            if member not in literals[:1]:
                owners = {self.owners[index] for index in columns_of(member)}
                members.setdefault(owners.pop() if len(owners) == 1 else None, []).append(member)
        grouped = {owner: tuple(expressions) for owner, expressions in members.items()}
        return _Class(grouped, literals[0] if literals else None)

    def written(self) -> list[Expression]:
        if self.contradicts:
            return [FALSE]
        terms = [term for a_class in self.classes for term in self._equalities(a_class)]
        for term in self.terms:
            if _equality(term) is None:
                terms += self._restated(term)
        for number, of_input in enumerate(self.known):
            for fact in of_input:
                if _equality(fact) is None:
                    terms += self._in_inputs(self._with_literals(fact), besides=number)
        return terms

    def _equalities(self, a_class: _Class) -> Iterable[Expression]:
        representatives = a_class.representatives
        for owner, members in a_class.members.items():
            first = representatives[0] if owner is None and representatives else members[0]
            target = first if a_class.literal is None else a_class.literal
            for member in members:
                if member != target and not self._is_known(owner, member, target):
                    yield compare("eq", member, target)
        for other in representatives[1:]:
            yield compare("eq", representatives[0], other)

    def _is_known(self, owner: int | None, left: Expression, right: Expression) -> bool:
        if owner is None:
            return False
        parents = self.known_classes[owner]
        return left in parents and right in parents and _root(parents, left) == _root(parents, right)

    def _restated(self, term: Expression) -> list[Expression]:
        """A term that is no equality, by the values and columns that stand for their classes."""
        column = present_column(term)
        if column is not None and column in self.class_of:
            return []
        result: list[Expression] = []
        for part in conjuncts(self._with_literals(term)):
            local = self._in_inputs(part)
            if local or self._is_local(part):
                result += local
            else:
                result.append(self._by_first(part))
        return result

    def _with_literals(self, term: Expression) -> Expression:
        def literal_for(part: Expression) -> Expression:
            a_class = self.class_of.get(part.index) if isinstance(part, Column) else None
            return part if a_class is None or a_class.literal is None else a_class.literal

        written = simplify_predicate(transform(term, literal_for))
        # What holds of literals alone and is not computed here would belong to no input: it stays as it was.
        return term if any(map(_is_constant_call, conjuncts(written))) else written

    def _in_inputs(self, term: Expression, besides: int | None = None) -> list[Expression]:
        """The term as each input can say it, less those that the input guarantees."""
        versions = []
        for number in range(len(self.known)):
            version = None if number == besides else self._version(term, number)
            if version is not None and not self.guarantees[number].imply(version):
                versions.append(version)
        return versions

    def _is_local(self, term: Expression) -> bool:
        return any(self._version(term, number) is not None for number in range(len(self.known)))

    def _version(self, term: Expression, number: int) -> Expression | None:
        """The term in columns of one input, by equality; None if that cannot be said."""
        used = columns_of(term)
        if not used or any(isinstance(part, WindowEdge) for part in walk(term)):
            return None
        places: dict[int, Column] = {}
        for index in used:
            equal = self._equal_columns(index, number)
            if equal:
                places[index] = equal[0]
            elif self.owners[index] != number:
                return None
        return _with_columns(term, places)

    def _by_first(self, term: Expression) -> Expression:
        equals = {index: self._equal_columns(index) for index in columns_of(term)}
        return _with_columns(term, {index: equal[0] for index, equal in equals.items() if equal})

    def _equal_columns(self, index: int, owner: int | None = None) -> list[Column]:
        """The columns that equal one, itself included: of one input or of all; none if it is in no class."""
        a_class = self.class_of.get(index)
        if a_class is None:
            return []
        groups = a_class.members.values() if owner is None else [a_class.members.get(owner, ())]
        return sorted((m for group in groups for m in group if isinstance(m, Column)), key=sort_key)


class _Guarantees:
    """What an input guarantees, by what a term would have to meet in order to be implied.

    A conjunction merges terms on one subject and absorbs disjunctions by some of their parts (`logic`), so
    that a term is tried with those few facts alone: with all of them, long filters would take minutes.
    """

    def __init__(self, facts_of_input: tuple[Expression, ...]) -> None:
        self.facts = frozenset(facts_of_input)
        self.by_handle: dict[Expression, list[Expression]] = {}
        for fact in facts_of_input:
            for handle in _disjuncts(fact) or [_subject(fact)]:
                self.by_handle.setdefault(handle, []).append(fact)

    @cached_property
    def are_contradictory(self) -> bool:
        return simplify_predicate(conjunction(tuple(self.facts))) == FALSE

    def imply(self, term: Expression) -> bool:
        if term in self.facts or self.are_contradictory:
            return True
        column = present_column(term)
        if column is not None:
            met = [fact for fact in self.facts if column in columns_of(fact)]
        else:
            disjuncts = _disjuncts(term)
            handles = [*disjuncts, *map(_subject, disjuncts or [term])]
            met = [fact for handle in handles for fact in self.by_handle.get(handle, ())]
        met = list(dict.fromkeys(met))
        return simplify_predicate(conjunction([*met, term])) == simplify_predicate(conjunction(met))


def _disjuncts(term: Expression) -> Sequence[Expression]:
    return term.arguments if isinstance(term, Call) and term.function == "or" else ()


def _subject(term: Expression) -> Expression:
    """What a term compares with literals; the term itself if it is of another kind."""
    match term:
        case Call("not", (Call("in", (subject, Literal(), *_)),)):
            return subject
        case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge" | "in", (subject, Literal(), *_)):
            return subject
        case _:
            return term


def _is_constant_call(term: Expression) -> bool:
    return isinstance(term, Call) and not any(isinstance(part, Column | WindowEdge) for part in walk(term))


def _with_columns(term: Expression, places: Mapping[int, Column]) -> Expression:
    return simplify_predicate(
        transform(term, lambda part: places.get(part.index, part) if isinstance(part, Column) else part)
    )


_Parents: TypeAlias = dict[Expression, Expression]


def _equality(term: Expression) -> tuple[Expression, Expression] | None:
    match term:
        case Call("eq", (left, right)) if left.type == right.type and left != right:
            return left, right
        case _:
            return None


def _united(pairs: Iterable[tuple[Expression, Expression] | None]) -> _Parents:
    parents: _Parents = {}
    for pair in pairs:
        if pair is not None:
            left, right = (_root(parents, parents.setdefault(side, side)) for side in pair)
            parents[right] = left
    return parents


def _root(parents: _Parents, expression: Expression) -> Expression:
    while parents[expression] != expression:
        expression = parents[expression]
    return expression


def _groups(parents: _Parents) -> list[list[Expression]]:
    groups: dict[Expression, list[Expression]] = {}
    for expression in parents:
        groups.setdefault(_root(parents, expression), []).append(expression)
    return list(groups.values())
