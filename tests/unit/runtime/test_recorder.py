"""What is noted of batches, and what plans and shares are made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import language
from plait.batches import Arrived, Outcome, Processed
from plait.deployment.fragments import Result
from plait.deployment.lowering import Engines, fragments
from plait.deployment.measured import measured
from plait.engines.event_times import LAST_EVENT_TIME_US
from plait.observations import ColumnValues, Kept, Observed, OperatorWork, Selected
from plait.planners import driver
from plait.rewrite import canonicalise
from plait.runtime.cost_shares import cost_shares, parts
from plait.runtime.observed import observed_statistics, statistics_from_json, statistics_to_json
from plait.runtime.recorder import Recorder
from plait.runtime.slots import Slot
from plait.runtime.statistics_file import read
from plait.statistics import Basis, Estimate

SECOND = 1_000_000
NOON_US = 1_767_268_800 * SECOND
SQL = """
CREATE STREAM s (k INT, name STRING, at TIMESTAMP, WATERMARK FOR at AS at) WITH (rate = 1000);
CREATE CONTINUOUS QUERY few AS SELECT k FROM s WHERE k = 1;
CREATE CONTINUOUS QUERY sums AS SELECT sum(k) AS n FROM s [RANGE 10 SECONDS] WHERE k > 5;
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "s.sqlite", dict, clock=lambda: 1_000.0)


def batch(recorder: Recorder, rows: int, until_s: float, few: int, observed: Observed | None = None) -> None:
    until_us = NOON_US + int(until_s * SECOND)
    processed = Processed(
        {"few": Outcome(few, {}, until_us)}, {"s": Arrived(rows, until_us if rows else None)}
    )
    recorder.note("shared-0", processed, {"few": until_us}, {"s"}, observed or Observed(), 0.5)


def test_rates_are_rows_over_the_time_that_they_brought(recorder: Recorder) -> None:
    batch(recorder, 500, 0, 50)  # nobody knows how long these took to come
    batch(recorder, 20, 10, 4)
    batch(recorder, 0, 10, 0)
    batch(recorder, 10, 15, 2)
    (slot,) = recorder.recent().values()
    assert (slot.sums["read s"], slot.rate("s")) == (530, 2.0)
    assert (slot.sums["paced few"], slot.rate("few")) == (6, 0.4)
    assert (slot.sums["batches"], slot.sums["seconds"]) == (4, 2.0)


def test_the_end_of_time_has_no_rate(recorder: Recorder) -> None:
    batch(recorder, 5, 0, 0)
    batch(recorder, 20, 10, 4)
    recorder.note(
        "shared-0",
        Processed({"few": Outcome(7)}, {"s": Arrived(0)}),
        {"few": LAST_EVENT_TIME_US + 1},
        (),
        Observed(),
        0.5,
    )
    (slot,) = recorder.recent().values()
    assert slot.rate("few") == 0.4


def test_what_was_noted_is_there_after_the_next_start(recorder: Recorder, tmp_path: Path) -> None:
    batch(recorder, 5, 0, 0, Observed(kept={"tree": Kept(10, 5)}))
    recorder.describe(lambda: {"query": {"few": {"fragment": "shared-0"}}})
    recorder.close()
    slots, documents = read(tmp_path / "s.sqlite")
    assert documents == {"query": {"few": {"fragment": "shared-0"}}}
    again = Recorder(tmp_path / "s.sqlite", dict, clock=lambda: 2_000.0)
    assert again.recent()["shared-0"] == slots[1_000, "shared-0"]
    assert again.recent()["shared-0"].last == {"kept tree": 10, "groups tree": 5}
    again.close()


def test_what_cannot_be_asked_stops_nothing(tmp_path: Path) -> None:
    def fails() -> dict[str, dict[str, float]]:
        raise OSError("gone")

    recorder = Recorder(tmp_path / "s.sqlite", fails)
    recorder.close()


def test_observations_are_statistics_for_new_plans(recorder: Recorder) -> None:
    workload = language.load_text(SQL)
    plans = {query.name: canonicalise(query.plan) for query in workload.queries.values()}
    results = [Result(name, ("c",), plan) for name, plan in plans.items()]
    batch(recorder, 5, 0, 0)
    batch(
        recorder,
        20,
        10,
        4,
        Observed(
            kept={"tree": Kept(10, 5, {"sums": Selected(1.5, 5)})},
            columns={
                "s": {"k": ColumnValues(7.0), "name": ColumnValues(3.0, 2.5)},
                "t": {"k": ColumnValues(9.0)},
            },
        ),
    )
    known = observed_statistics(workload.catalog, recorder.recent(), results, [plans["sums"]])
    assert known.rate_rows_per_s("s") == Estimate(2.0, Basis.OBSERVED)
    assert known.distinct("s", "k") == Estimate(7.0, Basis.OBSERVED)
    assert known.row_bytes("s") == Estimate(4 + 2.5 + 8, Basis.OBSERVED)
    derived = {key: each.value for key, each in known.estimates.items() if key[1] == "derived"}
    assert [*derived.values()] == [1.5]  # the rows that the aggregate takes; `few` is nobody's part
    assert statistics_from_json(statistics_to_json(known)) == known


def test_shares_are_of_the_operators_that_serve_a_query() -> None:
    fragments = {
        "shared-0": {
            "queries": ["a", "b", "c"],
            "operators": {"tree": {"queries": ["a", "b"]}, "pass": {"queries": ["c"]}},
        },
        "d": {"queries": ["d"], "operators": {}},
    }
    recent = {
        "shared-0": Slot({"seconds": 6.0, "seconds tree": 2.0, "seconds pass": 1.0}),
        "d": Slot({"seconds": 4.0}),
    }
    shares = cost_shares(fragments, recent)
    assert shares == pytest.approx({"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.4})
    assert cost_shares(fragments, {}) == {"a": 0, "b": 0, "c": 0, "d": 0}


def test_work_is_counted_by_operator(recorder: Recorder) -> None:
    work = Observed(work={"tree": OperatorWork(10, 4, 2, 0.25)})
    batch(recorder, 5, 0, 0, work)
    batch(recorder, 5, 1, 0, work)
    sums = recorder.recent()["shared-0"].sums
    assert [sums[f"{what} tree"] for what in ("in", "made", "out", "seconds")] == [20, 8, 4, 0.5]


def test_rows_of_an_operator_have_the_rate_of_whose_time_they_come_by(recorder: Recorder) -> None:
    work = Observed(
        work={"read:s": OperatorWork(20, 0, 10, 0.1, 64)},
        clocks={"read:s": "s"},
        kept={"sum": Kept(3, bytes=9)},
    )
    batch(recorder, 20, 0, 0, work)
    batch(recorder, 20, 10, 0, work)
    slot = recorder.recent()["shared-0"]
    assert slot.rate("read:s") == 1.0
    assert (slot.sums["out read:s"], slot.sums["moved read:s"]) == (20, 128)
    assert (slot.last["kept sum"], slot.last["kept_bytes sum"]) == (3, 9)


def test_rows_of_sparks_operators_are_statistics_for_new_plans() -> None:
    workload = language.load_text(SQL)
    deployment = driver.plan(workload, "plait").deployment
    running = {
        each.name: each
        for each in fragments(deployment, workload.catalog, together=False, engines=Engines.SPARK)
    }
    sums = running["sums"]
    assert sums.stages is not None
    reading, *_ = measured(sums.stages.streaming).walk()
    recent = {"sums": Slot({f"paced {reading.id}": 30, f"span {reading.id}": 20})}
    known = observed_statistics(workload.catalog, recent, [], [sums.only.plan], running.values())
    rates = {each.value for (_, what), each in known.estimates.items() if what == "derived"}
    assert rates == {1.5}


def test_handing_out_is_shared_by_rows_and_finals_by_windows() -> None:
    finals = {"form": "final aggregation", "queries": ["a", "b"], "weights": [1.0, 3.0]}
    handing_out = {"form": "handing out", "queries": ["a", "b"]}
    assert parts(finals, {}) == {"a": 0.25, "b": 0.75}
    assert parts(handing_out, {"paced a": 90, "paced b": 10}) == {"a": 0.9, "b": 0.1}
    assert parts(handing_out, {}) == {"a": 0.5, "b": 0.5}  # nobody has got anything
    described = {"woven-0": {"queries": ["a", "b"], "operators": {"f": finals, "h": handing_out}}}
    sums = {"seconds": 4.0, "seconds f": 2.0, "seconds h": 1.0, "paced a": 90, "paced b": 10}
    assert cost_shares(described, {"woven-0": Slot(sums)}) == pytest.approx({"a": 1.9 / 4, "b": 2.1 / 4})
