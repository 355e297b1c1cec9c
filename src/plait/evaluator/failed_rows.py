"""On how many rows of the streams the expressions of a query fail."""

from __future__ import annotations

from datetime import datetime

from plait.engines.event_times import microseconds
from plait.evaluator.stored_data import StoredData
from plait.expressions.duckdb import to_duckdb
from plait.rewrite import canonicalise
from plait.sharing.failing import Check, checks
from plait.workload import Query


def failed_rows(query: Query, data: StoredData, start: datetime | None) -> dict[Check, int]:
    """Those that fail at all. Rows at or before `start` are not seen."""
    found = {}
    for check in checks(canonicalise(query.plan)):
        source = data.stream(check.scan.stream)
        columns = [f"c{source.position(field.name)}" for field in check.scan.columns]
        seen = "true" if start is None else f"t > {microseconds(start)}"
        condition = to_duckdb(check.condition, columns)
        ((count,),) = data.database.fetch(f"SELECT count(*) FROM {source.name} WHERE {seen} AND {condition}")
        if count:
            found[check] = count
    return found
