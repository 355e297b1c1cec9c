"""Tells equal inputs of a join apart by what its predicate says of each.

Colour refinement, as for graph isomorphism: inputs start with the colour of what they are, and those of one
colour get different ones if they take part in different terms, or with partners of different colours, until
nothing changes. What an input is called, or where it was written, never enters, so that the colours of two
joins that differ in that alone correspond.

Equal columns count as one: a term about one of them is a term about all (`equalities` writes it by the
first, and which one that is depends on the order that is sought here).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plait.expressions.nodes import Column, Expression, columns_of, conjuncts, transform
from plait.expressions.types import DOUBLE
from plait.plan.nodes import Join
from plait.plan.signature import expression_text
from plait.rewrite.algebra.equalities import equality_classes
from plait.rewrite.algebra.simplify import simplify

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparisonT as T

_MYSELF = 0


def ranks(keys: Sequence[T]) -> list[int]:
    """For each key, its place among all of them; equal keys share one.

    >>> ranks(["b", "a", "b"])
    [1, 0, 1]
    """
    ordered = sorted(keys)
    return [bisect_left(ordered, key) for key in keys]


def refined(join: Join, colours: Sequence[int]) -> list[int]:
    """Colours of the inputs, at least as fine as the given ones."""
    view = _View(join)
    while True:
        seen = view.by_input(colours)
        finer = ranks([(colour, seen[number]) for number, colour in enumerate(colours)])
        if len(set(finer)) == len(set(colours)):
            return finer
        colours = finer


class _View:
    """The predicate of a join as each input sees it."""

    def __init__(self, join: Join) -> None:
        self.owners = [number for number, child in enumerate(join.inputs) for _ in child.types]
        self.places = [place for child in join.inputs for place in range(len(child.types))]
        self.classes, self.others = equality_classes(conjuncts(join.predicate))
        self.class_of = {
            member.index: number
            for number, members in enumerate(self.classes)
            for member in members
            if isinstance(member, Column) and member.type != DOUBLE
        }

    def by_input(self, colours: Sequence[int]) -> list[list[list[str]]]:
        """For each input, the classes and terms that it takes part in, by colours instead of inputs."""
        seen: list[list[list[str]]] = [[] for _ in colours]
        for members in self.classes:
            for viewer in self._takers(members):
                seen[viewer].append(sorted(self._text(member, viewer, colours) for member in members))
        ranks_of_classes = ranks(
            [sorted(self._text(member, None, colours) for member in members) for members in self.classes]
        )
        for term in self.others:
            met = {self.class_of[index] for index in columns_of(term) if index in self.class_of}
            for viewer in self._takers(
                [term, *(member for number in met for member in self.classes[number])]
            ):
                seen[viewer].append([self._text(term, viewer, colours, ranks_of_classes)])
        return [sorted(views) for views in seen]

    def _takers(self, expressions: Sequence[Expression]) -> set[int]:
        return {self.owners[index] for expression in expressions for index in columns_of(expression)}

    def _text(
        self,
        expression: Expression,
        viewer: int | None,
        colours: Sequence[int],
        ranks_of_classes: Sequence[int] = (),
    ) -> str:
        """The expression with its columns numbered by colour and place, or by the class they are in."""
        width = len(self.owners)

        def numbered(part: Expression) -> Expression:
            if not isinstance(part, Column):
                return part
            if ranks_of_classes and part.index in self.class_of:
                colour, place = len(colours) + 1, ranks_of_classes[self.class_of[part.index]]
            else:
                owner = self.owners[part.index]
                colour = _MYSELF if owner == viewer else 1 + colours[owner]
                place = self.places[part.index]
            return Column(colour * width + place, part.type)

        return expression_text(simplify(transform(expression, numbered)))
