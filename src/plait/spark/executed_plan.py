"""The operators by which Spark has computed a micro-batch, and the numbers that they count in any case.

Spark counts for itself what its operators do: rows out, times, bytes between tasks, rows and bytes of state.
Looking at that changes nothing about how a batch is computed, nor about what a checkpoint is of. It takes a
few calls: which operators there are is found out once for plans that look the same, and of each that is asked
for, all numbers come as one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.java_gateway import JavaObject

_METRIC = re.compile(r"(\w+) -> SQLMetric\(id: \d+, name: .*?, value: (-?\d+)\)")
# Stored rows that a streaming join, or an ordinary one, hands to all tasks.
_STORED = "BroadcastExchange"
_MANY_PLANS = 16


@dataclass(frozen=True)
class ExecutedOperator:
    """One of Spark's, by its name; `place` is that in the plan, from the top."""

    name: str
    place: int
    inputs: tuple[ExecutedOperator, ...] = ()


class OtherPlanError(Exception):
    """Spark has computed a batch in a way that is not known."""


class ExecutedPlans:
    """The plans of the batches of one streaming query, which mostly look the same."""

    def __init__(self) -> None:
        self._known: dict[str, ExecutedOperator] = {}

    def root(self, plan: JavaObject) -> ExecutedOperator:
        """The operator at the top of a plan."""
        looks = plan.treeString(False, False, 0, True, False)  # names alone
        if looks not in self._known:
            if len(self._known) >= _MANY_PLANS:
                self._known.clear()
            found, after = _operator(plan, 0)
            if plan.apply(after) is not None:
                raise OtherPlanError("plans within operators have places, too")
            self._known[looks] = found
        return self._known[looks]


def counted(plan: JavaObject, operator: ExecutedOperator) -> Mapping[str, int]:
    """What an operator has counted in a batch, by Spark's names for that; not below 0, which is "nothing"."""
    return numbers(plan.apply(operator.place).metrics().toString())


def numbers(text: str) -> dict[str, int]:
    """
    >>> numbers("Map(numOutputRows -> SQLMetric(id: 14, name: Some(number of output rows), value: 9))")
    {'numOutputRows': 9}
    """
    return {name: max(0, int(value)) for name, value in _METRIC.findall(text)}


def _operator(plan: JavaObject, place: int) -> tuple[ExecutedOperator, int]:
    """The operator at a place, and the next place after all that is below it."""
    node = plan.apply(place)
    inputs, after = [], place + 1
    for _ in range(node.children().length()):
        found, after = _operator(plan, after)
        inputs.append(found)
    streaming = tuple(each for each in inputs if not _is_stored(each))
    return ExecutedOperator(node.nodeName(), place, streaming), after


def _is_stored(operator: ExecutedOperator) -> bool:
    while operator.name == "InputAdapter":
        (operator,) = operator.inputs or (ExecutedOperator(_STORED, 0),)
    return operator.name == _STORED
