"""What Spark's plan of a micro-batch says of our operators."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plait.deployment.measured import Measured
from plait.observations import Kept, OperatorForm
from plait.spark.executed_plan import ExecutedOperator, OtherPlanError, numbers
from plait.spark.measuring import Measures, measures

READ = Measured("read:s", OperatorForm.READ, stream="s")
STATE = {"numTotalStateRows": 7, "stateMemory": 900, "numUpdatedStateRows": 5, "numOutputRows": 3}
TIMES = {"allUpdatesTimeMs": 20, "allRemovalsTimeMs": 5, "commitTimeMs": 10}


class Plan:
    """Spark's operators, from the top: those below one are indented, and its numbers stand beside it."""

    def __init__(self, *operators: tuple[str, Mapping[str, int]]) -> None:
        self._counted = {place: counts for place, (_, counts) in enumerate(operators)}
        self._names = [name for name, _ in operators]

    @property
    def root(self) -> ExecutedOperator:
        found, _ = self._at(0)
        return found

    def _at(self, place: int) -> tuple[ExecutedOperator, int]:
        name, after, inputs = self._names[place], place + 1, []
        depth = len(name) - len(name.lstrip())
        while after < len(self._names) and len(self._names[after]) - len(self._names[after].lstrip()) > depth:
            each, after = self._at(after)
            inputs.append(each)
        return ExecutedOperator(name.strip(), place, tuple(inputs)), after

    def measures(self, operators: Measured, **read: int) -> Measures:
        return measures(operators, self.root, lambda each: self._counted[each.place], read)


def reading(indent: int, rows: int, milliseconds: int = 0) -> list[tuple[str, Mapping[str, int]]]:
    """A stream that is read and filtered."""
    names = (
        "WholeStageCodegen (2)",
        "Project",
        "Filter",
        "InputAdapter",
        "EventTimeWatermark",
        "Filter",
        "Scan",
    )
    counts: dict[str, Mapping[str, int]] = {"Filter": {"numOutputRows": rows}}
    counts["WholeStageCodegen (2)"] = {"pipelineTime": milliseconds}
    return [(" " * (indent + k) + name, counts.get(name, {})) for k, name in enumerate(names)]


def test_reading_gives_what_passes_the_last_filter_above_the_watermark() -> None:
    found = Plan(*reading(0, 40, 12)).measures(READ, s=200)
    assert found.rows == {"read:s": (200, 0, 40)}
    assert found.task_ms == {"read:s": 12}


def test_a_stream_that_brings_nothing_may_be_left_out() -> None:
    assert Plan(("LocalTableScan", {})).measures(READ, s=0).rows == {"read:s": (0, 0, 0)}


def test_an_aggregation_takes_rows_and_not_their_ticks() -> None:
    having = Measured("having", OperatorForm.FILTER, (Measured("sums", OperatorForm.AGGREGATE, (READ,)),))
    plan = Plan(
        ("WholeStageCodegen (4)", {"pipelineTime": 1}),
        (" Filter", {"numOutputRows": 2}),
        ("  HashAggregate", {"numOutputRows": 3}),
        ("   StateStoreSave", STATE | TIMES),
        ("    HashAggregate", {}),
        ("     StateStoreRestore", {}),
        ("      Exchange", {"shuffleBytesWritten": 64}),
        ("       HashAggregate", {}),
        ("        Generate", {"numOutputRows": 80}),
        *reading(9, 40),
    )
    found = plan.measures(having, s=200)
    assert found.rows == {"read:s": (200, 0, 40), "sums": (40, 5, 3), "having": (3, 0, 2)}
    assert found.kept == {"sums": Kept(7, bytes=900)}
    assert found.bytes_moved == {"sums": 64}
    assert found.task_ms == {"read:s": 0, "sums": 35}


def test_a_filter_that_spark_has_moved_below_leaves_nothing_out() -> None:
    having = Measured("having", OperatorForm.FILTER, (Measured("sums", OperatorForm.AGGREGATE, (READ,)),))
    plan = Plan(("StateStoreSave", STATE), (" Exchange", {}), *reading(2, 40))
    assert plan.measures(having, s=200).rows["having"] == (3, 0, 3)


def test_the_finals_of_a_tree_take_partials_once_for_each_window() -> None:
    partials = Measured("partials", OperatorForm.PARTIALS, (READ,))
    finals = Measured("finals", OperatorForm.FINALS, (partials,))
    plan = Plan(
        ("StateStoreSave", STATE),
        (" Exchange", {"shuffleBytesWritten": 8}),
        ("  Generate", {"numOutputRows": 31}),  # ticks
        ("   BroadcastHashJoin", {}),
        ("    Generate", {"numOutputRows": 20}),  # blocks
        ("     StateStoreSave", STATE | {"numOutputRows": 10}),
        ("      Exchange", {"shuffleBytesWritten": 16}),
        *reading(7, 40),
    )
    found = plan.measures(finals, s=200)
    assert found.rows == {"read:s": (200, 0, 40), "partials": (40, 5, 10), "finals": (10, 31, 3)}
    assert found.bytes_moved == {"finals": 8, "partials": 16}


def test_a_join_has_two_sides_and_one_may_be_the_other() -> None:
    other = Measured("read:r", OperatorForm.READ, stream="r")
    join = ("StreamingSymmetricHashJoin", STATE)
    exchange = (" Exchange", {"shuffleBytesWritten": 10})
    plan = Plan(join, exchange, *reading(2, 40), exchange, *reading(2, 50))
    found = plan.measures(Measured("join", OperatorForm.JOIN, (READ, other)), s=200, r=60)
    assert found.rows["join"] == (90, 0, 3)
    assert found.rows["read:r"] == (60, 0, 50)
    assert found.bytes_moved == {"join": 20}
    itself = Plan(join, exchange, *reading(2, 40), (" ReusedExchange", {}))
    found = itself.measures(Measured("join", OperatorForm.JOIN, (READ, READ)), s=200)
    assert found.rows == {"read:s": (200, 0, 40), "join": (80, 0, 3)}


def test_a_plan_that_is_not_known_is_refused() -> None:
    with pytest.raises(OtherPlanError):
        Plan(*reading(0, 40)).measures(Measured("sums", OperatorForm.AGGREGATE, (READ,)), s=200)


def test_what_operators_count_is_read_from_their_text() -> None:
    text = (
        "HashMap(spillSize -> SQLMetric(id: 3, name: Some(spill size), value: 0), "
        "aggTime -> SQLMetric(id: 4, name: Some(time in aggregation build), value: -1), "
        "odd -> SQLMetric(id: 5, name: Some(a, value: b), value: 12))"
    )
    assert numbers(text) == {"spillSize": 0, "aggTime": 0, "odd": 12}
    assert numbers("Map()") == {}
