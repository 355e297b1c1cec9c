"""Makes the event times of a plan's rows part of its results, so that comparing rows compares them too."""

from __future__ import annotations

from plait.evaluator import StoredData, evaluate
from plait.expressions.nodes import Column, Edge, WindowEdge
from plait.plan.nodes import Node, Project, TickWindow, Window
from plait.workload import Query


def with_event_times(plan: Node) -> Node:
    """The plan's columns, and a last one: where each row is alone in time, a window ends 1 µs after it."""
    columns = [Column(index, type_) for index, type_ in enumerate(plan.types)]
    return Project(Window(plan, TickWindow(range_us=1, slide_us=1)), (*columns, WindowEdge(Edge.END)))


def timed_rows(plan: Node, data: StoredData) -> tuple[tuple[object, ...], ...]:
    timed = with_event_times(plan)
    return evaluate(Query("q", timed, tuple(f"c{i}" for i in range(len(timed.types)))), data).rows
