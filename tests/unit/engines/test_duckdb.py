from __future__ import annotations

import traceback
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from plait.engines.duckdb import Database, quoted
from plait.errors import ExternalError, InfeasibleError


def test_rows_come_as_python_values() -> None:
    with Database() as database:
        assert database.fetch("SELECT 1, NULL, TIMESTAMP '2026-01-01 12:00:00'") == [
            (1, None, datetime(2026, 1, 1, 12))
        ]


def test_times_are_in_utc_whatever_the_machine() -> None:
    with Database() as database:
        assert database.fetch("SELECT TIMESTAMPTZ '2026-01-01 12:00:00+02:00'::TIMESTAMP") == [
            (datetime(2026, 1, 1, 10),)
        ]


def test_nothing_is_loaded_from_a_network() -> None:
    with Database() as database, pytest.raises(ExternalError, match="could not run"):
        database.fetch("SELECT * FROM read_parquet('https://localhost/data.parquet')")


def test_a_failing_statement_is_an_external_error_with_the_reason() -> None:
    with Database() as database, pytest.raises(ExternalError) as raised:
        database.execute("SELECT nothing FROM nowhere")
    assert "nowhere" in raised.value.detail


def test_errors_do_not_show_the_statement() -> None:
    statement = " ".join(["SELECT 1 FROM nowhere", "WHERE", "x = 'hush'"])
    with Database() as database, pytest.raises(ExternalError) as raised:
        database.execute(statement)
    shown = "".join(traceback.format_exception(raised.value))
    assert "WHERE x" not in shown
    assert "LINE" not in shown


def _fail_with_a_temporary_table(database: Database) -> None:
    with database.temporary("t") as name:
        database.execute(f"CREATE TABLE {name} AS SELECT 1")
        database.execute("SELECT nothing")


def test_a_temporary_table_is_gone_afterwards() -> None:
    with Database() as database:
        with pytest.raises(ExternalError):
            _fail_with_a_temporary_table(database)
        assert database.fetch("SHOW TABLES") == []


def test_too_little_memory_is_said_as_such() -> None:
    with Database(memory_bytes=20 * 1024**2) as database, pytest.raises(InfeasibleError) as raised:
        database.execute("CREATE TABLE t AS SELECT range AS a, range::VARCHAR AS b FROM range(20_000_000)")
    assert raised.value.code == "memory"


def test_names_are_quoted_and_never_used_twice() -> None:
    assert quoted('a"b') == '"a""b"'
    with Database() as database:
        assert database.unused_name("t") != database.unused_name("t")


def _fail_in_a_transaction(database: Database, statement: str) -> None:
    with database.transaction():
        database.execute("INSERT INTO numbers VALUES (2)")
        database.execute(statement)
        raise KeyboardInterrupt


def test_a_transaction_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    with Database(tmp_path / "kept.duckdb") as database:
        with database.transaction():
            database.execute("CREATE TABLE numbers AS SELECT 1 AS n")
        with pytest.raises(KeyboardInterrupt):
            _fail_in_a_transaction(database, "SELECT 1")
        with pytest.raises(ExternalError):
            _fail_in_a_transaction(database, "SELECT nothing")
    with Database(tmp_path / "kept.duckdb") as database:
        assert database.fetch("SELECT n FROM numbers") == [(1,)]


def test_rows_go_in_and_out_as_arrow() -> None:
    with Database() as database:
        with database.given(pa.table({"n": [1, 2]})) as rows:
            doubled = database.fetch_arrow(f"SELECT 2 * n AS n FROM {rows} ORDER BY n")
        assert doubled.to_pydict() == {"n": [2, 4]}
        with pytest.raises(ExternalError):
            database.fetch_arrow(f"SELECT * FROM {rows}")


def test_what_fails_within_a_transaction_is_told_also_where_rows_are_given() -> None:
    """DuckDB refuses everything after an error, also to let go of the rows."""
    with Database() as database:
        rows = pa.table({"n": [1]})
        with (
            pytest.raises(ExternalError, match="the disk is full"),
            database.transaction(),
            database.given(rows),
        ):
            database.fetch("SELECT error('the disk is full')")
        assert database.fetch("SELECT 1") == [(1,)]
