"""A start after many changes: nothing of them is made again, nothing is lost, and what is gone is removed."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until

import plait
from plait.errors import PlaitError
from plait.runtime import live_queries
from plait.runtime.folder_names import folder_name
from plait.runtime.query_set import QuerySet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SQL = """
CREATE STREAM s (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE STREAM r (k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 'in', format = 'json');
CREATE CONTINUOUS QUERY ones AS SELECT v FROM s WHERE k = 1;
"""
NOON = datetime(2026, 1, 1, 12)


def arrive(folder: Path, running: plait.Running, first: int, last: int) -> None:
    rows = [{"k": n % 3, "v": n, "at": str(NOON + timedelta(seconds=n))} for n in range(first, last)]
    (folder / "draft").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "draft").rename(folder / "in" / f"{first}.json")
    wait_until(lambda: all(stream.rows >= last for stream in running.progress().streams))


def values(folder: Path, query: str) -> list[object]:
    return sorted(row[0] for row in plait.attach(folder / "state").results(query))


def test_a_query_that_failed_is_counted_when_its_fragment_has_ended(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_queries, "MOST_CHANGES", 2)
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(SQL)
    own, state = tmp_path / "own", tmp_path / "state"

    def started() -> plait.Running:
        session = plait.open(tmp_path / "a.sql", spark=spark)
        return session.run(engines="spark", state=state, results=tmp_path / "results", trigger_seconds=0.1)

    def failing() -> AbstractContextManager[object]:
        return pytest.raises(PlaitError, match="query `zeros` was stopped, and the others went on")

    def check_failed(running: plait.Running) -> str:
        (zeros,) = (query for query in running.queries() if query.name == "zeros")
        assert (zeros.state, zeros.rows) == ("failed", 2)
        return zeros.fragment

    with failing(), started() as running:
        running.add_text(
            f"""CREATE CONTINUOUS QUERY zeros INTO '{own}' AS SELECT v FROM s WHERE k = 0;
            CREATE CONTINUOUS QUERY twos AS SELECT v FROM s WHERE k = 2;"""
        )
        arrive(tmp_path, running, 0, 6)
        wait_until(lambda: values(tmp_path, "zeros") == [0, 3] and values(tmp_path, "twos") == [2, 5])
        own.rename(tmp_path / "elsewhere")
        own.write_text("in the way")
        arrive(tmp_path, running, 6, 12)
        states = {"ones": "running", "zeros": "failed", "twos": "running"}
        wait_until(lambda: {query.name: query.state for query in running.queries()} == states)
        wait_until(lambda: values(tmp_path, "twos") == [2, 5, 8, 11])
        fragment = check_failed(running)
        document = json.loads((state / "plait-state.json").read_text())
        assert document["changes"] == []  # that it was stopped is settled
        running.drop("twos")
        own.unlink()
        (tmp_path / "elsewhere").rename(own)
        check_failed(running)
    with failing(), started() as running:
        assert check_failed(running) == fragment
        assert {path.name for path in (state / "fragments").iterdir()} == {"ones", folder_name(fragment)}
    with started() as running:
        running.drop("zeros")
        assert [query.name for query in running.queries()] == ["ones"]
    with started():
        assert [path.name for path in (state / "fragments").iterdir()] == ["ones"]
    assert values(tmp_path, "zeros") == [0, 3]


def test_a_life_on_spark_in_which_fragments_end(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.sql").write_text(SQL)
    manifest = tmp_path / "state" / "plait-state.json"

    def started() -> plait.Running:
        session = plait.open(tmp_path / "a.sql", spark=spark)
        return session.run(
            engines="spark",
            state=tmp_path / "state",
            results=tmp_path / "results",
            trigger_seconds=0.1,
            merge=False,
        )

    def select(name: str, stream: str, k: int) -> str:
        return f"CREATE CONTINUOUS QUERY {name} AS SELECT v FROM {stream} WHERE k = {k};"

    with started() as running:
        arrive(tmp_path, running, 0, 6)
        # Two families at once: each has a folder of its own.
        running.add_text(
            "".join(select(f"{stream}{k}", stream, k) for stream in ("s", "r") for k in range(3))
        )
        running.add_text(select("later", "r", 0))
        arrive(tmp_path, running, 6, 12)
        wait_until(lambda: values(tmp_path, "s2")[-1:] == [11] and values(tmp_path, "r0")[-1:] == [9])
        running.drop("r0", "r1", "r2", "later")
        wait_until(lambda: not (tmp_path / "state" / "fragments" / "later").exists())
        running.drop("s2")
        with monkeypatch.context() as patched:
            patched.setattr(live_queries, "MOST_CHANGES", 5)
            running.add_text(select("r0", "r", 0))  # of a stream that nobody has read for a while
        assert json.loads(manifest.read_text())["changes"] == []
        arrive(tmp_path, running, 12, 18)
        running.add_text(select("last", "s", 2))
    folders = {path.name for path in (tmp_path / "state" / "fragments").iterdir()}
    assert len(json.loads(manifest.read_text())["changes"]) == 1

    def never(*_: object) -> None:
        raise AssertionError("a change was made again")

    with started() as running:
        arrive(tmp_path, running, 18, 24)
        wait_until(lambda: values(tmp_path, "last") == [20, 23])
        running.drop("last")
    with monkeypatch.context() as patched:
        patched.setattr(QuerySet, "proposed", never)
        with started() as running:
            assert [query.name for query in running.queries()] == ["ones", "s0", "s1", "r0#2"]
            arrive(tmp_path, running, 24, 30)
            wait_until(lambda: values(tmp_path, "r0#2")[-1:] == [27] and values(tmp_path, "s1")[-1:] == [28])
    left = {path.name for path in (tmp_path / "state" / "fragments").iterdir()}
    assert left < folders
    assert len(left) == 4  # ones, what has `s0`, what counts `r`, and r0#2
    assert values(tmp_path, "ones") == [*range(1, 30, 3)]
    assert values(tmp_path, "s1") == [*range(7, 30, 3)]
    assert values(tmp_path, "s2") == [8, 11]
    assert values(tmp_path, "r0#1") == [0, 3, 6, 9]  # nobody had read `r` before
    assert values(tmp_path, "r0#2") == [*range(12, 30, 3)]
    assert values(tmp_path, "last") == [20, 23]
    (tmp_path / "state" / "results.json").unlink()
    with pytest.raises(PlaitError, match=r"results\.json is missing"):
        started()
