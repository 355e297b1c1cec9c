"""Trouble with the files of streams: named with the file, and what does not read it goes on. When it is
mended, the next run completes what was left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.patience import wait_until
from tests.trouble.troubled import (
    Troubled,
    as_json,
    as_parquet,
    await_failed,
    queries_over,
    remarked,
    rows,
    said_of,
    stream,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OF_S = ("ones_of_s", "sums_of_s")
OF_T = ("ones_of_t", "sums_of_t")


@pytest.fixture
def of_parquet(tmp_path: Path, spark: SparkSession) -> Troubled:
    sql = stream("s", "parquet") + queries_over("s") + stream("t", "parquet") + queries_over("t")
    return Troubled(tmp_path, spark, sql)


def test_a_file_that_is_truncated_then_gone_then_back(of_parquet: Troubled) -> None:
    troubled = of_parquet
    whole = as_parquet(rows(10, 20))
    with troubled.running() as running:
        troubled.arrive("s", 0, 10)
        troubled.arrive("t", 0, 10)
        troubled.await_right(*OF_S, *OF_T)
        file = troubled.arrive("s", 10, 20, whole[: len(whole) // 2])
        await_failed(running, *OF_S)
        said = said_of(running, "ones_of_s")
        assert f"[unreadable-data]: the data of stream `s` cannot be read as parquet: {file}" in said
        troubled.arrive("t", 10, 20)
        troubled.await_right(*OF_T)
    file.unlink()  # which mends nothing: the batch that reads it is planned
    with troubled.running() as running:
        await_failed(running, *OF_S)
        said = said_of(running, "sums_of_s")
        assert "error[data-gone]: stream `s` needs a file that is not there any more" in said
        assert str(file) in said
        assert "an empty file of that name" in said
        troubled.arrive("t", 20, 30)
        troubled.await_right(*OF_T)
    file.write_bytes(whole)
    troubled.arrive("s", 20, 30)
    troubled.drain()
    troubled.check_drained(*OF_S, *OF_T)


def test_columns_that_change(of_parquet: Troubled) -> None:
    troubled = of_parquet
    spoilt = {
        10: ("stored-type", "column `v`", as_parquet(rows(10, 20), v=pa.array(["a"] * 10))),
        20: ("stored-columns", "column `k`", as_parquet(rows(20, 30), k=None)),
    }
    troubled.arrive("s", 0, 10)
    for first, (code, column, content) in spoilt.items():
        with troubled.running() as running:
            troubled.await_right(*OF_S)
            file = troubled.arrive("s", first, first + 10, content)
            await_failed(running, *OF_S)
            said = said_of(running, "ones_of_s")
            assert f"error[{code}]" in said
            assert column in said
            assert str(file) in said
            troubled.arrive("t", first, first + 10)
            troubled.await_right(*OF_T)
        shutil.copy(troubled.meant / "s" / file.name, file)
    with troubled.running():  # columns of its own that a file has trouble nobody
        troubled.arrive("s", 30, 40, as_parquet(rows(30, 40), note=pa.array(["new"] * 10)))
        troubled.await_right(*OF_S)
    troubled.drain()
    troubled.check_drained(*OF_S, *OF_T)


def test_files_that_change_or_go_when_they_are_read_and_a_folder_that_goes(
    tmp_path: Path, spark: SparkSession
) -> None:
    troubled = Troubled(tmp_path, spark, stream("s") + queries_over("s") + stream("t") + queries_over("t"))
    with troubled.running() as running:
        first, second = troubled.arrive("s", 0, 10), troubled.arrive("s", 10, 20)
        troubled.arrive("t", 0, 10)
        troubled.await_right(*OF_S, *OF_T)
        first.write_bytes(as_json(rows(0, 5)))  # in place: shorter
        second.unlink()
        wait_until(lambda: remarked(running, str(first), "of s changed after being read"))
        assert not remarked(running, str(second))
        troubled.arrive("s", 20, 30)
        troubled.await_right(*OF_S)
        (troubled.data / "s").rename(tmp_path / "elsewhere")
        wait_until(lambda: remarked(running, f"{troubled.data / 's'}, where s is read from, is not there"))
        troubled.arrive("t", 10, 20)
        troubled.await_right(*OF_T)
        (tmp_path / "elsewhere").rename(troubled.data / "s")
        troubled.arrive("s", 30, 40)
        troubled.await_right(*OF_S)
        assert not remarked(running, "is not there")
    troubled.drain()
    troubled.check_drained(*OF_S, *OF_T)
