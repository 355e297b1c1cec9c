"""Finds in Spark's plan of a micro-batch what the operators of a fragment have done.

Our operators (`plait.deployment.measured`) and Spark's are gone through together, from the top. What keeps
state is there in any case; in between there is what Spark has made of the rest:

| Spark's operator | of ours |
|---|---|
| `StateStoreSave` | an aggregation: groups that came out, were touched, are kept |
| `StreamingSymmetricHashJoin` | a join |
| `Filter` | a filter; the last one above `EventTimeWatermark` is of reading |
| `Generate` | rows for each of their ticks, or partials for each window |
| `Exchange` | bytes between tasks, of the operator above |

Spark's times are those of tasks, several at once. What an operator is said to have taken is its part of them,
of the time that the batch took to be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plait.deployment.measured import Measured
from plait.observations import Kept, OperatorForm
from plait.spark.executed_plan import ExecutedOperator, OtherPlanError

_CODEGEN = "WholeStageCodegen"  # what is below has been compiled into one
_EXCHANGE = "Exchange"
_FILTER = "Filter"
_GENERATE = "Generate"
_JOIN = "StreamingSymmetricHashJoin"
_REUSED = "ReusedExchange"
_SAVE = "StateStoreSave"
_UNION = "Union"
_WATERMARK = "EventTimeWatermark"
# Times of an operator that keeps state. They contain what comes before it, as far back as an exchange.
_STATE_TIMES = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
_ROWS = "numOutputRows"

Numbers = Callable[[ExecutedOperator], Mapping[str, int]]


@dataclass
class Measures:
    """By operator: rows in, made and out, bytes that were moved for it, milliseconds of tasks, and what it
    keeps."""

    rows: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    bytes_moved: dict[str, int] = field(default_factory=dict)
    task_ms: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)


def measures(
    operator: Measured, root: ExecutedOperator, numbers: Numbers, read: Mapping[str, int]
) -> Measures:
    """Of a batch that has `read` so many rows of streams, by key."""
    measuring = _Measuring(numbers, read)
    measuring.rows_of(operator, root)
    return measuring.found


class _Measuring:
    def __init__(self, numbers: Numbers, read: Mapping[str, int]) -> None:
        self.found = Measures()
        self._numbers = numbers
        self._read = read

    def rows_of(self, operator: Measured, at: ExecutedOperator) -> int:
        """The rows that come out of an operator, which Spark has computed at that one or below."""
        match operator.form:
            case OperatorForm.READ:
                return self._reading(operator, at)
            case OperatorForm.FILTER:
                return self._filter(operator, at)
            case OperatorForm.UNION:
                return self._union(operator, at)
            case OperatorForm.JOIN | OperatorForm.TICK_JOIN:
                return self._join(operator, at)
            case _:
                return self._aggregation(operator, at)

    def _reading(self, operator: Measured, at: ExecutedOperator) -> int:
        passing = compiled = None
        while at.name != _WATERMARK and at.inputs:
            if at.name.startswith(_CODEGEN) and passing is None:
                compiled = at
            if at.name == _FILTER:
                passing = passing or at
            at = _below(at)
        if at.name == _REUSED:
            return self.found.rows.get(operator.id, (0, 0, 0))[2]  # the same, computed once
        read = self._read[operator.stream or ""]
        # A stream that brings nothing may be left out, and what is done with its rows with it.
        rows = 0 if passing is None else self._numbers(passing)[_ROWS]
        self._note(operator, read, 0, rows)
        if compiled is not None:
            self._took(operator, self._numbers(compiled).get("pipelineTime", 0))
        return rows

    def _filter(self, operator: Measured, at: ExecutedOperator) -> int:
        at = _first(at, (_FILTER, _GENERATE, _SAVE, _JOIN, _UNION, _WATERMARK))
        passing = at if at.name == _FILTER else None
        while at.name == _FILTER:
            at = _below(at)
        before = self.rows_of(operator.inputs[0], at)
        # One that Spark has moved below: all is gone already that it leaves out.
        rows = before if passing is None else self._numbers(passing)[_ROWS]
        self._note(operator, before, 0, rows)
        return rows

    def _union(self, operator: Measured, at: ExecutedOperator) -> int:
        at = _first(at, (_UNION,))
        rows = self._inputs(operator, at)
        self._note(operator, rows, 0, rows)
        return rows

    def _join(self, operator: Measured, at: ExecutedOperator) -> int:
        at = _first(at, (_JOIN,))
        rows_in = self._inputs(operator, at)
        return self._with_state(operator, at, rows_in, 0)

    def _aggregation(self, operator: Measured, at: ExecutedOperator) -> int:
        at = _first(at, (_SAVE,))
        below = _below(at)
        rows_in = self.rows_of(operator.inputs[0], below)
        made = None
        if operator.form is OperatorForm.FINALS:
            each = _first(below, (_GENERATE, _SAVE))
            made = self._numbers(each)[_ROWS] if each.name == _GENERATE else 0
        return self._with_state(operator, at, rows_in, made)

    def _inputs(self, operator: Measured, at: ExecutedOperator) -> int:
        if len(at.inputs) != len(operator.inputs):
            raise OtherPlanError(at.name)
        return sum(self.rows_of(own, each) for own, each in zip(operator.inputs, at.inputs, strict=True))

    def _with_state(self, operator: Measured, at: ExecutedOperator, rows_in: int, made: int | None) -> int:
        """`made` of an aggregation are the groups that were touched, if nothing else."""
        numbers = self._numbers(at)
        self._note(
            operator, rows_in, numbers["numUpdatedStateRows"] if made is None else made, numbers[_ROWS]
        )
        self._took(operator, sum(numbers.get(each, 0) for each in _STATE_TIMES))
        self.found.kept[operator.id] = Kept(numbers["numTotalStateRows"], bytes=numbers.get("stateMemory", 0))
        exchanges = [_first(each, (_EXCHANGE, _SAVE, _JOIN, _WATERMARK), else_=each) for each in at.inputs]
        self.found.bytes_moved[operator.id] = sum(
            self._numbers(each).get("shuffleBytesWritten", 0) for each in exchanges if each.name == _EXCHANGE
        )
        return numbers[_ROWS]

    def _note(self, operator: Measured, rows_in: int, made: int, out: int) -> None:
        self.found.rows[operator.id] = rows_in, made, out

    def _took(self, operator: Measured, milliseconds: int) -> None:
        so_far = self.found.task_ms.get(operator.id, 0)
        self.found.task_ms[operator.id] = so_far + milliseconds


def _below(at: ExecutedOperator) -> ExecutedOperator:
    if len(at.inputs) != 1:
        raise OtherPlanError(at.name)
    return at.inputs[0]


def _first(
    at: ExecutedOperator, names: tuple[str, ...], *, else_: ExecutedOperator | None = None
) -> ExecutedOperator:
    """The first of these, from here downwards."""
    while at.name not in names:
        if else_ is not None and len(at.inputs) != 1:
            return else_
        at = _below(at)
    return at
