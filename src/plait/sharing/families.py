"""Which queries one operator computes: those that differ in constants, windows and what is above it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from plait.expressions.keeping import kept_for
from plait.plan.nodes import Node, StreamScan, sources_of
from plait.sharing.joins import WovenJoin, woven_join
from plait.sharing.selects import WovenSelect, woven_select
from plait.sharing.trees import WovenAggregate, woven_aggregate

# All queries that could share a tree or a join do.
NO_PARTS: Mapping[str, str] = MappingProxyType({})


@dataclass
class Families:
    """Each query is in one family, or one of the others."""

    selects: list[list[WovenSelect]] = field(default_factory=list)
    aggregates: list[list[WovenAggregate]] = field(default_factory=list)
    joins: list[list[WovenJoin]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def families(
    queries: Iterable[tuple[str, Node]],
    scans: Mapping[str, StreamScan],
    *,
    tagged: bool = True,
    parts: Mapping[str, str] = NO_PARTS,
) -> Families:
    """The families of named canonical plans, over scans that have all columns that any plan reads; `tagged`
    where rows can be (`patterns`). Queries that could share a tree or a join do so if they are of one
    part."""
    selects: list[WovenSelect] = []
    aggregates: list[WovenAggregate] = []
    joins: list[WovenJoin] = []
    others: list[str] = []
    for name, plan in queries:
        read = tuple(scans[stream.lower()] for stream in sorted(sources_of(plan)[0]))
        match _woven(plan, name, read, tagged):
            case WovenSelect() as select:
                selects.append(select)
            case WovenAggregate() as aggregate:
                aggregates.append(aggregate)
            case WovenJoin() as join:
                joins.append(join)
            case None:
                others.append(name)
    return Families(
        _alike(selects, _key),
        _alike(aggregates, lambda tree: (tree.key, parts.get(tree.query))),
        _alike(joins, lambda join: (join.key, parts.get(join.query))),
        others,
    )


@kept_for
def _woven(
    plan: Node, query: str, read: tuple[StreamScan, ...], tagged: bool
) -> WovenSelect | WovenAggregate | WovenJoin | None:
    """How a query is woven; kept with its plan, as most queries stay when some come and go."""
    scans = {scan.stream.lower(): scan for scan in read}
    return (
        woven_select(query, plan, scans, tagged=tagged)
        or woven_aggregate(query, plan, scans, tagged=tagged)
        or woven_join(query, plan, scans, tagged=tagged)
    )


class _Keyed(Protocol):
    @property
    def key(self) -> Hashable: ...


_Member = TypeVar("_Member", bound=_Keyed)


def _key(member: _Keyed) -> Hashable:
    return member.key


def _alike(members: Sequence[_Member], by: Callable[[_Member], Hashable]) -> list[list[_Member]]:
    found: dict[Hashable, list[_Member]] = {}
    for member in members:
        found.setdefault(by(member), []).append(member)
    return list(found.values())
