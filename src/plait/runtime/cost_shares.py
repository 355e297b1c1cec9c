"""Whose the time is that a running system takes.

The time of a fragment is that of its micro-batches. The time of an operator is divided among the queries
that it serves, each the same part; what is left of the fragment's (reading, publishing, noting) among all of
its queries. So the shares of all queries make up the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
            _divide(seconds, operator["queries"], taken)
        _divide(seconds, fragment["queries"], left)
    total = sum(seconds.values())
    return {query: each / total if total else 0.0 for query, each in seconds.items()}


def fragment_shares(recent: Mapping[str, Slot]) -> dict[str, float]:
    """The same by fragment."""
    seconds = {name: slot.sums.get("seconds", 0.0) for name, slot in recent.items()}
    total = sum(seconds.values())
    return {name: each / total if total else 0.0 for name, each in seconds.items()}


def _divide(seconds: dict[str, float], queries: list[str], taken: float) -> None:
    for query in queries:
        seconds[query] = seconds.get(query, 0.0) + taken / len(queries)
