"""A history of changes leads to the same set, whether its changes are made again or were settled."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.differential.queries import KINDS, OVER_A_QUERY
from tests.differential.variants import ON_SPARK, with_variants
from tests.differential.workloads import RandomWorkload, random_workload

from plait import language
from plait.deployment.lowering import Engines, fragments
from plait.errors import ExternalError, PlaitError, Source
from plait.planners import PLANNERS, driver
from plait.runtime.changes import Addition
from plait.runtime.query_set import Arrangement, QuerySet
from plait.runtime.settled import Settled, restored, settled
from plait.statistics import Basis, Estimate, Statistics
from plait.workload import Workload

CHANGES = 12


def first_of(workload: Workload, planner: str, engines: Engines) -> QuerySet:
    how = Arrangement(planner, PLANNERS[planner].shares, engines, Path("results"))
    deployment = driver.plan(workload, planner).deployment
    made = fragments(deployment, workload.catalog, together=how.together, engines=engines)
    return QuerySet.first(how, workload, made)


def changed(queries: QuerySet, workload: RandomWorkload, rng: random.Random) -> QuerySet:
    """The set after a change of chance."""
    there = [query.name for query in queries.workload.queries.values()]
    missing = [query for query in workload.queries if query.name not in queries.known.queries]
    if missing and (not there or rng.random() < 0.6):
        some = rng.sample(missing, rng.randint(1, min(4, len(missing))))
        text = "\n".join(query.sql for query in some)
        if rng.random() < 0.3:
            text += f"\nCREATE STREAM more_{queries.changes} (x INT, at TIMESTAMP, WATERMARK FOR at AS at);"
        known = Statistics({("s", "rate"): Estimate(rng.random(), Basis.OBSERVED)})
        proposal = queries.proposed(Addition(Source("more.sql", text), Path.cwd()), lambda *_: known)
        moment = rng.choice([None, 1_700_000_000_000_000 + queries.changes])
        return queries.with_added(proposal, dict.fromkeys((r.query for r in proposal.results), moment))
    batches = dict.fromkeys((each.name for each in queries.fragments), queries.changes)
    if queries.stopped and rng.random() < 0.3:
        return queries.without([*queries.stopped][:1], batches)
    dropped = rng.sample(there, rng.randint(1, min(3, len(there))))
    failed = {name: ExternalError("memory", f"{name} failed") for name in dropped if rng.random() < 0.4}
    return queries.without([*failed] or dropped, batches, failed)


def plain(queries: QuerySet) -> QuerySet:
    """Without what is for messages only, and what is in texts that were read."""

    def bare(workload: Workload) -> Workload:
        spanless = {key: replace(query, span=None) for key, query in workload.queries.items()}
        return replace(workload, queries=spanless)

    return replace(queries, workload=bare(queries.workload), known=bare(queries.known), stopped={})


def failures(queries: QuerySet) -> list[object]:
    """What is known of queries that failed."""
    return [
        (name, replace(each.query, span=None), each.fragment, each.way, each.result, each.error.render())
        for name, each in queries.stopped.items()
    ]


@pytest.mark.parametrize(
    ("seed", "planner", "engines"),
    [
        (1, "plait", Engines.ANY),
        (2, "plait", Engines.DUCKDB),
        (3, "plait", Engines.SPARK),
        (4, "plait", Engines.SPARK),
        (5, "independent", Engines.ANY),
    ],
)
def test_a_settled_set_is_the_set(seed: int, planner: str, engines: Engines) -> None:
    rng = random.Random(seed)
    kinds = ON_SPARK if engines is Engines.SPARK else [kind for kind in KINDS if kind != OVER_A_QUERY]
    workload = with_variants(random_workload(seed, kinds, cuts=2), 1, rng)
    begun = replace(workload, queries=workload.queries[: len(workload.queries) // 2])
    first = first_of(begun.load(), planner, engines)
    queries, again = first, first
    for _ in range(CHANGES):
        state = rng.getstate()
        queries = changed(queries, workload, rng)
        rng.setstate(state)
        again = changed(again, workload, rng)
        if rng.random() < 0.4:
            written = json.loads(json.dumps(settled(again, first.workload.queries).to_json()))
            again = restored(first, Settled.from_json(written), again.outlets)
        assert plain(again) == plain(queries)
        assert failures(again) == failures(queries)
        assert [each.inputs for each in again.fragments] == [each.inputs for each in queries.fragments]
    assert queries.changes == CHANGES


def test_queries_that_read_others_that_are_gone_stay_what_they_are() -> None:
    sql = """
    CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at);
    CREATE CONTINUOUS QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k;
    """
    first = first_of(language.load_text(sql), "plait", Engines.ANY)

    def added(queries: QuerySet, text: str) -> QuerySet:
        proposal = queries.proposed(Addition(Source("more.sql", text), Path.cwd()))
        return queries.with_added(proposal, dict.fromkeys((each.query for each in proposal.results), 7))

    def settled_and_back(queries: QuerySet) -> QuerySet:
        return restored(first, settled(queries, first.workload.queries), queries.outlets)

    queries = added(first, "CREATE CONTINUOUS QUERY a AS SELECT k FROM sums WHERE total > 1;")
    queries = added(queries, "CREATE CONTINUOUS QUERY b AS SELECT k FROM a WHERE k = 1;")
    queries = queries.without(["a", "sums"], {"shared-0": 3})
    queries = added(queries, "CREATE CONTINUOUS QUERY a AS SELECT v FROM s;")
    again = settled_and_back(queries)
    assert plain(again) == plain(queries)
    assert [*again.workload.queries] == ["b", "a#2"]
    assert again.workload.query("b").reads == ("a",)
    over = "CREATE CONTINUOUS QUERY over AS SELECT v FROM a WHERE v > 1;"
    assert plain(added(again, over)) == plain(added(queries, over))  # which reads the second `a`
    with pytest.raises(PlaitError, match="there is no stream, table or query `sums`"):
        added(again, "CREATE CONTINUOUS QUERY c AS SELECT k FROM sums;")
    assert [
        *added(
            settled_and_back(again.without(["a"], {})), over.replace("over", "a").replace("FROM a", "FROM s")
        ).workload.queries
    ] == ["b", "a#3"]


def test_a_query_that_failed_is_known_for_it() -> None:
    sql = """
    CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at);
    CREATE CONTINUOUS QUERY q AS SELECT v FROM s;
    CREATE CONTINUOUS QUERY begun AS SELECT v + 1 AS w FROM s;
    """
    first = first_of(language.load_text(sql), "plait", Engines.ANY)
    text = """CREATE CONTINUOUS QUERY more WITH (retain = '7 days') AS SELECT v FROM s WHERE v > 1;"""
    proposal = first.proposed(Addition(Source("more.sql", text), Path.cwd()))
    queries = first.with_added(proposal, {"more": 7})
    told = ExternalError("memory", "too much", detail="why", hint="what to do")
    stopped = queries.without(["begun", "more"], {"shared-0": 3}, dict.fromkeys(("begun", "more"), told))
    written = json.dumps(settled(stopped, first.workload.queries).to_json())
    again = restored(first, Settled.from_json(json.loads(written)), stopped.outlets)
    assert [*again.stopped] == ["begun", "more"]
    assert failures(again) == failures(stopped)
    assert again.stopped["more"].query.sink.keeping.age_us == 7 * 86_400_000_000
    assert [*again.workload.queries] == ["q"]
    assert again.without(["more"], {}).stopped.keys() == {"begun"}


def test_what_is_asked_for_files_is_kept() -> None:
    sql = """
    CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at);
    CREATE CONTINUOUS QUERY q AS SELECT v FROM s;
    """
    first = first_of(language.load_text(sql), "plait", Engines.ANY)
    text = """CREATE CONTINUOUS QUERY more WITH (retain = '7 days', compact = '10 minutes')
      AS SELECT v FROM s WHERE v > 1;"""
    proposal = first.proposed(Addition(Source("more.sql", text), Path.cwd()))
    queries = first.with_added(proposal, {"more": 7})
    written = json.dumps(settled(queries, first.workload.queries).to_json())
    again = restored(first, Settled.from_json(json.loads(written)), queries.outlets)
    assert again.sinks["more"].keeping == queries.sinks["more"].keeping == queries.outlets["more"].keeping
    assert again.sinks["more"].keeping.merge_after_us is not None
    assert plain(again) == plain(queries)


def test_secrets_are_written_down_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "open sesame")
    sql = """
    CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at);
    CREATE CONTINUOUS QUERY q AS SELECT v FROM s;
    """
    first = first_of(language.load_text(sql), "plait", Engines.ANY)
    text = """CREATE CONTINUOUS QUERY out
      WITH (sink = 'spark', format = 'jdbc', option.password = '${PASSWORD}') AS SELECT v FROM s;"""
    proposal = first.proposed(Addition(Source("more.sql", text), Path.cwd()))
    queries = first.with_added(proposal, {"out": None})
    written = json.dumps(settled(queries, first.workload.queries).to_json())
    assert "open sesame" not in written
    again = restored(first, Settled.from_json(json.loads(written)), queries.outlets)
    assert again.sinks["out"].spark_options == {"password": "open sesame"}
    monkeypatch.delenv("PASSWORD")
    with pytest.raises(PlaitError, match="PASSWORD is not set"):
        Settled.from_json(json.loads(written))
