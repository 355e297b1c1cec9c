"""Plans that filter and project a single stream: what needs neither state nor another row."""

from __future__ import annotations

from dataclasses import dataclass

from plait.expressions.nodes import Expression, conjunction
from plait.plan.nodes import Node, StreamScan
from plait.sharing.chains import chain_above


@dataclass(frozen=True)
class RowByRow:
    """The rows of a scan for which the predicate is true, with these expressions as columns."""

    scan: StreamScan
    predicate: Expression
    expressions: tuple[Expression, ...]


def row_by_row(plan: Node) -> RowByRow:
    """The filters and projections of a fragment's input over its scan, all put into one."""
    chain = chain_above(plan)
    assert isinstance(chain.base, StreamScan), plan.kind
    return RowByRow(chain.base, conjunction(chain.terms), chain.expressions)
