"""The state of a real run that is damaged afterwards is refused, with the file's name, before anything runs;
with the file put back, the next run goes on. One that is taken away under a run ends it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.trouble.troubled import Troubled, queries_over, stream

from plait.errors import PlaitError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_files_of_a_state_that_are_cut(tmp_path: Path, spark: SparkSession) -> None:
    queries = ("ones_of_s", "sums_of_s")
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    with troubled.running():
        troubled.arrive("s", 0, 15)
        troubled.await_right(*queries)
    (fragment,) = (troubled.state / "fragments").iterdir()
    for file in (
        troubled.state / "plait-state.json",
        fragment / "journal.sqlite",
        fragment / "state.duckdb",
        max((fragment / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name)),
    ):
        whole = file.read_bytes()
        os.truncate(file, len(whole) // 2)
        with pytest.raises(PlaitError) as raised, troubled.running():
            pass
        said = raised.value.render()
        assert file.name in said or str(file.parent) in said, said
        assert raised.value.hint
        file.write_bytes(whole)
    troubled.arrive("s", 15, 30)
    troubled.drain()
    troubled.check_drained(*queries)


def test_a_state_that_is_taken_away_under_a_run(tmp_path: Path, spark: SparkSession) -> None:
    queries = ("ones_of_s", "sums_of_s")
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s"))
    with troubled.running() as running:
        troubled.arrive("s", 0, 15)
        troubled.await_right(*queries)
        troubled.state.rename(tmp_path / "elsewhere")
        with pytest.raises(PlaitError, match=f"the state folder {troubled.state} is not there any more"):
            running.wait(120)
    shutil.rmtree(troubled.state, ignore_errors=True)  # Spark may have made folders there
    (tmp_path / "elsewhere").rename(troubled.state)
    troubled.arrive("s", 15, 30)
    troubled.drain()
    troubled.check_drained(*queries)
