"""What Spark does for a query that runs on its own streaming operators: plain stages, one after the other.

`native_lowering` makes them from a plan, `spark.stage_frames` applies them, `stage_text` explains them. A
stage says which earlier stages it reads (`inputs`, their places in the list) and what relation it computes
(`output`, a plan node: its columns, types and timing). All but the last part are streaming operators in
append mode; the `epilogue` is ordinary work on each micro-batch of their rows, for what needs no state.

Spark closes a tick, or gives up a row of a join, by the watermark that reaches the operator. That is the
query's own, less what the joins below hold back: rows that come out of a join of rows may be as old as the
longest range in it. `hold_ms` is how much that is, in whole milliseconds as Spark counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from plait.expressions.nodes import Expression
from plait.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    StreamScan,
    TickWindow,
    Top,
    Union,
    Window,
)


@dataclass(frozen=True)
class ReadStage:
    """Some columns of a stream, under its watermark."""

    output: StreamScan

    @property
    def inputs(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True)
class SelectStage:
    """Rows left out, or columns computed, row by row."""

    output: Filter | Project
    input: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.input,)


@dataclass(frozen=True)
class UniteStage:
    """All rows of several stages."""

    output: Union
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class KeepStage:
    """Rows that stay for a range, for a join to meet them. The rows of a tick count from just before it."""

    output: Window
    input: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.input,)


@dataclass(frozen=True)
class TicksStage:
    """Every row once for each tick whose window holds it."""

    output: Window
    window: TickWindow
    input: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.input,)


class Distinct(Enum):
    """How different values are counted."""

    NONE = "there are none to count"
    TWO_STEPS = "one group for every value, then a count of the groups"
    SETS = "a set of values in every group"


@dataclass(frozen=True)
class AggregateStage:
    """Groups of every tick, given when the tick is closed."""

    output: Aggregate
    distinct: Distinct
    input: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.input,)


@dataclass(frozen=True)
class IntervalJoinStage:
    """Rows of two stages that meet in time.

    A row of the left is there for at most `left_range_us` from its event time on, one of the right for
    `right_range_us`: this is what Spark forgets rows by. Which rows meet exactly is a matter of the ranges in
    the timings of the output's inputs.
    """

    output: Join | OuterJoin
    left: int
    right: int
    left_range_us: int
    right_range_us: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class TickJoinStage:
    """Rows of two stages at the same tick."""

    output: Join | OuterJoin
    left: int
    right: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.left, self.right)


Stage: TypeAlias = (
    ReadStage
    | SelectStage
    | UniteStage
    | KeepStage
    | TicksStage
    | AggregateStage
    | IntervalJoinStage
    | TickJoinStage
)


@dataclass(frozen=True)
class LookupStage:
    """The rows of a batch joined with a stored table as of that batch: one of the output's inputs."""

    output: Join | OuterJoin


@dataclass(frozen=True)
class TopStage:
    """The first rows of every tick. All rows of a tick come in one batch."""

    output: Top


@dataclass(frozen=True)
class FinishStage:
    """Rows left out, or columns computed, of a batch."""

    output: Filter | Project


EpilogueStage: TypeAlias = LookupStage | TopStage | FinishStage


@dataclass(frozen=True)
class Probe:
    """Where rows of a stream can come too late: on their way into the first operator that keeps state.

    Such a row is one for which `predicate` (over the columns of `scan`) is true. Without a window it is too
    late if its event time is not after the operator's watermark; with one, if the first tick that holds it
    (and for which `tick_predicate` is true) is not.
    """

    scan: StreamScan
    predicate: Expression
    window: TickWindow | None
    tick_predicate: Expression
    hold_ms: int


@dataclass(frozen=True)
class Stages:
    """`hold_ms`: by how much the rows that come out are held back beyond the query's watermark."""

    streaming: tuple[Stage, ...]
    epilogue: tuple[EpilogueStage, ...]
    probes: tuple[Probe, ...]
    hold_ms: int

    @property
    def output(self) -> Node:
        """The relation that all stages together compute."""
        return self.epilogue[-1].output if self.epilogue else self.streaming[-1].output
