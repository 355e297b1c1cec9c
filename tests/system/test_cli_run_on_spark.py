"""`plait run` as a user runs it: stopped by Ctrl-C, gone on with, drained; and its results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pyarrow.parquet as pq
import pytest
from tests.java_options import QUICK_ENVIRONMENT

import plait
from plait.evaluator.result import difference

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM readings (plug INT, load INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (connector = 'files', path = 'readings', format = 'csv');
CREATE CONTINUOUS QUERY high AS SELECT plug, load FROM readings WHERE load > 15;
CREATE CONTINUOUS QUERY totals WITH (sink = 'json') AS
  SELECT plug, sum(load) AS total, window_end FROM readings [RANGE 1 MINUTE] GROUP BY plug;
CREATE CONTINUOUS QUERY nothing AS SELECT plug FROM readings WHERE load < 0;
"""


@pytest.fixture(autouse=True)
def quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "plait", *words]


def write(folder: Path, name: str, minute: int) -> None:
    rows = [f"{plug},{10 * plug + minute},2026-01-31 12:0{minute}:0{plug}" for plug in range(5)]
    draft = folder / f"_{name}"
    draft.write_text("\n".join(["plug,load,at", *rows]) + "\n")
    draft.rename(folder / name)


def test_stopped_gone_on_with_and_drained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.sql").write_text(SQL)
    Path("readings").mkdir()
    write(Path("readings"), "0.csv", 0)

    with subprocess.Popen(
        command("run", "queries.sql", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not list(Path("results").glob("*/*.parquet")):
            sleep(0.1)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate()
    assert process.returncode == 0, said
    assert json.loads(shown)["stopped"]
    assert "stopping when the batches that run are done" in said

    write(Path("readings"), "1.csv", 1)
    done = subprocess.run(
        command("run", "queries.sql", "--available-now", "--drain", "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = {query["name"]: query for query in json.loads(done.stdout)["queries"]}
    assert subprocess.call(command("results", "--all", "--output", "tables")) == 0

    with plait.open("queries.sql") as session:
        for name in session.queries:
            expected = session.evaluate(name)
            found = session.results(name)
            assert not difference(found, expected), name
            assert summary[name]["rows"] == len(expected)
            assert pq.read_metadata(f"tables/{name}.parquet").num_rows == len(expected)
        Path("results").rename("moved")
        assert all(
            len(session.results(name, results="moved")) == summary[name]["rows"] for name in session.queries
        )


@pytest.mark.parametrize("engines", ["spark", pytest.param("any", marks=pytest.mark.slow)])
def test_a_signal_to_all_its_processes_is_a_stop(
    engines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `timeout`, systemd and shells send it: Java gets it too, while a batch is running."""
    monkeypatch.chdir(tmp_path)
    Path("queries.sql").write_text(SQL.replace("'csv'", "'csv', files_per_batch = 1"))
    Path("readings").mkdir()
    for minute in range(10):
        write(Path("readings"), f"{minute}.csv", minute)
        os.utime(f"readings/{minute}.csv", (minute, minute))  # by which they come
    run = command("run", "queries.sql", "--engines", engines, "--json", "--quiet")

    with subprocess.Popen(
        [*run, "--trigger", "10ms"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while process.poll() is None and not list(Path("results").glob("*/*.parquet")):
            sleep(0.1)
        os.killpg(process.pid, signal.SIGTERM)
        shown, said = process.communicate()
    assert process.returncode == 0, shown + said
    summary = json.loads(shown)
    assert (summary["stopped"], summary["errors"]) == (True, [])
    assert [line for line in said.splitlines() if not line.startswith("NOTE: ")] == [
        "stopping when the batches that run are done; Ctrl-C again stops at once"
    ]

    done = subprocess.run([*run, "--available-now", "--drain"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with plait.open("queries.sql") as session:
        for name in session.queries:
            assert not difference(session.results(name), session.evaluate(name)), name


@pytest.mark.slow
def test_memory_and_console(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "readings").mkdir()
    write(tmp_path / "readings", "0.csv", 0)
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import plait
sql = '''{SQL.replace("high AS", "high WITH (sink = 'memory') AS").replace("'json'", "'console'")}'''
with plait.open_text(sql) as session:
    running = session.run(available_now=True, drain=True)
    running.wait()
    print("in memory:", sorted(running.results("high")))
"""
    )
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, check=True)
    shown = capfd.readouterr().out
    assert "in memory: [(2, 20), (3, 30), (4, 40)]" in shown
    assert "totals, batch " in shown
    assert "   4      40   2026-01-31 12:01:00" in shown
