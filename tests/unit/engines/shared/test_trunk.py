"""What a micro-batch does: exactly once, late rows, tables as of the batch, bounded state, refusals.

A query that could be in a family is computed as one, or by its plan, as all other queries are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.engines.shared.feeding import Results, python_rows
from tests.workloads.trunks import compute_by_plans, scans_of, trunk_of

from plait import language
from plait.batches import Batch, BatchRows, Outcome
from plait.deployment.fragments import Result
from plait.deployment.lowering import shared_fragment
from plait.engines.duckdb import Database
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.engines.incremental import slices, state
from plait.errors import ExternalError, InternalError
from plait.expressions.arrow import arrow_schema
from plait.plan.nodes import StreamScan
from plait.rewrite import canonicalise
from plait.runtime.beats import END_OF_TIME_US
from plait.sharing.chains import inputs_of
from plait.space import stream_of

SECOND = 1_000_000
NOON_US = 1_767_268_800 * SECOND
NOON = datetime(2026, 1, 1, 12)

DECLARATIONS = """
CREATE STREAM a (k INT, x INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 10 SECONDS);
CREATE STREAM b (k INT, y INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE names (k INT, name STRING);
"""
COUNTS = "SELECT k, count(*) AS n, window_end FROM a [RANGE 10 SECONDS] GROUP BY k"
PAIRS = "SELECT a.x, b.y FROM a [RANGE 10 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"
ROW_SUMS = "SELECT k, sum(x) AS total FROM a [PARTITION BY k ROWS 3 SLIDE 2] GROUP BY k"


class Running:
    """A query of the streams above, fed by hand: rows are (k, value, seconds after noon)."""

    def __init__(self, select: str, path: Path) -> None:
        workload = language.load_text(f"{DECLARATIONS} CREATE CONTINUOUS QUERY q AS {select};")
        query = workload.query("q")
        self.catalog, self.path = workload.catalog, path
        result = Result("q", query.columns, stream_of(canonicalise(query.plan)))
        self.fragment = shared_fragment("shared-0", [result], self.catalog)
        self.scans = scans_of(self.fragment)
        self.published = Results(result.plan)
        self.open()

    def open(self) -> None:
        self.trunk = trunk_of(self.fragment, self.catalog, self.path)

    def reopen(self) -> None:
        self.trunk.close()
        self.open()

    def apply(
        self,
        batch: int,
        *,
        a: Sequence[tuple[Any, Any, float]] = (),
        b: Sequence[tuple[Any, Any, float]] = (),
        beats: Mapping[str, int] | None = None,
        tables: Mapping[str, Path] | None = None,
        publish: Any = None,
    ) -> Outcome:
        given = {"a": a, "b": b}
        rows = {key: self.rows(scan, given[key]) for key, scan in self.scans.items()}
        outcomes = self.trunk.apply(
            Batch(batch, tables=tables or {}), rows, beats or {}, publish or self.published
        )
        return outcomes["q"]

    def rows(self, scan: StreamScan, given: Sequence[tuple[Any, Any, float]]) -> pa.Table:
        table = pa.table(
            {
                "k": pa.array([k for k, _, _ in given], pa.int32()),
                "value": pa.array([value for _, value, _ in given], pa.int32()),
                "at": pa.array([us(seconds) for *_, seconds in given], pa.int64()),
            }
        )
        columns = {
            f"c{position}": table["k"]
            if field.name == "k"
            else table["at"].cast(pa.timestamp("us", tz="UTC"))
            if field.name == "at"
            else table["value"]
            for position, field in enumerate(scan.columns)
        }
        return pa.table({**columns, "t": table["at"]})

    def drain(self, batch: int) -> Outcome:
        return self.apply(batch, beats={"a": END_OF_TIME_US, "b": END_OF_TIME_US})

    def stored_rows(self) -> int:
        """Rows in all tables but those that tell of the state itself."""
        self.trunk.close()
        with Database(self.path) as database:
            stores = [name for (name,) in database.fetch("SHOW TABLES") if name.startswith("g_")]
            count = sum(database.fetch(f"SELECT count(*) FROM {name}")[0][0] for name in stores)
        self.open()
        return int(count)


def us(seconds: float) -> int:
    return NOON_US + round(seconds * SECOND)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.duckdb"


@pytest.fixture
def by_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    compute_by_plans(monkeypatch)


@pytest.fixture(params=["family", "plan"])
def either(request: pytest.FixtureRequest) -> None:
    if request.param == "plan":
        request.getfixturevalue("by_plans")


@pytest.mark.usefixtures("either")
def test_a_tick_is_given_once_when_the_watermark_reaches_it(path: Path) -> None:
    running = Running(COUNTS, path)
    assert running.apply(0, a=[(1, 0, 3), (1, 0, 19.999999)]) == Outcome(0, {}, us(9.999999))
    assert running.apply(1, a=[(1, 0, 9.999999), (2, 0, 20)]) == Outcome(1, {}, us(10))
    assert running.published.rows == [(1, 2, at(10))]
    assert running.apply(2, a=[(1, 0, 20)]).rows == 0
    running.drain(3)
    assert sorted(running.published.rows[1:]) == [(1, 1, at(20)), (1, 1, at(30)), (2, 1, at(30))]
    assert running.drain(4).rows == 0


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("select", [COUNTS, PAIRS, ROW_SUMS])
def test_results_have_the_types_of_the_query(path: Path, select: str) -> None:
    """`Results` looks at each table of rows."""
    running = Running(select, path)
    running.apply(0)
    running.apply(1, a=[(None, 0, 3), (1, 1, 4), (1, 2, 5)], b=[(1, 0, 5)])
    running.drain(2)
    assert running.published.rows


def test_combinations_of_a_family_come_at_once(path: Path) -> None:
    running = Running(PAIRS, path)
    assert running.apply(0, a=[(1, 1, 0), (1, 2, 100)]) == Outcome(0, {}, None)
    assert running.apply(1, b=[(1, 10, 0)]) == Outcome(1, {}, us(0))
    assert running.published.rows == [(1, 10)]


@pytest.mark.usefixtures("by_plans")
def test_what_waits_is_not_given_before_every_stream_has_a_watermark(path: Path) -> None:
    running = Running(PAIRS, path)
    assert running.apply(0, a=[(1, 1, 0), (1, 2, 100)]).watermark_us is None
    assert running.apply(1, b=[(1, 10, 0)]) == Outcome(0, {}, us(0))
    assert running.apply(2, beats={"b": us(500)}) == Outcome(1, {}, us(90))
    assert running.published.rows == [(1, 10)]


@pytest.mark.usefixtures("either")
def test_beats_of_other_streams_and_those_that_go_back_change_nothing(path: Path) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(1, 0, 30)], beats={"elsewhere": END_OF_TIME_US})
    assert running.apply(1, beats={"a": us(5)}).watermark_us == us(20)


@pytest.mark.usefixtures("either")
def test_late_rows_are_left_out_and_counted(path: Path) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(1, 0, 25)])
    # The watermark is at 15 s: a row just then is in time.
    assert running.apply(1, a=[(1, 0, 14.999999), (1, 0, 15), (1, 0, 3)]).late_rows == {"a": 2}
    running.drain(2)
    assert sorted(running.published.rows) == [(1, 1, at(20)), (1, 1, at(30))]
    assert running.apply(3, a=[(1, 0, 1000)]) == Outcome(0, {"a": 1}, END_OF_TIME_US - 10 * SECOND)


def test_a_late_row_of_several_inputs_counts_once(path: Path) -> None:
    union = "SELECT k FROM a WHERE k IS NULL UNION ALL SELECT k FROM a"
    running = Running(f"SELECT count(*) AS n FROM ({union}) u [RANGE 10 SECONDS]", path)
    assert len([*inputs_of(running.fragment.only.plan)]) == 2
    running.apply(0, beats={"a": us(100)})
    assert running.apply(1, a=[(None, 0, 1), (None, 0, 2), (1, 0, 3)]).late_rows == {"a": 3}


@pytest.mark.usefixtures("either")
def test_a_row_of_the_last_moment_is_given(path: Path) -> None:
    running = Running("SELECT count(*) AS n FROM a [RANGE 1 DAY SLIDE 1 HOUR]", path)
    running.apply(0, a=[(1, 0, 0)])
    types = arrow_schema(["c0"], running.scans["a"].types)
    rows = pa.table({"c0": pa.nulls(1, types.field(0).type), "t": pa.array([LAST_EVENT_TIME_US])})
    running.trunk.apply(Batch(1), {"a": rows}, {}, running.published)
    running.drain(2)
    assert len(running.published.rows) == 24 + 24


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("select", [COUNTS, PAIRS, ROW_SUMS])
def test_a_batch_that_was_done_is_left_alone(path: Path, select: str) -> None:
    running = Running(select, path)
    running.apply(0, a=[(1, 1, 0), (1, 2, 5), (1, 3, 6)], b=[(1, 1, 3)])
    first = running.apply(1, a=[(1, 4, 40), (1, 5, 0)], b=[(1, 2, 40)])
    again = running.apply(1, a=[(1, 4, 40), (1, 5, 0)], b=[(1, 2, 40)])
    assert first == again
    running.reopen()
    assert running.apply(1, a=[(1, 4, 40)]) == first
    assert running.apply(0, a=[(1, 1, 0)]).late_rows == {}
    assert len(running.published.tables) == 2


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("select", [COUNTS, PAIRS, ROW_SUMS])
def test_a_batch_that_fails_after_publishing_is_done_again(path: Path, select: str) -> None:
    undisturbed, running = Running(select, path), Running(select, path.with_name("other.duckdb"))
    batches: list[dict[str, Any]] = [
        {"a": [(1, 1, 0), (2, 2, 5), (1, 3, 6)], "b": [(1, 1, 3), (2, 2, 4)]},
        {"a": [(1, 4, 30), (1, 5, 20)], "b": [(1, 6, 28)]},
        {"a": [(1, 7, 70)], "b": [(1, 8, 90)]},
    ]
    lost = Results(running.fragment.only.plan)

    def publish_and_die(results: Sequence[BatchRows]) -> None:
        lost(results)
        raise KeyboardInterrupt

    for number, rows in enumerate(batches):
        expected = undisturbed.apply(number, **rows)
        with pytest.raises(KeyboardInterrupt):
            running.apply(number, **rows, publish=publish_and_die)
        if number % 2:
            running.reopen()
        assert running.apply(number, **rows) == expected
    given = [sorted(python_rows(table)) for table in running.published.tables]  # a batch has no order
    for other in (undisturbed.published, lost):
        assert [sorted(python_rows(table)) for table in other.tables] == given
    undisturbed.trunk.close()


def test_rows_are_numbered_on_after_a_restart(path: Path) -> None:
    running = Running("SELECT sum(x) AS total FROM a [ROWS 2 SLIDE 3]", path)
    running.apply(0, a=[(1, 1, 0), (1, 2, 1)], beats={"a": us(20)})
    running.reopen()
    running.apply(1, a=[(1, 4, 11), (1, 8, 12)], beats={"a": us(30)})
    running.reopen()
    running.apply(2, a=[(1, 16, 21), (1, 32, 22)])
    running.drain(3)
    assert running.published.rows == [(6,), (48,)]


def table_file(folder: Path, version: int, names: dict[int, str]) -> Path:
    path = folder / f"names-{version}.parquet"
    pq.write_table(
        pa.table({"k": pa.array(list(names), pa.int32()), "name": pa.array(list(names.values()))}), path
    )
    return path


def test_a_tick_sees_the_table_as_of_the_batch_that_closes_it(path: Path) -> None:
    running = Running(
        "SELECT name, count(*) AS n FROM a [RANGE 10 SECONDS], names WHERE a.k = names.k GROUP BY name", path
    )
    old, new = (table_file(path.parent, version, {1: name}) for version, name in enumerate(("old", "new")))
    running.apply(0, a=[(1, 0, 5), (1, 0, 15)], tables={"names": old})
    running.apply(1, a=[(1, 0, 20)], tables={"names": old})
    running.apply(2, a=[(1, 0, 30)], tables={"names": new})
    assert running.published.rows == [("old", 1), ("new", 1)]


def test_rows_given_before_a_table_changed_stay_as_they_are(path: Path) -> None:
    named = "SELECT name FROM a, names WHERE a.k = names.k"
    running = Running(f"SELECT name, count(*) AS n FROM ({named}) m [RANGE 1 MINUTE] GROUP BY name", path)
    old, new = (table_file(path.parent, version, {1: name}) for version, name in enumerate(("old", "new")))
    running.apply(0, a=[(1, 0, 5), (1, 0, 6), (1, 0, 20)], tables={"names": old})
    running.apply(1, a=[(1, 0, 80)], tables={"names": new})
    assert sorted(running.published.rows) == [("new", 1), ("old", 2)]


def test_a_table_that_the_batch_lacks_is_a_bug_of_ours(path: Path) -> None:
    running = Running("SELECT name FROM a, names WHERE a.k = names.k", path)
    with pytest.raises(InternalError, match="names"):
        running.apply(0, a=[(1, 0, 5)])


BOUNDED = {
    "counts": (COUNTS, 25),
    "sliding": ("SELECT max(x) AS top FROM a [RANGE 30 SECONDS SLIDE 1 SECOND]", 45),
    "pairs": (PAIRS, 70),
    "without partner": (
        "SELECT a.x FROM a [RANGE 20 SECONDS] LEFT JOIN b [RANGE 10 SECONDS] ON a.k = b.k WHERE b.k IS NULL",
        100,
    ),
    "rows": (ROW_SUMS, 30),
    "rolled up": (f"SELECT sum(n) AS n FROM ({COUNTS}) c [RANGE 1 MINUTE SLIDE 10 SECONDS]", 40),
    "windows of row windows": (f"SELECT sum(total) AS n FROM ({ROW_SUMS}) c [RANGE 30 SECONDS]", 60),
}


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("name", BOUNDED)
def test_the_state_stays_bounded(path: Path, name: str) -> None:
    select, most = BOUNDED[name]
    running = Running(select, path)
    for batch in range(12):
        rows = [(k % 3, k, 10 * batch + k) for k in range(10)]
        running.apply(batch, a=rows, b=rows)
    left_over = 30  # by the last batch, for the next to delete
    assert 0 < running.stored_rows() <= most + left_over
    running.drain(12)
    running.drain(13)
    assert running.stored_rows() <= (4 * 3 if "ROWS" in select else 0)


def test_a_window_costs_little_until_its_tick_comes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partials of a whole day are not looked at for a tick of a short window, nor anything without a tick."""
    running = Running(COUNTS.replace("10 SECONDS", "1 DAY SLIDE 1 HOUR"), path)
    statements: list[str] = []
    fetch_arrow = Database.fetch_arrow

    def noted(database: Database, sql: str) -> pa.Table:
        statements.append(sql)
        return fetch_arrow(database, sql)

    monkeypatch.setattr(Database, "fetch_arrow", noted)
    for batch, second in enumerate((1, 100, 3599, 3611, 3700)):
        running.apply(batch, a=[(1, 1, second)])
    assert len(statements) == 3  # when there is a watermark at all, at noon, and at one o'clock
    assert running.published.rows == [(1, 3, at(3600))]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("select", [COUNTS, PAIRS, ROW_SUMS])
def test_a_batch_deletes_before_it_inserts(path: Path, monkeypatch: pytest.MonkeyPatch, select: str) -> None:
    """DuckDB 2.0 damages a table if rows are deleted in the transaction that inserted them."""
    running = Running(select, path)
    statements: list[str] = []
    fetch = Database.fetch

    def noted(database: Database, sql: str, parameters: Sequence[object] | None = None) -> Any:
        statements.append(sql)
        return fetch(database, sql, parameters)

    monkeypatch.setattr(Database, "fetch", noted)
    for batch in range(4):
        running.apply(batch, a=[(1, 0, 20 * batch)], b=[(1, 0, 20 * batch)])
    deleted = 0
    inserted: set[str] = set()
    for words in (statement.split() for statement in statements):
        if words[0] == "COMMIT":
            inserted.clear()
        elif words[0] == "INSERT":
            inserted.add(words[2])
        elif words[0] == "DELETE":
            deleted += 1
            assert words[2] not in inserted
    assert deleted > 4  # one a batch is of the batches themselves


@pytest.mark.usefixtures("by_plans")
def test_many_ticks_are_given_in_slices(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    select = "SELECT k, sum(x) AS total, window_end FROM a [RANGE 1 MINUTE SLIDE 1 SECOND] GROUP BY k"
    rows = [(k % 2, k, 7 * k) for k in range(30)]
    whole = Running(select, path)
    whole.apply(0, a=rows)
    whole.drain(1)
    statements: list[str] = []
    fetch_arrow = Database.fetch_arrow

    def counting(database: Database, sql: str) -> pa.Table:
        statements.append(sql)
        return fetch_arrow(database, sql)

    monkeypatch.setattr(slices, "MOST_WRITTEN_ROWS", 100)
    monkeypatch.setattr(Database, "fetch_arrow", counting)
    cut = Running(select, path.with_name("other.duckdb"))
    cut.apply(0, a=rows)
    cut.drain(1)
    assert sorted(cut.published.rows) == sorted(whole.published.rows)
    assert 18 <= len(statements) <= 60


@pytest.mark.usefixtures("either")
def test_ticks_are_made_only_where_rows_are(path: Path) -> None:
    running = Running("SELECT count(*) AS n FROM a [RANGE 2 SECONDS SLIDE 1 SECOND]", path)
    running.apply(0, a=[(1, 0, -1_700_000_000), (1, 0, 0)])
    running.drain(1)
    assert running.published.rows == [(1,)] * 4


def test_a_state_of_another_plan_is_refused(path: Path) -> None:
    Running(COUNTS, path).trunk.close()
    with pytest.raises(ExternalError, match="another plan") as raised:
        Running(PAIRS, path)
    assert raised.value.hint


def test_an_old_copy_of_a_state_is_refused(path: Path) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(1, 1, 0)])
    with pytest.raises(ExternalError, match="older than Spark's") as raised:
        running.apply(2, a=[(1, 1, 40)])
    assert "ends with batch 0, and batch 2 is next" in raised.value.detail
    assert not running.published.tables[1:]
    running.apply(1, a=[(1, 1, 40)])


@pytest.mark.parametrize(("committed", "planned"), [(1, 1), (0, 2), (1, 2)])
def test_a_state_that_fits_sparks_checkpoint(path: Path, committed: int, planned: int) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(1, 1, 0)])
    running.apply(1, a=[(1, 1, 40)])
    running.trunk.check_between(committed, planned)


@pytest.mark.parametrize(
    ("committed", "planned", "age"), [(2, 2, "older"), (0, 0, "newer"), (None, None, "newer")]
)
def test_a_state_that_does_not_fit_sparks_checkpoint_is_refused(
    path: Path, committed: int | None, planned: int | None, age: str
) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(1, 1, 0)])
    running.apply(1, a=[(1, 1, 40)])
    with pytest.raises(ExternalError, match=f"{age} than Spark's"):
        running.trunk.check_between(committed, planned)


def test_a_state_of_another_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Running(COUNTS, path).trunk.close()
    written = state.FORMAT
    monkeypatch.setattr(state, "FORMAT", 99)
    with pytest.raises(ExternalError, match="another version") as raised:
        Running(COUNTS, path)
    assert f"it has format {written}, this version reads and writes format 99" in raised.value.detail


@pytest.mark.parametrize("content", [b"", b"no database", b"\0" * 20_000])
def test_a_file_that_is_no_state_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ExternalError) as raised:
        Running(COUNTS, path)
    assert str(path) in raised.value.detail
    assert raised.value.hint


def test_a_damaged_state_is_refused(path: Path) -> None:
    running = Running(COUNTS, path)
    running.apply(0, a=[(k, 0, k) for k in range(1000)])
    running.trunk.close()
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(bytes(content))
    with pytest.raises(ExternalError):
        Running(COUNTS, path)


def test_another_database_is_no_state(path: Path) -> None:
    with Database(path) as database:
        database.execute("CREATE TABLE something (x INT)")
    with pytest.raises(ExternalError, match="is none"):
        Running(COUNTS, path)


@pytest.mark.parametrize("aggregate", ["count(*)", "count(DISTINCT x)", "stddev(x)"])
def test_a_late_row_between_windows_is_late_for_nobody(path: Path, aggregate: str) -> None:
    running = Running(f"SELECT {aggregate} AS n FROM a [RANGE 10 SECONDS SLIDE 1 MINUTE]", path)
    running.apply(0, a=[(1, 1, 300)])
    outcome = running.apply(1, a=[(1, 1, 30), (1, 1, 55)])  # windows are the last ten seconds of minutes
    assert outcome.late_rows == {"a": 1}
