"""Plans that filter and project a single stream: what needs neither state nor another row."""

from __future__ import annotations

from dataclasses import dataclass

from plait.expressions.nodes import Column, Expression, conjunction, conjuncts, substitute
from plait.plan.nodes import Filter, Node, Project, StreamScan


@dataclass(frozen=True)
class RowByRow:
    """The rows of a scan for which the predicate is true, with these expressions as columns."""

    scan: StreamScan
    predicate: Expression
    expressions: tuple[Expression, ...]


def row_by_row(plan: Node) -> RowByRow | None:
    """Filters and projections over one scan, all put into one; None if the plan is anything else."""
    match plan:
        case StreamScan():
            columns = (Column(index, type_) for index, type_ in enumerate(plan.types))
            return RowByRow(plan, conjunction([]), tuple(columns))
        case Filter(source, predicate):
            below = row_by_row(source)
            if below is None:
                return None
            terms = (substitute(term, below.expressions.__getitem__) for term in conjuncts(predicate))
            return RowByRow(below.scan, conjunction([*conjuncts(below.predicate), *terms]), below.expressions)
        case Project(source, expressions):
            below = row_by_row(source)
            if below is None:
                return None
            computed = tuple(substitute(each, below.expressions.__getitem__) for each in expressions)
            return RowByRow(below.scan, below.predicate, computed)
        case _:
            return None
