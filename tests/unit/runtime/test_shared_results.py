"""Results of many queries in one file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plait.batches import BatchRows
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BIGINT, INT
from plait.runtime.folder_names import shared_folder_name
from plait.runtime.shared_results import SharedSink, read_shared

TYPES = (INT, BIGINT)


def rows(*given: tuple[int, int]) -> pa.Table:
    """As they are computed: columns without names, of types that the sink casts."""
    return pa.table({"c0": [plug for plug, _ in given], "c1": [total for _, total in given]})


def test_rows_are_sorted_by_query_and_each_query_finds_its_own(tmp_path: Path) -> None:
    sink = SharedSink(tmp_path, ("plug", "total"), TYPES, ["high", "low", "none"])
    several = BatchRows(("low", "high"), rows((1, 5), (2, 50), (3, 6)), pa.chunked_array([[0, 1, 0]]))
    sink.publish(17, [several, BatchRows(("high",), rows((9, 90)))])
    stored = pq.read_table(tmp_path / "000000017.parquet")
    assert stored.column_names == ["query", "plug", "total"]
    assert stored["query"].to_pylist() == ["high", "high", "low", "low"]
    schema = arrow_schema(("plug", "total"), TYPES)
    found = read_shared(tmp_path / "000000017.parquet", "high", schema)
    assert found.schema == schema
    assert sorted(found["plug"].to_pylist()) == [2, 9]
    assert not read_shared(tmp_path / "000000017.parquet", "none", schema).num_rows


def test_other_queries_go_on_with_the_same_files(tmp_path: Path) -> None:
    sink = SharedSink(tmp_path, ("plug", "total"), TYPES, ["low"])
    sink.publish(0, [BatchRows(("low",), rows((1, 5)))])
    sink.of(["high", "low"]).publish(1, [BatchRows(("low", "high"), rows((2, 50)), pa.chunked_array([[1]]))])
    stored = {path.name: pq.read_table(path)["query"].to_pylist() for path in tmp_path.iterdir()}
    assert stored == {"000000000.parquet": ["low"], "000000001.parquet": ["high"]}


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    sink = SharedSink(tmp_path, ("plug", "total"), TYPES, ["high"])
    sink.publish(0, [])
    sink.publish(1, [BatchRows(("high",), rows())])
    assert not list(tmp_path.iterdir())


def test_a_batch_that_is_repeated_replaces_its_file(tmp_path: Path) -> None:
    sink = SharedSink(tmp_path, ("plug", "total"), TYPES, ["high"])
    for _ in range(2):
        sink.publish(0, [BatchRows(("high",), rows((1, 5)))])
    assert [path.name for path in tmp_path.iterdir()] == ["000000000.parquet"]
    assert pq.read_table(tmp_path / "000000000.parquet").num_rows == 1


def test_a_folder_is_for_one_fragment_and_one_set_of_columns() -> None:
    name = shared_folder_name("shared-0", ("plug", "total"), TYPES)
    assert name == shared_folder_name("shared-0", ("plug", "total"), TYPES)
    assert name != shared_folder_name("shared-0", ("plug", "sum"), TYPES)
    assert name != shared_folder_name("shared-0", ("plug", "total"), (INT, INT))
    assert name != shared_folder_name("shared-1", ("plug", "total"), TYPES)


def test_a_query_with_a_column_named_like_ours_shares_no_folder() -> None:
    assert shared_folder_name("shared-0", ("plug", "Query"), TYPES) is None
