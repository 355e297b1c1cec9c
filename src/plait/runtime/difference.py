"""What a change of the set of queries would do, found from the state folder alone: nothing is started, locked
or written, whether a run uses the folder or not.

A moment T0 is the greatest event time that its streams have brought by now; when the change is made it may be
later. Costs are those of the plans of all queries, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from plait import language
from plait.catalog import Catalog, Relation
from plait.deployment.deployment import Cost, Deployment
from plait.deployment.fragments import Fragment
from plait.deployment.lowering import fragments as fragments_of
from plait.deployment.row_by_row import row_by_row
from plait.engines.shared.group import SharedQuery
from plait.engines.shared.trunk import state_tables
from plait.errors import Source, UserError
from plait.plan.nodes import Node, StreamScan, sources_of
from plait.planners import PLANNERS, driver
from plait.rewrite import canonicalise
from plait.runtime import results_folder
from plait.runtime.change_stages import (
    ChangeStage,
    HandOverStage,
    KeepStage,
    SilenceStage,
    Stage,
    StartStage,
    StopStage,
    is_handing_over,
    stages_between,
)
from plait.runtime.changes import Addition
from plait.runtime.control import is_answered
from plait.runtime.declarations import relation_text
from plait.runtime.folder_names import folder_name
from plait.runtime.handover import handed_over
from plait.runtime.journal import ROWS, read_totals
from plait.runtime.live_queries import after_changes
from plait.runtime.merge_plan import Merged, merge_plan
from plait.runtime.observed import observed_statistics
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import Arrangement, Proposal, QuerySet
from plait.runtime.refusals import check_apart, check_have_rows
from plait.runtime.slots import by_fragment
from plait.runtime.state import CONTROL, StateFolder, state_id
from plait.runtime.state_key import StateKey
from plait.runtime.statistics_file import FILE as STATISTICS
from plait.runtime.statistics_file import read
from plait.space import OperatorKind
from plait.statistics import Statistics
from plait.workload import Query, Workload


@dataclass(frozen=True)
class AddedQuery:
    """`after_us` is the moment after which it would see rows, if there is one by now; `shares_with` are the
    queries that something is computed for once, with it."""

    name: str
    fragment: str
    way: str
    after_us: int | None
    shares_with: tuple[str, ...]


@dataclass(frozen=True)
class DroppedQuery:
    name: str
    read_by: tuple[str, ...]


@dataclass(frozen=True)
class FragmentStage:
    """What happens to a fragment: `do` is start, change, hand over, silence, keep or stop. `restarts` says
    why its streaming query is started again, if it is. `state` says what becomes of what is kept."""

    do: str
    fragment: str
    way: str
    streams: tuple[str, ...]
    queries: tuple[str, ...]
    restarts: str
    state: str


@dataclass(frozen=True)
class Difference:
    """`everything` is the plan of all queries, also of those that would be dropped, to be drawn."""

    added: tuple[AddedQuery, ...]
    dropped: tuple[DroppedQuery, ...]
    stages: tuple[FragmentStage, ...]
    before: Cost | None
    after: Cost | None
    is_running: bool
    everything: Deployment
    merged: Merged = field(default_factory=Merged)


class StateInView:
    """The set of queries of a state folder, to try changes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        manifest = StateFolder.look(path)
        origin = manifest.origin
        assert origin is not None, "is written with the manifest"
        workload = language.load_texts([(text.folder, text.source) for text in origin.texts])
        how = Arrangement(manifest.planner, PLANNERS[manifest.planner].shares, origin.engines, origin.results)
        deployment = driver.plan(workload, how.planner).deployment
        made = fragments_of(deployment, workload.catalog, together=how.together, engines=how.engines)
        self.now = after_changes(QuerySet.first(how, workload, made), manifest, path)

    def added(self, addition: Addition) -> Difference:
        """What adding the queries of a text would do."""
        return self._difference((), lambda left: left.proposed(addition, self._observed))

    def dropped(self, names: Sequence[str]) -> Difference:
        """What dropping queries would do."""
        return self._difference(tuple(dict.fromkeys(self.now.query(name).name for name in names)), None)

    def merged(self) -> Difference:
        """What merging queries would do that came one by one."""
        plan = merge_plan(self.now, ()).at(self.now, self._read_us)
        then = handed_over(self.now, plan.merges)
        return replace(self._between(then, {}, ()), merged=Merged.of(plan, then))

    def compared(self, texts: Sequence[tuple[Path, Source]]) -> Difference:
        """What it would take to compute what texts declare. If they declare streams or tables that are known,
        they are another version of the whole; otherwise they are to be added."""
        known = self.now.workload.catalog
        declared = {key for _, source in texts for key in language.declared_names(source)}
        if not declared & {*known.streams, *known.tables}:
            if len(texts) > 1:
                raise UserError("usage", "one file at a time can be added", hint="name one file")
            ((folder, source),) = texts
            return self.added(Addition(source, folder))
        workload = language.load_texts(texts)
        self._check_relations(workload)
        same = {key for key in workload.queries if self._is_there(key, workload)}
        dropped = tuple(query.name for key, query in self.now.known.queries.items() if key not in same)
        new = {key: query for key, query in workload.queries.items() if key not in same}
        if not new:
            return self._difference(dropped, None)
        more = self._joined(workload, new)
        return self._difference(
            dropped,
            lambda left: left.proposal_of(more, Addition(texts[0][1], texts[0][0]), self._observed),
        )

    def _observed(self, catalog: Catalog, plans: Sequence[Node]) -> Statistics:
        """What a run has written down by now, and would plan with."""
        slots, _ = read(self._path / STATISTICS)
        return observed_statistics(
            catalog, by_fragment(slots), self.now.results.values(), plans, self.now.fragments
        )

    def _joined(self, workload: Workload, new: Mapping[str, Query]) -> Workload:
        there, more = self.now.workload.catalog, workload.catalog
        catalog = Catalog(
            {**there.streams, **more.streams},
            {**there.tables, **more.tables},
            {**there.sites, **more.sites},
            there.links or more.links,
        )
        return Workload(catalog, new)

    def _is_there(self, key: str, workload: Workload) -> bool:
        query, known = workload.queries[key], self.now.known.queries.get(key)
        if known is None or (query.columns, query.sink, query.site) != (
            known.columns,
            known.sink,
            known.site,
        ):
            return False
        return canonicalise(query.plan) == canonicalise(known.plan)

    def _check_relations(self, workload: Workload) -> None:
        """Refuse other declarations of what is known: no running system can take them."""
        now, then = self.now.workload.catalog, workload.catalog
        pairs: list[tuple[Relation, Relation]] = [
            (now.streams[key], then.streams[key]) for key in now.streams.keys() & then.streams.keys()
        ]
        pairs += [(now.tables[key], then.tables[key]) for key in now.tables.keys() & then.tables.keys()]
        changed = sorted(one.name for one, other in pairs if relation_text(one) != relation_text(other))
        if changed:
            raise UserError(
                "state-changed",
                f"`{changed[0]}` is declared in another way than the system knows it",
                hint="put it back, or declare it under another name; else start anew with another state",
            )

    def _difference(
        self, dropped: tuple[str, ...], propose: Callable[[QuerySet], Proposal] | None
    ) -> Difference:
        now = self.now
        left = (
            now.without(dropped, dict.fromkeys((each.name for each in now.fragments), 0)) if dropped else now
        )
        then, starts = left, {}
        if propose is not None:
            proposal = propose(left)
            check_have_rows(proposal.results, proposal.workload.catalog, now.streams)
            left.check_fits(proposal, self._observed)
            starts = {result.query: self._start_us(result.plan) for result in proposal.results}
            then = left.with_added(proposal, starts)
            self._check_places([then.outlets[name.lower()] for name in starts], then)
        return self._between(then, starts, dropped)

    def _check_places(self, outlets: Sequence[Outlet], then: QuerySet) -> None:
        """Refuse folders for results that adding would refuse."""
        check_apart(self._path, outlets, then, ())
        key = StateKey(state_id(self._path), self._path.absolute())
        for outlet in outlets:
            if outlet.folder is not None:
                results_folder.check(outlet.folder, key, outlet.owner)

    def _between(
        self, then: QuerySet, starts: Mapping[str, int | None], dropped: tuple[str, ...]
    ) -> Difference:
        """What it takes to be another set, in which some queries start and others are gone."""
        now = self.now
        readers = now.readers_of(dropped)
        everything = self._deployment(
            Workload(then.workload.catalog, {**now.workload.queries, **then.workload.queries})
        )
        before = self._cost(now.workload)
        after = everything.cost if not dropped else self._cost(then.workload)
        sharing = _sharing(everything, then)
        places = {name: each for name, (each, _) in then.places.items()}
        return Difference(
            tuple(
                AddedQuery(name, places[name].name, places[name].way, us, sharing.get(name, ()))
                for name, us in starts.items()
            ),
            tuple(DroppedQuery(name, tuple(readers.get(name, ()))) for name in dropped),
            tuple(self._said(stage, then) for stage in stages_between(now, then)),
            before,
            after,
            is_answered(self._path.absolute() / CONTROL),
            everything,
        )

    def _deployment(self, workload: Workload) -> Deployment:
        """As a run would plan queries now, with what was observed."""
        plans = [query.plan for query in driver.canonical_workload(workload).queries.values()]
        statistics = self._observed(workload.catalog, plans)
        return driver.plan(workload, self.now.arrangement.planner, statistics=statistics).deployment

    def _cost(self, workload: Workload) -> Cost | None:
        return self._deployment(workload).cost if workload.queries else None

    def _start_us(self, plan: Node) -> int | None:
        """The greatest event time that the streams of a plan have brought by now."""
        reached = (self._read_us(name.lower()) for name in sources_of(plan)[0])
        return max((us for us in reached if us is not None), default=None)

    def _read_us(self, stream: str) -> int | None:
        """The greatest event time that a stream has brought by now, as far as it is counted."""
        if stream not in self.now.streams:
            return None
        journal = self._path / "streams" / folder_name(self.now.log_of(stream)) / "journal.sqlite"
        watermark_us = read_totals(journal).watermarks_us.get(ROWS)
        if watermark_us is None:
            return None
        return watermark_us + self.now.workload.catalog.stream(stream).delay_us

    def _said(self, stage: Stage, then: QuerySet) -> FragmentStage:
        each = stage.fragment
        names = tuple(result.query for result in each.results)
        restarts = ""
        match stage:
            case StartStage():
                do, state = "start", "new: streams are read from their start, and what is before T0 left out"
            case ChangeStage(before, _) if is_handing_over(before, each):
                do, state = "hand over", _KEPT_FOR_LAST_ROWS
            case ChangeStage(before, _):
                do, state = "change", _tables_said(before, each)
                restarts = _restart(before, each, then)
            case HandOverStage():
                do, state = "hand over", _KEPT_FOR_LAST_ROWS
            case SilenceStage(_, silent):
                do, state = (
                    "silence",
                    f"all is kept: Spark cannot change it. Rows of {', '.join(silent)} are left out",
                )
            case KeepStage():
                do, state = "keep", "as it is"
            case StopStage():
                do, state = "stop", "deleted"
                if each.name in then.kept:
                    state = "kept until queries that have failed are dropped"
            case _:
                assert_never(stage)
        return FragmentStage(do, each.name, each.way, each.streams, names, restarts, state)


_KEPT_FOR_LAST_ROWS = "all is kept until the last rows of what is handed over are given"


def _sharing(everything: Deployment, then: QuerySet) -> dict[str, tuple[str, ...]]:
    """The queries that something is computed for once, for each. That a stream is read once is not meant.
    With whom a query shares a join is known; the rest is as if all were planned together."""
    wanted = {query.name for query in then.workload.queries.values()}
    groups = {
        everything.users[operator.id]
        for operator in everything.operators
        if operator.inputs
        and operator.kind is not OperatorKind.PROJECT
        and len(everything.users[operator.id]) > 1
    }
    groups |= {frozenset(each.queries) for each in (*everything.trees, *everything.selections)}
    parts: dict[tuple[str, str], set[str]] = {}
    for each in then.fragments:
        for result in each.results:
            if result.part:
                parts.setdefault((each.name, result.part), set()).add(result.query)
    groups |= {frozenset(queries) for queries in parts.values()}
    found: dict[str, set[str]] = {}
    for users in groups:
        for name in users & wanted:
            found.setdefault(name, set()).update((users & wanted) - {name})
    return {name: tuple(sorted(others)) for name, others in found.items()}


def _scans(fragment: Fragment) -> dict[str, StreamScan]:
    return {each.stream.lower(): row_by_row(each.plan).scan for each in fragment.inputs}


def _restart(before: Fragment, after: Fragment, then: QuerySet) -> str:
    """Why Spark has to read another frame, if it has to (`spark.trunk_rows`)."""
    catalog = then.workload.catalog
    read = {key: {*scan.columns} for key, scan in _scans(before).items()}
    streams = [catalog.stream(key) for key in after.streams]
    if all(each.connector == "files" and each.options.get("format") == "parquet" for each in streams):
        return ""
    more = [
        f"{key}.{field.name}"
        for key, scan in _scans(after).items()
        for field in scan.columns
        if field not in read[key]
    ]
    return f"nobody has read {', '.join(more)}" if more else ""


def _tables_said(before: Fragment, after: Fragment) -> str:
    """What becomes of the tables that are kept in the database."""
    earlier, later = _tables(before), _tables(after)
    kept = [name for name in later if name in earlier]
    wider = sum(bool(later[name] - earlier[name]) for name in kept)
    parts = [f"{len(kept)} of {len(earlier)} tables kept"]
    parts += [f"{wider} of them with more columns"] if wider else []
    parts += [f"{len(later) - len(kept)} new, empty"] if len(later) > len(kept) else []
    parts += [f"{len(earlier) - len(kept)} deleted"] if len(earlier) > len(kept) else []
    return ", ".join(parts)


def _tables(fragment: Fragment) -> dict[str, frozenset[str]]:
    queries: Iterable[SharedQuery] = (
        SharedQuery(result.query, result.plan, result.after_us, result.part) for result in fragment.results
    )
    return state_tables([*queries], _scans(fragment))
