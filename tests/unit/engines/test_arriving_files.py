"""Rows that arrive in Parquet files: the wanted ones, what the files brought in all, and what is bad."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait import language
from plait.batches import Arrived
from plait.engines.arriving_files import ArrivingFiles
from plait.engines.duckdb import Database
from plait.errors import UserError
from plait.expressions.nodes import TRUE
from plait.expressions.types import INT
from plait.plan.nodes import Field, Filter, StreamScan, walk_plan
from plait.rewrite import canonicalise

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = 1_767_268_800_000_000
HOUR_US = 3_600_000_000
COLUMNS = "k INT, x DOUBLE, d DECIMAL(8, 2), at TIMESTAMP"


def arriving(folder: Path, where: str = "TRUE", columns: str = COLUMNS, more: str = "") -> ArrivingFiles:
    workload = language.load_text(
        f"CREATE STREAM s ({columns}, WATERMARK FOR at AS at) "
        f"WITH (connector = 'files', path = '{folder}', format = 'parquet'{more});"
        f"CREATE CONTINUOUS QUERY q AS SELECT k, x FROM s WHERE {where};"
    )
    plan = canonicalise(workload.query("q").plan)
    scan = next(node for node in walk_plan(plan) if isinstance(node, StreamScan))
    predicate = next((node.predicate for node in walk_plan(plan) if isinstance(node, Filter)), None)
    return ArrivingFiles(Database(threads=1), workload.catalog.stream("s"), scan, predicate or TRUE)


def stored(file: Path, *rows: dict[str, Any], schema: pa.Schema | None = None) -> Path:
    full = [{"k": 1, "x": None, "d": None, "at": NOON} | row for row in rows]
    plain = pa.schema(
        [
            ("k", pa.int32()),
            ("x", pa.float64()),
            ("d", pa.decimal128(8, 2)),
            ("at", pa.timestamp("us", "UTC")),
        ]
    )
    pq.write_table(pa.Table.from_pylist(full, schema=schema or plain), file)
    return file


def test_wanted_rows_and_all_that_came(tmp_path: Path) -> None:
    later = NOON + timedelta(seconds=5)
    one = stored(tmp_path / "a", {"k": 1, "x": -0.0}, {"k": 2})
    other = stored(tmp_path / "b", {"k": 1, "x": 1.5}, {"k": 3, "at": later})
    rows, arrived = arriving(tmp_path, "k = 1").read([one, other], NOON_US)
    assert arrived == Arrived(4, NOON_US + 5_000_000)
    assert sorted(rows.to_pylist(), key=str) == [
        {"c0": 1, "c1": 0.0, "t": NOON_US},
        {"c0": 1, "c1": 1.5, "t": NOON_US},
    ]
    assert "-0.0" not in str(rows.to_pylist())


def test_no_files_and_empty_ones_bring_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    for files in ([], [tmp_path / "a"]):
        rows, arrived = arriving(tmp_path).read(files, NOON_US)
        assert (rows.num_rows, arrived) == (0, Arrived(0))
        assert rows.column_names == ["c0", "c1", "t"]


def test_bad_records_are_told_with_the_reason(tmp_path: Path) -> None:
    file = stored(
        tmp_path / "a",
        {"k": 1},
        {"k": None, "x": 2.5, "at": None},
        {"k": 3, "x": float("nan"), "at": datetime(1969, 12, 31, tzinfo=UTC)},
        {"k": 4, "at": datetime(1970, 1, 1, tzinfo=UTC)},
        {"k": 5, "at": NOON + timedelta(hours=1)},
        {"k": 6, "at": NOON + timedelta(hours=1, microseconds=1)},
    )
    rows, arrived = arriving(tmp_path, more=", max_future = '1 hour'").read([file], NOON_US)
    assert [row["c0"] for row in rows.to_pylist()] == [1, 5]
    assert (arrived.rows, arrived.last_us) == (2, NOON_US + HOUR_US)
    told = {json.loads(bad["record"]).get("k"): bad["reason"] for bad in arrived.bad}
    assert told == {
        None: "the event time `at` is NULL",
        3: "the event time `at` is 1969-12-31 00:00:00, which is not after 1970-01-01 00:00:00",
        4: "the event time `at` is 1970-01-01 00:00:00, which is not after 1970-01-01 00:00:00",
        6: "the event time `at` is 2026-01-01 13:00:00.000001, further ahead than `max_future` allows",
    }
    records = sorted(bad["record"] for bad in arrived.bad)
    assert '{"k":3,"x":"nan","at":"1969-12-31T00:00:00Z"}' in records
    assert '{"x":2.5}' in records


@pytest.mark.parametrize("us", [2**63 - 1, -(2**63) + 1, 2**62, -(2**62)])
def test_times_that_nobody_can_mean_are_bad_records(tmp_path: Path, us: int) -> None:
    schema = pa.schema(
        [("k", pa.int32()), ("x", pa.float64()), ("d", pa.decimal128(8, 2)), ("at", pa.int64())]
    )
    table = pa.Table.from_pylist([{"k": 1, "x": None, "d": None, "at": us}], schema=schema)
    table = table.set_column(3, "at", table["at"].cast(pa.timestamp("us", "UTC")))
    pq.write_table(table, tmp_path / "a")
    rows, arrived = arriving(tmp_path).read([tmp_path / "a"], NOON_US)
    assert (rows.num_rows, arrived.rows, len(arrived.bad)) == (0, 0, 1)


def test_rows_before_the_start_do_not_count(tmp_path: Path) -> None:
    file = stored(tmp_path / "a", {"at": NOON - timedelta(seconds=1)}, {"k": 2}, {"at": None})
    rows, arrived = arriving(tmp_path, more=", start = '2026-01-01 12:00:00'").read([file], NOON_US)
    assert [row["c0"] for row in rows.to_pylist()] == [2]
    assert (arrived.rows, len(arrived.bad)) == (1, 1)


def test_files_may_have_columns_of_their_own(tmp_path: Path) -> None:
    """Narrower types, another order, other units of time, further columns."""
    narrow = pa.schema(
        [
            ("at", pa.timestamp("ns")),
            ("more", pa.string()),
            ("K", pa.int16()),
            ("d", pa.int16()),
            ("x", pa.float32()),
        ]
    )
    row = {"at": NOON.replace(tzinfo=None), "more": "m", "K": 7, "d": 12, "x": 0.5}
    pq.write_table(pa.Table.from_pylist([row], schema=narrow), tmp_path / "b")
    files = [stored(tmp_path / "a", {"k": 1}), tmp_path / "b"]
    rows, arrived = arriving(tmp_path).read(files, NOON_US)
    assert arrived == Arrived(2, NOON_US)
    assert sorted(row["c0"] for row in rows.to_pylist()) == [1, 7]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"no Parquet", "unreadable-data"),
        ("short", "unreadable-data"),
        ("wide", "stored-type"),
        ("none", "stored-columns"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path: Path, content: bytes | str, code: str) -> None:
    good, bad = stored(tmp_path / "a", {"k": 1}), tmp_path / "b"
    if isinstance(content, bytes):
        bad.write_bytes(content)
    elif content == "short":
        rows = [{"k": k, "x": k / 7} for k in range(100_000)]
        damaged = bytearray(stored(bad, *rows).read_bytes())
        damaged[1000:40_000] = bytes(39_000)
        bad.write_bytes(damaged)
    elif content == "wide":
        wide = pa.schema(
            [
                ("k", pa.int64()),
                ("x", pa.float64()),
                ("d", pa.decimal128(8, 2)),
                ("at", pa.timestamp("us", "UTC")),
            ]
        )
        stored(bad, {"k": 2**40}, schema=wide)
    else:
        pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), bad)
    with pytest.raises(UserError) as raised:
        arriving(tmp_path).read([good, bad], NOON_US)
    assert raised.value.code == code
    assert str(bad) in f"{raised.value.message} {raised.value.detail}"


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "k=7"
    folder.mkdir()
    rows, _ = arriving(folder).read([stored(folder / "a", {"k": 1})], NOON_US)
    assert [row["c0"] for row in rows.to_pylist()] == [1]


def test_every_bad_record_has_a_reason_and_all_its_digits(tmp_path: Path) -> None:
    columns = "k INT, d DECIMAL(38, 2), at TIMESTAMP"
    schema = pa.schema([("k", pa.int32()), ("d", pa.decimal128(38, 2)), ("at", pa.timestamp("us", "UTC"))])
    digits = Decimal("123456789012345678901234567890.12")
    for name, us in (("a", 2**63 - 1), ("b", -(2**63) + 1)):
        times = pa.array([us]).cast(pa.timestamp("us", "UTC"))
        table = pa.Table.from_arrays(
            [pa.array([1], pa.int32()), pa.array([digits], pa.decimal128(38, 2)), times], schema=schema
        )
        pq.write_table(table, tmp_path / name)
    workload = language.load_text(
        f"CREATE STREAM s ({columns}, WATERMARK FOR at AS at) "
        f"WITH (connector = 'files', path = '{tmp_path}', format = 'parquet');"
    )
    stream = workload.catalog.stream("s")
    scan = StreamScan("s", (Field("k", INT),))
    reader = ArrivingFiles(Database(threads=1), stream, scan, TRUE)
    _, arrived = reader.read([tmp_path / "a", tmp_path / "b"], NOON_US)
    reasons = sorted(bad["reason"] for bad in arrived.bad)
    assert reasons[0].endswith("which is not after 1970-01-01 00:00:00")
    assert reasons[1] == "the event time `at` is after the year 9999"
    assert all(str(digits) in bad["record"] for bad in arrived.bad)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("x > 2.0", 1),
        ("x * 2.0 > 4.0", 1),
        ("x <= 1.0", 1),
        ("x < 5.0", 1),
        ("NOT x < 5.0", 1),
        ("x >= 1.0", 2),
    ],
)
def test_what_is_not_a_number_is_greater_than_all(tmp_path: Path, where: str, wanted: int) -> None:
    """The statistics in a file leave it out."""
    file = stored(tmp_path / "a", {"x": 1.0}, {"x": float("nan")}, {"x": None})
    rows, arrived = arriving(tmp_path, where).read([file], NOON_US)
    assert (rows.num_rows, arrived.rows) == (wanted, 3)
