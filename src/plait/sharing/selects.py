"""Which queries that take single rows of a stream are one pass over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.expressions.nodes import substitute_columns
from plait.plan.nodes import Node, StreamScan
from plait.sharing.chains import chain_above
from plait.sharing.patterns import Pattern, Selection, selection_of
from plait.sharing.shapes import Shaped, shaped


@dataclass(frozen=True)
class SelectKey:
    """What all queries of a pass have in common."""

    scan: StreamScan
    pattern: Pattern


@dataclass(frozen=True)
class WovenSelect:
    """A query that filters and projects the rows of a stream. `shaped` is over the columns of the scan."""

    query: str
    key: SelectKey
    selection: Selection
    shaped: Shaped


def woven_select(
    query: str, plan: Node, scans: Mapping[str, StreamScan], *, tagged: bool = True
) -> WovenSelect | None:
    """How a canonical plan is woven, over the given scan of its stream; None if it cannot be."""
    chain = chain_above(plan)
    if not isinstance(chain.base, StreamScan):
        return None
    scan = scans[chain.base.stream.lower()]
    places = {field.name: index for index, field in enumerate(scan.columns)}
    positions = [places[field.name] for field in chain.base.columns]
    terms = [substitute_columns(term, positions.__getitem__) for term in chain.terms]
    selection = selection_of(terms, len(scan.columns), tagged=tagged)
    expressions = [substitute_columns(each, positions.__getitem__) for each in chain.expressions]
    key = SelectKey(scan, selection.pattern)
    return WovenSelect(query, key, selection, shaped(len(scan.columns), [], expressions))
