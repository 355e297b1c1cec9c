"""Which queries one operator computes: those that differ in constants, windows and what is above it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from plait.plan.nodes import Node, StreamScan
from plait.sharing.joins import WovenJoin, parted, woven_join
from plait.sharing.selects import WovenSelect, woven_select
from plait.sharing.trees import WovenAggregate, woven_aggregate


@dataclass
class Families:
    """Each query is in one family, or one of the others."""

    selects: list[list[WovenSelect]] = field(default_factory=list)
    aggregates: list[list[WovenAggregate]] = field(default_factory=list)
    joins: list[list[WovenJoin]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def families(
    queries: Iterable[tuple[str, Node]], scans: Mapping[str, StreamScan], *, tagged: bool = True
) -> Families:
    """The families of named canonical plans, over scans that have all columns that any plan reads; `tagged`
    where rows can be (`patterns`)."""
    selects, aggregates, joins, others = [], [], [], []
    for name, plan in queries:
        if (select := woven_select(name, plan, scans, tagged=tagged)) is not None:
            selects.append(select)
        elif (aggregate := woven_aggregate(name, plan, scans, tagged=tagged)) is not None:
            aggregates.append(aggregate)
        elif (join := woven_join(name, plan, scans, tagged=tagged)) is not None:
            joins.append(join)
        else:
            others.append(name)
    worth_it = [part for family in _by_key(joins) for part in parted(family)]
    return Families(_by_key(selects), _by_key(aggregates), worth_it, others)


class _Keyed(Protocol):
    @property
    def key(self) -> Hashable: ...


_Member = TypeVar("_Member", bound=_Keyed)


def _by_key(members: Sequence[_Member]) -> list[list[_Member]]:
    found: dict[Hashable, list[_Member]] = {}
    for member in members:
        found.setdefault(member.key, []).append(member)
    return list(found.values())
