"""Which joins of rows are one join.

A query can be woven into a join if it combines rows of streams within ranges, each stream's rows filtered by
themselves, with filters and projections above. Queries share it if they join the same streams by the same
predicate and what they filter has the same patterns. Ranges and constants may differ: the join has the
greatest ranges, and a query keeps the combinations that are within its own.

A filter that is relaxed to what any query wants lets rows meet that no query wants together: if one wants
`a.x = 1` and `b.y = 1` and the other `a.x = 2` and `b.y = 2`, the join combines 1 with 2 as well. Queries are
parted where such combinations would outweigh what sharing saves. Columns that the join makes equal are one
choice, not two: with `a.x = b.y` there is nothing to combine wrongly. Likewise the rows that queries with
short ranges want would be kept and combined for as long as the longest range: these are parted, too, unless
they want the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

from plait.expressions.nodes import (
    Call,
    Column,
    Expression,
    conjuncts,
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
    """A query that can share a join. `shaped` is over the columns of all scans."""

    query: str
    key: JoinKey
    selections: tuple[Selection, ...]
    ranges_us: tuple[int, ...]
    shaped: Shaped


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
    )


# So many times as many combinations, or rows, as are wanted cost less than another join would.
_UNWANTED = 4


def parted(members: Sequence[WovenJoin]) -> list[list[WovenJoin]]:
    """The queries of one key, in parts that are worth a join each."""
    return [part for alike in _of_like_ranges(members) for part in _of_like_choices(alike)]


def placed(members: Sequence[WovenJoin], places: Mapping[str, str]) -> dict[str, list[WovenJoin]]:
    """The queries of one key in parts, by name. Queries of known places stay there, whoever else comes;
    others go where they are worth it, or to a part of their own, which is named after its first query."""
    parts: dict[str, list[WovenJoin]] = {}
    for member in members:
        if member.query in places:
            parts.setdefault(places[member.query], []).append(member)
    rest = [member for member in members if member.query not in places]
    for part in parts.values():
        if rest and len(parted([*part, *rest])) == 1:
            part += rest
            return parts
    left: list[WovenJoin] = []
    for member in rest:
        fitting = [part for part in parts.values() if len(parted([*part, member])) == 1]
        (fitting[0] if fitting else left).append(member)
    return {**parts, **{part[0].query: part for part in (parted(left) if left else [])}}


def _of_like_ranges(members: Sequence[WovenJoin]) -> list[list[WovenJoin]]:
    """Parts in which rows are not kept for much longer than those who want them need them."""
    ranges_us: dict[tuple[Selection, ...], int] = {}
    for member in members:
        ranges_us[member.selections] = max(*member.ranges_us, ranges_us.get(member.selections, 0))
    part_of: dict[tuple[Selection, ...], int] = {}
    part = count = needed_us = 0
    for rows in sorted(ranges_us, key=ranges_us.__getitem__):
        count, needed_us = count + 1, needed_us + ranges_us[rows]
        if count * ranges_us[rows] > _UNWANTED * needed_us:
            part, count, needed_us = part + 1, 1, ranges_us[rows]
        part_of[rows] = part
    return [[each for each in members if part_of[each.selections] == k] for k in range(part + 1)]


def _of_like_choices(members: Sequence[WovenJoin]) -> list[list[WovenJoin]]:
    choices = [_choices(member) for member in members]
    different = [len({each[n] for each in choices}) for n in range(len(choices[0]))]
    if prod(different) <= _UNWANTED * len(members):
        return [list(members)]
    # By the choice with the fewest alternatives, so that the parts are few.
    parting = min((count, n) for n, count in enumerate(different) if count > 1)[1]
    parts: dict[object, list[WovenJoin]] = {}
    for member, chosen in zip(members, choices, strict=True):
        parts.setdefault(chosen[parting], []).append(member)
    return [part for each in parts.values() for part in _of_like_choices(each)]


def _choices(member: WovenJoin) -> list[object]:
    """What a query chooses of the rows of each stream. Where the columns that it goes by are made equal to
    some of another's, that is no choice of its own."""
    key = member.key
    same = _equal_columns(key.predicate)
    found: list[tuple[set[int], object]] = []
    for pattern, start, selection in zip(key.patterns, key.starts, member.selections, strict=True):
        columns = pattern.looked_up if pattern.bounded is None else (pattern.bounded,)
        of = {same.get(column.index + start, column.index + start) for column in columns}
        found.append((of, (selection.constants, selection.bounds, selection.parameters, selection.written)))
    found.sort(key=lambda each: len(each[0]), reverse=True)
    return [
        chosen
        for number, (of, chosen) in enumerate(found)
        if not (of and any(of <= others for others, _ in found[:number]))
    ]


def _equal_columns(predicate: Expression) -> dict[int, int]:
    """For columns that a predicate makes equal to others, the first of those."""
    same: dict[int, int] = {}
    for term in conjuncts(predicate):
        match term:
            case Call("eq", (Column(left), Column(right))):
                first, other = sorted((same.get(left, left), same.get(right, right)))
                same |= {column: first for column, known in same.items() if known == other}
                same[other] = first
            case _:
                pass
    return same


def _moved(column: Column, by: int) -> Column:
    return Column(column.index + by, column.type)


def shifted(pattern: Pattern, start: int) -> Pattern:
    """Where the columns that a pattern looks up or bounds are among those of all scans."""
    return replace(
        pattern,
        looked_up=tuple(_moved(column, start) for column in pattern.looked_up),
        bounded=None if pattern.bounded is None else _moved(pattern.bounded, start),
    )
