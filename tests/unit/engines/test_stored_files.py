from __future__ import annotations

import gzip
import traceback
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plait.catalog import ColumnDefinition, OptionValue, Secret, Stream, Table
from plait.engines import stored_files
from plait.engines.duckdb import Database
from plait.errors import UserError
from plait.expressions.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type, decimal

COLUMNS = {
    "number": INT,
    "price": decimal(6, 2),
    "ratio": DOUBLE,
    "sure": BOOLEAN,
    "word": STRING,
    "day": DATE,
    "at": TIMESTAMP,
}
HEADER = ",".join(COLUMNS)
NOON = datetime(2026, 1, 1, 12)


def stream(
    path: Path | Secret, file_format: str, columns: dict[str, Type] = COLUMNS, **options: Any
) -> Stream:
    all_options: dict[str, OptionValue] = {
        "path": path if isinstance(path, Secret) else str(path),
        "format": file_format,
        **options,
    }
    definitions = tuple(ColumnDefinition(name, type_) for name, type_ in columns.items())
    return Stream("s", definitions, connector="files", options=all_options, event_time="at")


@cache
def database() -> Database:
    """One for all tests of this file: to start one takes longer than a test."""
    return Database(threads=1)


def load(relation: Stream | Table) -> list[tuple[Any, ...]]:
    table = database().unused_name("loaded")
    stored_files.load(database(), relation, table)
    return database().fetch(f"SELECT * FROM {table} ORDER BY ALL NULLS FIRST")


def failure(relation: Stream | Table) -> UserError:
    with pytest.raises(UserError) as raised:
        load(relation)
    return raised.value


def write_parquet(path: Path, select: str) -> Path:
    database().execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def test_csv_values_are_read_as_declared(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        f"{HEADER}\n"
        '1,12.50,-1e3,TRUE,"a, ""b""",2026-01-01,2026-01-01 12:00:00\n'
        "-7,3,NaN,false,,2026-01-02,2026-01-01T13:00:00+01:00\n"
        ',,,,"",,\n',
    )
    first, second, third = load(stream(file, "csv"))
    assert first == (None, None, None, None, "", None, None)
    assert second[:2] == (-7, Decimal("3.00"))
    assert second[2] != second[2]
    assert second[3:] == (False, None, date(2026, 1, 2), NOON)
    assert third == (1, Decimal("12.50"), -1000.0, True, 'a, "b"', date(2026, 1, 1), NOON)


def test_csv_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("AT,extra,n\n2026-01-01 12:00:00,x,1\n")
    (tmp_path / "b[1].csv").write_text("n,at\n2,2026-01-01 12:00:00\n")
    with gzip.open(tmp_path / "c.csv.gz", "wt") as compressed:
        compressed.write("n,at\n3,2026-01-01 12:00:00\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").write_text("no data")
    assert load(stream(tmp_path, "csv", {"n": INT, "at": TIMESTAMP})) == [(1, NOON), (2, NOON), (3, NOON)]


def test_csv_without_header_and_with_another_delimiter(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("1;2026-01-01 12:00:00\n")
    relation = stream(file, "csv", {"n": INT, "at": TIMESTAMP}, header=False, delimiter=";")
    assert load(relation) == [(1, NOON)]


def test_json_values_are_read_as_declared(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(
        '{"number": 1, "price": 12.5, "ratio": 2, "sure": true, "word": "x", "day": "2026-01-01",'
        ' "at": "2026-01-01T12:00:00Z", "more": [1]}\n{"number": null, "price": "0.10"}\n'
    )
    assert load(stream(file, "json")) == [
        (None, Decimal("0.10"), None, None, None, None, None),
        (1, Decimal("12.50"), 2.0, True, "x", date(2026, 1, 1), NOON),
    ]


def test_parquet_columns_may_be_narrower_than_declared(tmp_path: Path) -> None:
    write_parquet(
        tmp_path / "a.parquet",
        "SELECT 1::SMALLINT AS N, 2.5::DECIMAL(3,1) AS price, 0.5::FLOAT AS ratio, "
        "TIMESTAMPTZ '2026-01-01 13:00:00+01' AS at",
    )
    columns = {"n": BIGINT, "price": decimal(6, 2), "ratio": DOUBLE, "at": TIMESTAMP}
    assert load(stream(tmp_path, "parquet", columns)) == [(1, Decimal("2.50"), 0.5, NOON)]


def test_float_columns_are_widened(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x\n0.1\n")
    table = Table(
        "t",
        (ColumnDefinition("x", DOUBLE, storage="FLOAT"),),
        connector="files",
        options={"path": str(file), "format": "csv"},
    )
    assert load(table) == [(0.10000000149011612,)]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("number", "1.5"),
        ("number", "3000000000"),
        ("number", "1_000"),
        ("number", " 1"),
        ("price", "1.234"),
        ("price", "12345.00"),
        ("price", "1e2"),
        ("ratio", "1,5"),
        ("ratio", "0x10"),
        ("sure", "yes"),
        ("day", "2026-02-30"),
        ("day", "infinity"),
        ("at", "12:00"),
        ("at", "epoch"),
        ("at", "2026-01-01 25:00:00"),
        ("at", "2026-01-01 12:00:00.1234567"),
    ],
)
def test_a_value_that_does_not_fit_is_shown_with_its_place(tmp_path: Path, column: str, text: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f'{column}\n"{text}"\n')
    error = failure(stream(file, "csv", {column: COLUMNS[column]}))
    assert error.code == "stored-value"
    assert f"column `{column}` of stream `s` holds {text!r}" in error.message
    assert error.detail == f"in {file}, line 2"


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        ("1::BIGINT", INT),
        ("1::UINTEGER", INT),
        ("1", STRING),
        ("'1'", INT),
        ("1.25::DECIMAL(5,2)", decimal(5, 1)),
        ("1::BIGINT", decimal(10, 0)),
        ("0.5::DOUBLE", decimal(10, 2)),
        ("DATE '2026-01-01'", TIMESTAMP),
        ("[1]", INT),
    ],
)
def test_a_stored_type_that_does_not_fit_is_refused(tmp_path: Path, stored: str, declared: Type) -> None:
    file = write_parquet(tmp_path / "a.parquet", f"SELECT {stored} AS x")
    error = failure(stream(file, "parquet", {"x": declared}))
    assert error.code == "stored-type"
    assert f"declared {declared}" in error.message
    assert str(file) in error.detail


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_missing_column_is_named_with_the_closest(tmp_path: Path, file_format: str) -> None:
    file = tmp_path / f"a.{file_format}"
    if file_format == "csv":
        file.write_text("numbr\n1\n")
    else:
        write_parquet(file, "SELECT 1 AS numbr")
    error = failure(stream(file, file_format, {"number": INT}))
    assert error.code == "stored-columns"
    assert "`number`" in error.message
    assert "`numbr`" in error.hint


@pytest.mark.parametrize(
    ("file_format", "content"),
    [
        ("parquet", b"no parquet"),
        ("csv", b"number\n1,2\n"),
        ("csv", b'number\n"1\n2\n'),
        ("csv", b"number\n" + b"1" * 3_000_000 + b"\n"),
        ("csv", b"number\n1\r2\r\n3\n"),
        ("json", b'{"number": 1} {"number": 2}\n'),
        ("csv", b"number\n\xff\xfe\n"),
        ("csv", b"\xff\xfen\n1\n"),
        ("json", b'{"number": 1\n{]\n'),
        ("json", b"[[1]]\n"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path: Path, file_format: str, content: bytes) -> None:
    file = tmp_path / "data"
    file.write_bytes(content)
    error = failure(stream(file, file_format, {"number": INT}))
    assert error.code == "unreadable-data"
    assert "stream `s`" in error.message
    assert error.message.endswith(f": {file}")
    assert error.detail
    for advice in (
        "ossible fix",
        "ossible sol",
        "given options",
        "Try ",
        "strict_mode",
        "null_padding",
        "ignore_errors",
        "auto_detect",
        "LINE",
    ):
        assert advice not in error.render()


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_an_empty_file_has_no_rows(file_format: str, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    for path in (tmp_path, tmp_path / "a"):
        assert load(stream(path, file_format, {"n": INT, "at": TIMESTAMP})) == []


@pytest.mark.parametrize(("file_format", "options"), [("csv", {"header": False}), ("json", {})])
def test_a_compressed_file_of_nothing_has_no_rows(
    file_format: str, options: dict[str, OptionValue], tmp_path: Path
) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b""))
    assert load(stream(tmp_path, file_format, {"n": INT, "at": TIMESTAMP}, **options)) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"\n"), ("a.csv.gz", gzip.compress(b"", mtime=0))],
    ids=["plain", "compressed"],
)
def test_a_csv_file_without_a_header(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    error = failure(stream(file, "csv", {"n": INT, "at": TIMESTAMP}))
    assert error.hint == "its first line is to be n,at"


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,N\n1,2\n")
    assert "there twice" in failure(stream(file, "csv", {"n": INT})).message


def test_missing_data_is_named(tmp_path: Path) -> None:
    assert failure(stream(tmp_path / "nowhere", "csv")).code == "no-such-path"
    assert failure(stream(tmp_path, "csv")).code == "no-files"
    assert failure(stream(tmp_path, "xml")).code == "no-files"
    (tmp_path / "a.xml").write_text("<a/>")
    assert failure(stream(tmp_path, "xml")).code == "unknown-format"


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('word,number\n"a\nb",1\n\n"c\nd",x\n')
    assert failure(stream(file, "csv", {"number": INT})).detail == f"in {file}, line 5"
    file.write_text("word;a\nb;x\n")
    headless = stream(file, "csv", {"word": STRING, "number": INT}, header=False, delimiter=";")
    assert failure(headless).detail == f"in {file}, line 1"
    with gzip.open(tmp_path / "a.json.gz", "wt") as compressed:
        compressed.write('{"number": 1}\n\n{"number": 2.50}\n')
    file = tmp_path / "a.json.gz"
    error = failure(stream(file, "json", {"number": INT}))
    assert "holds '2.5" in error.message
    file = tmp_path / "b.json"
    for text in ('"x"', "true", "2.5", '{"a":1}', "[1,2]"):
        file.write_text(f'{{"number": 1}}\n{{"number": null}}\n{{"number": {text}}}\n')
        assert failure(stream(file, "json", {"number": INT})).detail == f"in {file}, line 3"
    for bad in ("{]", "[1]", '{"number": 1', "5"):
        file.write_text(f'{{"number": 1}}\n\n{bad}\n')
        error = failure(stream(file, "json", {"number": INT}))
        assert error.detail == "line 3 is no JSON object"
        assert "one object" in error.hint


@pytest.mark.parametrize(
    ("file_format", "content", "hint"),
    [
        ("csv", "number,word\nNULL,a\n", "an empty field is NULL"),
        ("json", '{"number": "NULL"}\n', "NULL is null without quotes"),
        ("csv", "number\tword\n1\ta\n", "separated by a tab: declare delimiter = '\t'"),
        ("csv", "number;word\n1;a\n", "separated by a semicolon: declare delimiter = ';'"),
        ("csv", "1,a\n2,b\n", "its first line is '1,a'"),
        ("csv", "1,a\n2,b\n", "declare header = false"),
        ("csv", "wort,number\na,1\n", "did you mean `wort`?"),
        ("csv", "number,word\n1,a,b\n", "quote values in which a comma is no separator"),
    ],
)
def test_hints_say_how_it_is_written(tmp_path: Path, file_format: str, content: str, hint: str) -> None:
    file = tmp_path / "data"
    file.write_text(content)
    assert hint in failure(stream(file, file_format, {"number": INT, "word": STRING})).hint


def test_the_wrong_file_of_a_folder_is_named(tmp_path: Path) -> None:
    columns = {"n": INT}
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "readme.txt").write_text("This is the data.\n")
    error = failure(stream(tmp_path, "csv", columns))
    assert str(tmp_path / "readme.txt") in error.detail
    assert "all files of the folder are read" in error.hint
    (tmp_path / "readme.txt").unlink()
    (tmp_path / "b.csv").write_text("n\n1,2\n")
    assert failure(stream(tmp_path, "csv", columns)).message.endswith(str(tmp_path / "b.csv"))
    for other in ("json", "parquet"):
        error = failure(stream(tmp_path, other, columns))
        assert error.message.endswith(str(tmp_path / "a.csv"))
        assert error.hint.startswith("the file is called .csv: declare format = 'csv'")


def test_truncated_compressed_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    whole = gzip.compress(b"number\n" + b"\n".join(b"%d" % n for n in range(100_000)))
    for size in (15, len(whole) // 2):
        file.write_bytes(whole[:size])
        assert failure(stream(file, "csv", {"number": INT})).code == "unreadable-data"


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("n\n" + "\n".join(map(str, range(10))) + "\n")
    (tmp_path / "c.csv").write_text("never reached\n")
    table = database().unused_name("first")
    stored_files.load(database(), stream(tmp_path, "csv", {"n": INT}), table, max_rows=15)
    assert database().fetch(f"SELECT count(*), max(c0) FROM {table}") == [(15, 9)]


def test_nothing_stays_of_data_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\nx\n")
    with Database(threads=1) as fresh:
        with pytest.raises(UserError):
            stored_files.load(fresh, stream(tmp_path, "csv", {"n": INT}), '"t"')
        assert fresh.fetch("SHOW TABLES") == []


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
@pytest.mark.parametrize("in_folder", [True, False])
def test_a_secret_path_is_shown_nowhere(tmp_path: Path, file_format: str, in_folder: bool) -> None:
    hidden = tmp_path / "hush[1]" / "hush"
    hidden.parent.mkdir()
    secret = Secret("${DATA}", f"{hidden.parent}//../{hidden.parent.name}/./hush")

    def fails() -> str:
        with pytest.raises(UserError) as raised:
            load(stream(secret, file_format, {"number": INT, "word": STRING}))
        text = "".join(traceback.format_exception(raised.value)) + raised.value.render()
        assert "hush" not in text
        assert "${DATA}" in text
        return raised.value.code

    assert fails() == "no-such-path"
    file = hidden
    if in_folder:
        hidden.mkdir()
        assert fails() == "no-files"
        file = hidden / "a"
    for content in (
        b"\xff",
        b"no\n",
        b"number,word\n1,2,3\n",
        b'number,word\n1,"',
        b"number,word\nx,y\n",
    ):
        file.write_bytes(content)
        assert fails() in ("unreadable-data", "stored-columns", "stored-value")
    if file_format == "parquet":
        file.unlink()
        write_parquet(tmp_path / "made", "SELECT 'a' AS number, 'b' AS word").rename(file)
        assert fails() == "stored-type"


def test_what_the_system_refuses_is_an_error_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_long = "x" * 300
    error = failure(stream(Secret("${DATA}", f"{tmp_path}/{too_long}"), "csv"))
    assert error.code == "unreadable-data"
    assert error.detail == "File name too long"
    assert too_long not in "".join(traceback.format_exception(error))

    def refused(path: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    error = failure(stream(Secret("${DATA}", str(tmp_path)), "csv"))
    assert error.detail == "Permission denied"
    assert str(tmp_path) not in "".join(traceback.format_exception(error))
