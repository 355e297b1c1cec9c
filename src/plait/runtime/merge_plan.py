"""Which queries that came one by one are merged, into what, and which are not, and why.

All queries are arranged once more as if they came together, by the code that arranges those that do
(`plait.deployment.lowering.arranged`); each stays on the engine that computes it. Where that puts queries of
several fragments into one, they are handed over to it: a fragment as a whole or not at all, because one that
keeps a single query still reads its streams. It pays if fewer fragments are left then, or if one ends that
computes what nobody wants any more.

| arranged as one on | merged into |
|---|---|
| Spark's operators | a new fragment: Spark cannot change those of one that is there |
| DuckDB | the fragment with the most queries that reads all their streams; if none does, a new one |

A query is handed over by the event times of its rows (`plait.windows.stretches`). What that does not do for:

| not handed over | because |
|---|---|
| row windows | rows are numbered from the first on that a query has seen |
| into a new fragment: streams that cannot be read again | it has to find all rows since the change |
| queries that are being handed over | the next merge finds them in one place |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from plait.cost.model import CostModel
from plait.deployment.fragments import Fragment, Result, Way
from plait.deployment.lowering import arranged
from plait.plan.nodes import RowWindow, Window, sources_of, walk_plan
from plait.rewrite import canonicalise
from plait.runtime.changes import Merge
from plait.runtime.query_set import QuerySet, begun_fragments
from plait.runtime.refusals import can_be_read_again
from plait.space import stream_of
from plait.windows.stretches import Stretch

# Every event time is later: what sees rows after it sees all of them.
FIRST_MOMENT_US = 0


@dataclass(frozen=True)
class MergePlan:
    """`merges` are those that can be made; `staying` are queries that could have been part of one, and why
    they are not."""

    merges: tuple[Merge, ...]
    staying: Mapping[str, str]

    def at(self, now: QuerySet, read_us: Callable[[str], int | None]) -> MergePlan:
        """The same, each query at the moment after which nobody has read anything of its streams: `read_us`
        says how far somebody has, by key. One that was added may see rows only after a later moment, to which
        a beat had brought its streams; then those over the same streams wait for that, too: a family on
        Spark's operators has one moment."""
        results = {name: result for name, (_, result) in now.places.items()}
        streams = {name: sources_of(result.plan)[0] for name, result in results.items()}

        def moments_us(queries: Iterable[str]) -> dict[str, int]:
            found: dict[frozenset[str], int] = {}
            for query in queries:
                read = (read_us(stream.lower()) for stream in streams[query])
                moments = (*read, results[query].after_us, found.get(streams[query]))
                found[streams[query]] = max((us for us in moments if us is not None), default=FIRST_MOMENT_US)
            return {query: found[streams[query]] for query in queries}

        merges = (replace(each, queries=moments_us(each.queries)) for each in self.merges)
        return replace(self, merges=tuple(merges))


@dataclass(frozen=True)
class MergedQuery:
    """A query that is handed over from one fragment to another. The old one gives its rows before `until_us`,
    and ends when its streams have come so far."""

    name: str
    leaves: str
    fragment: str
    until_us: int


@dataclass(frozen=True)
class Merged:
    """What a merge has done; `staying` are queries that could have been part of it, and why they are not."""

    queries: tuple[MergedQuery, ...] = ()
    staying: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, plan: MergePlan, then: QuerySet) -> Merged:
        """Of the set that a plan has led to."""
        leaving = then.leaving
        queries = (
            MergedQuery(name, home.name, merge.fragment, result.gives.until_us)
            for merge in plan.merges
            for name, (home, result) in ((name, leaving[name]) for name in merge.queries)
        )
        return cls(tuple(queries), plan.staying)

    def to_json(self) -> dict[str, Any]:
        return {"queries": [asdict(each) for each in self.queries], "staying": dict(self.staying)}


def merge_plan(now: QuerySet, given: Collection[str]) -> MergePlan:
    """What there is to merge in a set; `given` are streams that have frames, by key."""
    return _Planning(now, given).plan()


class _Planning:
    def __init__(self, now: QuerySet, given: Collection[str]) -> None:
        self._now = now
        self._given = given
        self._homes = {name: each for name, (each, _) in now.places.items()}
        self._members: dict[str, set[str]] = {}
        for name, home in self._homes.items():
            self._members.setdefault(home.name, set()).add(name)
        self._leaving = now.leaving
        self._staying: dict[str, str] = {}
        self._merges: list[Merge] = []

    def plan(self) -> MergePlan:
        how = self._now.arrangement
        # What was begun with has come together.
        if how.together and self._now.changes and (len(self._now.fragments) > 1 or self._now.silent):
            results = [
                Result(
                    each.name,
                    each.columns,
                    stream_of(canonicalise(each.plan)),
                    FIRST_MOMENT_US,
                    gives=Stretch(from_us=FIRST_MOMENT_US),
                )
                for each in self._now.workload.queries.values()
                if each.name in self._homes
            ]
            on_spark = {name for name, home in self._homes.items() if home.way is not Way.SHARED}
            catalog = self._now.workload.catalog
            for proposed in arranged(
                results, on_spark, catalog, CostModel(catalog), together=how.together, engines=how.engines
            ):
                if proposed.way is Way.SHARED:
                    self._merge_in_database(proposed)
                else:
                    self._merge_on_spark(proposed)
        return MergePlan(tuple(self._merges), self._staying)

    def _merge_in_database(self, proposed: Fragment) -> None:
        homes = self._homes_of(proposed.results)
        able = [each for each in self._now.fragments if self._now.can_join(each, {*proposed.streams})]
        there = max(able, key=lambda each: len(self._members.get(each.name, ())), default=None)
        leaving = [home for home in homes if there is None or home.name != there.name]
        if len(leaving) + (there is not None) < 2:
            return
        ending = [*self._whole(leaving, proposed.results, is_new=there is None)]
        if len(ending) + (there is not None) >= 2:
            self._add(None if there is None else there.name, Way.SHARED, self._of(ending, proposed.results))

    def _merge_on_spark(self, proposed: Fragment) -> None:
        homes = self._homes_of(proposed.results)
        if not self._pays(homes):
            return
        ending = [*self._whole(homes, proposed.results, is_new=True)]
        results = self._of(ending, proposed.results)
        if not self._pays(ending):
            return
        for made in begun_fragments("", proposed.way, results, self._now.workload.catalog):
            # With the moment in their plans, queries may be fewer in a family.
            own = self._homes_of(made.results)
            are_whole = all(home in self._whole(own, made.results, is_new=True) for home in own)
            if made.way is not Way.SHARED and are_whole and self._pays(own):
                self._add(None, made.way, made.results)

    def _add(self, fragment: str | None, way: Way, results: Sequence[Result]) -> None:
        """A merge into a fragment, or a new one, which is numbered within the change, and by it."""
        name = fragment or f"{way}-{len(self._merges)}-{self._now.changes + 1}"
        queries = {result.query: FIRST_MOMENT_US for result in results}
        taken = max(series for outlet in self._now.outlets.values() for series in outlet.writers)
        self._merges.append(Merge(name, way, queries, taken + 1 + len(self._merges)))

    def _pays(self, ending: Sequence[Fragment]) -> bool:
        """Whether one on Spark in place of these is better."""
        return len(ending) > 1 or any(self._now.silent.get(home.name) for home in ending)

    def _homes_of(self, results: Sequence[Result]) -> list[Fragment]:
        """The fragments that compute these now."""
        return [*{self._homes[each.query].name: self._homes[each.query] for each in results}.values()]

    def _of(self, homes: Sequence[Fragment], results: Sequence[Result]) -> list[Result]:
        names = {name for home in homes for name in self._members[home.name]}
        return [result for result in results if result.query in names]

    def _whole(
        self, homes: Sequence[Fragment], results: Sequence[Result], *, is_new: bool
    ) -> Iterator[Fragment]:
        """Those of the fragments of which everything can be handed over, and is arranged here."""
        by_name = {result.query: result for result in results}
        for home in homes:
            own = self._members[home.name]
            hindered = {
                name: why for name in sorted(own) if (why := self._obstacle(by_name.get(name), is_new))
            }
            self._staying |= {name: why for name, why in hindered.items() if name in by_name}
            if not hindered:
                yield home
                continue
            beside = f"it runs in {home.name} with `{min(hindered)}`, which is not handed over"
            self._staying |= {name: beside for name in own if name in by_name and name not in hindered}

    def _obstacle(self, result: Result | None, is_new: bool) -> str:
        """Why a query cannot be handed over; empty if it can."""
        if result is None:
            return "is arranged elsewhere"
        if result.query in self._leaving:
            return "it is being handed over already"
        nodes = walk_plan(result.plan)
        if any(isinstance(node, Window) and isinstance(node.window, RowWindow) for node in nodes):
            return "it has a window of rows, which are numbered from the first on that it has seen"
        for name in sorted(sources_of(result.plan)[0]) if is_new else ():
            stream = self._now.workload.catalog.stream(name)
            if name.lower() in self._given or not can_be_read_again(stream):
                return f"the stream `{stream.name}` may not give again what it has given"
        return ""
