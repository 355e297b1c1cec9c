"""How far a run has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import plait
from plait.deployment.fragments import Fragment
from plait.deployment.lowering import fragments
from plait.runtime.reporting import _in_declared_order

STREAM = "CREATE STREAM {} (load INT, at TIMESTAMP, WATERMARK FOR at AS at);"
QUERY = "CREATE CONTINUOUS QUERY {} AS SELECT load FROM {};"


@dataclass(frozen=True)
class MadeUpServing:
    fragment: Fragment


@dataclass(frozen=True)
class MadeUpServed:
    serving: MadeUpServing


def test_queries_come_as_they_are_declared() -> None:
    names = ["Last_one", "b", "another", "d"]
    queries = [QUERY.format(name, stream) for name, stream in zip(names, "stst", strict=True)]
    session = plait.open_text(" ".join([*map(STREAM.format, "st"), *queries]))
    together = fragments(session.plan().deployment, session.workload.catalog, together=True)
    assert [result.query for each in together for result in each.results] != names
    served = [cast(Any, MadeUpServed(MadeUpServing(fragment))) for fragment in together]
    ordered = _in_declared_order(session.workload, served)
    assert [result.query for _, result in ordered] == names
