from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from plait import language
from plait.catalog import Catalog
from plait.engines import sampling
from plait.statistics import Statistics

DECLARATIONS = """
CREATE STREAM s (k INT, word STRING, at TIMESTAMP, WATERMARK FOR at AS at)
  WITH (connector = 'files', path = 's', format = 'csv'{});
CREATE TABLE t (k INT) WITH (connector = 'files', path = 't', format = 'csv');
"""


def declared(folder: Path, stream: list[str], table: list[str] | None = None, options: str = "") -> Catalog:
    for name, header, lines in (("s", "k,word,at", stream), ("t", "k", table or [])):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "data.csv").write_text("\n".join([header, *lines]) + "\n")
    return language.load_text(DECLARATIONS.format(options), base=folder).catalog


def a_row_each_second(count: int) -> list[str]:
    return [f"{n},ab,2026-01-01 12:{n // 60:02}:{n % 60:02}" for n in range(count)]


def value(sampled: Statistics, relation: str, statistic: str) -> float | None:
    estimate = sampled.estimates.get((relation, statistic))
    return None if estimate is None else estimate.value


def test_bad_records_are_left_out_and_reported(tmp_path: Path) -> None:
    bad = ["1,long word,1970-01-01", "2,b,", "3,c,2999-01-01"]
    catalog = declared(tmp_path, [*a_row_each_second(100), *bad], options=", max_future = '1 hour'")
    sampled = sampling.sample(catalog)
    assert value(sampled, "s", "rate") == 1.0
    assert value(sampled, "s", "row_bytes") == 4 + 2 + 8
    (notice,) = sampled.notices
    assert notice.code == "bad-records"
    assert "3 of 103 rows of `s`" in notice.message


def test_a_stream_is_sampled_from_its_start(tmp_path: Path) -> None:
    catalog = declared(tmp_path, ["0,a,2020-01-01", *a_row_each_second(10)], options=", start = '2026-01-01'")
    sampled = sampling.sample(catalog)
    assert value(sampled, "s", "rate") == 1.0
    assert sampled.notices == ()


def test_there_are_never_more_distinct_values_than_rows(tmp_path: Path) -> None:
    for rows in (60, 240, 1000):
        sampled = sampling.sample(declared(tmp_path, a_row_each_second(rows), list(map(str, range(rows)))))
        assert value(sampled, "s", "distinct.k") == rows
        assert value(sampled, "t", "distinct.k") == rows
        assert value(sampled, "t", "rows") == rows


def test_no_more_than_a_sample_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 10)
    catalog = declared(tmp_path, [*a_row_each_second(11), "not read: no number,a,b"], ["1"] * 25)
    sampled = sampling.sample(catalog)
    assert value(sampled, "s", "rate") == 1.0
    assert value(sampled, "t", "rows") == 25
    assert value(sampled, "t", "distinct.k") == 1
    assert [notice.code for notice in sampled.notices] == ["sampled-in-part"] * 2
    assert "`s` come from its first 10 rows" in sampled.notices[0].message
    catalog = declared(tmp_path, a_row_each_second(10), ["1"] * 10)
    assert sampling.sample(catalog).notices == ()


def test_generators_and_databases_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(tmp_path / "house.duckdb") as connection:
        connection.execute("CREATE TABLE rooms AS SELECT range AS plug FROM range(30)")
    text = """
    CREATE STREAM f (num INT, at TIMESTAMP, WATERMARK FOR at AS at)
      WITH (connector = 'generator', generator = 'airline.flights', start = '2026-01-01'{});
    CREATE TABLE rooms (plug BIGINT) WITH (connector = 'duckdb', path = 'house.duckdb');
    """
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 20)
    sampled = sampling.sample(language.load_text(text.format(", end = '2027-01-01'"), base=tmp_path).catalog)
    assert value(sampled, "f", "distinct.num") is not None
    assert (value(sampled, "rooms", "rows"), value(sampled, "rooms", "distinct.plug")) == (30, 21)
    endless = sampling.sample(language.load_text(text.format(""), base=tmp_path).catalog)
    assert {name for name, _ in endless.estimates} == {"rooms"}


def test_nothing_is_known_of_nothing(tmp_path: Path) -> None:
    assert dict(sampling.sample(declared(tmp_path, [], [])).estimates) == {}
    only_bad = sampling.sample(declared(tmp_path, ["1,a,"]))
    assert dict(only_bad.estimates) == {}
    assert len(only_bad.notices) == 1
