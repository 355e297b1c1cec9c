"""The rows of a batch, divided between the files that queries share and the sinks of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait import batches
from plait.batches import BatchRows, order_by, row_counts
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BIGINT, INT
from plait.runtime.publishing import Publisher
from plait.runtime.results_folder import batch_files
from plait.runtime.shared_results import SharedSink, read_shared
from plait.runtime.sinks import MemorySink

TYPES = (INT, BIGINT)
TOTALS = ("plug", "total")
SUMS = ("plug", "sum")


def of_one(query: str, *rows: tuple[int, int]) -> BatchRows:
    return BatchRows((query,), table(*rows))


def of_several(queries: tuple[str, ...], *rows: tuple[int, int, int]) -> BatchRows:
    """Rows that begin with the place of their query."""
    whose = pa.chunked_array([pa.array([place for place, _, _ in rows], pa.int32())])
    return BatchRows(queries, table(*((plug, total) for _, plug, total in rows)), whose)


def table(*rows: tuple[int, int]) -> pa.Table:
    schema = pa.schema({"c0": pa.int32(), "c1": pa.int64()})
    return pa.table({"c0": [plug for plug, _ in rows], "c1": [total for _, total in rows]}, schema=schema)


def shared(
    folder: Path, queries: tuple[str, ...], columns: tuple[str, str] = TOTALS
) -> tuple[frozenset[str], SharedSink]:
    folder.mkdir(exist_ok=True)
    return frozenset(queries), SharedSink(folder, columns, TYPES, queries)


def own(columns: tuple[str, str] = TOTALS) -> MemorySink:
    return MemorySink(arrow_schema(columns, TYPES))


def plugs_in(folder: Path, query: str, columns: tuple[str, str] = TOTALS) -> list[int]:
    """The first column of a query's rows in all files of a folder."""
    schema = arrow_schema(columns, TYPES)
    tables = [read_shared(file.path, query, schema) for file in batch_files(folder)]
    return sorted(plug for rows in tables for plug in rows["plug"].to_pylist())


def plugs_of(sink: MemorySink) -> list[int]:
    return sorted(sink.table()["plug"].to_pylist())


def test_each_query_gets_its_rows_wherever_they_go(tmp_path: Path) -> None:
    alone = own()
    publisher = Publisher({"alone": alone}, [shared(tmp_path, ("high", "low"))])
    publisher.publish(0, [of_several(("low", "alone", "high"), (0, 1, 5), (1, 2, 6), (2, 3, 7), (0, 4, 8))])
    assert (plugs_in(tmp_path, "low"), plugs_in(tmp_path, "high")) == ([1, 4], [3])
    assert not plugs_in(tmp_path, "alone")
    assert plugs_of(alone) == [2]


def test_several_parts_of_a_query_in_a_batch_are_all_published(tmp_path: Path) -> None:
    """A sink keeps what it was given last for a batch, so it is given all at once."""
    alone = own()
    publisher = Publisher({"alone": alone}, [shared(tmp_path, ("high", "low"))])
    publisher.publish(
        0,
        [
            of_one("alone", (1, 5)),
            of_several(("alone", "high"), (0, 2, 6), (1, 3, 7)),
            of_one("high", (4, 8)),
            of_one("alone"),
        ],
    )
    assert plugs_of(alone) == [1, 2]
    assert plugs_in(tmp_path, "high") == [3, 4]


def test_queries_with_other_names_of_columns_go_elsewhere(tmp_path: Path) -> None:
    alone = own(SUMS)
    one, other = tmp_path / "one", tmp_path / "other"
    publisher = Publisher({"alone": alone}, [shared(one, ("high",)), shared(other, ("low",), SUMS)])
    publisher.publish(0, [of_several(("high", "low", "alone"), (0, 1, 5), (1, 2, 6), (2, 3, 7))])
    assert (plugs_in(one, "high"), plugs_in(one, "low")) == ([1], [])
    assert (plugs_in(other, "low", SUMS), plugs_in(other, "high", SUMS)) == ([2], [])
    assert alone.table().to_pydict() == {"plug": [3], "sum": [7]}


def test_fragments_that_write_to_one_place_number_their_batches_apart(tmp_path: Path) -> None:
    alone = own()
    for series in (0, 2):
        of_query = dict.fromkeys(("alone", "high"), series)
        publisher = Publisher({"alone": alone}, [shared(tmp_path, ("high",))], series=of_query)
        publisher.publish(7, [of_several(("alone", "high"), (0, 1, series), (1, 2, series))])
    assert [file.path.name for file in batch_files(tmp_path)] == ["000000007.parquet", "2000000007.parquet"]
    assert plugs_in(tmp_path, "high") == [2, 2]
    assert plugs_of(alone) == [1, 1]


@pytest.mark.parametrize("results", [[], [of_one("alone"), of_several(("high", "low"))]])
def test_no_rows_are_nothing_to_publish(tmp_path: Path, results: list[BatchRows]) -> None:
    alone = own()
    Publisher({"alone": alone}, [shared(tmp_path, ("high", "low"))]).publish(0, results)
    assert not alone.table().num_rows
    assert not list(tmp_path.iterdir())


def test_a_batch_that_is_repeated_is_there_once(tmp_path: Path) -> None:
    alone = own()
    publisher = Publisher({"alone": alone}, [shared(tmp_path, ("high", "low"))])
    for _ in range(2):
        publisher.publish(0, [of_several(("alone", "high"), (0, 1, 5), (1, 2, 6))])
    publisher.publish(1, [of_several(("alone", "high"), (0, 3, 5), (1, 4, 6))])
    assert plugs_of(alone) == [1, 3]
    assert plugs_in(tmp_path, "high") == [2, 4]


def test_rows_of_a_query_keep_their_order(tmp_path: Path) -> None:
    """Also where a result serves queries that share files and queries that do not."""
    one, other = own(), own(SUMS)
    publisher = Publisher({"one": one, "other": other}, [shared(tmp_path, ("high", "low"))])
    mixed = of_several(
        ("other", "low", "one", "high"),
        *((2, 9, 1), (0, 8, 2), (1, 7, 3), (2, 1, 4), (3, 6, 5), (0, 2, 6), (2, 5, 7), (1, 3, 8)),
    )
    publisher.publish(0, [of_one("one", (4, 0)), mixed, of_one("one", (0, 9))])
    assert one.table().to_pydict() == {"plug": [4, 9, 1, 5, 0], "total": [0, 1, 4, 7, 9]}
    assert other.table().to_pydict() == {"plug": [8, 2], "sum": [2, 6]}
    assert (plugs_in(tmp_path, "low"), plugs_in(tmp_path, "high")) == ([3, 7], [6])


def test_rows_are_sorted_once_for_all_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not searched once for each: that would take the square of the number of queries."""
    sorted_rows: list[int] = []

    def noted(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        sorted_rows.append(len(places))
        return order_by(places)

    monkeypatch.setattr(batches, "order_by", noted)
    names = tuple(f"q{number}" for number in range(50))
    sinks = {name: own() for name in reversed(names)}
    result = of_several(names, *((row % 50, row, row) for row in range(200)))
    Publisher(sinks).publish(0, [result])
    assert sorted_rows == [200]
    assert all(
        sinks[name].table()["plug"].to_pylist() == [number, number + 50, number + 100, number + 150]
        for number, name in enumerate(names)
    )


def test_rows_of_a_group_know_whose_of_the_group_they_are() -> None:
    several = of_several(("a", "b", "c"), (0, 1, 5), (2, 2, 6), (1, 3, 7))
    (_, first), (_, second) = several.by_group({"a": 0, "b": 1, "c": 1})
    assert (first.queries, first.rows["c0"].to_pylist()) == (("a",), [1])
    assert (second.queries, second.rows["c0"].to_pylist()) == (("b", "c"), [2, 3])
    assert second.whose is not None
    assert second.whose.to_pylist() == [1, 0]
    assert row_counts([first, second]) == row_counts([several])


def test_rows_that_all_go_to_one_place_are_not_copied() -> None:
    several = of_several(("a", "b"), (0, 1, 5), (1, 2, 6))
    alone = of_one("a", (1, 5))
    assert [*several.by_group({"a": 4, "b": 4})] == [(4, several)]
    assert [*alone.by_group({"a": 4, "b": 3})] == [(4, alone)]
    assert not [*of_several(("a", "b")).by_group({"a": 4, "b": 3})]
