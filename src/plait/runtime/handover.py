"""What a set of queries becomes when some are handed over from one fragment to another, and let go there.

In between a query is computed twice: the new place sees what comes after a moment, and gives the rows of the
result from the event time on from which it has all of them; the old place gives those before
(`plait.windows.stretches`). All rows go where they went, those of the new place in a series of batches of
their own. Should the old place end, and have counted what its streams bring, a new one takes over: it reads
them from their beginning, and counts them aside until then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from plait.cost.model import CostModel
from plait.deployment.fragments import Fragment, Result, Way
from plait.deployment.lowering import in_parts, shared_fragment
from plait.rewrite import canonicalise
from plait.runtime.changes import NOTHING_CARRIED, Carried, Merge
from plait.runtime.outlets import Outlet
from plait.runtime.query_set import QuerySet, begun_fragments
from plait.space import stream_of
from plait.windows.beginnings import Beginning
from plait.windows.stretches import Stretch


def handed_over(now: QuerySet, merges: Sequence[Merge]) -> QuerySet:
    """The set whose queries go over to other fragments, from their moments on."""
    coming = {merge.fragment: _coming(now, merge) for merge in merges}
    turns = {result.query: result for results in coming.values() for result in results}
    staying = {each.name for each in now.fragments}
    new = [
        replace(made, name=merge.fragment)
        for merge in merges
        if merge.fragment not in staying
        for made in begun_fragments(merge.fragment, merge.way, coming[merge.fragment], now.workload.catalog)
    ]
    return replace(
        now,
        fragments=(*(_changed(now, each, turns, coming.get(each.name, ())) for each in now.fragments), *new),
        outlets=_written_by(now.outlets, merges),
        changes=now.changes + 1,
        since={**{name: now.places[name][1].after_us for name in turns}, **now.since},
        aside={**now.aside, **{each.name: _inherited(now, each) for each in new}},
    )


def let_go(
    now: QuerySet,
    places: Mapping[str, Collection[str]],
    batches: Mapping[str, int],
    carried: Mapping[str, Carried],
) -> QuerySet:
    """The set of which fragments have given all rows that are theirs of queries that were handed over, and
    compute them no more; `carried` is what they have counted of them."""
    counted = {name: now.carried.get(name, NOTHING_CARRIED).with_(own) for name, own in carried.items()}
    return replace(now, carried={**now.carried, **counted}).without_places(places, batches)


def _coming(now: QuerySet, merge: Merge) -> list[Result]:
    """Queries as the new place computes them. What they share there goes by what is declared: a start finds
    the same."""
    coming = [_result(now, *each) for each in merge.queries.items()]
    if merge.way is not Way.SHARED:
        return coming
    there = next((each.results for each in now.fragments if each.name == merge.fragment), ())
    given = {result.query: result.part for result in there}
    catalog = now.workload.catalog
    return in_parts([*there, *coming], catalog, CostModel(catalog), given=given)[len(there) :]


def _result(now: QuerySet, name: str, moment_us: int) -> Result:
    query = now.workload.query(name)
    plan = stream_of(canonicalise(query.plan))
    turn_us = Beginning(moment_us).complete_from_us(plan)
    return Result(query.name, query.columns, plan, moment_us, gives=Stretch(from_us=turn_us))


def _changed(
    now: QuerySet, fragment: Fragment, turns: Mapping[str, Result], coming: Sequence[Result]
) -> Fragment:
    """A fragment that was there: some of its queries go, others may come."""
    results = [
        _ending(result, turns[result.query])
        if result.query in turns and now.places[result.query][0] is fragment
        else result
        for result in fragment.results
    ]
    if coming:
        return shared_fragment(
            fragment.name, [*results, *coming], now.workload.catalog, fragment.reasons, fragment.streams
        )
    return fragment if results == [*fragment.results] else replace(fragment, results=tuple(results))


def _ending(result: Result, turn: Result) -> Result:
    """A query as the old place computes it from now on."""
    gives = replace(result.gives, until_us=turn.gives.from_us)
    return replace(result, until_us=turn.after_us, gives=gives)


def _written_by(outlets: Mapping[str, Outlet], merges: Sequence[Merge]) -> Mapping[str, Outlet]:
    """Where rows come out: as before, in another series of batches for each that writes as well."""
    found = dict(outlets)
    for merge in merges:
        for name in merge.queries:
            found[name.lower()] = found[name.lower()].written_by(merge.fragment, merge.series)
    return found


def _inherited(now: QuerySet, new: Fragment) -> tuple[str, ...]:
    """The streams that a new fragment counts, to take over from those that its queries come from."""
    left = {now.places[result.query][0].name for result in new.results}
    return tuple(stream for stream in new.streams if now.read_by.get(stream) in left)
