"""The queries of a running system, which come and go, and what runs for them.

It decides where a query that is added is computed:

| the way that it takes | where |
|---|---|
| `shared` | in a fragment that reads all its streams: nothing has to be started; else in a new one |
| `native`, `woven` | in a new fragment: Spark cannot change its operators under a checkpoint |

A query that is dropped is gone at once from a `shared` fragment. In others it is `silent`: Spark goes on
with it until no query of the fragment is wanted any more. A fragment that counts what its streams bring stays
even then, unless another does so by then.

A query that is merged with others (`plait.runtime.merge_plan`) is computed in two places for a while: in the
new one from a moment on, in the old one until it has given all that the new one does not.

A set is never changed: changes make others of it, the same ones from the same changes.

Every name is used once, so that results and counts of a query that was dropped stay its own: one that is
added under a name that was used before gets a number, `name#2`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from plait import language
from plait.catalog import Catalog, Sink
from plait.cost.model import CostModel
from plait.cost.network import Network
from plait.deployment.beginning import begun
from plait.deployment.deployment import DeployedQuery, Deployment
from plait.deployment.fragments import Fragment, Result, Way, sole_readers
from plait.deployment.lowering import (
    Engines,
    arranged,
    check_engines,
    for_spark,
    fragment,
    in_parts,
    results_of,
    shared_fragment,
    woven_fragments,
)
from plait.errors import InfeasibleError, PlaitError, UserError, closest, reported
from plait.plan.nodes import Node, sources_of
from plait.planners import driver
from plait.quantity_text import counted
from plait.runtime.changes import NOTHING_CARRIED, Addition, Carried
from plait.runtime.outlets import Outlet, outlets_of
from plait.statistics import NO_STATISTICS, Statistics, declared
from plait.workload import Query, Workload

# What was observed of the streams of a catalog, and of sub-plans of plans.
Observed: TypeAlias = Callable[[Catalog, Sequence[Node]], Statistics]


def _nothing_observed(_catalog: Catalog, _plans: Sequence[Node]) -> Statistics:
    return NO_STATISTICS


@dataclass(frozen=True)
class Arrangement:
    """How queries are planned and computed, and where their rows go unless they say it."""

    planner: str
    together: bool
    engines: Engines
    results: Path


@dataclass(frozen=True)
class Proposal:
    """Queries that a text could add, as they would be computed. `known` is what later texts can use;
    `statistics` are those that they were planned with, beyond what is declared."""

    addition: Addition
    workload: Workload
    known: Workload
    results: tuple[Result, ...]
    for_spark: frozenset[str]
    statistics: Statistics = NO_STATISTICS

    @cached_property
    def cost(self) -> CostModel:
        """What they were planned with."""
        catalog = self.workload.catalog
        return CostModel(catalog, declared(catalog).with_(self.statistics))

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(self.workload.queries.values())


@dataclass(frozen=True)
class StoppedQuery:
    """A query that failed while others went on, what it was a part of, and what was counted of it
    elsewhere."""

    query: Query
    fragment: str
    way: Way
    result: Result
    error: PlaitError
    carried: Carried = NOTHING_CARRIED


@dataclass(frozen=True)
class QuerySet:
    """`workload` are the queries that are wanted, `fragments` what runs. `known` are streams, tables and
    queries by the names that texts know them by. `read_by` is who counts what a stream brings, where it is a
    fragment; `aside` are streams that fragments count, too, to take over from those that they are merged of.
    `outlets` are those of all queries that there ever were, and `sinks` those of the queries that are
    computed, as is `planned_with`: statistics beyond what is declared. `silent` are queries that fragments,
    by name, compute although nobody wants them there any more, with the batch from which on their rows are
    left out. `stopped` are queries that failed, and nobody has dropped since. `once_read` are streams that
    are counted although nobody reads them any more; `declaring` are the texts that have declared streams,
    tables and sites since the first. Of queries that were handed over, `since` are the moments after which
    they see rows, and `carried` is what is counted of them in places that are gone."""

    arrangement: Arrangement
    workload: Workload
    known: Workload
    fragments: tuple[Fragment, ...]
    read_by: Mapping[str, str]
    outlets: Mapping[str, Outlet]
    silent: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    sinks: Mapping[str, Sink] = field(default_factory=lambda: MappingProxyType({}))
    changes: int = 0
    planned_with: Mapping[str, Statistics] = field(default_factory=lambda: MappingProxyType({}))
    stopped: Mapping[str, StoppedQuery] = field(default_factory=lambda: MappingProxyType({}))
    once_read: frozenset[str] = frozenset()
    declaring: tuple[Addition, ...] = ()
    since: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    carried: Mapping[str, Carried] = field(default_factory=lambda: MappingProxyType({}))
    aside: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def first(cls, arrangement: Arrangement, workload: Workload, fragments: tuple[Fragment, ...]) -> QuerySet:
        outlets = outlets_of(workload, fragments, arrangement.results)
        readers = sole_readers(fragments)
        return cls(arrangement, workload, workload, fragments, readers, outlets, sinks=_sinks(workload))

    @property
    def streams(self) -> tuple[str, ...]:
        """The keys of all streams that are counted: those that are read, or were."""
        return tuple(sorted({key for each in self.fragments for key in each.streams} | self.once_read))

    @property
    def kept(self) -> frozenset[str]:
        """The fragments that run, and those that are gone, but count what queries gave that have failed."""
        gone = (each.fragment for each in self.stopped.values())
        return frozenset((*(each.name for each in self.fragments), *gone))

    @property
    def results(self) -> dict[str, Result]:
        """What is computed for the queries that are wanted, by key."""
        return {name.lower(): result for name, (_, result) in self.places.items()}

    @cached_property
    def places(self) -> Mapping[str, tuple[Fragment, Result]]:
        """Where the queries are computed that are wanted, by name: of one that is handed over the new
        place."""
        return {
            result.query: (each, result)
            for each in self.fragments
            for result in self.wanted_of(each)
            if not result.gives.has_end
        }

    @cached_property
    def leaving(self) -> Mapping[str, tuple[Fragment, Result]]:
        """The old places of queries that are being handed over, by name."""
        return {
            result.query: (each, result)
            for each in self.fragments
            for result in self.wanted_of(each)
            if result.gives.has_end
        }

    def wanted_of(self, fragment: Fragment) -> list[Result]:
        """What somebody wants of what a fragment computes."""
        silent = self.silent.get(fragment.name, {})
        return [result for result in fragment.results if result.query not in silent]

    def after_us(self, query: str) -> int | None:
        """The moment after which a query sees rows, if there is one: it stays the same, whoever computes
        it."""
        return self.since[query] if query in self.since else self.places[query][1].after_us

    # What is counted of streams

    def log_of(self, stream: str) -> str:
        """Where it stands what a stream has brought, by its key."""
        reader = self.read_by.get(stream, "")
        return log_name(stream, reader) if stream in self.aside.get(reader, ()) else stream

    @property
    def logs(self) -> dict[str, str | None]:
        """All that is written down of streams, and by which fragment, if it is one."""
        found = {self.log_of(stream): self.read_by.get(stream) for stream in self.streams}
        aside = {log_name(stream, name): name for name, own in self.aside.items() for stream in own}
        return {**found, **aside}

    def query(self, name: str) -> Query:
        """A query that is wanted, by its own name or by that which it was declared with."""
        found = self.workload.queries.get(name.lower()) or self.known.queries.get(name.lower())
        stopped = {key.lower(): each.query for key, each in self.stopped.items()}
        declared = {key.split("#")[0]: query for key, query in stopped.items()}
        found = found or stopped.get(name.lower()) or declared.get(name.lower())
        if found is None:
            names = [query.name for query in (*self.workload.queries.values(), *stopped.values())]
            raise UserError("unknown-query", f"there is no query `{name}`", hint=closest(name, names))
        return found

    # Adding

    def proposed(self, addition: Addition, observed: Observed = _nothing_observed) -> Proposal:
        """What a text would add, planned with what was `observed` of streams and plans. All that can be
        refused by itself is."""
        loaded = language.load_after(self.known, addition.source, addition.folder)
        return self.proposal_of(loaded, addition, observed)

    def proposal_of(
        self, loaded: Workload, addition: Addition, observed: Observed = _nothing_observed
    ) -> Proposal:
        """The same of queries that were read from a text."""
        if not loaded.queries:
            raise UserError(
                "no-queries",
                f"no query is declared in {addition.source.name}",
                hint="CREATE CONTINUOUS QUERY name AS SELECT …",
            )
        renamed = {key: self._unused_name(query.name) for key, query in loaded.queries.items()}
        queries = {
            key: replace(
                query,
                name=renamed[key],
                reads=tuple(renamed.get(name.lower(), name) for name in query.reads),
            )
            for key, query in loaded.queries.items()
        }
        known = replace(loaded, queries={**self.known.queries, **queries})
        workload = Workload(loaded.catalog, {query.name.lower(): query for query in queries.values()})
        statistics, deployment = self._planned(workload, observed)
        _check_admitted(deployment.refused)
        results = tuple(results_of(deployment, loaded.catalog))
        chosen = frozenset(for_spark(deployment))
        return self._in_parts(Proposal(addition, workload, known, results, chosen, statistics))

    def _in_parts(self, proposal: Proposal) -> Proposal:
        """With the parts of joins that are there, for the queries to which they are worth it."""
        there = {each.name: each.results for each in self.fragments}
        parts: dict[str, str] = {}
        for name, coming in self.joined_by(proposal).items():
            given = {result.query: result.part for result in there[name]}
            found = in_parts([*there[name], *coming], proposal.workload.catalog, proposal.cost, given=given)
            parts |= {result.query: result.part for result in found}
        placed = (replace(each, part=parts.get(each.query, each.part)) for each in proposal.results)
        return replace(proposal, results=tuple(placed))

    def check_fits(self, proposal: Proposal, observed: Observed = _nothing_observed) -> None:
        """Refuse queries that sites and links cannot carry besides those that there are. What was accepted
        once is not asked again: costs are estimates, and a run must find its queries."""
        if not Network(proposal.workload.catalog).has_limits:
            return
        computed = self.results
        present = {key: query for key, query in self.workload.queries.items() if key in computed}
        workload = replace(proposal.workload, queries={**present, **proposal.workload.queries})
        _, deployment = self._planned(workload, observed)
        added = {query.name for query in proposal.queries}
        _check_admitted(query for query in deployment.refused if query.name in added)

    def _planned(self, workload: Workload, observed: Observed) -> tuple[Statistics, Deployment]:
        """What was observed of a workload, and its deployment under that."""
        plans = [query.plan for query in driver.canonical_workload(workload).queries.values()]
        statistics = observed(workload.catalog, plans)
        return statistics, driver.plan(workload, self.arrangement.planner, statistics=statistics).deployment

    def joined_by(self, proposal: Proposal) -> dict[str, list[Result]]:
        """The queries of a proposal that go to fragments that are there, by the fragment's name."""
        joining: dict[str, list[Result]] = {}
        for each in self._arranged(proposal):
            for result in each.results:
                if (there := self._fragment_for(each, result)) is not None:
                    joining.setdefault(there.name, []).append(result)
        return joining

    def with_added(self, proposal: Proposal, starts: Mapping[str, int | None]) -> QuerySet:
        """The set with the queries of a proposal, which see rows after these moments."""
        joining = {
            name: [replace(result, after_us=starts[result.query]) for result in results]
            for name, results in self.joined_by(proposal).items()
        }
        placed = {result.query for results in joining.values() for result in results}
        catalog = proposal.workload.catalog
        fragments = [
            shared_fragment(
                each.name, [*each.results, *joining[each.name]], catalog, each.reasons, each.streams
            )
            if each.name in joining
            else each
            for each in self.fragments
        ]
        new: list[Fragment] = []
        for each in self._arranged(proposal):
            results = [
                replace(result, after_us=starts[result.query])
                for result in each.results
                if result.query not in placed
            ]
            if results:
                new += begun_fragments(each.name, each.way, results, catalog, each.reasons)
        new = [self._named(each, number) for number, each in enumerate(new)]
        check_engines(new, proposal.workload, self.arrangement.engines)
        known_streams = {*self.streams}
        unread = {key: name for key, name in sole_readers(new).items() if key not in known_streams}
        workload = Workload(catalog, {**self.workload.queries, **proposal.workload.queries})
        everything = (*fragments, *new)
        return replace(
            self,
            workload=workload,
            known=proposal.known,
            fragments=everything,
            read_by={**self.read_by, **unread},
            outlets=outlets_of(workload, everything, self.arrangement.results, self.outlets),
            sinks={**self.sinks, **_sinks(proposal.workload)},
            changes=self.changes + 1,
            planned_with={**self.planned_with, **dict.fromkeys(starts, proposal.statistics)},
            declaring=self.declaring
            if catalog == self.workload.catalog
            else (*self.declaring, proposal.addition),
        )

    def _arranged(self, proposal: Proposal) -> tuple[Fragment, ...]:
        how = self.arrangement
        catalog = proposal.workload.catalog
        return arranged(
            proposal.results,
            proposal.for_spark,
            catalog,
            proposal.cost,
            together=how.together,
            engines=how.engines,
        )

    def _fragment_for(self, proposed: Fragment, result: Result) -> Fragment | None:
        """A fragment that is there, and can compute a query too."""
        if proposed.way is not Way.SHARED or not self.arrangement.together:
            return None
        read = {stream.lower() for stream in sources_of(result.plan)[0]}
        return next((each for each in self.fragments if self.can_join(each, read)), None)

    def can_join(self, fragment: Fragment, streams: Set[str]) -> bool:
        """Whether queries over streams can be added to a fragment: not to one that is about to end."""
        is_ending = fragment.results and all(result.gives.has_end for result in fragment.results)
        return fragment.way is Way.SHARED and streams <= {*fragment.streams} and not is_ending

    def _named(self, new: Fragment, number: int) -> Fragment:
        """Fragments of one query have its name, of which there is one; others are numbered within the change,
        and by it."""
        names = {each.query for each in new.results}
        if new.name in names:
            return new
        return replace(new, name=f"{new.way}-{number}-{self.changes + 1}")

    def _unused_name(self, name: str) -> str:
        if name.lower() not in self.outlets:
            return name
        number = 2
        while f"{name.lower()}#{number}" in self.outlets:
            number += 1
        return f"{name}#{number}"

    # Dropping

    def readers_of(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The queries, other than these, that read each of these."""
        dropped = {self.query(name).name for name in names}
        found: dict[str, list[str]] = {}
        for query in self.workload.queries.values():
            for read in query.reads:
                if read in dropped and query.name not in dropped:
                    found.setdefault(read, []).append(query.name)
        return found

    def check_unread(self, names: Sequence[str]) -> None:
        """Refuse to drop what others read, and say who."""
        errors = [
            UserError(
                "query-in-use",
                f"`{name}` is read by {', '.join(f'`{reader}`' for reader in readers[:5])}"
                + (f" and {counted(len(readers) - 5, 'other')}" if len(readers) > 5 else ""),
                detail="they have its plan as part of their own, and would go on without it",
                hint=f"to drop it all the same: plait drop {name} --yes, or drop({name!r}, sure=True)",
            )
            for name, readers in self.readers_of(names).items()
        ]
        if errors:
            raise reported(errors)

    def without(
        self,
        names: Sequence[str],
        batches: Mapping[str, int],
        failed: Mapping[str, PlaitError] = MappingProxyType({}),
        carried: Mapping[str, Carried] = MappingProxyType({}),
    ) -> QuerySet:
        """The set without these queries; `batches`, by fragment, are the first that they are not part of.
        Those that `failed` are known for it until they are dropped once more; `carried` is what was counted
        of them where they came from, if they were being handed over."""
        dropped = {self.query(name).name for name in names}
        stopped = {name: each for name, each in self.stopped.items() if name not in dropped}
        for name in failed:
            each, result = self.places[name]
            counted = self.carried.get(name, NOTHING_CARRIED).with_(carried.get(name, NOTHING_CARRIED))
            stopped[name] = StoppedQuery(self.query(name), each.name, each.way, result, failed[name], counted)
        remaining = {key: query for key, query in self.workload.queries.items() if query.name not in dropped}
        known = {key: query for key, query in self.known.queries.items() if query.name not in dropped}
        left = replace(
            self,
            workload=replace(self.workload, queries=remaining),
            known=replace(self.known, queries=known),
            stopped=stopped,
        )
        return left.without_places({each.name: dropped for each in self.fragments}, batches)

    def without_places(self, places: Mapping[str, Collection[str]], batches: Mapping[str, int]) -> QuerySet:
        """The set of which fragments, by name, compute some queries no more; `batches` are the first that
        these are not part of."""
        silent = {name: {**own} for name, own in self.silent.items()}
        fragments = []
        for each in self.fragments:
            leaving = places.get(each.name, ())
            gone = [result.query for result in each.results if result.query in leaving]
            if each.way is Way.SHARED and gone:
                left = [result for result in each.results if result.query not in gone]
                each = shared_fragment(each.name, left, self.workload.catalog, each.reasons, each.streams)
            elif gone:  # what had failed was silent before
                before = silent.get(each.name, {})
                silent[each.name] = dict.fromkeys(gone, batches[each.name]) | before
            fragments.append(each)
        then = replace(
            self,
            fragments=tuple(fragments),
            silent=silent,
            changes=self.changes + 1,
            once_read=frozenset(self.streams),
        )
        return then._without_unneeded()

    def _without_unneeded(self) -> QuerySet:
        """The set without the fragments that nobody wants rows of, nor to know from what streams bring."""
        staying = {each.name for each in self.fragments if self.wanted_of(each)}
        heirs = {stream: name for name, own in self.aside.items() if name in staying for stream in own}
        # One that nobody takes over from goes on.
        staying |= {name for stream, name in self.read_by.items() if stream not in heirs}
        read_by = {
            stream: name if name in staying else heirs[stream] for stream, name in self.read_by.items()
        }
        fragments = tuple(each for each in self.fragments if each.name in staying)
        computed = {result.query for each in fragments for result in each.results}
        return replace(
            self,
            fragments=fragments,
            read_by=read_by,
            aside={name: own for name, own in self.aside.items() if name in staying},
            silent={name: own for name, own in self.silent.items() if name in staying},
            sinks={name: sink for name, sink in self.sinks.items() if name in computed},
            planned_with={name: own for name, own in self.planned_with.items() if name in computed},
            since={name: us for name, us in self.since.items() if name in computed},
            carried={name: own for name, own in self.carried.items() if name in computed},
        )


def _check_admitted(refused: Iterable[DeployedQuery]) -> None:
    errors = [
        InfeasibleError("not-admitted", f"query `{each.name}` cannot be run", detail=each.reason)
        for each in refused
    ]
    if errors:
        raise reported(errors)


def _sinks(workload: Workload) -> dict[str, Sink]:
    return {query.name: query.sink for query in workload.queries.values()}


def log_name(stream: str, reader: str) -> str:
    """What is written down of a stream by a fragment that does not do so for the first time."""
    return f"{stream}@{reader}"


def begun_fragments(
    name: str, way: Way, results: Sequence[Result], catalog: Catalog, reasons: tuple[str, ...] = ()
) -> list[Fragment]:
    """New fragments for queries that see rows after their moments. Spark's operators know of none, so they
    get it as part of their plans; should they not be able to compute these, the database does."""
    if way is Way.SHARED:
        return [shared_fragment(name, results, catalog, reasons)]
    by_name = {result.query: result for result in results}
    after = [begun(result, catalog) for result in results]
    made = [*woven_fragments(after, catalog)] if way is Way.WOVEN else [fragment(after[0], catalog)]
    return [
        shared_fragment(each.name, [by_name[result.query] for result in each.results], catalog, each.reasons)
        if each.way is Way.SHARED
        else each
        for each in made
    ]
