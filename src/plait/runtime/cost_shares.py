"""Whose the time is that a running system takes.

The time of a fragment is that of its micro-batches. The time of an operator is divided among the queries
that it serves, each the same part; what is left of the fragment's (reading, publishing, noting) among all of
its queries. So the shares of all queries make up the whole.

Two operators of Spark's are divided otherwise. A final aggregation has each partial once for every tick of a
window, and the queries that have the window share that. Handing out is a matter of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait.observations import OperatorForm
from plait.runtime.slots import Slot


def cost_shares(fragments: Mapping[str, Mapping[str, Any]], recent: Mapping[str, Slot]) -> dict[str, float]:
    """By query; together they are 1, if anything was computed at all. Fragments are as described."""
    seconds: dict[str, float] = {}
    for name, fragment in fragments.items():
        sums = recent[name].sums if name in recent else {}
        left = sums.get("seconds", 0.0)
        for id_, operator in fragment["operators"].items():
            taken = min(left, sums.get(f"seconds {id_}", 0.0))
            left -= taken
            for query, part in parts(operator, sums).items():
                seconds[query] = seconds.get(query, 0.0) + taken * part
        for query in fragment["queries"]:
            seconds[query] = seconds.get(query, 0.0) + left / len(fragment["queries"])
    total = sum(seconds.values())
    return {query: each / total if total else 0.0 for query, each in seconds.items()}


def fragment_shares(recent: Mapping[str, Slot]) -> dict[str, float]:
    """The same by fragment."""
    seconds = {name: slot.sums.get("seconds", 0.0) for name, slot in recent.items()}
    total = sum(seconds.values())
    return {name: each / total if total else 0.0 for name, each in seconds.items()}


def parts(operator: Mapping[str, Any], sums: Mapping[str, float]) -> dict[str, float]:
    """The parts that queries have of the time of an operator, as described; together they are 1."""
    queries = operator["queries"]
    weights = operator.get("weights")
    if operator.get("form") == OperatorForm.HAND_OUT:
        weights = [sums.get(f"paced {query}", 0.0) for query in queries]
    total = sum(weights) if weights else 0.0
    if not weights or not total:
        return dict.fromkeys(queries, 1 / len(queries))
    return {query: weight / total for query, weight in zip(queries, weights, strict=True)}
