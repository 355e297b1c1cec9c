"""Which queries are merged that came one by one, and what a set is while they are handed over."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.runtime.test_query_set import BOTH, ONES, OTHER, STREAMS, SUMS, a_set, added, places

from plait.deployment.fragments import Way
from plait.deployment.lowering import Engines
from plait.errors import ExternalError
from plait.runtime.change_stages import (
    ChangeStage,
    HandOverStage,
    StartStage,
    StopStage,
    stages_between,
)
from plait.runtime.changes import Carried, Change
from plait.runtime.handover import handed_over, let_go
from plait.runtime.journal import First
from plait.runtime.merge_plan import Merged, merge_plan
from plait.runtime.query_set import QuerySet
from plait.runtime.settled import Settled, restored, settled

MINUTE_US = 60_000_000
MOMENT_US = 10 * MINUTE_US
OF_TWOS = SUMS.replace("sums", "twos").replace("GROUP BY", "WHERE k = 2 GROUP BY")
OF_THREES = SUMS.replace("sums", "threes").replace("GROUP BY", "WHERE k = 3 GROUP BY")
OF_FOURS = SUMS.replace("sums", "fours").replace("GROUP BY", "WHERE k = 4 GROUP BY")
ROWS = "CREATE CONTINUOUS QUERY rows AS SELECT sum(v) AS total FROM r [ROWS 5 SLIDE 5];".replace("v", "k")


def merged(queries: QuerySet, moment_us: int = MOMENT_US) -> tuple[QuerySet, Merged]:
    plan = merge_plan(queries, ()).at(queries, lambda _: moment_us)
    then = handed_over(queries, plan.merges)
    return then, Merged.of(plan, then)


def one_by_one(*texts: str, engines: Engines = Engines.ANY) -> QuerySet:
    queries = a_set(texts[0], engines=engines)
    for text in texts[1:]:
        queries = added(queries, text, MINUTE_US)
    return queries


def told(merged: Merged) -> dict[str, tuple[str, str]]:
    return {each.name: (each.leaves, each.fragment) for each in merged.queries}


def test_a_family_on_spark_becomes_one_fragment() -> None:
    queries = one_by_one(OF_TWOS, OF_THREES, ONES, engines=Engines.SPARK)
    then, made = merged(queries)
    assert told(made) == {"twos": ("twos", "woven-0-3"), "threes": ("threes", "woven-0-3")}
    assert made.staying == {}
    new = next(each for each in then.fragments if each.name == "woven-0-3")
    assert new.way is Way.WOVEN
    assert {result.after_us for result in new.results} == {MOMENT_US}
    # Windows that start after the moment are the new one's, all others the old one's.
    assert {result.gives.from_us for result in new.results} == {MOMENT_US + MINUTE_US}
    assert {each.until_us for each in made.queries} == {MOMENT_US + MINUTE_US}
    assert {then.after_us("twos"), then.after_us("threes")} == {None, MINUTE_US}
    assert [type(stage) for stage in stages_between(queries, then)][:2] == [HandOverStage, HandOverStage]
    assert [each.fragment.name for each in stages_between(queries, then) if isinstance(each, StartStage)] == [
        "woven-0-3"
    ]


def test_nothing_is_merged_twice_or_without_need() -> None:
    together = a_set(OF_TWOS, OF_THREES, engines=Engines.SPARK)
    for queries in (together, one_by_one(SUMS, ONES), one_by_one(SUMS, ONES, engines=Engines.SPARK)):
        assert merge_plan(queries, ()).merges == ()
    then, _ = merged(one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK))
    again = merge_plan(then, ())
    assert again.merges == ()
    left = let_go(then, {"twos": ["twos"], "threes": ["threes"]}, {"twos": 4, "threes": 5}, {})
    assert merge_plan(left, ()).merges == ()
    third = added(then, OF_FOURS)
    assert merge_plan(third, ()).staying == dict.fromkeys(
        ("twos", "threes"), "it is being handed over already"
    )


def test_planners_that_share_nothing_merge_nothing() -> None:
    queries = added(a_set(OF_TWOS, planner="independent"), OF_THREES)
    assert merge_plan(queries, ()).merges == ()


def test_who_counts_a_stream_is_relieved() -> None:
    queries = one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK)
    assert queries.read_by == {"s": "twos"}
    then, _ = merged(queries)
    assert then.logs == {"s": "twos", "s@woven-0-2": "woven-0-2"}
    assert then.read_by == {"s": "twos"}
    left = let_go(then, {"twos": ["twos"]}, {"twos": 4}, {})
    assert left.read_by == {"s": "woven-0-2"}
    assert left.logs == {"s@woven-0-2": "woven-0-2"}
    assert left.log_of("s") == "s@woven-0-2"
    assert {each.name for each in left.fragments} == {"threes", "woven-0-2"}
    assert [type(stage) for stage in stages_between(then, left)][-1] is StopStage
    gone = then.without(["threes", "twos"], {"twos": 4, "threes": 4, "woven-0-2": 0})
    assert {each.name for each in gone.fragments} == {"twos"}  # nobody else counts
    emptied = left.without(["threes", "twos"], {"threes": 4, "woven-0-2": 0})
    assert {each.name for each in emptied.fragments} == {"woven-0-2"}


def test_what_is_silent_on_spark_is_got_rid_of() -> None:
    queries = a_set(OF_TWOS, OF_THREES, OF_FOURS, engines=Engines.SPARK)
    (woven,) = {*places(queries).values()}
    left = queries.without(["threes"], {woven: 3})
    then, made = merged(left)
    assert told(made) == {"twos": (woven, "woven-0-2"), "fours": (woven, "woven-0-2")}
    assert places(then)["threes"] == woven  # until it ends
    alone, made = merged(left.without(["fours"], {woven: 3}))
    assert told(made) == {"twos": (woven, "native-0-3")}
    assert places(alone)["twos"] == "native-0-3"


def test_databases_over_streams_in_common_become_one() -> None:
    queries = one_by_one(SUMS, OTHER, BOTH)
    assert {*places(queries).values()} == {"shared-0", "shared-0-1", "shared-0-2"}
    then, made = merged(queries)
    # The last one reads both streams.
    assert told(made) == {"sums": ("shared-0", "shared-0-2"), "other": ("shared-0-1", "shared-0-2")}
    assert [type(stage) for stage in stages_between(queries, then)] == [ChangeStage] * 3
    left = let_go(then, {"shared-0": ["sums"], "shared-0-1": ["other"]}, {"shared-0": 1, "shared-0-1": 1}, {})
    assert {*places(left).values()} == {"shared-0-2"}


def test_databases_that_share_a_chain_of_streams_become_a_new_one() -> None:
    more = STREAMS.replace("STREAM s", "STREAM t").replace("STREAM r", "STREAM u")
    third = BOTH.replace("both", "third").replace("FROM s", "FROM t").replace("s.", "t.")
    queries = added(one_by_one(BOTH), more + third)
    assert {*places(queries).values()} == {"shared-0", "shared-0-1"}
    then, made = merged(queries)
    assert told(made) == {
        "both": ("shared-0", "shared-0-2"),
        "third": ("shared-0-1", "shared-0-2"),
    }
    assert then.fragments[-1].streams == ("r", "s", "t")
    new = added(then, ONES)
    assert places(new)["ones"] == "shared-0-2"  # not one that is about to end


def test_what_cannot_be_handed_over_stays_and_is_told() -> None:
    queries = added(one_by_one(SUMS, ROWS), BOTH)
    then, made = merged(queries)
    assert told(made) == {"sums": ("shared-0", "shared-0-2")}
    assert made.staying == {
        "rows": "it has a window of rows, which are numbered from the first on that it has seen"
    }
    assert places(then)["rows"] == "shared-0-1"


def test_who_stays_because_of_another_is_told() -> None:
    queries = added(one_by_one(OTHER, SUMS), ROWS)
    assert places(queries)["rows"] == places(queries)["other"]
    _, made = merged(added(queries, BOTH))
    assert made.staying["other"] == "it runs in shared-0 with `rows`, which is not handed over"


@pytest.mark.parametrize(
    ("options", "is_read_again"),
    [
        ("connector = 'files', path = 's', format = 'json', start = 'latest'", False),
        ("connector = 'spark', format = 'rate'", False),
        ("connector = 'spark', format = 'kafka', option.startingOffsets = 'latest'", False),
        ("connector = 'spark', format = 'kafka', option.startingOffsets = 'earliest'", True),
    ],
)
def test_streams_that_may_not_give_again_what_they_gave(options: str, is_read_again: bool) -> None:
    streams = f"CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) WITH ({options});"
    queries = added(a_set(OF_TWOS, engines=Engines.SPARK, streams=streams), OF_THREES)
    plan = merge_plan(queries, ())
    assert bool(plan.merges) is is_read_again
    assert bool(plan.staying) is not is_read_again
    if is_read_again:
        assert not merge_plan(queries, {"s"}).merges


def test_rows_of_a_second_place_are_another_series() -> None:
    then, _ = merged(one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK))
    assert then.outlets["twos"].writers == {0: "twos", 1: "woven-0-2"}
    assert then.outlets["twos"].series_of("woven-0-2") == 1
    assert then.outlets["threes"].writers == {0: "threes", 1: "woven-0-2"}
    assert then.outlets["twos"].folder == Path("results/twos").absolute()


def test_each_merge_has_a_series_that_nobody_has_had() -> None:
    queries = one_by_one(OF_TWOS, OF_THREES, ONES, ONES.replace("ones", "more"), engines=Engines.SPARK)
    plan = merge_plan(queries, ())
    assert sorted(each.series for each in plan.merges) == [1, 2]
    then = handed_over(queries, plan.at(queries, lambda _: MOMENT_US).merges)
    # The same comes of the changes that were written down, also where outlets are known that came later.
    later = replace(queries, outlets=then.outlets)
    assert handed_over(later, plan.at(queries, lambda _: MOMENT_US).merges).outlets == then.outlets
    fourth = added(then, OF_FOURS)
    left = let_go(fourth, {"twos": ["twos"], "threes": ["threes"]}, {"twos": 1, "threes": 1}, {})
    assert [each.series for each in merge_plan(left, ()).merges] == [3]


def test_no_query_is_handed_over_before_it_sees_rows() -> None:
    later_us = 2 * MOMENT_US
    queries = added(a_set(OF_TWOS, engines=Engines.SPARK), OF_THREES, later_us)
    then, _ = merged(queries, MOMENT_US)
    moments = {result.query: result.after_us for result in then.fragments[-1].results}
    assert moments == {"twos": later_us, "threes": later_us}
    assert len({each.name for each in then.fragments}) == len(then.fragments)


def test_what_was_counted_of_a_query_stays_with_it_if_it_fails_while_it_is_handed_over() -> None:
    then, _ = merged(one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK))
    carried = {"threes": Carried({"rows:threes": 3}, {})}
    error = {"threes": ExternalError("results", "the disk is full")}
    gone = then.without(["threes"], {"threes": 4, "woven-0-2": 1}, error, carried)
    assert gone.stopped["threes"].fragment == "woven-0-2"
    assert gone.stopped["threes"].carried == carried["threes"]
    written = json.dumps(settled(gone, {"twos"}).to_json())
    again = restored(
        a_set(OF_TWOS, engines=Engines.SPARK), Settled.from_json(json.loads(written)), gone.outlets
    )
    assert again.stopped["threes"].carried == carried["threes"]


def test_a_query_that_is_being_handed_over_is_dropped_in_both_places() -> None:
    then, _ = merged(one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK))
    gone = then.without(["threes"], {"threes": 4, "woven-0-2": 1})
    assert {each.name for each in gone.fragments} == {"twos", "woven-0-2"}
    assert gone.silent == {"woven-0-2": {"threes": 1}}
    assert [*gone.places] == ["twos"]
    assert [*gone.leaving] == ["twos"]


@pytest.mark.parametrize("engines", [Engines.SPARK, Engines.ANY])
def test_a_set_with_handovers_is_settled_and_restored(engines: Engines) -> None:
    texts = (OF_TWOS, OF_THREES) if engines is Engines.SPARK else (SUMS, BOTH)
    first = a_set(texts[0], engines=engines)
    queries, made = merged(added(first, texts[1], MINUTE_US))
    assert made.queries
    begun_with = {query.name.lower() for query in first.workload.queries.values()}
    for _ in range(2):
        written = json.dumps(settled(queries, begun_with).to_json())
        again = restored(first, Settled.from_json(json.loads(written)), queries.outlets)
        # Where texts of queries stand has become another.
        assert replace(again, workload=queries.workload, known=queries.known) == queries
        places = {name: [query] for query, (each, _) in queries.leaving.items() for name in [each.name]}
        own = Carried({"rows:twos": 3}, {"failed:twos:0": First(1, 2, "{}")})
        carried = {query: own for names in places.values() for query in names}
        queries = let_go(queries, places, dict.fromkeys(places, 7), carried)


def test_changes_are_read_as_they_were_written() -> None:
    queries = one_by_one(OF_TWOS, OF_THREES, engines=Engines.SPARK)
    plan = merge_plan(queries, ()).at(queries, lambda _: MOMENT_US)
    carried = {"twos": Carried({"rows:twos": 3}, {"failed:twos:0": First(1, 2, "{}")})}
    for change in (
        Change(3, merged=plan.merges, batches={"twos": 4}),
        Change(4, let_go={"twos": ("twos",)}, batches={"twos": 4}, carried=carried),
    ):
        assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change
