"""What is observed of a fragment on Spark's own operators: who is counted, and what a micro-batch has shown.

Numbers are looked up when a batch is computed (`measuring`), and nothing depends on them: of a batch that
Spark has computed in a way that is not known, only the rows that were handed out are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter

from plait.batches import Processed
from plait.deployment.measured import HAND_OUT, Measured
from plait.observations import NOTHING, Meter, Observed, OperatorForm
from plait.spark.counted_rows import Counting
from plait.spark.executed_plan import ExecutedPlans, counted
from plait.spark.measuring import Measures, measures


class Observing:
    """Of operators that serve these queries, the last of which hands its rows out. `observed` is of the last
    batch."""

    def __init__(self, operators: Measured, queries: Sequence[str]) -> None:
        self.observed: Observed = NOTHING
        self._operators = operators
        self._plans = ExecutedPlans()
        self._computing_seconds = 0.0
        own = {each.id: each for each in operators.walk()}
        self._meters = {
            id_: Meter(
                id_,
                each.form,
                queries,
                [each.stream] if each.stream else (),
                weights=each.weights,
                windows_per_s=each.windows_per_s,
            )
            for id_, each in own.items()
        }
        self._hand_out = Meter(HAND_OUT, OperatorForm.HAND_OUT, queries)
        # Whose time the rows come by that an operator gives.
        self._clocks = {
            id_: queries[0] if each.keeps_state or each.stream is None else each.stream
            for id_, each in own.items()
        }

    @property
    def meters(self) -> tuple[Meter, ...]:
        """As rows go."""
        return (*self._meters.values(), self._hand_out)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """While Spark computes a batch."""
        began = perf_counter()
        yield
        self._computing_seconds = perf_counter() - began

    @contextmanager
    def handing_out(self) -> Iterator[None]:
        """While rows are published."""
        with self._hand_out.timed():
            yield

    def note(self, counting: Counting, processed: Processed) -> None:
        """Look at a batch that is computed, and was handed out."""
        read = {stream: arrived.rows for stream, arrived in processed.arrived.items()}
        given = sum(outcome.rows for outcome in processed.outcomes.values())
        found, handed_over = Measures(), 0
        # However Spark comes to make its plans: what it says of them never stops a run.
        with suppress(Exception):
            plan = counting.executed_plan
            root = self._plans.root(plan)
            found = measures(self._operators, root, lambda operator: counted(plan, operator), read)
            handed_over = found.rows[self._operators.id][2]
        for id_, seconds in self._seconds(found.task_ms).items():
            self._meters[id_].count(seconds=seconds)
        for id_, (rows_in, made, out) in found.rows.items():
            moved = found.bytes_moved.get(id_, 0)
            self._meters[id_].count(rows_in=rows_in, made=made, out=out, bytes_moved=moved)
        self._hand_out.count(rows_in=handed_over, out=given)
        self.observed = Observed(
            work={meter.id: meter.taken() for meter in self.meters},
            kept=found.kept,
            clocks=self._clocks if found.rows else {},
        )

    def _seconds(self, task_ms: Mapping[str, int]) -> dict[str, float]:
        """The time that the batch took to be computed, as operators have parts in it."""
        total = sum(task_ms.values())
        return {id_: self._computing_seconds * each / total for id_, each in task_ms.items() if total}
