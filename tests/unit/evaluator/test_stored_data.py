from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from plait.catalog import Catalog, ColumnDefinition, Stream, Table
from plait.engines.duckdb import Database
from plait.errors import UserError
from plait.evaluator import StoredData
from plait.expressions.types import DOUBLE, INT, TIMESTAMP
from plait.language import load_text

NOON = datetime(2026, 1, 1, 12)
NOON_US = 1_767_268_800_000_000
SECOND = timedelta(seconds=1)


def catalog(
    *, max_future_us: int | None = None, start: str = "earliest", connector: str = "", path: str = ""
) -> Catalog:
    columns = (ColumnDefinition("at", TIMESTAMP), ColumnDefinition("n", INT), ColumnDefinition("x", DOUBLE))
    stream = Stream(
        "S",
        columns,
        connector=connector,
        options={"path": path, "format": "csv"},
        event_time="AT",
        delay_us=5_000_000,
        max_future_us=max_future_us,
        start=start,
    )
    quiet = Stream("quiet", columns, connector="", event_time="at")
    return Catalog(
        streams={"s": stream, "quiet": quiet}, tables={"t": Table("t", (ColumnDefinition("n", INT),), "")}
    )


def numbers(data: StoredData) -> list[int]:
    return [n for (n,) in data.database.fetch(f"SELECT c1 FROM {data.stream('S').name} ORDER BY c1")]


def test_rows_get_their_event_time_in_microseconds() -> None:
    with StoredData.from_rows(catalog(), {"s": [(NOON, 1, 0.5)], "T": [(7,)]}) as data:
        assert data.database.fetch(f"SELECT * FROM {data.stream('s').name}") == [(NOON, 1, 0.5, NOON_US)]
        assert data.database.fetch(f"SELECT * FROM {data.table('t').name}") == [(7,)]
        assert data.stream("s").last_us == NOON_US


def test_aware_times_are_brought_to_utc() -> None:
    aware = datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    with StoredData.from_rows(catalog(), {"s": [(aware, 1, None)]}) as data:
        assert data.stream("s").last_us == NOON_US


def test_bad_records_are_set_aside_and_counted() -> None:
    rows = [
        (None, 1, None),
        (datetime(1970, 1, 1), 2, None),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), 3, None),
        (datetime(1970, 1, 1, 0, 0, 0, 1), 4, None),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999), 5, None),
        ("20000-01-01 00:00:00", 6, None),
    ]
    with StoredData.from_rows(catalog(), {"s": rows}) as data:
        assert numbers(data) == [4, 5]
        assert data.stream("s").bad_records == 4


def test_max_future_goes_by_the_clock() -> None:
    rows = [(NOON + 10 * SECOND, 1, None), (NOON + 10 * SECOND + timedelta(microseconds=1), 2, None)]
    for now in (NOON, NOON.replace(tzinfo=UTC)):
        with StoredData.from_rows(catalog(max_future_us=10_000_000), {"s": rows}, now=now) as data:
            assert numbers(data) == [1]
            assert data.stream("s").bad_records == 1
    with StoredData.from_rows(
        catalog(max_future_us=10_000_000), {"s": [(datetime(9998, 1, 1), 1, None)]}
    ) as data:
        assert data.stream("s").bad_records == 1


def test_a_stream_that_starts_at_a_time_has_the_rows_from_then_on() -> None:
    rows = [(NOON - SECOND, 1, None), (NOON, 2, None), (None, 3, None)]
    with StoredData.from_rows(catalog(start="2026-01-01 12:00:00"), {"s": rows}) as data:
        assert numbers(data) == [2]
        assert data.stream("s").bad_records == 1


def test_negative_zeros_become_positive() -> None:
    with StoredData.from_rows(catalog(), {"s": [(NOON, 1, -0.0)]}) as data:
        ((zero,),) = data.database.fetch(f"SELECT c2 FROM {data.stream('s').name}")
        assert math.copysign(1, zero) == 1


def test_the_watermark_is_the_least_of_the_streams() -> None:
    rows = {"s": [(NOON, 1, None)], "quiet": [(NOON + SECOND, 1, None)]}
    with StoredData.from_rows(catalog(), rows) as data:
        assert data.watermark_us(["S", "quiet"]) == NOON_US - 5_000_000
        assert data.watermark_us(["quiet"]) == NOON_US + 1_000_000
    with StoredData.from_rows(catalog(), {"s": [(NOON, 1, None)]}) as data:
        assert data.watermark_us(["s", "quiet"]) == 0


def test_rows_must_fit_the_catalog() -> None:
    with pytest.raises(ValueError, match="no such stream or table: nothing"):
        StoredData.from_rows(catalog(), {"nothing": []})
    with (
        StoredData.from_rows(catalog(), {"s": [(NOON, 1)]}) as data,
        pytest.raises(ValueError, match="3 columns"),
    ):
        data.stream("s")


def test_only_what_a_query_needs_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("at,n,x\n2026-01-01 12:00:00,1,\n")
    with StoredData.from_catalog(catalog(connector="files", path=str(tmp_path / "s.csv"))) as data:
        assert numbers(data) == [1]
        with pytest.raises(UserError, match="stream `quiet` has no stored data"):
            data.stream("quiet")


def test_rows_may_be_arrow_tables() -> None:
    given = pa.table({"X": [-0.0, 1.5], "n": pa.array([1, 2], pa.int8()), "At": [NOON, None]})
    with StoredData.from_tables(catalog(), {"S": given}) as data:
        assert numbers(data) == [1]
        assert data.stream("s").bad_records == 1
        assert data.stream("quiet").last_us is None
        assert data.database.fetch(f"SELECT * FROM {data.table('t').name}") == []
    with pytest.raises(ValueError, match="no such stream or table: nothing"):
        StoredData.from_tables(catalog(), {"nothing": given})
    with StoredData.from_tables(catalog(), {"t": given.select(["X"])}) as data, pytest.raises(UserError):
        data.table("t")


def test_generators_and_databases_are_stored_data(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "house.duckdb") as connection:
        connection.execute("CREATE TABLE rooms AS SELECT 7 AS plug")
    declared = load_text(
        """CREATE STREAM f (num INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 5 SECONDS)
             WITH (connector = 'generator', generator = 'airline.flights', rate = 100,
                   start = '2026-01-01 12:00:00', end = '2026-01-01 12:00:10');
           CREATE TABLE rooms (plug INT) WITH (connector = 'duckdb', path = 'house.duckdb');""",
        base=tmp_path,
    ).catalog
    with StoredData.from_catalog(declared) as data:
        stream = data.stream("f")
        ((rows, first_us),) = data.database.fetch(f"SELECT count(*), min(t) FROM {stream.name}")
        assert 900 < rows <= 1000, "without those that belong before the start"
        assert first_us >= NOON_US
        assert stream.last_us is not None
        assert stream.last_us < NOON_US + 10_000_000
        assert data.database.fetch(f"SELECT * FROM {data.table('rooms').name}") == [(7,)]


def test_a_shared_database_is_left_clean() -> None:
    with Database() as database:
        for _ in range(2):
            with StoredData.from_rows(catalog(), {"s": [(NOON, 1, None)]}, database=database) as data:
                assert numbers(data) == [1]
        assert database.fetch("SHOW TABLES") == []
