"""What a change would do, found from a state folder that nobody uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import plait
from plait import language
from plait.cli import run
from plait.deployment.lowering import Engines, fragments
from plait.errors import PlaitError, Source
from plait.planners import driver
from plait.runtime.changes import Addition, Change
from plait.runtime.declarations import declarations_of
from plait.runtime.journal import ROWS, Journal
from plait.runtime.live_queries import after_changes
from plait.runtime.outlets import record
from plait.runtime.query_set import Arrangement, QuerySet
from plait.runtime.settled import Origin, settled
from plait.runtime.slots import Slot
from plait.runtime.state import StateFolder
from plait.runtime.statistics_file import FILE as STATISTICS
from plait.runtime.statistics_file import StatisticsFile

SQL = """
CREATE STREAM s (k INT, v INT, w INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 2 SECONDS)
  WITH (connector = 'files', path = 's', format = 'json', rate = 100);
CREATE STREAM r (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'r', format = 'json', rate = 10);
CREATE CONTINUOUS QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k;
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
"""
T0_US = 1_700_000_000_000_000
HOURLY = "CREATE CONTINUOUS QUERY hourly AS SELECT k, sum(v) AS total FROM s [RANGE 1 HOUR] GROUP BY k;"
COLUMN = "CREATE CONTINUOUS QUERY others AS SELECT w FROM s WHERE k = 0;"
OTHER = "CREATE CONTINUOUS QUERY other AS SELECT k FROM r;"


def stopped(folder: Path, engines: Engines = Engines.ANY) -> tuple[Path, QuerySet]:
    """A state folder of which `s` has brought rows, and where it began."""
    workload = language.load_text(SQL, "a.sql", folder)
    deployment = driver.plan(workload, "plait").deployment
    made = fragments(deployment, workload.catalog, together=True, engines=engines)
    first = QuerySet.first(Arrangement("plait", True, engines, folder / "results"), workload, made)
    declarations = declarations_of(workload, made)
    state = StateFolder.open(folder / "state", declarations, planner="plait", spark="4.2.0", drain=False)
    texts = tuple(Addition(source, path) for path, source in workload.texts)
    state.begin_with(Origin(texts, engines, folder / "results"))
    state.prepare([each.name for each in made], first.streams)
    record(state.path, first.outlets.values())
    state.create()
    journal = Journal(state.stream("s").journal)
    journal.begin(0, dict)
    journal.finish(0, {ROWS: 5}, {ROWS: T0_US - 2_000_000})
    journal.close()
    state.close()
    return folder / "state", first


def stages(difference: plait.Difference) -> dict[str, str]:
    return {stage["fragment"]: stage["do"] for stage in difference.to_json()["stages"]}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_known_shape_starts_nothing(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path)
    before = contents(state)
    found = plait.attach(state).would_add_text(HOURLY)
    assert found.added == {"hourly": T0_US}
    assert stages(found) == {"shared-0": "change"}
    document = found.to_json()
    assert document["added"][0]["shares_with"] == ("sums",)
    (stage,) = document["stages"]
    assert stage["restarts"] == ""
    assert "deleted" not in stage["state"]
    assert document["cost"]["before"]["cores"] < document["cost"]["after"]["cores"]
    assert not document["running"]
    after = contents(state)
    assert after == before, "something was written"
    assert "hourly" in repr(found)
    assert "2023-11-14 22:13:20" in repr(found)


def test_what_was_observed_decides_as_it_would(tmp_path: Path) -> None:
    """A rate that only Spark can take."""
    large = """CREATE SITE large WITH (cores = 512);
    CREATE STREAM t (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'files', path = 't', format = 'json', site = 'large');
    CREATE CONTINUOUS QUERY many AS
      SELECT k, count(*) AS n FROM t [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k;"""
    state, _ = stopped(tmp_path)
    for way in ("shared", "native"):
        (query,) = plait.attach(state).would_add_text(large).to_json()["added"]
        assert query["way"] == way
        file = StatisticsFile(state / STATISTICS)
        file.put({(0, "f"): Slot({"paced t": 1e8, "span t": 10})})
        file.close()


def test_a_new_column_starts_a_streaming_query_again(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path)
    found = plait.attach(state).would_add_text(COLUMN)
    assert found.restarted == ("shared-0",)
    assert "nobody has read s.w" in repr(found)


def test_streams_that_nobody_reads_need_a_fragment_of_their_own(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path)
    found = plait.attach(state).would_add_text(OTHER)
    assert found.added == {"other": None}
    assert sorted(stages(found).values()) == ["keep", "start"]
    assert "all rows" in repr(found)


def test_on_spark_queries_start_alone_and_are_silenced(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path, Engines.SPARK)
    found = plait.attach(state).would_add_text(HOURLY)
    assert stages(found)["hourly"] == "start"
    dropped = plait.attach(state).would_drop("ones")
    assert stages(dropped) == {"sums": "keep", "ones": "stop"}


@pytest.mark.parametrize(
    ("engines", "text", "expected"),
    [
        (Engines.SPARK, HOURLY, {"sums": "hand over", "hourly": "hand over", "ones": "keep"}),
        (
            Engines.ANY,
            "CREATE CONTINUOUS QUERY both AS SELECT s.v FROM s [RANGE 1 MINUTE], r [RANGE 1 MINUTE] "
            "WHERE s.k = r.k;",
            {"shared-0": "hand over", "shared-0-1": "change"},
        ),
    ],
)
def test_what_would_be_merged_is_said(
    tmp_path: Path,
    engines: Engines,
    text: str,
    expected: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    state, first = stopped(tmp_path, engines)
    nothing = plait.attach(state).would_merge()
    assert nothing.headline == "would change nothing; the system is stopped"
    addition = Addition(Source("more.sql", text), tmp_path)
    opened = StateFolder.open(
        state,
        declarations_of(first.workload, first.fragments),
        planner="plait",
        spark="4.2.0",
        drain=False,
    )
    name = first.proposed(addition).queries[0].name
    opened.add(Change(1, addition, {name: T0_US}))
    opened.close()
    before = contents(state)
    found = plait.attach(state).would_merge()
    assert contents(state) == before, "something was written"
    assert {fragment: do for fragment, do in stages(found).items() if do != "start"} == expected
    assert all(query.until_us > T0_US for query in found.merged.queries)
    assert len(found.merged.queries) == 2
    assert found.headline == "would merge 2 queries; the system is stopped"
    assert "sums" in repr(found)
    assert run(["merge", "--state", str(state), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_json()))
    assert run(["merge", "--state", str(state)]) == 2
    assert "no system runs with the state folder" in capsys.readouterr().err


def test_what_is_dropped_is_said_with_who_reads_it(tmp_path: Path) -> None:
    state, first = stopped(tmp_path)
    over = "CREATE CONTINUOUS QUERY over AS SELECT max(total) AS most FROM sums [RANGE 1 HOUR];"
    addition = Addition(Source("more.sql", over), tmp_path)
    opened = StateFolder.open(
        state,
        declarations_of(first.workload, first.fragments),
        planner="plait",
        spark="4.2.0",
        drain=False,
    )
    opened.add(Change(1, addition, {"over": T0_US}))
    queries = after_changes(first, opened.manifest, state)
    for is_settled in (False, True):
        if is_settled:
            record(state, queries.outlets.values())
            opened.settle(settled(queries, first.workload.queries))
        found = plait.attach(state).would_drop("sums")  # although somebody holds the lock
        assert found.dropped == ("sums",)
        assert found.to_json()["dropped"][0]["read_by"] == ("over",)
        assert "read by over, which go on" in repr(found)
    with pytest.raises(PlaitError, match="there is no query `summs`"):
        plait.attach(state).would_drop("summs")
    opened.close()


def test_another_version_of_the_file(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path)
    file = tmp_path / "a.sql"
    file.write_text(SQL.replace("k = 1", "k = 2").replace("rate = 10)", "rate = 20)") + OTHER)
    found = plait.open(file).against(state)
    assert found.dropped == ("ones",)
    assert found.added == {"ones#2": T0_US, "other": None}
    file.write_text(SQL)
    assert "would change nothing" in repr(plait.open(file).against(state))
    file.write_text(SQL.replace("format = 'json', rate = 100", "format = 'csv', rate = 100"))
    with pytest.raises(PlaitError, match="`s` is declared in another way"):
        plait.open(file).against(state)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, _ = stopped(tmp_path)
    more = tmp_path / "more.sql"
    more.write_text(HOURLY)

    def says(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run([*arguments]) == code
        output, errors = capsys.readouterr()
        return output or errors

    dry = ("add", str(more), "--state", str(state), "--dry-run")
    assert says(*dry).startswith("would add 1 query; the system is stopped")
    assert json.loads(says(*dry, "--json")) == json.loads(
        says("plan", str(more), "--against", str(state), "--format", "json")
    )
    svg = says(*dry, "--format", "svg")
    assert 'class="query starts"' in svg
    assert "would start" in svg
    assert 'color="#cf222e"' in says("drop", "ones", "--state", str(state), "--dry-run", "--format", "dot")
    assert "--format is for --dry-run" in says("drop", "ones", "--format", "dot", code=2)
    assert "is no state folder" in says("plan", str(more), "--against", str(tmp_path), code=2)
    assert "--against goes by the system" in says(
        "plan", str(more), "--against", str(state), "--compare", code=2
    )


def test_what_does_not_fit_is_refused_before_it_is_made(tmp_path: Path) -> None:
    state, _ = stopped(tmp_path)
    small = """CREATE SITE small WITH (cores = 0.001);
    CREATE STREAM t (k INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'files', path = 't', format = 'json', site = 'small', rate = 100000);
    CREATE CONTINUOUS QUERY many AS SELECT count(*) AS n FROM t [RANGE 1 MINUTE];"""
    with pytest.raises(PlaitError, match="query `many` cannot be run"):
        plait.attach(state).would_add_text(small)
