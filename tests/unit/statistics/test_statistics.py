from __future__ import annotations

from pathlib import Path

import pytest

from plait import language
from plait.engines.sampling import sample
from plait.statistics import (
    Assumption,
    Basis,
    Estimate,
    Known,
    Statistics,
    declared,
    notices_of,
)

CATALOG = """
CREATE STREAM flights (num INT, gate STRING, late BOOLEAN, at TIMESTAMP,
                       WATERMARK FOR at AS at - INTERVAL 10 SECONDS)
  WITH (rate = '1500/5 min', distinct.num = 1500);
CREATE TABLE planes (num INT, seats INT) WITH (rows = 300, row_bytes = 20);
"""


def test_declarations_are_statistics() -> None:
    known = declared(language.load_text(CATALOG).catalog)
    assert known.rate_rows_per_s("FLIGHTS") == Estimate(5.0, Basis.DECLARED)
    assert known.distinct("flights", "Num") == Estimate(1500, Basis.DECLARED)
    assert known.rows("planes") == Estimate(300, Basis.DECLARED)
    assert known.row_bytes("planes") == Estimate(20, Basis.DECLARED)


def test_unknown_is_not_zero() -> None:
    known = declared(language.load_text(CATALOG).catalog)
    assert known.distinct("flights", "gate") is None
    assert known.row_bytes("flights") is None
    assert Statistics({}).rate_rows_per_s("flights") is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [(Basis.OBSERVED, Basis.DECLARED), (Basis.DECLARED, Basis.SAMPLED), (Basis.SAMPLED, Basis.ASSUMED)],
)
def test_what_is_known_better_wins(better: Basis, worse: Basis) -> None:
    key = ("s", "rate")
    one, other = Statistics({key: Estimate(1, better)}), Statistics({key: Estimate(2, worse)})
    assert one.with_(other).estimates[key].value == 1
    assert other.with_(one).estimates[key].value == 1


def test_what_is_unknown_is_assumed_and_said() -> None:
    catalog = language.load_text(CATALOG).catalog
    known = Known(Statistics({}))
    flights = catalog.stream("flights")
    rate, gates = known.rate_rows_per_s(flights), known.distinct(flights, "gate")
    assert isinstance(rate, Assumption)
    assert isinstance(gates, Assumption)
    (notice,) = notices_of([rate, gates, gates])
    assert "`flights`" in notice.message
    assert "rate = 100" in notice.message
    assert "distinct.gate = …" in notice.hint
    assert "plait plan --sample" in notice.hint


def test_no_more_values_are_assumed_than_a_table_has_rows() -> None:
    text = "CREATE TABLE few (id INT) WITH (rows = 8); CREATE TABLE none (id INT) WITH (rows = 0);"
    catalog = language.load_text(text).catalog
    known = Known(declared(catalog))
    assert known.distinct(catalog.table("few"), "id") == Assumption("few", "distinct.id", 8.0)
    assert known.distinct(catalog.table("none"), "id") == Assumption("none", "distinct.id", 1.0)


def test_what_types_say_is_no_assumption() -> None:
    catalog = language.load_text(CATALOG).catalog
    known = Known(Statistics({}))
    assert known.distinct(catalog.stream("flights"), "late") == Estimate(2.0, Basis.DECLARED)
    assert known.row_bytes(catalog.table("planes")) == Estimate(8.0, Basis.DECLARED)
    assert isinstance(known.row_bytes(catalog.stream("flights")), Assumption)


def test_stored_data_is_sampled(tmp_path: Path) -> None:
    folder = tmp_path / "readings"
    folder.mkdir()
    lines = [f"{n % 4},ab,2024-01-01T00:00:{n:02}Z" for n in range(11)]
    (folder / "part.csv").write_text("\n".join(["plug,unit,at", *lines]) + "\n")
    catalog = language.load_text(
        """
        CREATE STREAM readings (plug INT, unit STRING, at TIMESTAMP,
                                WATERMARK FOR at AS at - INTERVAL 1 SECOND)
          WITH (connector = 'files', path = 'readings', format = 'csv');
        CREATE STREAM elsewhere (x INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND);
        """,
        base=tmp_path,
    ).catalog
    sampled = sample(catalog)
    assert sampled.rate_rows_per_s("readings") == Estimate(1.0, Basis.SAMPLED)
    assert sampled.distinct("readings", "plug") == Estimate(4.0, Basis.SAMPLED)
    assert sampled.distinct("readings", "unit") == Estimate(1.0, Basis.SAMPLED)
    assert sampled.row_bytes("readings") == Estimate(4 + 2 + 8, Basis.SAMPLED)
    assert sampled.rate_rows_per_s("elsewhere") is None
