"""The benchmark of sharing: its workloads are what it says, and its comparison notices what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import wait_until

from plait import language
from plait.benchmarks.report import Report
from plait.benchmarks.sharing import aggregates, comparisons, floor, joins, live, sides
from plait.benchmarks.sharing.plain_spark import read_files
from plait.errors import InfeasibleError
from plait.evaluator import StoredData, evaluate


def test_a_thousand_queries_have_hundreds_of_windows_that_plain_spark_can_say() -> None:
    windows = aggregates.random_windows(1_000)
    assert len({(window.range_s, window.slide_s) for window in windows}) >= 200
    assert all(window.slide_s <= window.range_s <= 10 * window.slide_s for window in windows)
    assert aggregates.random_windows(20) == windows[:20]


@pytest.mark.parametrize(
    ("sql", "queries"),
    [
        (aggregates.sql(Path("readings"), aggregates.random_windows(30)), 30),
        (aggregates.having_sql(Path("readings"), 10.0), len(aggregates.FEW_WINDOWS)),
        (joins.sql(Path("airline"), joins.single_flights(10)), 10),
        (joins.sql(Path("airline"), joins.ranges_of_flights(10)), 10),
        (live.airline_sql(), live.AIRLINE_QUERIES),
        (live.plugs_sql(Path("measurements")), live.PLUG_QUERIES),
    ],
    ids=["aggregates", "groups", "joins", "ranges", "airline", "plugs"],
)
def test_workloads_are_declared_rightly(sql: str, queries: int) -> None:
    assert len(language.load_text(sql).queries) == queries


def test_the_floor_is_computed_over_the_same_rows(tmp_path: Path) -> None:
    aggregates.write_readings(tmp_path / "readings", 1_000, 4)
    assert floor.database_s(tmp_path / "readings", aggregates.random_windows(3)) > 0


def test_plain_spark_does_not_look_for_the_columns_of_its_streams(tmp_path: Path) -> None:
    session = MagicMock()
    read_files(session, tmp_path, aggregates.COLUMNS, 0)
    session.readStream.schema.assert_called_once_with(aggregates.COLUMNS)
    session.read.parquet.assert_not_called()


def test_the_time_of_a_batch_is_that_of_all_of_it_in_the_second_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the streaming query that takes longest."""
    running = MagicMock()
    running.whole_batch_seconds.side_effect = [
        {"shared-0": {0: 9.0, 1: 8.0}, "intake": {0: 0.1}},
        {"shared-0": {1: 8.0, 2: 0.5, 3: 0.6, 4: 0.7}, "intake": {0: 0.1, 1: 0.2, 2: 0.3}},
    ]
    opened = MagicMock()
    opened.__enter__.return_value.run.return_value = running
    monkeypatch.setattr(live, "_session", lambda *_: opened)
    airline = live.run_airline(MagicMock(), 20.0)
    assert airline.batch_s == 0.6
    assert airline.batch_p95_s >= 0.7
    assert [call.args for call in running.wait.call_args_list] == [(10.0,), (10.0,)]


def test_too_few_batches_are_no_measure() -> None:
    with pytest.raises(InfeasibleError, match="hardly any micro-batch"):
        live._slowest_since({"shared-0": {0: 9.0}}, {"shared-0": {0: 9.0, 1: 9.0}})


def test_a_tick_is_closed_by_the_first_file_with_a_row_from_its_end_on(tmp_path: Path) -> None:
    folder = tmp_path / "measurements"
    with live.MeasurementFiles(folder) as arrivals:
        wait_until(lambda: len([*folder.glob("0*")]) >= 8)
    files = sorted(folder.glob("0*"))
    newest = [max(pq.read_table(file)["ts"].to_pylist()).timestamp() for file in files]
    later = next(number for number, second in enumerate(newest) if second > newest[0])
    for number in (0, later):
        before_s = files[number].stat().st_mtime
        after_s = files[number].stat().st_ctime
        assert before_s <= arrivals.closing_s(newest[number]) <= after_s + 0.01  # clocks of files are coarse


@pytest.mark.parametrize("groups", [100, 10_000])
def test_queries_of_the_busiest_groups_have_rows_of_few(groups: int, tmp_path: Path) -> None:
    rows = 300_000
    aggregates.write_readings(tmp_path / "readings", rows, 2, groups)
    workload = language.load_text(
        aggregates.having_sql(tmp_path / "readings", aggregates.ROWS_PER_S / groups)
    )
    with StoredData.from_catalog(workload.catalog) as data:
        given = [len(evaluate(query, data).rows) for query in workload.queries.values()]
    ticks = rows / aggregates.ROWS_PER_S / min(slide for _, slide in aggregates.FEW_WINDOWS)
    assert any(given)
    assert max(given) < 0.1 * groups * ticks


def test_groups_are_computed_on_each_engine_alone_and_medians_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"duckdb": [2.0, 9.0, 1.0], "spark": [3.0, 3.0, 0.1]}
    ran: list[str] = []

    class Made:
        def __init__(self, sql: str, session: object, *, engines: str, kept: Sequence[str]) -> None:
            del sql, session
            self._engine = engines
            self._tables = {name: pa.table({"n": [1]}) for name in kept}

        def __call__(self) -> sides.Measured:
            runs = ran.count(self._engine)
            ran.append(self._engine)
            return sides.Measured(seconds[self._engine][runs % 3], 1, 0.0, 0.0, self._tables)

    monkeypatch.setattr(comparisons, "Together", Made)
    monkeypatch.setattr(comparisons, "GROUPS", (100,))
    report = Report("sharing", False)
    size = replace(comparisons._FULL, grouped_rows=1_000, spark_runs=3)
    comparisons._groups(tmp_path, cast(Any, None), size, report, lambda _: None)
    assert ran == ["duckdb", "spark"] * 3
    assert report.figures["groups_100_duckdb_seconds"] == 2.0
    assert report.figures["groups_100_spark_seconds"] == 3.0
    assert all(claim.holds for claim in report.claims)


def gate_rows(*flights: int) -> pa.Table:
    return pa.table({"num": flights, "gate": ["A1" for _ in flights]})


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("", []),
        ("joins of 10 any", ["gate_0001 among 10"]),
        ("joins of 100 any", ["gate_0001 among 100"]),
        ("joins of 300 any", ["gate_0001 among 300"]),
        ("joins of 10 spark", ["gate_0001 on Spark alone"]),
        ("ranges of 10 any", ["gates_0000 among 10"]),
        ("ranges of 300 any", ["gates_0000 among 300"]),
    ],
)
def test_rows_of_all_joins_are_held_against_plain_spark(
    wrong: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_of = {gate.name: gate.first for gate in (*joins.single_flights(10), *joins.ranges_of_flights(10))}

    class Made:
        def __init__(self, sql: str, session: object, *, engines: str, kept: Sequence[str]) -> None:
            del session
            kind = "ranges" if "BETWEEN" in sql else "joins"
            self._tables = {name: gate_rows(first_of[name]) for name in kept}
            if wrong == f"{kind} of {sql.count('CONTINUOUS QUERY')} {engines}":
                self._tables[kept[0]] = gate_rows(first_of[kept[0]], first_of[kept[0]])

        def __call__(self) -> sides.Measured:
            return sides.Measured(1.0, 1, 0.0, 0.0, self._tables)

    of_flights = {gate.name: gate_rows(gate.first) for gate in joins.single_flights(10)}
    of_all = gate_rows(*(gate.first for gate in joins.ranges_of_flights(10)), 5_000)
    monkeypatch.setattr(comparisons, "Together", Made)
    monkeypatch.setattr(joins, "write_airline", lambda *_: None)
    monkeypatch.setattr(sides, "plain_spark", lambda *_: sides.Measured(10.0, 1, 0.0, 0.0, of_flights))
    monkeypatch.setattr(sides, "plain_rows", lambda *_: of_all)
    report = Report("sharing", True)
    comparisons._joins(tmp_path, cast(Any, None), comparisons._QUICK, report, lambda _: None)
    compared = [claim for claim in report.claims if claim.source == "plain Spark"]
    assert [claim.why_not for claim in compared if not claim.holds] == found
    assert report.figures["joins_queries_compared"] == 40
    assert report.figures["range_filters_queries_compared"] == 20


def test_the_rows_of_a_query_are_among_those_of_all_flights() -> None:
    assert joins.ranges_of_flights(300)[:10] == joins.ranges_of_flights(10)
    assert joins.of_gate(joins.Gate("g", 3, 5), gate_rows(2, 3, 5, 6, 4)) == gate_rows(3, 5, 4)


def test_equal_rows_are_some_rows() -> None:
    report = Report("sharing", True)
    empty = sides.Measured(1.0, 0, 0.0, 0.0, {"q": pa.table({"n": pa.array([], pa.int64())})})
    some = sides.Measured(1.0, 1, 0.0, 0.0, {"q": pa.table({"n": [1]})})
    other = sides.Measured(1.0, 1, 0.0, 0.0, {"q": pa.table({"n": [2]})})
    for ours, theirs in ((empty, empty), (some, some), (some, other)):
        comparisons._no_difference(report, "same", "them", {"": ours}, theirs.tables)
    assert [claim.holds for claim in report.claims] == [False, True, False]
    assert report.claims[2].why_not == "q"


def test_rows_are_compared_by_value_in_any_order() -> None:
    ours = pa.table({"plug": pa.array([1, 2], pa.int32()), "n": pa.array([5, 6], pa.int64())})
    never_null = pa.schema([pa.field("plug", pa.int32(), nullable=False), pa.field("n", pa.int64())])
    theirs = pa.table({"plug": [2, 1], "n": [6, 5]}, schema=never_null)
    assert sides.differences({"q": ours}, {"q": theirs}) == []
    assert sides.differences({"q": ours}, {"q": theirs.slice(1)}) == ["q"]
    assert sides.differences({"q": ours}, {"q": pa.table({"plug": [2, 1], "n": [6, 4]})}) == ["q"]


def test_charts_show_what_was_measured() -> None:
    keys = [f"aggregates_{n}" for n in comparisons.AGGREGATE_COUNTS]
    keys += [f"joins_{n}" for n in comparisons.JOIN_COUNTS] + ["range_filters_10", "range_filters_300"]
    keys += [f"aggregates_{side}_20" for side in ("plain_spark", "spark_only")]
    keys += [f"joins_{side}_10" for side in ("plain_spark", "spark_only")]
    report = Report("sharing", False, {f"{key}_seconds": 5.0 for key in keys})
    comparisons.draw_charts(report)
    assert list(report.charts) == ["aggregates", "joins"]
    assert [len(series.points) for series in report.charts["aggregates"].series] == [5, 1, 1]
    assert [len(series.points) for series in report.charts["joins"].series] == [3, 1, 1, 2]
    report.figures |= {
        f"groups_{n}_{engine}_seconds": 5.0 for n in (100, 10_000) for engine in ("duckdb", "spark")
    }
    comparisons.draw_charts(report)
    assert [len(series.points) for series in report.charts["groups"].series] == [2, 2]
