"""Where queries that are added are computed, and what becomes of those that are dropped."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from plait import language
from plait.deployment.fragments import Way
from plait.deployment.lowering import Engines, fragments
from plait.errors import ExternalError, PlaitError, Source, UserError
from plait.planners import driver
from plait.runtime.change_stages import KeepStage, SilenceStage, StopStage, stages_between
from plait.runtime.changes import Addition, Change
from plait.runtime.declarations import declarations_of
from plait.runtime.live_queries import after_changes
from plait.runtime.query_set import Arrangement, QuerySet
from plait.runtime.state import StateFolder
from plait.statistics import NO_STATISTICS, Basis, Estimate, Statistics

STREAMS = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 's', format = 'json');
CREATE STREAM r (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'r', format = 'json');
"""
SUMS = "CREATE CONTINUOUS QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k;"
ONES = "CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;"
OTHER = "CREATE CONTINUOUS QUERY other AS SELECT k FROM r WHERE k > 1;"
BOTH = """CREATE CONTINUOUS QUERY both AS
SELECT s.v FROM s [RANGE 1 MINUTE], r [RANGE 1 MINUTE] WHERE s.k = r.k;"""
OVER = "CREATE CONTINUOUS QUERY over AS SELECT max(total) AS most FROM sums [RANGE 1 HOUR];"


def a_set(
    *queries: str, engines: Engines = Engines.ANY, planner: str = "plait", streams: str = STREAMS
) -> QuerySet:
    workload = language.load_text(streams + "".join(queries))
    together = planner == "plait"
    deployment = driver.plan(workload, planner).deployment
    made = fragments(deployment, workload.catalog, together=together, engines=engines)
    return QuerySet.first(Arrangement(planner, together, engines, Path("results")), workload, made)


def added(queries: QuerySet, text: str, after_us: int | None = 10) -> QuerySet:
    proposal = queries.proposed(Addition(Source("more.sql", text), Path()))
    return queries.with_added(proposal, dict.fromkeys((each.query for each in proposal.results), after_us))


def places(queries: QuerySet) -> dict[str, str]:
    return {result.query: each.name for each in queries.fragments for result in each.results}


def test_a_query_goes_where_its_streams_are_read() -> None:
    before = a_set(SUMS, OTHER)
    after = added(before, ONES)
    assert places(after)["ones"] == places(before)["sums"]
    assert len(after.fragments) == len(before.fragments)
    assert after.results["ones"].after_us == 10
    assert after.results["sums"].after_us is None
    assert after.read_by == before.read_by
    unchanged = places(before)["other"]
    assert next(each for each in after.fragments if each.name == unchanged) in before.fragments


MANY = "".join(
    f"CREATE STREAM {name} (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at) "
    f"WITH (connector = 'files', path = '{name}', format = 'json', rate = 1000000);"
    for name in "ab"
)


def pair(name: str, v: int) -> str:
    return (
        f"CREATE CONTINUOUS QUERY {name} AS SELECT a.at FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] "
        f"WHERE a.k = b.k AND a.v = {v} AND b.v = {v + 50};"
    )


def parts(queries: QuerySet) -> dict[str, str]:
    return {name: result.part for name, result in queries.results.items()}


def test_a_query_shares_a_join_that_is_there_if_that_pays() -> None:
    first = a_set(pair("p", 1), pair("q", 2), streams=MANY)
    assert parts(first) == {"p": "p", "q": "q"}
    more = added(first, pair("same", 2) + pair("another", 3))
    assert parts(more) == {"p": "p", "q": "q", "same": "q", "another": "another"}
    left = more.without(["q"], {"shared-0": 4})  # after which the part is named, which stays
    assert parts(left) == {"p": "p", "same": "q", "another": "another"}
    assert parts(added(left, pair("again", 2))) == {**parts(left), "again": "q"}


def test_what_was_observed_decides_with_whom_a_query_shares_a_join() -> None:
    slow = Statistics({(name, "rate"): Estimate(1.0, Basis.OBSERVED) for name in "ab"})
    first = a_set(pair("p", 1), streams=MANY)
    addition = Addition(Source("more.sql", pair("q", 2)), Path())
    found = {}
    for observed in (NO_STATISTICS, slow):
        proposal = first.proposed(addition, lambda *_, observed=observed: observed)
        found[observed is slow] = parts(first.with_added(proposal, {"q": 10}))
    assert found == {False: {"p": "p", "q": "q"}, True: {"p": "p", "q": "p"}}


def test_streams_that_are_read_apart_are_read_once_more() -> None:
    before = a_set(SUMS, OTHER)
    after = added(before, BOTH)
    assert places(after)["both"] not in {each.name for each in before.fragments}
    assert after.read_by == before.read_by
    more = added(added(a_set(SUMS), OTHER), BOTH)
    assert set(more.read_by) == {"s", "r"}


def test_spark_gets_new_fragments() -> None:
    for queries in (a_set(SUMS, engines=Engines.SPARK), a_set(SUMS, planner="independent")):
        after = added(queries, ONES)
        assert places(after) == {"sums": "sums", "ones": "ones"}
        assert {each.way for each in after.fragments} == {Way.NATIVE}
        gone = after.without(["ones"], {"ones": 4})
        assert places(gone) == {"sums": "sums"}


def test_what_counts_a_stream_stays_and_is_silent() -> None:
    after = added(a_set(SUMS, engines=Engines.SPARK), ONES).without(["sums"], {"sums": 7})
    assert places(after) == {"sums": "sums", "ones": "ones"}
    assert after.silent == {"sums": {"sums": 7}}
    assert [*after.workload.queries] == ["ones"]
    emptied = a_set(SUMS).without(["sums"], {"shared-0": 3})
    assert [each.results for each in emptied.fragments] == [()]
    assert places(added(emptied, ONES)) == {"ones": "shared-0"}


def test_names_are_used_once() -> None:
    queries = a_set(SUMS, ONES)
    with pytest.raises(PlaitError, match="there is already a query `ones` in the system"):
        added(queries, ONES)
    again = added(queries.without(["ones"], {}), ONES)
    assert [*again.workload.queries] == ["sums", "ones#2"]
    assert again.query("ones").name == again.query("ONES#2").name == "ones#2"
    third = added(again.without(["ones"], {}), ONES)
    assert [*third.workload.queries] == ["sums", "ones#3"]
    assert {"ones", "ones#2", "ones#3"} <= third.outlets.keys()


def test_what_others_read_is_dropped_only_if_that_is_sure() -> None:
    queries = added(a_set(SUMS), OVER)
    assert queries.query("over").reads == ("sums",)
    with pytest.raises(UserError, match="`sums` is read by `over`") as raised:
        queries.check_unread(["sums"])
    assert "--yes" in raised.value.hint
    queries.check_unread(["over"])
    queries.check_unread(["sums", "over"])
    left = queries.without(["sums"], {})
    assert [*left.workload.queries] == ["over"]
    with pytest.raises(PlaitError, match="there is no stream, table or query `sums`"):
        added(left, OVER.replace("over", "again"))


def test_results_of_before_stay_where_they_are() -> None:
    queries = a_set(SUMS, ONES)
    twos, threes = (
        ONES.replace("ones", name).replace("k = 1", f"k = {n}") for n, name in ((2, "twos"), (3, "three"))
    )
    alone = added(queries, twos)
    assert alone.outlets["ones"] == queries.outlets["ones"]
    assert not alone.outlets["twos"].is_shared
    together = added(queries, twos + threes)
    assert together.outlets["twos"].folder == together.outlets["three"].folder
    assert together.outlets["ones"] == queries.outlets["ones"]


def test_refusals() -> None:
    queries = a_set(SUMS)
    with pytest.raises(UserError, match=r"no query is declared in more\.sql"):
        added(queries, "CREATE SITE somewhere;")
    with pytest.raises(PlaitError, match="cannot be dropped by what is added"):
        added(queries, "DROP CONTINUOUS QUERY sums;")
    with pytest.raises(UserError, match="there is no query `summs`") as raised:
        queries.without(["summs"], {})
    assert raised.value.hint == "did you mean `sums`?"
    rows = "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s [ROWS 5 SLIDE 5];"
    on_spark = a_set(SUMS, engines=Engines.SPARK)
    with pytest.raises(PlaitError, match="cannot run on Spark's operators alone"):
        added(on_spark, rows)


def test_what_has_failed_stays_silent_from_then_on_and_counted() -> None:
    twos = ONES.replace("ones", "twos").replace("k = 1", "k = 2")
    queries = added(a_set(SUMS, engines=Engines.SPARK), ONES + twos)
    woven = places(queries)["ones"]
    failed = queries.without(["ones"], {woven: 5}, {"ones": ExternalError("disk", "full")})
    assert failed.silent == {woven: {"ones": 5}}
    ended = failed.without(["twos"], {woven: 7})
    assert woven not in places(ended).values()
    assert woven in ended.kept
    assert woven not in ended.without(["ones"], {}).kept
    dropped = failed.without(["ones"], {woven: 9})  # batches that run again leave out what they did
    assert dropped.silent == {woven: {"ones": 5}}
    assert dropped.stopped == {}


def test_a_change_is_read_as_it_was_written() -> None:
    change = Change(
        3,
        Addition(Source("a.sql", ONES), Path("/x")),
        {"ones": None, "b": 5},
        ("c",),
        {"shared-0": 7},
        statistics=Statistics({("s", "rate"): Estimate(2.5, Basis.OBSERVED)}),
    )
    assert Change.from_json(change.to_json()) == change
    dropped = Change(4, None, {}, ("ones",), {})
    assert Change.from_json(dropped.to_json()) == dropped


def started_again(first: QuerySet, change: Change, path: Path) -> QuerySet:
    """The set that a start finds after a change."""

    def opened() -> StateFolder:
        known = declarations_of(first.workload, first.fragments)
        return StateFolder.open(path, known, planner="plait", spark="4.2.0", drain=False)

    with closing(opened()) as state:
        state.create()
        state.add(change)
    with closing(opened()) as state:
        return after_changes(first, state.manifest, state.path)


def test_what_was_observed_decides_about_what_is_added_and_is_found_again(tmp_path: Path) -> None:
    """A rate that only Spark can take. A start plans a change with what had been observed when it was made,
    whatever is known by then."""
    large = """CREATE SITE large WITH (cores = 512);
    CREATE STREAM t (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'files', path = 't', format = 'json', site = 'large');
    CREATE CONTINUOUS QUERY many AS
      SELECT k, count(*) AS n FROM t [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k;"""
    addition = Addition(Source("more.sql", large), Path())
    much = Statistics({("t", "rate"): Estimate(1e7, Basis.OBSERVED)})
    first = a_set(SUMS)
    proposal = first.proposed(addition, lambda *_: much)
    assert proposal.statistics == much
    now = first.with_added(proposal, {"many": None})
    ways = {result.query: each.way for each in now.fragments for result in each.results}
    assert ways == {"sums": Way.SHARED, "many": Way.NATIVE}
    for statistics, way in ((much, Way.NATIVE), (NO_STATISTICS, Way.SHARED)):
        change = Change(1, addition, {"many": None}, statistics=statistics)
        again = started_again(first, change, tmp_path / way)
        assert again.fragments[-1].way is way
        assert (again == now) is (statistics is much)


FAST = STREAMS.replace("format = 'json');", "format = 'json', rate = 500000);", 1)
SMALL_SITE = "CREATE SITE here WITH (cores = 2.5);"
OTHER_GROUPS = "CREATE CONTINUOUS QUERY more AS SELECT v, count(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY v;"
SAME_GROUPS = "CREATE CONTINUOUS QUERY more AS SELECT k, max(v) AS n FROM s [RANGE 1 HOUR] GROUP BY k;"


@pytest.mark.parametrize("planner", ["plait", "independent"])
def test_what_does_not_fit_besides_the_others_is_refused(planner: str) -> None:
    """The stream takes a core, and what groups it another; each query by itself would fit."""
    limited = a_set(SUMS, planner=planner, streams=SMALL_SITE + FAST)
    proposal = limited.proposed(Addition(Source("more.sql", OTHER_GROUPS), Path()))
    with pytest.raises(PlaitError, match="query `more` cannot be run") as error:
        limited.check_fits(proposal)
    assert "cores of `here`" in error.value.detail
    unlimited = a_set(SUMS, planner=planner, streams=FAST)
    unlimited.check_fits(unlimited.proposed(Addition(Source("more.sql", OTHER_GROUPS), Path())))
    dropped = limited.without(["sums"], dict.fromkeys(["shared-0", "sums"], 1))
    dropped.check_fits(proposal)


def test_what_joins_others_fits_where_they_do() -> None:
    limited = a_set(SUMS, streams=SMALL_SITE + FAST)
    limited.check_fits(limited.proposed(Addition(Source("more.sql", SAME_GROUPS), Path())))


def test_what_was_accepted_is_not_refused_by_a_start() -> None:
    """A change that is in the state is made again whatever it is thought to cost by now."""
    limited = a_set(SUMS, streams=SMALL_SITE + FAST)
    assert set(added(limited, OTHER_GROUPS).results) == {"sums", "more"}


def test_a_stream_is_counted_once_it_was_read() -> None:
    rows = OTHER.replace("other", "rows")
    counts = "CREATE CONTINUOUS QUERY counts AS SELECT count(*) AS n FROM r [RANGE 1 MINUTE];"
    both = added(a_set(SUMS, engines=Engines.SPARK), rows + counts)
    assert "r" not in both.read_by  # but has an intake
    left = both.without(["rows", "counts"], {"rows": 1, "counts": 1})
    assert left.streams == ("r", "s")
    assert added(left, OTHER).read_by == both.read_by


def test_families_that_come_together_have_their_own_names() -> None:
    alike = [
        f"CREATE CONTINUOUS QUERY {s}{n} AS SELECT k FROM {s} WHERE k = {n};" for s in "sr" for n in (1, 2)
    ]
    after = added(a_set(SUMS, engines=Engines.SPARK), "".join(alike))
    names = [each.name for each in after.fragments]
    assert len(names) == len({*names}) == 3


def test_fragments_of_queries_that_were_dropped_before_are_left_alone() -> None:
    queries = added(a_set(SUMS, engines=Engines.SPARK), ONES)
    dropped = queries.without(["sums"], {"sums": 3})
    first = stages_between(queries, dropped)
    assert [type(stage) for stage in first] == [SilenceStage, KeepStage]
    again = stages_between(dropped, dropped.without(["ones"], {"ones": 5}))
    assert [type(stage) for stage in again] == [KeepStage, StopStage]
