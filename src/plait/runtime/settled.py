"""The set of queries that a history of changes has led to, as the state folder keeps it.

A start need not make all changes again that were ever made: it takes the set that there was when they were
settled, and makes those that came later. For that, plans are written down as they are, those that were bound
and those that run, because a text alone would mean something else by now: a query may read others that are
gone. What was begun with is not written down: it is found in the files that a run is given.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from plait import language
from plait.catalog import Catalog, Keeping, OptionValue, Secret, Sink, SinkKind
from plait.deployment.fragments import Fragment, Input, Result, Way
from plait.deployment.lowering import Engines, fragment, shared_fragment, woven_again
from plait.errors import PlaitError, Source, Span
from plait.plan.format import format_plans, parse_plans
from plait.plan.nodes import Node
from plait.runtime.changes import Addition, Carried, error_from_json, error_to_json
from plait.runtime.observed import statistics_from_json, statistics_to_json
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import QuerySet, StoppedQuery
from plait.statistics import Statistics
from plait.windows.stretches import ALWAYS, Stretch
from plait.workload import Query, Workload


@dataclass(frozen=True)
class SettledQuery:
    """A query that is computed, and was not begun with: the plan that runs, and what it was bound to, under
    which name texts know it. The latter are not there of one that was dropped."""

    name: str
    columns: tuple[str, ...]
    runs: str
    after_us: int | None
    sink: Sink
    part: str = ""
    known_as: str | None = None
    plan: str = ""
    site: str | None = None
    reads: tuple[str, ...] = ()
    sql: str = ""

    @property
    def result(self) -> Result:
        return Result(self.name, self.columns, _parsed(self.runs), self.after_us, self.part)

    @property
    def query(self) -> Query:
        span = Span(Source(self.name, self.sql), 0, len(self.sql)) if self.sql else None
        return Query(self.name, _parsed(self.plan), self.columns, self.site, self.sink, span, self.reads)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "sink": _sink_to_json(self.sink)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SettledQuery:
        columns, reads = tuple(document["columns"]), tuple(document["reads"])
        sink = _sink_from_json(document["sink"])
        return cls(**{**document, "columns": columns, "reads": reads, "sink": sink})


@dataclass(frozen=True)
class SettledTurn:
    """What a fragment computes of a query that is handed over to it, or to another: the plan that runs, and
    what of it is seen, counted and given there."""

    columns: tuple[str, ...]
    runs: str
    after_us: int | None
    part: str
    until_us: int | None
    gives: Stretch

    @classmethod
    def of(cls, result: Result) -> SettledTurn:
        runs = _text(result.plan)
        return cls(result.columns, runs, result.after_us, result.part, result.until_us, result.gives)

    def result(self, query: str) -> Result:
        plan = _parsed(self.runs)
        return Result(query, self.columns, plan, self.after_us, self.part, self.until_us, self.gives)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SettledTurn:
        columns, gives = tuple(document["columns"]), Stretch(**document["gives"])
        return cls(**{**document, "columns": columns, "gives": gives})


@dataclass(frozen=True)
class SettledFragment:
    """A fragment by the names of its queries. `inputs` are plans by stream, where more than the queries
    decides what is read; `turns` are of those queries that other fragments compute, too, or did."""

    name: str
    way: Way
    queries: tuple[str, ...]
    streams: tuple[str, ...]
    reasons: tuple[str, ...]
    inputs: str
    turns: Mapping[str, SettledTurn]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SettledFragment:
        lists = {key: tuple(document[key]) for key in ("queries", "streams", "reasons")}
        turns = {str(name): SettledTurn.from_json(turn) for name, turn in document["turns"].items()}
        return cls(**{**document, **lists, "way": Way(document["way"]), "turns": turns})


@dataclass(frozen=True)
class SettledFailure:
    """A query that failed, which may have been begun with, what it was a part of, and what was counted of it
    elsewhere."""

    query: SettledQuery
    fragment: str
    way: Way
    error: PlaitError
    carried: Carried

    @property
    def stopped(self) -> StoppedQuery:
        result = self.query.result
        return StoppedQuery(self.query.query, self.fragment, self.way, result, self.error, self.carried)

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query.to_json(),
            "fragment": self.fragment,
            "way": self.way,
            "error": error_to_json(self.error),
            "carried": self.carried.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SettledFailure:
        query, error = SettledQuery.from_json(document["query"]), error_from_json(document["error"])
        carried = Carried.from_json(document["carried"])
        return cls(query, str(document["fragment"]), Way(document["way"]), error, carried)


@dataclass(frozen=True)
class SettledBasis:
    """Queries that were planned together, and what was known then beyond what is declared."""

    queries: tuple[str, ...]
    statistics: Statistics

    def to_json(self) -> dict[str, Any]:
        return {"queries": [*self.queries], "statistics": statistics_to_json(self.statistics)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SettledBasis:
        return cls(tuple(map(str, document["queries"])), statistics_from_json(document["statistics"]))


@dataclass(frozen=True)
class Settled:
    """`changes` is how many were made; `names` are the keys of all queries that there were. `texts` have
    declared streams, tables and sites since; `first` are the queries of those begun with that are still
    wanted, `queries` the others that are computed, and `planned_with` on what basis they are; `failed` are
    those that were stopped. `since`, `carried` and `aside` are those of the set."""

    changes: int
    names: tuple[str, ...]
    texts: tuple[Addition, ...]
    first: tuple[str, ...]
    queries: tuple[SettledQuery, ...]
    fragments: tuple[SettledFragment, ...]
    read_by: Mapping[str, str]
    silent: Mapping[str, Mapping[str, int]]
    once_read: tuple[str, ...]
    planned_with: tuple[SettledBasis, ...]
    failed: tuple[SettledFailure, ...]
    since: Mapping[str, int | None]
    carried: Mapping[str, Carried]
    aside: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": self.changes,
            "names": [*self.names],
            "texts": [text.to_json() for text in self.texts],
            "first": [*self.first],
            "queries": [query.to_json() for query in self.queries],
            "fragments": [asdict(each) for each in self.fragments],
            "read_by": dict(self.read_by),
            "silent": {name: dict(own) for name, own in self.silent.items()},
            "once_read": [*self.once_read],
            "planned_with": [each.to_json() for each in self.planned_with],
            "failed": [each.to_json() for each in self.failed],
            "since": dict(self.since),
            "carried": {name: own.to_json() for name, own in self.carried.items()},
            "aside": {name: [*streams] for name, streams in self.aside.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Settled:
        return cls(
            int(document["changes"]),
            tuple(map(str, document["names"])),
            tuple(map(Addition.from_json, document["texts"])),
            tuple(map(str, document["first"])),
            tuple(map(SettledQuery.from_json, document["queries"])),
            tuple(map(SettledFragment.from_json, document["fragments"])),
            {str(key): str(name) for key, name in document["read_by"].items()},
            {
                str(name): {str(query): int(batch) for query, batch in own.items()}
                for name, own in document["silent"].items()
            },
            tuple(map(str, document["once_read"])),
            tuple(map(SettledBasis.from_json, document["planned_with"])),
            tuple(map(SettledFailure.from_json, document["failed"])),
            {str(name): None if us is None else int(us) for name, us in document["since"].items()},
            {str(name): Carried.from_json(own) for name, own in document["carried"].items()},
            {str(name): tuple(map(str, streams)) for name, streams in document["aside"].items()},
        )


@dataclass(frozen=True)
class Origin:
    """What the first set of queries is made of, as the last start was given it: texts, where they may be
    computed, and the folder of results."""

    texts: tuple[Addition, ...]
    engines: Engines
    results: Path

    def to_json(self) -> dict[str, Any]:
        texts = [text.to_json() for text in self.texts]
        return {"texts": texts, "engines": self.engines, "results": str(self.results)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Origin:
        texts = tuple(map(Addition.from_json, document["texts"]))
        return cls(texts, Engines(document["engines"]), Path(document["results"]))


def settled(queries: QuerySet, begun_with: Collection[str]) -> Settled:
    """What there is, as it is written down; `begun_with` are the keys of the queries that were first."""
    wanted = {query.name: (key, query) for key, query in queries.known.queries.items()}
    computed = {result.query: result for each in queries.fragments for result in each.results}
    added = [
        _settled_query(result, queries.sinks[name], wanted.get(name))
        for name, result in computed.items()
        if name.lower() not in begun_with
    ]
    order = {query.name: number for number, query in enumerate(queries.workload.queries.values())}
    added.sort(key=lambda query: order.get(query.name, len(order)))
    return Settled(
        queries.changes,
        tuple(queries.outlets),
        queries.declaring,
        tuple(query.name for key, query in queries.workload.queries.items() if key in begun_with),
        tuple(added),
        tuple(map(_settled_fragment, queries.fragments)),
        queries.read_by,
        queries.silent,
        tuple(sorted(queries.once_read)),
        tuple(_bases(queries.planned_with)),
        tuple(map(_settled_failure, queries.stopped.values())),
        queries.since,
        queries.carried,
        queries.aside,
    )


def restored(first: QuerySet, there: Settled, outlets: Mapping[str, Outlet]) -> QuerySet:
    """The set that was settled; `first` is what there was at first, `outlets` where rows have come out,
    those of later queries too."""
    catalog = first.workload.catalog
    for text in there.texts:
        catalog = language.declared_after(catalog, text.source, text.folder)
    results = {result.query: result for each in first.fragments for result in each.results}
    results |= {each.name: each.result for each in there.queries}
    begun = {each.name: each for each in first.fragments}
    fragments = tuple(_fragment(each, begun.get(each.name), results, catalog) for each in there.fragments)
    staying = {*there.first}
    queries = {key: query for key, query in first.workload.queries.items() if query.name in staying}
    added = {each.known_as: each.query for each in there.queries if each.known_as is not None}
    sinks = {**first.sinks} | {each.name: each.sink for each in there.queries}
    folder = first.arrangement.results
    placed = {
        each.name.lower(): outlets[each.name.lower()].below(folder, each.sink) for each in there.queries
    }
    # Those begun with may have been handed over since.
    begun_with = {
        name: replace(outlet, writers=outlets[name].writers) for name, outlet in first.outlets.items()
    }
    return replace(
        first,
        workload=Workload(catalog, {**queries, **{query.name.lower(): query for query in added.values()}}),
        known=Workload(catalog, {**queries, **added}),
        fragments=fragments,
        read_by=there.read_by,
        outlets={**{name: outlets[name] for name in there.names}, **begun_with, **placed},
        silent=there.silent,
        sinks={result.query: sinks[result.query] for each in fragments for result in each.results},
        changes=there.changes,
        planned_with={name: each.statistics for each in there.planned_with for name in each.queries},
        stopped={each.query.name: each.stopped for each in there.failed},
        once_read=frozenset(there.once_read),
        declaring=there.texts,
        since=there.since,
        carried=there.carried,
        aside=there.aside,
    )


def _settled_query(result: Result, sink: Sink, known: tuple[str, Query] | None) -> SettledQuery:
    computed = SettledQuery(
        result.query, result.columns, _text(result.plan), result.after_us, sink, result.part
    )
    if known is None:
        return computed
    key, query = known
    span = query.span
    sql = "" if span is None else span.source.text[span.start : span.end]
    return replace(
        computed, known_as=key, plan=_text(query.plan), site=query.site, reads=query.reads, sql=sql
    )


def _settled_failure(each: StoppedQuery) -> SettledFailure:
    known = (each.query.name.lower(), each.query)
    query = _settled_query(each.result, each.query.sink, known)
    return SettledFailure(query, each.fragment, each.way, each.error, each.carried)


def _bases(planned_with: Mapping[str, Statistics]) -> Iterator[SettledBasis]:
    """Queries of one change have the same statistics, which are written down once."""
    together: dict[int, list[str]] = {}
    for name, statistics in planned_with.items():
        together.setdefault(id(statistics), []).append(name)
    return (SettledBasis(tuple(names), planned_with[names[0]]) for names in together.values())


def _settled_fragment(each: Fragment) -> SettledFragment:
    names = tuple(result.query for result in each.results)
    inputs = ""
    if each.way is Way.WOVEN:
        inputs = format_plans({own.stream: own.plan for own in each.inputs})
    turns = {
        result.query: SettledTurn.of(result)
        for result in each.results
        if result.until_us is not None or result.gives != ALWAYS
    }
    return SettledFragment(each.name, each.way, names, each.streams, each.reasons, inputs, turns)


def _fragment(
    there: SettledFragment, begun: Fragment | None, results: Mapping[str, Result], catalog: Catalog
) -> Fragment:
    own = [there.turns[name].result(name) if name in there.turns else results[name] for name in there.queries]
    match there.way:
        case Way.SHARED:
            return shared_fragment(there.name, own, catalog, there.reasons, there.streams)
        case _ if begun is not None:
            return replace(begun, results=tuple(own)) if there.turns else begun
        case Way.NATIVE:
            return replace(fragment(own[0], catalog), name=there.name)
        case Way.WOVEN:
            inputs = tuple(Input(stream, plan) for stream, plan in parse_plans(there.inputs).items())
            return woven_again(there.name, own, inputs)


def _text(plan: Node) -> str:
    return format_plans({"q": plan})


def _parsed(text: str) -> Node:
    return parse_plans(text)["q"]


def _sink_to_json(sink: Sink) -> dict[str, Any]:
    options = {
        name: {"secret": value.template} if isinstance(value, Secret) else value
        for name, value in sink.options.items()
    }
    return {
        "kind": sink.kind,
        "target": sink.target,
        "format": sink.format,
        "options": options,
        "keeping": vars(sink.keeping),
    }


def _sink_from_json(document: Mapping[str, Any]) -> Sink:
    options: dict[str, OptionValue] = {
        name: language.secret(value["secret"], os.environ) if isinstance(value, dict) else value
        for name, value in document["options"].items()
    }
    return Sink(
        SinkKind(document["kind"]),
        document["target"],
        document["format"],
        MappingProxyType(options),
        Keeping(**document["keeping"]),
    )
