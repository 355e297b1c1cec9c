"""Results of a run are merged and removed while it goes on; those who read them do not notice."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until

import plait
from plait.cli import run as command_line
from plait.errors import UserError
from plait.runtime import caretaker, upkeep
from plait.runtime.results_folder import batch_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (v INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE CONTINUOUS QUERY everything AS SELECT v FROM s;
CREATE CONTINUOUS QUERY odd WITH (retain = '1 microsecond') AS SELECT v FROM s WHERE v % 2 = 1;
CREATE CONTINUOUS QUERY lines WITH (sink = 'json') AS SELECT v FROM s;
"""
NOON = datetime(2026, 1, 1, 12)


def arrive(folder: Path, number: int) -> None:
    row = {"v": number, "at": str(NOON + timedelta(seconds=number))}
    (folder / "draft").write_text(json.dumps(row))
    (folder / "draft").rename(folder / "in" / f"{number}.json")


def test_a_run_looks_after_its_results(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(caretaker, "LEAST_REST_SECONDS", 0.05)
    monkeypatch.setattr(caretaker, "_REST_PER_WORK", 0.0)
    monkeypatch.setattr(upkeep, "GRACE_SECONDS", 0.05)
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(SQL)
    session = plait.open(tmp_path / "a.sql", spark=spark)
    state = tmp_path / "state"
    options = {"state": state, "results": tmp_path / "results", "trigger_seconds": 0.05}
    seen: Counter[int] = Counter()
    with session.run(**options, compact="1 microsecond") as running:  # type: ignore[arg-type]
        arrive(tmp_path, 0)
        wait_until(lambda: len(running.results("everything")) == 1)
        folder = next((tmp_path / "results").glob("shared-*"))
        # A stream of Spark's over the results remembers files, and takes none for new that was merged.
        stream = (
            spark.readStream.schema("query STRING, v INT")
            .parquet(str(folder))
            .where("query = 'everything'")
            .writeStream.foreachBatch(lambda frame, _: seen.update(row.v for row in frame.collect()))
            .option("checkpointLocation", str(tmp_path / "reader"))
            .start()
        )
        for number in range(1, 40):
            arrive(tmp_path, number)
            wait_until(lambda rows=number + 1: len(running.results("everything")) == rows)  # type: ignore[misc]
            if number % 10 == 1:
                stream.processAllAvailable()
            assert [row[0] for row in running.results("everything")] == [*range(number + 1)]
        stream.processAllAvailable()
        wait_until(lambda: running.progress().tended.into_files > 0)
        assert running.progress().tended.trouble == {}
        assert len(batch_files(folder)) < 30
        stream.processAllAvailable()
        stream.stop()
        # Asked through the state folder, as another process does.
        assert plait.compact(state=state, dry_run=True).trouble == {}
        assert command_line(["compact", "everything", "--state", str(state)]) == 0
        assert len(batch_files(folder)) < 5
        rows = running.results("everything")
        assert rows.to_duckdb().order("v").fetchall() == [(v,) for v in range(40)]
        assert sorted(row.v for row in rows.to_spark(spark).collect()) == [*range(40)]
        assert [v for (v,) in running.results("lines").to_duckdb().fetchall()] == [*range(40)]
        assert "removed" in running._repr_html_()
    assert seen == dict.fromkeys(range(40), 1)
    gone = running.progress().tended.removed_rows
    assert {*gone} == {"odd"}
    assert gone["odd"] + len(session.results("odd", state=state)) == 20
    # The next run goes on, with what is merged; and after it nobody runs.
    with session.run(**options) as running:  # type: ignore[arg-type]
        arrive(tmp_path, 40)
        wait_until(lambda: len(running.results("everything")) == 41)
    done = plait.compact(state=state)
    assert done.into_files >= 1
    assert [row[0] for row in session.results("everything", state=state)] == [*range(41)]
    assert [row[0] for row in session.results("lines", state=state)] == [*range(41)]
    capsys.readouterr()
    assert command_line(["compact", "--state", str(state), "--retain", "1 us", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed_rows"]["lines"] >= 39
    with pytest.raises(UserError, match="no query `nobody`"):
        plait.compact("nobody", state=state)
    with pytest.raises(UserError, match="two times how long"):
        plait.compact(state=state, retain="1 day, 2 days")
