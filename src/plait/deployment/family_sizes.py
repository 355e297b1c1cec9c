"""How much families of queries read and give, and what they cost on each engine.

A family is queries that are computed as one beyond equal operators: as a tree of windows, a join or a
selection (`plait.sharing.families`). Its size grows with the operators of each query, so that it can be said
what one query more costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from plait.cost.sharing import JoinWork, TreeSize, join_cores, selection_cores, tree_cores
from plait.cost.units import UnitCosts
from plait.deployment.deployment import Operator, Shared, SharedJoin, Tree
from plait.plan.nodes import RangeWindow, TickWindow
from plait.space import OperatorKind
from plait.windows.edges import Progression, edges_of, edges_per_s

MICROSECONDS = 1_000_000
NOTHING = TreeSize(0.0, 0.0, 0.0, 0.0, 0.0)
NO_WORK = JoinWork(0.0, 0.0, 0.0)


class FamilyKind(StrEnum):
    TREE = "tree"
    JOIN = "join"
    SELECTION = "selection"

    @property
    def operator_kind(self) -> OperatorKind:
        match self:
            case FamilyKind.TREE:
                return OperatorKind.AGGREGATE
            case FamilyKind.JOIN:
                return OperatorKind.WINDOW_JOIN
            case FamilyKind.SELECTION:
                return OperatorKind.SELECT
            case _:
                assert_never(self)

    def own(self, needed: Sequence[Operator]) -> list[Operator]:
        """Of all operators that a query needs, the last first, those that are one with others' in a family;
        where the first of them is, there the family is. A selection is known by the last of all."""
        if self is FamilyKind.SELECTION:
            return [*needed[:1]]
        return [each for each in needed if each.kind is self.operator_kind]


def kind_of(family: Shared) -> FamilyKind:
    match family:
        case Tree():
            return FamilyKind.TREE
        case SharedJoin():
            return FamilyKind.JOIN
        case _:
            return FamilyKind.SELECTION


@dataclass(frozen=True)
class FamilySize:
    """`operators` and `sources`, by their ids, are counted already; `windows` and `edges` are those of a
    tree, and `work` is that of a join. Of others than trees `size` is the rows that they read, and give."""

    kind: FamilyKind
    operators: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    windows: frozenset[TickWindow] = frozenset()
    edges: frozenset[Progression] = frozenset()
    size: TreeSize = NOTHING
    work: JoinWork = NO_WORK

    def with_operators(
        self, operators: Iterable[Operator], sources: Iterable[Operator], work: JoinWork = NO_WORK
    ) -> FamilySize:
        """The size with these too, each of which counts once. Of a join, `work` is what it does with them."""
        new = {each.id: each for each in operators if each.id not in self.operators}
        new_sources = {each.id: each for each in sources if each.id not in self.sources}
        size = replace(
            self.size,
            rate_rows_per_s=self.size.rate_rows_per_s
            + sum(each.output_rows_per_s for each in new_sources.values()),
            finals_per_s=self.size.finals_per_s + sum(each.output_rows_per_s for each in new.values()),
        )
        grown = replace(
            self,
            operators=self.operators | new.keys(),
            sources=self.sources | new_sources.keys(),
            size=size,
            work=work,
        )
        return grown._with_windows(list(new.values())) if self.kind is FamilyKind.TREE else grown

    def cores(self, unit_costs: UnitCosts) -> dict[str, float]:
        """By engine."""
        read, given = self.size.rate_rows_per_s, self.size.finals_per_s
        match self.kind:
            case FamilyKind.TREE:
                return tree_cores(self.size, unit_costs)
            case FamilyKind.JOIN:
                return join_cores(self.work, read, given, unit_costs)
            case FamilyKind.SELECTION:
                return selection_cores(read, given, unit_costs)
            case _:
                assert_never(self.kind)

    def _with_windows(self, aggregates: Sequence[Operator]) -> FamilySize:
        windows = {each.id: window_of(each) for each in aggregates}
        new = {*windows.values()} - self.windows
        edges = self.edges | {edge for window in new for edge in edges_of(window)}
        groups = [each.output_rows_per_s * windows[each.id].slide_us / MICROSECONDS for each in aggregates]
        size = replace(
            self.size,
            edges_per_s=self.size.edges_per_s if edges == self.edges else edges_per_s(edges),
            overlap=self.size.overlap + sum(window.range_us / window.slide_us for window in new),
            groups=max([self.size.groups, *groups]),
        )
        return replace(self, windows=self.windows | new, edges=edges, size=size)


def work_alone(joins: Sequence[Operator]) -> JoinWork:
    """What the joins of one query do, of which the first is the last. What it joins of streams is read
    through ranges."""
    read = [
        (rate, window.range_us / MICROSECONDS)
        for each in joins
        for rate, window in zip(each.input_rows_per_s, each.windows, strict=True)
        if isinstance(window, RangeWindow)
    ]
    taken, kept = sum(rate for rate, _ in read), sum(rate * range_s for rate, range_s in read)
    return JoinWork(taken, kept, joins[0].output_rows_per_s)


def window_of(aggregate: Operator) -> TickWindow:
    (window,) = aggregate.windows
    assert isinstance(window, TickWindow), aggregate.id
    return window
