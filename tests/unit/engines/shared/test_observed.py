"""What a trunk tells of its operators."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.engines.shared.together import NOON_US, fragment_of
from tests.workloads.trunks import scans_of, trunk_of

from plait.batches import Batch
from plait.engines.duckdb import Database
from plait.engines.shared import looks
from plait.engines.shared.looks import HASHES, Looks
from plait.errors import ExternalError
from plait.expressions.arrow import arrow_schema
from plait.expressions.types import INT, STRING
from plait.observations import Kept, Observed, OperatorForm
from plait.plan.nodes import Field, StreamScan

SELECTS = (
    "SELECT v FROM a WHERE k = 1",
    "SELECT v FROM a WHERE k = 2",
    "SELECT k, sum(v) AS n FROM a [RANGE 20 SECONDS SLIDE 10 SECONDS] WHERE v < 50 GROUP BY k",
    "SELECT l.v, r.v AS w FROM a l [RANGE 1 SECOND], a r [RANGE 1 SECOND] WHERE l.k = r.k AND l.v = r.v",
    "SELECT k, count(*) AS n FROM a [ROWS 10 SLIDE 10] GROUP BY k",
)


def rows(scan: StreamScan, first: int, count: int) -> pa.Table:
    """Ten a second; `k` has five values, `v` a hundred."""
    numbers = range(first, first + count)
    times = [NOON_US + n * 100_000 for n in numbers]
    values = {"k": [n % 5 for n in numbers], "g": ["g"] * count, "v": [n % 100 for n in numbers], "at": times}
    schema = arrow_schema([f"c{n}" for n in range(len(scan.columns))], scan.types)
    table = pa.table([values[field.name] for field in scan.columns], schema=schema)
    return table.append_column("t", pa.array(times, pa.int64()))


def observed(tmp_path: Path, batches: int) -> tuple[list[Observed], dict[OperatorForm, str]]:
    fragment, catalog = fragment_of(SELECTS)
    (scan,) = scans_of(fragment).values()
    seen = []
    with closing(trunk_of(fragment, catalog, tmp_path / "state.duckdb")) as trunk:
        for number in range(batches):
            trunk.apply(Batch(number), {"a": rows(scan, number * 100, 100)}, {}, lambda _: None)
            seen.append(trunk.observed)
        trunk.apply(Batch(batches - 1), {}, {}, lambda _: None)
        assert trunk.observed == Observed()  # it was done before
        served = {meter.form: meter for meter in trunk.meters}
        assert served[OperatorForm.PASS].queries == ("q0", "q1")
        return seen, {form: meter.id for form, meter in served.items()}


def test_rows_in_and_out_of_every_operator(tmp_path: Path) -> None:
    seen, ids = observed(tmp_path, 3)
    work = {form: seen[-1].work[id_] for form, id_ in ids.items()}
    assert seen[-1].handed_over["a"].rows == 100
    assert (work[OperatorForm.PASS].rows_in, work[OperatorForm.PASS].rows_out) == (100, 40)
    tree = work[OperatorForm.TREE]
    assert (tree.rows_in, tree.rows_made) == (100, 5)  # a piece of ten seconds, in five groups
    assert tree.rows_out == 5 * 1
    join = work[OperatorForm.JOIN]
    assert (join.rows_in, join.rows_made, join.rows_out) == (100, 100, 100)  # each row meets itself
    assert work[OperatorForm.ROWS].rows_out == 100
    assert work[OperatorForm.PLAN].rows_out == 50
    assert all(each.seconds > 0 for each in work.values())


def test_everything_is_looked_at_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "SHARE", float("inf"))  # there is time enough
    seen, ids = observed(tmp_path, 8)
    kept = {id_: each for observed_ in seen for id_, each in observed_.kept.items()}
    assert kept.keys() == {ids[OperatorForm.TREE], ids[OperatorForm.JOIN], ids[OperatorForm.ROWS]}
    tree = kept[ids[OperatorForm.TREE]]
    assert tree.groups == 5
    assert tree.selected["q2"].groups == 5
    # Of a hundred rows in ten seconds half are taken.
    assert tree.selected["q2"].rows_per_s == pytest.approx(5)
    columns = {name: each for one in seen for name, each in one.columns.get("a", {}).items()}
    assert columns["k"].distinct == 5
    assert columns["v"].distinct == 100


def test_looks_take_a_hundredth_of_the_time(database: Database) -> None:
    now = 0.0
    looked: list[str] = []

    def look(_: Database) -> Kept:
        nonlocal now
        looked.append("t")
        now += 0.1
        return Kept(1)

    watching = Looks(lambda: now)
    for _ in range(1_000):
        watching.taken(database, {"t": look}, {}, {})
        now += 0.1
    assert 9 <= len(looked) <= 12  # a hundred seconds, of which each took 0.1


def test_a_look_that_fails_hurts_nobody(database: Database) -> None:
    def fails(_: Database) -> Kept:
        raise ExternalError("duckdb", "no memory")

    assert Looks().taken(database, {"t": fails}, {}, {}) == ({}, {})


def test_values_are_counted_over_all_batches(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "SHARE", float("inf"))
    scan = StreamScan("a", (Field("n", INT), Field("g", STRING)))
    watching, many = Looks(), 20 * HASHES
    found = {}
    for first in range(0, many, HASHES):
        numbers = range(first, first + HASHES)
        table = pa.table(
            {
                "c0": pa.array([*numbers], pa.int32()),
                "c1": [f"{n % 7:03d}" if n % 2 else None for n in numbers],
            }
        )
        _, columns = watching.taken(database, {}, {"a": scan}, {"a": table})
        found = columns["a"]
    assert found["n"].distinct == pytest.approx(many, rel=0.1)
    assert found["g"].distinct == 7
    assert found["g"].bytes == 3


@pytest.fixture
def database() -> Database:
    return Database()
