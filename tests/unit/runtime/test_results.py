"""Reading published results: complete files, each batch once, also while they are written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from tests.workloads.single_queries import outlet_of

from plait.catalog import Sink as Declared
from plait.catalog import SinkKind
from plait.errors import ExternalError, UserError
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type, decimal
from plait.plan.nodes import Field, StreamScan
from plait.runtime.arrow_rows import ArrowRows
from plait.runtime.outlets import Outlet
from plait.runtime.results import batches, follow, table
from plait.runtime.sinks import FileSink, sink_for
from plait.runtime.state_key import StateKey
from plait.workload import Query

TYPES: dict[str, Type] = {
    "id": INT,
    "ok": BOOLEAN,
    "price": decimal(10, 2),
    "load": DOUBLE,
    "room": STRING,
    "day": DATE,
    "ts": TIMESTAMP,
}
SCHEMA = arrow_schema(list(TYPES), list(TYPES.values()))
FIRST = (1, True, Decimal("1.50"), 0.1, 'a\n"b"', date(2026, 1, 31), datetime(2026, 1, 31, 12, 0, 0, 1))
NULLS = (None,) * 7
EDGES = (2**31 - 1, False, Decimal("-99999999.99"), float("inf"), "", date(1, 1, 1), "10000-01-01 00:00:00")
END_OF_TIME = 253_402_300_800_000_000


def query(kind: SinkKind = SinkKind.PARQUET, name: str = "Rooms") -> Query:
    scan = StreamScan("s", tuple(Field(name, type_) for name, type_ in TYPES.items()))
    return Query(name, scan, tuple(TYPES), sink=Declared(kind))


def rows_of(*ids: int) -> pa.Table:
    return pa.table({name: list(ids) if name == "id" else [None] * len(ids) for name in TYPES}, schema=SCHEMA)


def never(_sink: Declared, _rows: pa.Table, _batch: int, _writer: str) -> None:
    raise AssertionError


def published(results: Path, kind: SinkKind = SinkKind.PARQUET) -> tuple[FileSink, Outlet]:
    outlet = outlet_of(query(kind), results)
    sink = sink_for(Declared(kind), outlet, StateKey("state", results / "state"), never)
    assert isinstance(sink, FileSink)
    return sink, outlet


def ids(rows: pa.Table) -> list[int]:
    return list(rows["id"].to_pylist())


@pytest.mark.parametrize("kind", [SinkKind.PARQUET, SinkKind.JSON])
def test_what_was_published_is_read_value_for_value(tmp_path: Path, kind: SinkKind) -> None:
    first, edges = list(FIRST), list(EDGES)
    first[6], edges[6] = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC), END_OF_TIME
    sink, outlet = published(tmp_path, kind)
    sink.publish(
        0, pa.table([list(column) for column in zip(first, NULLS, edges, strict=True)], schema=SCHEMA)
    )
    assert table(outlet).schema == SCHEMA
    assert list(ArrowRows(table(outlet))) == [FIRST, NULLS, EDGES]


def test_nothing_published_is_no_rows_of_the_right_columns(tmp_path: Path) -> None:
    _, outlet = published(tmp_path)
    assert table(outlet).equals(SCHEMA.empty_table())


def test_a_folder_that_is_gone_is_not_no_rows(tmp_path: Path) -> None:
    sink, outlet = published(tmp_path)
    sink.publish(2, rows_of(1))
    (tmp_path / "rooms").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="the results of `Rooms` are not in"):
        table(outlet)


def test_drafts_markers_and_others_files_are_not_read(tmp_path: Path) -> None:
    sink, outlet = published(tmp_path)
    sink.publish(2, rows_of(1))
    for name in ("_draft.000000003.parquet.part", ".000000003.parquet", "3.parquet", "000000003.parquet.crc"):
        (tmp_path / "rooms" / name).write_text("half of")
    assert [read for read, _ in batches(outlet)] == [{0: 2}]


def test_batches_are_in_their_order_beyond_nine_digits(tmp_path: Path) -> None:
    sink, outlet = published(tmp_path)
    for batch in (1_000_000_000, 9, 10):
        sink.publish(batch, rows_of(batch))
    assert ids(table(outlet)) == [9, 10, 1_000_000_000]


def test_following_gives_each_batch_once_also_when_it_is_repeated(tmp_path: Path) -> None:
    sink, outlet = published(tmp_path)
    sink.publish(0, rows_of(1, 2))
    # What happens while there is nothing to read: a replay, a batch without rows, further batches.
    events = iter([(0, rows_of(1, 2)), (1, rows_of()), (2, rows_of(3)), (3, rows_of(4))])
    following = follow(outlet, lambda: sink.publish(*next(events)))
    assert [ids(rows) for rows in islice(following, 3)] == [[1, 2], [3], [4]]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    sink, outlet = published(tmp_path)
    sink.publish(0, rows_of(1))
    (tmp_path / "rooms" / "000000001.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ExternalError, match=r"cannot read .*000000001\.parquet"):
        table(outlet)


def test_rows_that_are_no_files_of_ours_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the rows of `Rooms` go to the console"):
        table(outlet_of(query(SinkKind.CONSOLE), tmp_path))


# Rows as Python values


def test_rows_are_converted_as_they_are_asked_for() -> None:
    rows = ArrowRows(pa.table({"x": list(range(25_000))}))
    assert len(rows) == 25_000
    assert rows[-1] == (24_999,)
    assert rows[1:3] == [(1,), (2,)]
    assert rows[4:0:-2] == [(4,), (2,)]
    assert sum(x for (x,) in rows) == sum(range(25_000))
    with pytest.raises(IndexError):
        rows[25_000]
