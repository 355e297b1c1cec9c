"""What is observed of a run: shown while it goes on and afterwards, used for what is added, in nobody's
way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.patience import wait_until

import plait
from plait.cli import run
from plait.runtime.statistics_file import FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json', rate = 1000);
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;
CREATE CONTINUOUS QUERY sums AS
  SELECT k, sum(v) AS total FROM s [RANGE 10 SECONDS] WHERE v > -1 GROUP BY k;
"""
# On Spark's own operators: a pass and a tree, each of two queries, and two queries by themselves.
STREAM = SQL[: SQL.index(";") + 1]
ON_SPARK = f"""
{STREAM}
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;
CREATE CONTINUOUS QUERY tens AS
  SELECT k, sum(v) AS total FROM s [RANGE 10 SECONDS] WHERE v >= 50 GROUP BY k;
CREATE CONTINUOUS QUERY twenties AS
  SELECT k, sum(v) AS total FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] WHERE v >= 50 GROUP BY k;
CREATE CONTINUOUS QUERY kinds AS SELECT count(DISTINCT k) AS n FROM s [RANGE 10 SECONDS] WHERE v < 150;
CREATE CONTINUOUS QUERY pairs AS
  SELECT a.v FROM s a [RANGE 1 SECOND], s b [RANGE 1 SECOND] WHERE a.k = b.k AND a.v < 100;
"""
NOON = datetime(2026, 1, 1, 12)


class Observed:
    """A run over rows that arrive when they are told to, five a second."""

    def __init__(self, folder: Path, spark: SparkSession, sql: str = SQL) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        (folder / "a.sql").write_text(sql)
        self._session = plait.open(folder / "a.sql", spark=spark)
        self._rows = 0

    def start(self, engines: str = "any") -> None:
        self.running = self._session.run(
            state=self.state, results=self.folder / "results", trigger_seconds=0.1, engines=engines
        )

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def arrive(self, seconds: int) -> None:
        first, self._rows = self._rows, self._rows + 5 * seconds
        rows = [
            {"k": n % 10, "v": n, "at": str(NOON + timedelta(seconds=n / 5))}
            for n in range(first, self._rows)
        ]
        draft = self.folder / "draft"
        draft.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        draft.rename(self.folder / "in" / f"{first}.json")
        wait_until(lambda: self.running.progress().streams[0].rows >= self._rows)


@pytest.fixture
def observed(tmp_path: Path, spark: SparkSession) -> Iterator[Observed]:
    found = Observed(tmp_path, spark)
    yield found
    found.running.stop()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run([*arguments]) == 0
    return capsys.readouterr().out


def test_a_run_is_observed_from_its_first_batch_to_the_next_start(
    observed: Observed, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(observed.state)
    observed.state.mkdir()
    (observed.state / "lock").touch()
    (observed.state / FILE).write_bytes(b"this is no database")  # which hinders no start
    observed.start()
    for _ in range(4):
        observed.arrive(20)

    wait_until(lambda: observed.running.analyze("ones").operators[0].rows_in == 400)
    ones = observed.running.analyze("ones")
    read, kept = ones.steps[0], ones.steps[1]
    assert (read.estimated.rows_per_s, read.basis) == (1000, "declared")
    assert read.observed.rows_per_s == pytest.approx(5, rel=0.01)
    assert set(read.serves) == {"ones", "twos", "sums"}
    assert kept.observed.passes == pytest.approx(0.1, rel=0.05)
    assert set(kept.serves) == {"ones", "twos"}
    (by_pass,) = ones.operators
    assert (by_pass.rows_in, by_pass.rows_out) == (400, 80)

    sums = plait.attach(state).analyze("sums")
    (tree,) = sums.operators
    assert (tree.form, tree.rows_in) == ("tree of windows", 400)
    assert tree.rows_made == 10 * 8  # a partial for each group and window
    shares = {query.name: query.cost_share for query in observed.running.statistics().queries}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["ones"] == shares["twos"]
    assert sums.cost_share == pytest.approx(shares["sums"], rel=0.2)

    top = json.loads(said(capsys, "top", "--json", "--state", state))
    assert [each["rows"] for each in top["streams"]] == [400]
    assert [(each["name"], each["queries"]) for each in top["fragments"]] == [("shared-0", 3)]
    assert top["fragments"][0]["state_bytes"] > 0
    text = said(capsys, "top", "--state", state)
    assert all(name in text for name in ("cost share", "shared-0", "ones", "behind"))

    changed = observed.running.add_text("CREATE CONTINUOUS QUERY threes AS SELECT v FROM s WHERE k = 3;")
    assert changed.added.keys() == {"threes"}
    (change,) = manifest(observed)["changes"]
    assert change["statistics"]["s"]["rate"] == pytest.approx(5, rel=0.01)
    observed.arrive(20)
    threes = observed.running.analyze("threes")
    assert threes.steps[0].estimated.rows_per_s == pytest.approx(5, rel=0.01)
    assert threes.steps[0].basis == "observed"
    before = [(query.name, query.fragment) for query in observed.running.queries()]
    observed.running.stop()

    text = said(capsys, "explain", "threes", "--analyze", "--state", state)
    assert "pass over rows, for 3 queries: ones, twos, threes" in text
    document = json.loads(said(capsys, "explain", "sums", "--analyze", "--json", "--state", state))
    assert document["queries"][0]["steps"][0]["observed"]["rows_per_s"] == pytest.approx(5, rel=0.01)
    assert run(["explain", "fours", "--analyze", "--state", state]) == 2
    assert "there is no query `fours`" in capsys.readouterr().err

    observed.start()
    assert manifest(observed)["changes"] == []  # they are settled
    assert [(query.name, query.fragment) for query in observed.running.queries()] == before
    observed.arrive(20)
    wait_until(lambda: len(observed.running.results("threes")) == 20)
    assert observed.running.analyze("ones").batches >= 6  # those of before count
    assert observed.running.analyze("threes").steps[0].basis == "observed"  # what it was planned with


@pytest.fixture
def on_spark(tmp_path: Path, spark: SparkSession) -> Iterator[Observed]:
    found = Observed(tmp_path, spark, ON_SPARK)
    yield found
    found.running.stop()


def operators(observed: Observed, query: str) -> dict[str, list[tuple[int, int, int]]]:
    """Rows in, made and out of the operators that compute a query, by what they are."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    for each in observed.running.analyze(query).operators:
        found.setdefault(each.form, []).append((each.rows_in, each.rows_made, each.rows_out))
    return {form: sorted(rows) for form, rows in found.items()}


def arrive_everywhere(observed: Observed, rows: int, closed: dict[str, int]) -> None:
    """Twenty seconds more, and then so many rows are read by everybody, and given of windows."""
    observed.arrive(20)
    for query in ("ones", "tens", "kinds", "pairs"):
        wait_until(lambda: operators(observed, query)["reading"][0][0] == rows)  # noqa: B023
    for query, given in closed.items():
        wait_until(lambda: operators(observed, query)["handing out"][0][2] == given)  # noqa: B023


def test_sparks_own_operators_are_observed_over_batches_and_starts(
    on_spark: Observed, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(on_spark.state)
    on_spark.start(engines="spark")
    # Rows come until 12:00:19.8 and 12:00:39.8: the windows until :10 and :30 are closed.
    arrive_everywhere(on_spark, 100, {"tens": 0, "kinds": 1})
    arrive_everywhere(on_spark, 200, {"tens": 20 + 20, "kinds": 3})

    tens = on_spark.running.analyze("tens")
    assert tens.way == "woven"
    read, kept, window, aggregate, *_ = tens.steps
    assert read.observed.rows_per_s == pytest.approx(5, rel=0.01)
    assert kept.observed.rows_per_s == pytest.approx(5, rel=0.01)  # all after the first fifty
    assert kept.observed.passes == pytest.approx(1)
    assert kept.serves == ("tens", "twenties")
    assert window.kind == "window"
    assert aggregate.observed.rows == pytest.approx(10, rel=0.01)  # groups

    change = "SELECT k, max(v) AS top FROM s [RANGE 30 SECONDS] WHERE v < 150 GROUP BY k"
    on_spark.running.add_text(f"CREATE CONTINUOUS QUERY tops AS {change};")
    (planned,) = manifest(on_spark)["changes"]
    derived = [known["derived"] for known in planned["statistics"].values() if "derived" in known]
    assert derived == [pytest.approx(2.5, rel=0.01)]  # of the filter that `kinds` has, too
    on_spark.running.stop()

    on_spark.start(engines="spark")
    arrive_everywhere(on_spark, 300, {"tens": 40 + 40, "kinds": 3})
    assert operators(on_spark, "ones") == {"reading": [(300, 0, 60)], "handing out": [(60, 0, 60)]}
    tree = operators(on_spark, "tens")
    assert tree["reading"] == [(300, 0, 250)]
    # Four pieces of ten groups are closed, and one more partial is of the row whose v is the bound itself.
    # Each is in one window of the one query, and in two of the other.
    assert [(rows[0], rows[2]) for rows in tree["partial aggregation"]] == [(250, 41)]
    assert tree["final aggregation"] == [(41, 3 * 41, 80)]
    assert tree["handing out"] == [(80, 0, 80)]
    alone = operators(on_spark, "kinds")
    assert alone["reading"] == [(300, 0, 150)]
    assert [(rows[0], rows[2]) for rows in alone["different values"]] == [(150, 30)]
    assert [(rows[0], rows[2]) for rows in alone["aggregation"]] == [(30, 3)]
    joined = operators(on_spark, "pairs")
    assert joined["reading"] == [(300, 0, 100), (300, 0, 300)]
    assert [(rows[0], rows[2]) for rows in joined["join of rows"]] == [(400, 100)]

    twenties = on_spark.running.analyze("twenties")
    by_form = {each.form: each for each in twenties.operators}
    assert by_form["partial aggregation"].kept_rows == 10  # of the piece that is open
    assert by_form["final aggregation"].kept_rows == 10  # of the window that is open, and has a piece
    assert by_form["final aggregation"].share == pytest.approx(2 / 3)
    assert (by_form["final aggregation"].moved_bytes or 0) > 0
    assert sum(each.seconds for each in twenties.operators) <= twenties.seconds
    assert twenties.cost_share > on_spark.running.analyze("tens").cost_share

    top = json.loads(said(capsys, "top", "--json", "--state", state))
    shares = {each["name"]: each["cost_share"] for each in top["queries"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["twenties"] > shares["tens"] > 0
    wait_until(lambda: (on_spark.running.analyze("tens").state_bytes or 0) > 0)
    on_spark.running.stop()

    text = said(capsys, "explain", "tens", "--analyze", "--state", state)
    assert "reading of s, for 2 queries: tens, twenties: 300 rows in, 250 out" in text
    assert "final aggregation, for 2 queries: tens, twenties: 41 rows in, 123 made of them, 80 out" in text
    assert "(33.3% of it this query's)" in text
    document = json.loads(said(capsys, "explain", "kinds", "--analyze", "--json", "--state", state))
    reading, *_ = document["queries"][0]["operators"]
    assert (reading["form"], reading["streams"], reading["rows_out"]) == ("reading", ["s"], 150)
    totals = on_spark.running.results("tens").to_arrow()["total"].to_pylist()
    assert (len(totals), sum(totals)) == (40, sum(range(50, 250)))  # each row once, as ever


def manifest(observed: Observed) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((observed.state / "plait-state.json").read_text())
    return document
