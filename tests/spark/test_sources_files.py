"""Files as Spark reads them are files as the evaluator reads them; what it refuses is a bad record."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.stream_reading import COLUMNS, HEADER, NOON, Reading, evaluated, files, read

from plait.errors import UserError
from plait.expressions.types import BIGINT, DOUBLE, INT, SMALLINT, STRING, TIMESTAMP, Type, decimal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait.catalog import Stream

pytestmark = pytest.mark.spark

N_AT = {"n": INT, "at": TIMESTAMP}


def agrees(spark: SparkSession, stream: Stream, folder: Path, now: datetime | None = None) -> Reading:
    reading = read(spark, stream, folder)
    rows, bad = evaluated(stream, now)
    assert reading.rows == rows
    assert len(reading.bad) == bad
    return reading


def test_csv_values_are_read_as_declared(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text(
        f"{HEADER}\n"
        '1,12.50,-1e3,TRUE,"a, ""b""\nand a line",2026-01-01,2026-01-01 12:00:00\n'
        "-7,3,NaN,false,,2026-01-02,2026-01-01T13:00:00+01:00\n"
        ',,-0.0,,"",,2026-01-01\n'
        "\n"
        "2,,,,NULL,,2026-01-01 12:00:00.000001Z\n"
        ',,,,"no time",,\n',
    )
    reading = agrees(spark, files(data, "csv"), tmp_path)
    assert [row for row in reading.rows if row[4] == ""] == [
        (None, None, 0.0, None, "", None, datetime(2026, 1, 1))
    ]
    assert list(reading.bad.values()) == ["the event time `at` is NULL"]


def test_csv_columns_are_found_by_name(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "folder [1] {a}*"
    data.mkdir()
    (data / "b[1].csv").write_bytes("\ufeffAT,extra,n\n2026-01-01 12:00:00,x,1\n".encode())
    with gzip.open(data / "c.csv.gz", "wt") as compressed:
        compressed.write("at,Extra,N\n2026-01-01 12:00:00,y,3\n")
    (data / "_SUCCESS").write_text("")
    (data / ".hidden").write_text("no data")
    for nested in ("sub", "key=value", "_temporary"):
        (data / nested).mkdir()
        (data / nested / "d.csv").write_text("no,header,of,ours\n")
    assert agrees(spark, files(data, "csv", N_AT), tmp_path).rows == [(1, NOON), (3, NOON)]


@pytest.mark.parametrize("place", ["a b/c", "50% off/ä€", "one/../two", "[x]/#1?", "a//b", "link"])
def test_only_the_files_of_the_folder_itself_are_read_wherever_it_is(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    data = tmp_path / place
    for number, name in enumerate(("a b.json", "ä/%.json", "x/y/€#.json")):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(f'{{"n": {number}, "at": "2026-01-01 12:00:00"}}\n')
    assert agrees(spark, files(data, "json", N_AT), tmp_path).rows == [(0, NOON)]


def test_csv_without_header_and_with_another_delimiter(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("1;2026-01-01 12:00:00\n")
    stream = files(data, "csv", N_AT, header=False, delimiter=";")
    assert agrees(spark, stream, tmp_path).rows == [(1, NOON)]


def test_malformed_lines_are_kept_aside(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_bytes(b"n,word,at\n1,a\n2,a,2026-01-01,b\n3,\xff,2026-01-01\n4,a,2026-01-01 12:00:00\n")
    reading = read(spark, files(data, "csv", {"n": INT, "word": STRING, "at": TIMESTAMP}), tmp_path)
    assert reading.rows == [(4, "a", NOON)]
    few = "the line does not have 3 values, as the first has"
    assert reading.bad == {
        "1,a": few,
        "2,a,2026-01-01,b": few,
        "3,\ufffd,2026-01-01": "column `word` holds '\ufffd', which is no UTF-8",
    }
    lines = tmp_path / "a.json"
    bad_lines = [
        b'{"n": 1} {"n": 2}',
        b'{"n": 1}, {"n": 2}',
        b'{"n": 3',
        b"[4]",
        b"5",
        b"null",
        b"{'n': 6}",
        b'{"n": NaN}',
        b'{"n": 7} x',
        b'{"word": "\xff"}',
    ]
    lines.write_bytes(b"\n".join([*bad_lines, b"", b' {"n": 8, "at": "2026-01-01 12:00:00"}', b""]))
    reading = read(spark, files(lines, "json", N_AT), tmp_path)
    assert reading.rows == [(8, NOON)]
    assert sorted(reading.bad.values()) == ["the line is no JSON object"] * 9 + ["the line is no UTF-8"]


TEXTS: dict[str, list[str]] = {
    "number": ["1", "+1", "-0", "007", "1.5", "3000000000", "1_000", " 1", "1 ", "1e2", "0x10", "NULL", "١"],
    "price": ["1", "12.5", "-.5", "+1.", "1.234", "1.2300", "9999.99", "12345.00", "1e2", "NaN", "."],
    "ratio": [
        *("1", "-1e3", "1.", ".5", "+1E-3", "nan", "NaN", "inf", "-Infinity", "INF"),
        *("1,5", "0x10", "1d", "1f", "1e400", "-1e400", "1e-400", " 1", "--1", "0x1p3"),
    ],
    "sure": ["true", "TRUE", "False", "yes", "t", "1", "0"],
    "day": [
        "2026-01-01",
        "2026-02-30",
        "2024-02-29",
        "2026-1-1",
        "infinity",
        "today",
        "20260101",
        "0001-01-01",
    ],
    "at": [
        *("2026-01-01 12:00:00", "2026-01-01T12:00", "2026-01-01", "2026-01-01 12:00:00.123456", "12:00"),
        *(
            "2026-01-01 12:00:00.1",
            "2026-01-01 12:00:00Z",
            "2026-01-01 12:00:00+01",
            "2026-01-01 12:00:00-0130",
        ),
        *("2026-01-01T12:00:00+05:30", "2026-01-01 12:00Z", "epoch", "2026-01-01 25:00:00", "2026-13-01"),
        *(
            "2026-01-01 12:00:00.1234567",
            "2026-01-01 12:00:00 UTC",
            "2026-01-01 23:59:60",
            "2026-02-29 00:00:00",
        ),
        *("2026-01-01 12:60", "9999-12-31 23:59:59.999999", "2026-01-01 12:00:00+14:00"),
    ],
}


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_texts_are_values_exactly_where_the_evaluator_takes_them(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    texts = [(column, text) for column, several in TEXTS.items() for text in several]
    columns: dict[str, Type] = {"id": INT, **COLUMNS}
    # Whoever has no time of its own in question gets one, so that only the text decides.
    lines = [{"id": k, "at": "2026-01-01 12:00:00", column: text} for k, (column, text) in enumerate(texts)]

    def written(numbers: list[int]) -> str:
        if file_format == "json":
            return "".join(json.dumps(lines[k], ensure_ascii=False) + "\n" for k in numbers)
        rows = [[f'"{lines[k].get(name)}"' if name in lines[k] else "" for name in columns] for k in numbers]
        return "\n".join([",".join(columns), *map(",".join, rows)]) + "\n"

    accepted: dict[int, Any] = {}
    alone = tmp_path / f"alone.{file_format}"
    for k in range(len(texts)):
        alone.write_text(written([k]))
        with suppress(UserError):
            accepted[k] = evaluated(files(alone, file_format, columns))[0][0]
    data = tmp_path / f"data.{file_format}"
    data.write_text(written(list(range(len(texts)))))
    reading = read(spark, files(data, file_format, columns), tmp_path)
    assert {row[0]: row for row in reading.rows} == accepted
    assert len(reading.bad) == len(texts) - len(accepted)
    assert 25 < len(accepted) < len(texts) - 25


def test_json_numbers_are_read_as_they_are_written(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "a.json"
    data.write_text(
        '{"n": 1, "price": 12.5, "at": "2026-01-01T12:00:00Z", "more": [1, {"n": 2}]}\n'
        '{"n": null, "price": "0.10", "at": "2026-01-01T12:00:00Z"}\n'
        '{"price": 123456789.25, "at": "2026-01-01T12:00:00Z"}\n'
        '{"N": 5, "word": true, "at": "2026-01-01T12:00:00Z"}\n'
        '{"n": 9223372036854775807, "price": 0.1, "word": "\\u00e4\\n", "at": "2026-01-01T12:00:00Z"}\n'
        '{"n": 2.5, "at": "2026-01-01T12:00:00Z"}\n'
        '{"n": {"a": 1}, "at": "2026-01-01T12:00:00Z"}\n'
    )
    columns = {"n": BIGINT, "price": decimal(12, 2), "word": STRING, "at": TIMESTAMP}
    stream = files(data, "json", columns)
    reading = read(spark, stream, tmp_path)
    assert sorted(reading.bad.values()) == [
        "column `n` holds '2.5', which is no BIGINT",
        "column `n` holds '{\"a\":1}', which is no BIGINT",
    ]
    data.write_text("".join(data.read_text().splitlines(keepends=True)[:-2]))
    agrees(spark, stream, tmp_path)


def write_parquet(folder: Path, name: str = "a.parquet", **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"at": pa.array([NOON], pa.timestamp("us", "UTC")), **columns}), folder / name)
    return folder


def test_parquet_columns_may_be_narrower_than_declared(spark: SparkSession, tmp_path: Path) -> None:
    data = write_parquet(
        tmp_path / "data",
        N=pa.array([1], pa.int16()),
        u=pa.array([4_000_000_000], pa.uint32()),
        price=pa.array([2], pa.decimal128(3, 1)),
        ratio=pa.array([-0.0], pa.float32()),
        d=pa.array([7], pa.int32()),
        then=pa.array([NOON], pa.timestamp("ms")),
        extra=pa.array([[1]]),
    )
    (data / "empty").write_bytes(b"")
    nested = data / "sub"
    nested.mkdir()
    (nested / "no.parquet").write_text("no Parquet at all")
    columns = {
        "n": BIGINT,
        "u": BIGINT,
        "price": decimal(6, 2),
        "ratio": DOUBLE,
        "d": decimal(12, 2),
        "then": TIMESTAMP,
        "at": TIMESTAMP,
    }
    reading = read(spark, files(data, "parquet", columns), tmp_path)
    assert reading.rows == evaluated(files(data, "parquet", columns))[0]
    assert str(reading.rows[0][3]) == "0.0"


def test_timestamps_in_nanoseconds_are_rounded_as_the_evaluator_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    second = 1_767_268_800_000_000_000
    stamps = pa.array([second + 499, second + 500, second + 123_456_789, None], pa.timestamp("ns"))
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"at": stamps, "n": pa.array([1, 2, 3, 4])}), data / "a.parquet")
    stream = files(data, "parquet", {"n": BIGINT, "at": TIMESTAMP})
    assert len(agrees(spark, stream, tmp_path).rows) == 3
    # What comes later in another unit is not taken for a time in 1970.
    write_parquet(data, "b.parquet", n=pa.array([5]))
    reading = read(spark, stream, tmp_path)
    assert len(reading.rows) == 3
    assert "column `at` holds 1767268800000000, which is no time in nanoseconds" in reading.bad.values()


def test_float_columns_are_widened(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("x,at\n0.1,2026-01-01\n1e39,2026-01-02\n")
    stream = files(data, "csv", {"x": DOUBLE, "at": TIMESTAMP})
    float_x = replace(stream.columns[0], storage="FLOAT")
    reading = read(spark, replace(stream, columns=(float_x, stream.columns[1])), tmp_path)
    assert reading.rows == [(0.10000000149011612, datetime(2026, 1, 1))]
    assert list(reading.bad.values()) == ["column `x` holds '1e39', which is no FLOAT"]


def test_event_times_that_cannot_be_are_bad(spark: SparkSession, tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    times: list[datetime | int | None] = [
        None,
        0,
        -1,
        1,
        253_402_300_799_999_999,
        253_402_300_800_000_000,
        *(int((time - datetime(1970, 1, 1)) / timedelta(microseconds=1)) for time in (NOON, now)),
    ]
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(
        pa.table({"n": pa.array(range(len(times))), "at": pa.array(times, pa.timestamp("us"))}), data / "a"
    )
    columns = {"n": BIGINT, "at": TIMESTAMP}
    reading = agrees(spark, files(data, "parquet", columns), tmp_path)
    assert sorted(reading.bad.values()) == [
        "the event time `at` is 1969-12-31 23:59:59.999999, which is not after 1970-01-01 00:00:00",
        "the event time `at` is 1970-01-01 00:00:00, which is not after 1970-01-01 00:00:00",
        "the event time `at` is NULL",
        "the event time `at` is after the year 9999",
    ]
    # A day after the years of these rows began, and a day before they end.
    hour_us = 3_600_000_000
    reading = agrees(spark, files(data, "parquet", columns, max_future_us=hour_us), tmp_path)
    assert [row[0] for row in reading.rows] == [3, 6, 7]
    started = agrees(spark, files(data, "parquet", columns, start="2026-01-01 12:00:00"), tmp_path)
    assert [row[0] for row in started.rows] == [4, 6, 7]
    assert len(started.bad) == 4


def test_files_per_batch(spark: SparkSession, tmp_path: Path) -> None:
    from plait.catalog import Catalog
    from plait.spark.sources import Sources

    for k in range(3):
        write_parquet(tmp_path / "data", f"{k}.parquet", n=pa.array([k]))
    stream = files(tmp_path / "data", "parquet", {"n": BIGINT, "at": TIMESTAMP}, files_per_batch=1)
    sizes: list[int] = []
    query = (
        Sources(spark, Catalog(streams={"s": stream}))
        .records("s")
        .writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sizes == [1, 1, 1]


def test_an_empty_folder_waits_for_files(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for file_format in ("csv", "json", "parquet"):
        assert read(spark, files(data, file_format, N_AT), tmp_path) == Reading([], {})


@pytest.mark.parametrize(
    ("file_format", "content", "code"),
    [
        ("parquet", b"no Parquet at all", "unreadable-data"),
        ("csv", b"m,at\n1,2026-01-01\n", "stored-columns"),
        ("csv", b"n,N,at\n1,1,2026-01-01\n", "stored-columns"),
        ("csv", b"n,x,x,at\n1,1,1,2026-01-01\n", "stored-columns"),
        ("csv", b"\xff\xfe\n", "unreadable-data"),
    ],
)
def test_files_that_do_not_fit_are_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, file_format: str, content: bytes, code: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_bytes(content)
    with pytest.raises(UserError) as raised:
        read(spark, files(data, file_format, N_AT), tmp_path)
    assert raised.value.code == code
    assert str(data / "a") in raised.value.render()


def test_what_is_not_there_is_refused_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not there"):
        read(spark, files(tmp_path / "nowhere", "csv"), tmp_path)
    data = write_parquet(tmp_path / "data", n=pa.array([1], pa.int64()))
    with pytest.raises(UserError, match="declared SMALLINT but stored as BIGINT"):
        read(spark, files(data, "parquet", {"n": SMALLINT, "at": TIMESTAMP}), tmp_path)
    with pytest.raises(UserError, match="column `m` of stream `s` is not in its data"):
        read(spark, files(data, "parquet", {"m": BIGINT, "at": TIMESTAMP}), tmp_path)
    csv_data = tmp_path / "csv"
    csv_data.mkdir()
    (csv_data / "a.csv").write_text("n,at\n1,2026-01-01\n")
    (csv_data / "b.csv").write_text("at,n\n2026-01-01,1\n")
    with pytest.raises(UserError, match="do not all begin with the same line"):
        read(spark, files(csv_data, "csv", N_AT), tmp_path)
