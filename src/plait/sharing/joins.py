"""Which joins of rows are one join.

A query can be woven into a join if it combines rows of streams within ranges, each stream's rows filtered by
themselves, with filters and projections above. Queries share it if they join the same streams by the same
predicate and what they filter has the same patterns. Ranges and constants may differ: the join has the
greatest ranges, and a query keeps the combinations that are within its own. Whether that is worth it is for
`plait.sharing.parts` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from plait.expressions.nodes import (
    Column,
    Expression,
    shift,
    substitute,
    substitute_columns,
)
from plait.plan.nodes import Join, Node, RangeWindow, StreamScan, Window
from plait.sharing.chains import chain_above
from plait.sharing.patterns import MOST_CHOICES, Pattern, Selection, selection_of
from plait.sharing.shapes import Shaped, shaped


@dataclass(frozen=True)
class JoinKey:
    """What all queries of a join have in common. The predicate is over the columns of all scans, in their
    order."""

    scans: tuple[StreamScan, ...]
    patterns: tuple[Pattern, ...]
    predicate: Expression

    @property
    def starts(self) -> tuple[int, ...]:
        """Where the columns of each scan begin."""
        return tuple(accumulate((len(scan.columns) for scan in self.scans[:-1]), initial=0))


@dataclass(frozen=True)
class WovenJoin:
    """A query that can share a join, which has its own one in its plan. `shaped` is over the columns of all
    scans."""

    query: str
    key: JoinKey
    selections: tuple[Selection, ...]
    ranges_us: tuple[int, ...]
    shaped: Shaped
    join: Join


def woven_join(
    query: str, plan: Node, scans: Mapping[str, StreamScan], *, tagged: bool = True
) -> WovenJoin | None:
    """How a canonical plan is woven, over the given scans of its streams; None if it cannot be."""
    above = chain_above(plan)
    join = above.base
    if not isinstance(join, Join):
        return None
    whole: list[StreamScan] = []
    selections: list[Selection] = []
    ranges_us: list[int] = []
    columns: list[Expression] = []
    start = 0
    most_choices = int(MOST_CHOICES ** (1 / len(join.inputs)))  # as those of one stream go with all of others
    for source in join.inputs:
        if not isinstance(source, Window) or not isinstance(source.window, RangeWindow):
            return None
        below = chain_above(source.input)
        if not isinstance(below.base, StreamScan):
            return None
        scan = scans[below.base.stream.lower()]
        places = {field.name: index for index, field in enumerate(scan.columns)}
        positions = [places[field.name] for field in below.base.columns]
        terms = [substitute_columns(term, positions.__getitem__) for term in below.terms]
        selections.append(selection_of(terms, len(scan.columns), tagged=tagged, most_choices=most_choices))
        columns += [
            shift(substitute_columns(each, positions.__getitem__), start) for each in below.expressions
        ]
        whole.append(scan)
        ranges_us.append(source.window.range_us)
        start += len(scan.columns)

    def over_scans(expression: Expression) -> Expression:
        return substitute(expression, columns.__getitem__)

    patterns = tuple(selection.pattern for selection in selections)
    return WovenJoin(
        query,
        JoinKey(tuple(whole), patterns, over_scans(join.predicate)),
        tuple(selections),
        tuple(ranges_us),
        shaped(start, [*map(over_scans, above.terms)], [*map(over_scans, above.expressions)]),
        join,
    )


def _moved(column: Column, by: int) -> Column:
    return Column(column.index + by, column.type)


def shifted(pattern: Pattern, start: int) -> Pattern:
    """Where the columns that a pattern looks up or bounds are among those of all scans."""
    return replace(
        pattern,
        looked_up=tuple(_moved(column, start) for column in pattern.looked_up),
        bounded=None if pattern.bounded is None else _moved(pattern.bounded, start),
    )
