"""Queries that see rows after a moment, as plans: for operators that know of no such moment.

A stream is filtered by its event time, and ticks that are not complete are left out
(`plait.windows.beginnings`). Where the database computes, it knows the moment itself. Of a query that is
handed over, rows of the result are given from an event time on from which all are complete: then nothing has
to be left out below.
"""

from __future__ import annotations

from dataclasses import replace

from plait.catalog import Catalog
from plait.deployment.fragments import Result
from plait.expressions.nodes import Call, Column, Literal
from plait.expressions.types import TIMESTAMP
from plait.plan.nodes import Field, Filter, Node, Project, StreamScan, walk_plan
from plait.rewrite import canonicalise
from plait.rewrite.building import with_inputs
from plait.space import stream_of
from plait.windows.beginnings import Beginning
from plait.windows.stretches import ALWAYS


def begun(result: Result, catalog: Catalog) -> Result:
    """The result with a plan that gives nothing else than it sees."""
    if result.after_us is None:
        return result
    ticks = result.plan
    if result.gives == ALWAYS:
        ticks = Beginning(result.after_us).cut(result.plan)
    changed: dict[Node, Node] = {}
    for node in walk_plan(ticks):
        if isinstance(node, StreamScan):
            changed[node] = _rows_after(node, result.after_us, catalog.stream(node.stream).event_time)
        else:
            changed[node] = with_inputs(node, [changed[source] for source in node.inputs])
    return replace(result, plan=stream_of(canonicalise(changed[ticks])))


def _rows_after(scan: StreamScan, after_us: int, event_time: str) -> Node:
    names = [field.name for field in scan.columns]
    whole = scan
    if event_time not in names:
        whole = StreamScan(scan.stream, (*scan.columns, Field(event_time, TIMESTAMP)))
    time = Column([field.name for field in whole.columns].index(event_time), TIMESTAMP)
    rows = Filter(whole, Call("gt", (time, Literal(after_us, TIMESTAMP))))
    if whole is scan:
        return rows
    return Project(rows, tuple(Column(index, type_) for index, type_ in enumerate(scan.types)))
