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
NOON = datetime(2026, 1, 1, 12)


class Observed:
    """A run over rows that arrive when they are told to, five a second."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        (folder / "a.sql").write_text(SQL)
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


def test_spark_tells_what_its_operators_keep(observed: Observed) -> None:
    observed.start(engines="spark")
    for _ in range(2):
        observed.arrive(20)
    wait_until(lambda: observed.running.analyze("sums").steps[0].observed.rows_per_s is not None)
    wait_until(lambda: (observed.running.analyze("sums").state_bytes or 0) > 0)
    sums = observed.running.analyze("sums")
    assert sums.steps[0].observed.rows_per_s == pytest.approx(5, rel=0.01)
    assert sums.fragment == "sums"
    assert sums.operators == ()


def manifest(observed: Observed) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((observed.state / "plait-state.json").read_text())
    return document
